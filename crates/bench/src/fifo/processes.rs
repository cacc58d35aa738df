//! Between two processes, both polling: beside iceoryx2.

use super::{attr, Message};
use crate::side_by_side::{in_turns, Subject, Windows};
use crate::{threads, tools, Bench, Failure};
use punctual_ipc::{Access, Content, Error, Fifo, Lifetime, Name, Namespace, Reader, Writer};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::sched::pin;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Round trips that are timed together.
const ROUNDS: usize = 100;
/// A process fails when the other one takes longer in all, ns, so that neither remains alone.
const TIME_LIMIT: u64 = 30_000_000_000;

/// To the echo process, and back.
const THERE: u32 = 0;
const BACK: u32 = 1;

/// A message from one process to the other, ns: half of a round trip.
pub fn ping_pong(bench: &Bench, peer: u32, iceoryx2: &Path) -> Result<Windows<f64>, Failure> {
    let batches = if bench.quick { 200 } else { 2_000 };
    let cpus = [bench.cpu, peer];
    let subjects = vec![
        Subject::new("iceoryx2", || theirs(iceoryx2, cpus, batches)),
        Subject::new("bytes", || ours(Content::Bytes, cpus, batches)),
        Subject::new("messages", || ours(Content::Messages, cpus, batches)),
    ];
    in_turns(bench, "fifo, two processes", subjects)
}

/// Builds the program that sends over iceoryx2. It is no part of the workspace, whose builds need
/// no iceoryx2.
pub fn build_iceoryx2(bench: &Bench) -> Result<PathBuf, Failure> {
    tools::progress("fifo: building bench/iceoryx2");
    let target = bench.punctual.with_file_name("iceoryx2");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]);
    cargo.arg(tools::in_tree("bench/iceoryx2/Cargo.toml")).arg("--target-dir").arg(&target);
    let built = tools::output(&mut cargo);
    tools::progress("");
    built.map(|_| target.join("release/punctual-bench-iceoryx2"))
}

fn theirs(program: &Path, [cpu, peer]: [u32; 2], batches: usize) -> Result<f64, Failure> {
    let numbers = [cpu as usize, peer as usize, batches, ROUNDS].map(|n| n.to_string());
    Ok(tools::output(Command::new(program).args(numbers))?.trim().parse()?)
}

fn ours(content: Content, [cpu, peer]: [u32; 2], batches: usize) -> Result<f64, Failure> {
    let folder = tempfile::tempdir_in("/dev/shm")?;
    // Closed to others, as the temporary folder is not.
    let namespace = Namespace::at(&folder.path().join("objects"))?;
    let make =
        |number: u32| Fifo::create(&namespace, &Name::from(number), attr(content), Lifetime::Used);
    let mut channel = Channel::new(&make(THERE)?, &make(BACK)?)?;
    let _echo = EchoProcess::start(namespace.path(), peer)?;
    threads::apart(move || {
        pin(0, cpu)?;
        let mut message = [0; 64];
        let mut times = Vec::with_capacity(batches);
        for _ in 0..batches {
            let begun = monotonic_ns();
            for _ in 0..ROUNDS {
                message[0] = u8::wrapping_add(message[0], 1);
                channel.send(black_box(&message))?;
                if *black_box(&channel.receive()?) != message {
                    return Err("the echo is another message".into());
                }
            }
            times.push((monotonic_ns() - begun) as f64 / (2 * ROUNDS) as f64);
        }
        // The first tenth warms up.
        let measured = &mut times[batches / 10..];
        measured.sort_by(f64::total_cmp);
        Ok(measured[measured.len() / 2])
    })
}

/// This program again, as `echo`. Ended with this.
struct EchoProcess(Child);

impl EchoProcess {
    fn start(folder: &Path, cpu: u32) -> Result<EchoProcess, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--echo").arg(folder).args(["--cpu", &cpu.to_string()]);
        Ok(EchoProcess(command.stdin(Stdio::null()).spawn()?))
    }
}

impl Drop for EchoProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends each message back that comes, until this process is killed or 30 s are over.
pub fn echo(folder: &Path, cpu: u32) -> Result<(), Failure> {
    pin(0, cpu)?;
    let namespace = Namespace::at(folder)?;
    let open = |number: u32| Fifo::open(&namespace, &Name::from(number));
    let mut channel = Channel::new(&open(BACK)?, &open(THERE)?)?;
    loop {
        let message = channel.receive()?;
        channel.send(black_box(&message))?;
    }
}

/// What a process sends on, and what it receives from.
struct Channel {
    writer: Writer,
    reader: Reader,
    end: u64,
}

impl Channel {
    fn new(send: &Fifo, receive: &Fifo) -> Result<Channel, Failure> {
        let writer = send.writer(Access::Exclusive)?;
        let reader = receive.reader(Access::Exclusive)?;
        Ok(Channel { writer, reader, end: monotonic_ns() + TIME_LIMIT })
    }

    fn send(&mut self, message: &Message) -> Result<(), Failure> {
        Ok(self.writer.put(message)?)
    }

    fn receive(&mut self) -> Result<Message, Failure> {
        let mut into = [0; 64];
        loop {
            for _ in 0..1 << 16 {
                match self.reader.get(&mut into) {
                    Err(Error::Empty) => {}
                    done => return Ok(done.map(|_| into)?),
                }
            }
            if monotonic_ns() > self.end {
                return Err("the other process does not answer".into());
            }
        }
    }
}
