//! Within a process: beside the ring buffer of the crate rtrb.

use super::{attr, Message, CAPACITY};
use crate::side_by_side::{in_turns, Subject, Windows};
use crate::{threads, Bench, Failure};
use punctual_ipc::{Access, Content, Fifo};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::sched::pin;
use std::hint::{black_box, spin_loop};
use std::sync::Barrier;

/// Tries to put a message.
trait Put: FnMut(&Message) -> bool + Send {}
impl<F: FnMut(&Message) -> bool + Send> Put for F {}

/// Tries to get a message, and makes it one that is used.
trait Get: FnMut() -> bool + Send {}
impl<F: FnMut() -> bool + Send> Get for F {}

fn ring() -> (impl Put, impl Get) {
    let (mut producer, mut consumer) =
        rtrb::RingBuffer::<Message>::new(CAPACITY / size_of::<Message>());
    let put = move |message: &Message| producer.push(*message).is_ok();
    let get = move || {
        consumer.pop().is_ok_and(|message| {
            black_box(&message);
            true
        })
    };
    (put, get)
}

fn fifo(content: Content, access: Access) -> Result<(impl Put, impl Get), Failure> {
    let fifo = Fifo::unnamed(attr(content))?;
    let (mut writer, mut reader) = (fifo.writer(access)?, fifo.reader(access)?);
    let mut into: Message = [0; 64];
    let put = move |message: &Message| writer.put(message).is_ok();
    let get = move || {
        reader.get(&mut into).is_ok_and(|_| {
            black_box(&into);
            true
        })
    };
    Ok((put, get))
}

/// A put and a get in the same thread, ns.
pub fn one_thread(bench: &Bench) -> Result<Windows<f64>, Failure> {
    let pairs = if bench.quick { 1_000_000 } else { 5_000_000 };
    let (cpu, alone) = (bench.cpu, Access::Exclusive);
    let subjects = vec![
        Subject::new("rtrb", || pair(cpu, pairs, ring())),
        Subject::new("bytes", || pair(cpu, pairs, fifo(Content::Bytes, alone)?)),
        Subject::new("messages", || pair(cpu, pairs, fifo(Content::Messages, alone)?)),
        Subject::new("bytes, shared", || pair(cpu, pairs, fifo(Content::Bytes, Access::Shared)?)),
    ];
    in_turns(bench, "fifo, one thread", subjects)
}

fn pair(cpu: u32, pairs: u64, (mut put, mut get): (impl Put, impl Get)) -> Result<f64, Failure> {
    threads::apart(move || {
        pin(0, cpu)?;
        let mut message = [0; 64];
        let mut begun = 0;
        // The first tenth is not timed.
        for n in 0..pairs + pairs / 10 {
            if n == pairs / 10 {
                begun = monotonic_ns();
            }
            message[0] = n as u8;
            if !put(black_box(&message)) || !get() {
                return Err("a message was lost".into());
            }
        }
        Ok((monotonic_ns() - begun) as f64 / pairs as f64)
    })
}

/// A message of a stream from one thread to another, ns. Both spin where they cannot continue.
pub fn two_threads(bench: &Bench, peer: u32) -> Result<Windows<f64>, Failure> {
    let messages = if bench.quick { 300_000 } else { 1_000_000 };
    let (cpus, alone) = ([bench.cpu, peer], Access::Exclusive);
    let subjects = vec![
        Subject::new("rtrb", || stream(cpus, messages, ring())),
        Subject::new("bytes", || stream(cpus, messages, fifo(Content::Bytes, alone)?)),
        Subject::new("messages", || stream(cpus, messages, fifo(Content::Messages, alone)?)),
    ];
    in_turns(bench, "fifo, two threads", subjects)
}

fn stream(
    [cpu, peer]: [u32; 2],
    messages: u64,
    (mut put, mut get): (impl Put, impl Get),
) -> Result<f64, Failure> {
    let begin = &Barrier::new(2);
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let pinned = pin(0, cpu);
            begin.wait();
            let mut message = [0; 64];
            for n in 0..messages {
                message[0] = n as u8;
                while !put(black_box(&message)) {
                    spin_loop();
                }
            }
            pinned
        });
        let reader = scope.spawn(move || {
            let pinned = pin(0, peer);
            begin.wait();
            let begun = monotonic_ns();
            for _ in 0..messages {
                while !get() {
                    spin_loop();
                }
            }
            pinned.map(|()| (monotonic_ns() - begun) as f64 / messages as f64)
        });
        writer.join().map_err(|_| "the writer panicked")??;
        Ok(reader.join().map_err(|_| "the reader panicked")??)
    })
}
