//! `punctual fifo cat` and `put`: between a FIFO and the standard streams.

use std::io::{BufRead, Read, Write};

use punctual_diagnostic::Diagnostic;
use punctual_ipc::{Access, Content, Error, Fifo, Name, Namespace, Writer};
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::parse_duration;

use crate::args_fifo::{Cat, Put};
use crate::output::{print_message, Outcome};

/// Bytes that are moved at once.
const CHUNK: usize = 64 << 10;

/// `punctual fifo cat`.
pub fn cat(args: &Cat) -> Result<Outcome<()>, Diagnostic> {
    let fifo = Fifo::open(&Namespace::of_user()?, &args.name)?;
    let is_bytes = fifo.attr().content == Content::Bytes;
    if is_bytes && args.lines {
        return Err(Diagnostic::usage(
            format!("the FIFO {} has bytes, not messages", args.name),
            "leave --lines out",
        ));
    }
    let mut reader = fifo.reader(Access::Shared)?;
    let mut buffer = vec![0; if is_bytes { CHUNK } else { fifo.attr().capacity }];
    let mut out = std::io::stdout().lock();
    let mut left = args.count.unwrap_or(u64::MAX);
    let until = if args.no_wait { 0 } else { u64::MAX };
    while left > 0 {
        let room = if is_bytes {
            buffer.len().min(left.try_into().unwrap_or(CHUNK))
        } else {
            buffer.len()
        };
        let n = match reader.get_some_until(&mut buffer[..room], until) {
            Ok(n) => n,
            Err(Error::TimedOut) => break,
            Err(error) => return Err(refused(&args.name, "cat", error)),
        };
        left -= if is_bytes { n as u64 } else { 1 };
        let end: &[u8] = if args.lines { b"\n" } else { b"" };
        let written = out
            .write_all(&buffer[..n])
            .and_then(|()| out.write_all(end))
            .and_then(|()| out.flush());
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => break,
            Err(error) => {
                return Err(Diagnostic::refused(
                    format!("cannot write what was got from the FIFO {}", args.name),
                    error,
                    "free some room, or write it elsewhere",
                ))
            }
        }
    }
    Ok(silent(true))
}

/// `punctual fifo put`.
pub fn put(args: &Put) -> Result<Outcome<()>, Diagnostic> {
    let fifo = Fifo::open(&Namespace::of_user()?, &args.name)?;
    let capacity = fifo.attr().capacity;
    if fifo.attr().content == Content::Bytes && args.lines {
        return Err(Diagnostic::usage(
            format!("the FIFO {} has bytes, not messages", args.name),
            "leave --lines out",
        ));
    }
    let timeout = match (&args.timeout, args.no_wait) {
        (_, true) => Some(0),
        (Some(text), _) => Some(parse_duration(text).map_err(|error| {
            Diagnostic::usage(format!("--timeout {text}: {error}"), "use a time such as 500ms")
        })?),
        (None, false) => None,
    };
    let mut sink = Sink { writer: fifo.writer(Access::Shared)?, name: &args.name, timeout };
    let done = match &args.text {
        Some(text) if fifo.attr().content == Content::Messages => sink.put(text.as_bytes())?,
        // All of it or nothing, where the FIFO can hold all of it.
        Some(text) if text.len() <= capacity => sink.put(text.as_bytes())?,
        Some(text) => sink.put_all(text.as_bytes(), capacity)?,
        None if args.lines => sink.put_lines(capacity)?,
        None if fifo.attr().content == Content::Messages => sink.put_message(capacity)?,
        None => sink.put_bytes(capacity)?,
    };
    if !done {
        let how_long = args.timeout.as_ref().map_or(String::new(), |time| format!(" for {time}"));
        print_message(&format!("the FIFO {} is full{how_long}", args.name));
    }
    Ok(silent(done))
}

/// A writer; each of its methods returns false where the time was over.
struct Sink<'a> {
    writer: Writer,
    name: &'a Name,
    /// For each put; `None`: for ever.
    timeout: Option<u64>,
}

impl Sink<'_> {
    fn put(&mut self, data: &[u8]) -> Result<bool, Diagnostic> {
        let until = match self.timeout {
            None => u64::MAX,
            Some(timeout) => monotonic_ns().saturating_add(timeout),
        };
        match self.writer.put_until(data, until) {
            Ok(()) => Ok(true),
            Err(Error::TimedOut) => Ok(false),
            Err(error) => Err(refused(self.name, "put", error)),
        }
    }

    /// In pieces for which there can be room soon.
    fn put_all(&mut self, data: &[u8], capacity: usize) -> Result<bool, Diagnostic> {
        for piece in data.chunks(capacity / 4) {
            if !self.put(piece)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn put_bytes(&mut self, capacity: usize) -> Result<bool, Diagnostic> {
        let mut input = std::io::stdin().lock();
        loop {
            let n = input.fill_buf().map_err(unreadable)?.len();
            if n == 0 {
                return Ok(true);
            }
            let data = input.fill_buf().map_err(unreadable)?.to_vec();
            input.consume(n);
            if !self.put_all(&data, capacity)? {
                return Ok(false);
            }
        }
    }

    fn put_message(&mut self, capacity: usize) -> Result<bool, Diagnostic> {
        let mut message = Vec::new();
        // One byte more than fits is enough to refuse it.
        let input = std::io::stdin().lock();
        input.take(capacity as u64 + 1).read_to_end(&mut message).map_err(unreadable)?;
        self.put(&message)
    }

    fn put_lines(&mut self, capacity: usize) -> Result<bool, Diagnostic> {
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let limited = &mut (&mut input).take(capacity as u64 + 1);
            if limited.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
                return Ok(true);
            }
            let message = line.strip_suffix(b"\n").unwrap_or(&line);
            if !self.put(message)? {
                return Ok(false);
            }
        }
    }
}

fn silent(done: bool) -> Outcome<()> {
    let (verdict, text) = (String::new(), String::new());
    Outcome { verdict, ok: done, code: u8::from(!done), result: (), text, error: None }
}

fn refused(name: &Name, what: &str, error: Error) -> Diagnostic {
    let help = match error {
        Error::TooLarge => "put less at once, or make the FIFO with a greater --capacity",
        _ => "remove the FIFO, and make it again",
    };
    let cause = format!("cannot {what} the FIFO {name}: {error}");
    match error {
        Error::TooLarge => Diagnostic::usage(cause, help),
        _ => Diagnostic::machine(cause, help),
    }
    .with_errno(error.errno())
}

fn unreadable(error: std::io::Error) -> Diagnostic {
    Diagnostic::refused(
        "cannot read standard input",
        error,
        "name a file or a pipe that can be read",
    )
}
