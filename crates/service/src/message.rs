//! Varlink on a socket: JSON objects, each followed by a zero byte (varlink.org/Method-Call).
//!
//! Two hundred lines of our own, for want of a crate that builds with the Rust of Debian 13, has no
//! runtime of its own (libpunctual is part of other programs), bounds what a hostile peer may send,
//! and answers calls with `"parameters": {}`, as varlinkctl sends them.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A method call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Interface and method.
    pub method: String,
    /// Its parameters.
    #[serde(default)]
    pub parameters: Option<Map<String, Value>>,
    /// No answer is wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oneway: bool,
    /// Several answers are accepted. One is one of these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CallReply {
    /// Those of the method, or of the error.
    #[serde(default)]
    pub parameters: Option<Map<String, Value>>,
    /// Interface and name of the error; none: the method returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Sends one message.
///
/// # Errors
/// Those of the stream.
pub fn send(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(0);
    stream.write_all(&bytes)
}

/// Splits a stream into messages.
#[derive(Debug)]
pub struct MessageReader {
    buffer: Vec<u8>,
    /// The bytes before this have no end of a message.
    searched: usize,
    limit: usize,
}

impl MessageReader {
    /// Messages of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> MessageReader {
        MessageReader::with_unread(limit, Vec::new())
    }

    /// The same, of a stream of which these bytes were read already.
    #[must_use]
    pub fn with_unread(limit: usize, unread: Vec<u8>) -> MessageReader {
        MessageReader { buffer: unread, searched: 0, limit }
    }

    /// What was read of the stream and not returned yet.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        &self.buffer
    }

    /// Bounds further messages otherwise.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The next message, without its zero byte; `None` at the end of the stream.
    ///
    /// # Errors
    /// Those of the stream; [`io::ErrorKind::InvalidData`]: it is too long, or the stream ends in
    /// it.
    pub fn next(&mut self, stream: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            if !self.fill(stream)? {
                return Ok(None);
            }
        }
    }

    /// The next message, if all of it was read.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`]: it is too long.
    pub fn take(&mut self) -> io::Result<Option<Vec<u8>>> {
        let end = self.buffer[self.searched..].iter().position(|&b| b == 0);
        if let Some(end) = end.map(|n| self.searched + n) {
            let rest = self.buffer.split_off(end + 1);
            let mut message = std::mem::replace(&mut self.buffer, rest);
            message.pop();
            self.searched = 0;
            return Ok(Some(message));
        }
        self.searched = self.buffer.len();
        if self.searched > self.limit {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
        }
        Ok(None)
    }

    /// Reads once; false at the end of the stream.
    ///
    /// # Errors
    /// As of [`next`](MessageReader::next).
    pub fn fill(&mut self, stream: &mut impl Read) -> io::Result<bool> {
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk) {
            Ok(0) if self.buffer.is_empty() => Ok(false),
            Ok(0) => {
                let cut = "the stream ends in a message";
                Err(io::Error::new(io::ErrorKind::InvalidData, cut))
            }
            Ok(n) => {
                self.buffer.extend_from_slice(&chunk[..n]);
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(e) => Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that gives a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(to.len());
            to[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn messages_are_found_however_the_stream_is_cut() {
        let bytes = b"one\0\0three and more\0";
        for step in 1..=bytes.len() {
            let (mut stream, mut reader) = (Trickle(bytes, step), MessageReader::new(100));
            let mut found = Vec::new();
            while let Some(message) = reader.next(&mut stream).expect("it is whole") {
                found.push(String::from_utf8(message).expect("text"));
            }
            assert_eq!(found, ["one", "", "three and more"], "{step} bytes at a time");
        }
    }

    #[test]
    fn a_message_that_is_cut_off_or_too_long_is_an_error() {
        let mut cut = Trickle(b"whole\0half", 4);
        let mut reader = MessageReader::new(100);
        assert!(reader.next(&mut cut).is_ok_and(|m| m.as_deref() == Some(b"whole".as_slice())));
        assert_eq!(reader.next(&mut cut).map_err(|e| e.kind()), Err(io::ErrorKind::InvalidData));
        let long = vec![b'x'; 20_000];
        let mut reader = MessageReader::new(5000);
        let refused = reader.next(&mut Trickle(&long, 4096));
        assert_eq!(refused.map_err(|e| e.kind()), Err(io::ErrorKind::InvalidData));
        assert!(reader.buffer.len() < 3 * 4096, "it buffers {} bytes", reader.buffer.len());
    }

    #[test]
    fn a_call_may_leave_out_what_it_does_not_need() {
        let call = |text: &str| serde_json::from_str::<Call>(text).expect(text);
        for text in [
            r#"{"method":"a.B"}"#,
            r#"{"method":"a.B","parameters":null}"#,
            r#"{"method":"a.B","parameters":{},"future":1}"#,
        ] {
            assert_eq!(call(text).parameters.unwrap_or_default(), Map::new());
        }
        assert!(call(r#"{"method":"a.B","oneway":true}"#).oneway);
        assert!(serde_json::from_str::<Call>(r#"{"method":"a.B","parameters":[]}"#).is_err());
    }
}
