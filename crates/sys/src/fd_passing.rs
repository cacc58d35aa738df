//! Descriptors on the way to another process: SCM_RIGHTS on a Unix socket, of streams too.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

/// Descriptors of one message: the kernel takes 253.
const AT_ONCE: usize = 128;

/// Sends a message with up to 128 descriptors.
///
/// # Errors
/// Those of the socket; [`io::ErrorKind::InvalidInput`]: these are more.
pub fn send_message(
    socket: impl AsFd,
    message: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let message = [IoSlice::new(message)];
    Ok(retry_on_intr(|| sendmsg(&socket, &message, &mut control, SendFlags::NOSIGNAL))?)
}

/// Receives bytes of a stream, or a datagram, and the descriptors that come with it, which are
/// closed on exec.
///
/// # Errors
/// Those of the socket; [`io::ErrorKind::InvalidData`]: there are more than 128, or this process
/// may not have as many.
pub fn receive_message(socket: impl AsFd, message: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut message = [IoSliceMut::new(message)];
    let received =
        retry_on_intr(|| recvmsg(&socket, &mut message, &mut control, RecvFlags::CMSG_CLOEXEC))?;
    let rights = |part| match part {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    };
    let fds = control.drain().filter_map(rights).flatten().collect();
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(missing());
    }
    Ok((received.bytes, fds))
}

fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "descriptors are missing")
}

/// Sends descriptors, with a byte for each message that they take.
///
/// # Errors
/// Those of the socket.
pub fn send(socket: impl AsFd, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    fds.chunks(AT_ONCE).try_for_each(|fds| send_message(&socket, b"F", fds).map(drop))
}

/// Receives so many descriptors, as [`send`] sends them; they are closed on exec.
///
/// # Errors
/// As of [`receive_message`]; what comes is not these.
pub fn receive(socket: impl AsFd, count: usize) -> io::Result<Vec<OwnedFd>> {
    let mut fds: Vec<OwnedFd> = Vec::new();
    while fds.len() < count {
        let (_, more) = receive_message(&socket, &mut [0])?;
        if more.is_empty() || fds.len() + more.len() > count {
            return Err(missing());
        }
        fds.extend(more);
    }
    Ok(fds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn many_descriptors_arrive_in_their_order_among_the_bytes_of_a_stream() {
        let (mut here, mut there) = UnixStream::pair().expect("a socket");
        let pairs: Vec<_> = (0..300).map(|_| UnixStream::pair().expect("a socket")).collect();
        let ends: Vec<BorrowedFd<'_>> = pairs.iter().map(|(end, _)| end.as_fd()).collect();
        here.write_all(b"x").expect("it is open");
        send(&here, &ends).expect("it is open");
        here.write_all(b"y").expect("it is open");
        let mut byte = [0];
        there.read_exact(&mut byte).expect("it is open");
        assert_eq!(&byte, b"x");
        let received = receive(&there, ends.len()).expect("it is open");
        there.read_exact(&mut byte).expect("it is open");
        assert_eq!((&byte, received.len()), (b"y", 300));
        for (n, (fd, (_, other))) in received.into_iter().zip(&pairs).enumerate() {
            UnixStream::from(fd).write_all(&[n as u8]).expect("it is open");
            (&*other).read_exact(&mut byte).expect("it is open");
            assert_eq!(byte, [n as u8]);
        }
    }

    #[test]
    fn bytes_without_descriptors_are_an_error_and_so_is_the_end() {
        let (mut here, there) = UnixStream::pair().expect("a socket");
        here.write_all(b"x").expect("it is open");
        let refused = receive(&there, 1).expect_err("no descriptor");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        drop(here);
        assert!(receive(&there, 1).is_err());
    }
}
