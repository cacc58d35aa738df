//! Chrome's JSON trace events: one object a line, times in microseconds.

use std::fmt;
use std::io::{self, Write};

use super::drawing::{is_new, Drawing, Label, Names, Track};

/// The processes that tracks belong to.
const CPUS: u32 = 1;
const TASKS: u32 = 2;

/// A trace in Chrome's JSON.
#[derive(Debug)]
pub(super) struct Chrome<W: Write> {
    out: W,
    names: Names,
    /// Tracks that have a name, by process and thread.
    named: Vec<Vec<bool>>,
}

/// Microseconds of a time in ns, exactly.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

/// A number as an argument, if there is one.
struct Args(Option<u64>);

impl fmt::Display for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(f, ",\"args\":{{\"number\":{number}}}"),
            None => Ok(()),
        }
    }
}

impl<W: Write> Chrome<W> {
    pub fn new(mut out: W, names: Names) -> io::Result<Chrome<W>> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        let mut chrome = Chrome { out, names, named: vec![Vec::new(); 2] };
        for (process, name) in [(CPUS, "CPUs"), (TASKS, "tasks")] {
            let comma = if process == CPUS { "" } else { ",\n" };
            write!(
                chrome.out,
                "{comma}{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{process},\"tid\":0,\
                 \"args\":{{\"name\":\"{name}\"}}}}"
            )?;
        }
        Ok(chrome)
    }

    /// Begins an event on a track.
    fn begin(&mut self, phase: char, track: Track, at: u64) -> io::Result<()> {
        let (process, thread) = place(track);
        if is_new(&mut self.named[process as usize - 1], thread.into()) {
            let name = match track {
                Track::Execution(task) => {
                    format!("{}: execution", self.names.track(Track::Jobs(task)))
                }
                _ => self.names.track(track).into_owned(),
            };
            write!(
                self.out,
                ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{process},\"tid\":{thread},\
                 \"args\":{{\"name\":{}}}}}",
                serde_json::Value::from(name)
            )?;
        }
        let at = Micros(at);
        write!(self.out, ",\n{{\"ph\":\"{phase}\",\"pid\":{process},\"tid\":{thread},\"ts\":{at}")
    }

    fn name(&mut self, label: Label) -> io::Result<()> {
        match label {
            // Names of tasks may have any characters.
            Label::Task(_) => {
                self.out.write_all(b",\"name\":")?;
                Ok(serde_json::to_writer(&mut self.out, &self.names.label(label))?)
            }
            _ => write!(self.out, ",\"name\":\"{}\"", self.names.label(label)),
        }
    }

    fn flow(&mut self, phase: char, track: Track, at: u64, flow: Option<u64>) -> io::Result<()> {
        let Some(flow) = flow else { return Ok(()) };
        self.begin(phase, track, at)?;
        write!(self.out, ",\"name\":\"release\",\"cat\":\"release\",\"id\":{flow},\"bp\":\"e\"}}")
    }
}

impl<W: Write> Drawing for Chrome<W> {
    fn slice(
        &mut self,
        track: Track,
        label: Label,
        (from, to): (u64, u64),
        number: Option<u64>,
        flow: Option<u64>,
    ) -> io::Result<()> {
        self.begin('X', track, from)?;
        self.name(label)?;
        write!(self.out, ",\"dur\":{}{}}}", Micros(to.saturating_sub(from)), Args(number))?;
        self.flow('f', track, from, flow)
    }

    fn instant(
        &mut self,
        track: Track,
        label: Label,
        at: u64,
        number: Option<u64>,
        flow: Option<u64>,
    ) -> io::Result<()> {
        self.begin('i', track, at)?;
        self.name(label)?;
        write!(self.out, ",\"s\":\"t\"{}}}", Args(number))?;
        self.flow('s', track, at, flow)
    }

    fn counter(&mut self, task: u32, at: u64, value: u64) -> io::Result<()> {
        self.begin('C', Track::Jobs(task), at)?;
        let name = format!("{}: remaining budget", self.names.track(Track::Jobs(task)));
        self.out.write_all(b",\"name\":")?;
        serde_json::to_writer(&mut self.out, &name)?;
        write!(self.out, ",\"args\":{{\"ns\":{value}}}}}")
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }
}

/// Process and thread.
fn place(track: Track) -> (u32, u32) {
    match track {
        Track::Cpu(cpu) => (CPUS, cpu),
        Track::Jobs(task) | Track::Remaining(task) => (TASKS, 2 * task),
        Track::Execution(task) => (TASKS, 2 * task + 1),
    }
}
