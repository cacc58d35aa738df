//! Descriptors that come with messages on a Unix socket (SCM_RIGHTS).

use std::io::{self, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use punctual_sys::fd_passing;
use serde::Serialize;

/// Sends one message, and a descriptor with its first byte.
///
/// # Errors
/// Those of the socket.
pub fn send_with(
    stream: &mut &UnixStream,
    message: &impl Serialize,
    descriptor: BorrowedFd<'_>,
) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(0);
    let sent = fd_passing::send_message(*stream, &bytes, &[descriptor])?;
    stream.write_all(&bytes[sent..])
}

/// Reads from a socket, and keeps the descriptors that come.
#[derive(Debug)]
pub struct DescriptorReader<'a> {
    stream: &'a UnixStream,
    /// What came.
    pub descriptors: Vec<OwnedFd>,
}

impl DescriptorReader<'_> {
    /// None yet.
    pub fn new(stream: &UnixStream) -> DescriptorReader<'_> {
        DescriptorReader { stream, descriptors: Vec::new() }
    }
}

impl Read for DescriptorReader<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let (bytes, descriptors) = fd_passing::receive_message(self.stream, to)?;
        self.descriptors.extend(descriptors);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{send, MessageReader};
    use std::os::fd::AsFd;

    #[test]
    fn a_descriptor_comes_with_its_message_however_long_that_is() {
        let (mut sender, receiver) = UnixStream::pair().expect("a pair");
        let long = "x".repeat(1 << 20);
        let sends = std::thread::spawn(move || {
            let file = std::fs::File::open("/dev/null").expect("it is there");
            send(&mut sender, &"before").expect("it is read");
            send_with(&mut &sender, &long, file.as_fd()).expect("it is read");
            send(&mut sender, &"after").expect("it is read");
        });
        let mut reader = DescriptorReader::new(&receiver);
        let mut messages = MessageReader::new(2 << 20);
        let mut lengths = Vec::new();
        while let Some(message) = messages.next(&mut reader).expect("whole messages") {
            lengths.push(message.len());
        }
        sends.join().expect("it does not panic");
        assert_eq!(lengths, [8, (1 << 20) + 2, 7]);
        assert_eq!(reader.descriptors.len(), 1);
        let flags = rustix::io::fcntl_getfd(&reader.descriptors[0]).expect("it is open");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}
