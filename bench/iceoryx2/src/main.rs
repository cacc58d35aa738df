//! Ping-pong of 64 bytes between two processes over iceoryx2, both polling. Prints the median time
//! one way, in ns.
//!
//!     punctual-bench-iceoryx2 CPU PEER_CPU BATCHES ROUNDS
//!
//! A batch is ROUNDS round trips that are timed together; the first tenth of the batches warms up.
//! The echo process is this program again, on the other CPU. Each process fails when the other one
//! takes more than 30 s in all.

use std::env;
use std::error::Error;
use std::hint::black_box;
use std::io;
use std::mem::MaybeUninit;
use std::process::{self, Command};
use std::time::{Duration, Instant};

use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::sample_mut_uninit::SampleMutUninit;
use iceoryx2::service::port_factory::publish_subscribe;

type Payload = [u8; 64];
type Topic = publish_subscribe::PortFactory<ipc::Service, Payload, ()>;
type Failure = Box<dyn Error>;

const TIME_LIMIT: Duration = Duration::from_secs(30);

fn main() -> Result<(), Failure> {
    set_log_level(LogLevel::Error);
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["--echo", service, cpu, rounds] => echo(service, cpu.parse()?, rounds.parse()?),
        [cpu, peer, batches, rounds] => {
            let median = ping(cpu.parse()?, peer, batches.parse()?, rounds.parse()?)?;
            println!("{median}");
            Ok(())
        }
        _ => Err("usage: punctual-bench-iceoryx2 CPU PEER_CPU BATCHES ROUNDS".into()),
    }
}

/// What a process sends on, and what it receives from.
struct Channel {
    publisher: Publisher<ipc::Service, Payload, ()>,
    /// Loaned ahead, as in iceoryx2's own benchmark: the time of a loan is not one of a message.
    next: Option<SampleMutUninit<ipc::Service, MaybeUninit<Payload>, ()>>,
    subscriber: Subscriber<ipc::Service, Payload, ()>,
    end: Instant,
}

impl Channel {
    fn new(send: &Topic, receive: &Topic) -> Result<Channel, Failure> {
        let subscriber = receive.subscriber_builder().create()?;
        let publisher = send.publisher_builder().create()?;
        let end = Instant::now() + TIME_LIMIT;
        Ok(Channel { next: Some(publisher.loan_uninit()?), publisher, subscriber, end })
    }

    /// Without a copy: writes the payload where the receiver reads it.
    fn send(&mut self, payload: &Payload) -> Result<(), Failure> {
        let sample = self.next.take().ok_or("nothing is loaned")?;
        sample.write_payload(*payload).send()?;
        self.next = Some(self.publisher.loan_uninit()?);
        Ok(())
    }

    fn receive(&self) -> Result<Payload, Failure> {
        poll(self.end, || Ok(self.subscriber.receive()?.map(|sample| *sample)))
    }
}

fn ping(cpu: usize, peer: &str, batches: usize, rounds: usize) -> Result<f64, Failure> {
    pin(cpu)?;
    let name = format!("punctual-bench-{}", process::id());
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let [there, back] = topics(&node, &name)?;
    let mut channel = Channel::new(&there, &back)?;
    let all = (batches * rounds).to_string();
    let mut child =
        Command::new(env::current_exe()?).args(["--echo", &name, peer, &all]).spawn()?;
    // A message that is sent before is lost.
    poll(channel.end, || {
        let (there, back) = (there.dynamic_config(), back.dynamic_config());
        let ready = there.number_of_subscribers() == 1 && back.number_of_publishers() == 1;
        Ok(ready.then_some(()))
    })?;
    let mut payload: Payload = [0; 64];
    let mut times = Vec::with_capacity(batches);
    for _ in 0..batches {
        let begun = Instant::now();
        for _ in 0..rounds {
            payload[0] = payload[0].wrapping_add(1);
            channel.send(black_box(&payload))?;
            if *black_box(&channel.receive()?) != payload {
                return Err("the echo is another message".into());
            }
        }
        times.push(begun.elapsed().as_nanos() as f64 / (2 * rounds) as f64);
    }
    if !child.wait()?.success() {
        return Err("the echo process failed".into());
    }
    let measured = &mut times[batches / 10..];
    measured.sort_by(f64::total_cmp);
    Ok(measured[measured.len() / 2])
}

fn echo(name: &str, cpu: usize, rounds: usize) -> Result<(), Failure> {
    pin(cpu)?;
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let [there, back] = topics(&node, name)?;
    let mut channel = Channel::new(&back, &there)?;
    for _ in 0..rounds {
        let payload = channel.receive()?;
        channel.send(black_box(&payload))?;
    }
    Ok(())
}

/// To the echo process, and back.
fn topics(node: &Node<ipc::Service>, name: &str) -> Result<[Topic; 2], Failure> {
    let open = |direction: &str| -> Result<Topic, Failure> {
        let name = ServiceName::new(&format!("{name}-{direction}"))?;
        // As in iceoryx2's own benchmark: what one message at a time needs.
        let builder = node.service_builder(&name).publish_subscribe::<Payload>();
        let builder = builder.max_publishers(1).max_subscribers(1);
        let builder =
            builder.history_size(0).subscriber_max_buffer_size(1).enable_safe_overflow(true);
        Ok(builder.open_or_create()?)
    };
    Ok([open("there")?, open("back")?])
}

/// Tries again at once until there is something.
fn poll<T>(
    end: Instant,
    mut attempt: impl FnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    loop {
        for _ in 0..1 << 16 {
            if let Some(found) = attempt()? {
                return Ok(found);
            }
        }
        if Instant::now() > end {
            return Err("the other process does not answer".into());
        }
    }
}

fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: all zeros is a valid set, in which `cpu` is, by the check that the macro makes.
    let failed = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
