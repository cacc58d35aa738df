//! The way between the kernel and the server of a device: an open /dev/cuse.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use punctual_diagnostic::Diagnostic;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{open, Mode, OFlags};
use rustix::io::{read, writev, Errno};

use crate::protocol::{self, DeviceRequest, Operation};

const CUSE: &str = "/dev/cuse";

/// The most bytes of one write, and of one message that is read: 126,975.
///
/// A request of the kernel has at most 32 pages, and 31 whatever the address of the program's
/// buffer. A part of a longer write has exactly [`MAX_TRANSFER`] bytes, which no other has.
pub const MAX_WRITE: usize = MAX_TRANSFER - 1;

/// Bytes of the longest request or reply.
pub const MAX_TRANSFER: usize = 31 * 4096;

/// An open /dev/cuse, for one device. Closing it removes the device: programs that wait get an
/// error.
#[derive(Debug)]
pub struct Channel {
    cuse: OwnedFd,
}

impl Channel {
    /// Makes the device `name` with these numbers.
    ///
    /// # Errors
    /// As of `RtfDevice::create`.
    pub fn create(name: &str, major: u32, minor: u32) -> Result<Self, Diagnostic> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let cuse = open(CUSE, flags, Mode::empty()).map_err(not_opened)?;
        // The kernel refuses it as well, but does not say why.
        if Path::new("/sys/class/cuse").join(name).exists() {
            return Err(exists(name));
        }
        let channel = Self { cuse };
        channel.init(name, [major, minor]).map_err(|error| {
            let help = "see the kernel's log";
            Diagnostic::refused(format!("cannot make the device {name} by {CUSE}"), error, help)
        })?;
        // The reply makes the device, or ends the channel.
        let mut ended = [PollFd::new(&channel.cuse, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut ended, Some(&now)) {
            Ok(_) if !ended[0].revents().contains(PollFlags::ERR) => Ok(channel),
            _ => Err(exists(name)),
        }
    }

    fn init(&self, name: &str, numbers: [u32; 2]) -> io::Result<()> {
        let mut buffer = vec![0; protocol::MIN_BUFFER];
        match self.receive(&mut buffer)? {
            Some(DeviceRequest { id, operation: Operation::Init }) => {
                self.reply(id, &protocol::init_reply(name, numbers, MAX_TRANSFER as u32))
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// A buffer for requests.
    pub fn buffer() -> Vec<u8> {
        vec![0; protocol::MIN_BUFFER.max(protocol::WRITE_HEADERS + MAX_TRANSFER)]
    }

    /// Receives a request, if there is one. Does not wait.
    ///
    /// # Errors
    /// ENODEV: the kernel ended the device.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<DeviceRequest<'a>>> {
        let length = match read(&self.cuse, &mut *buffer) {
            Ok(length) => length,
            // ENOENT: its program was killed before the request was read.
            Err(Errno::AGAIN | Errno::INTR | Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let request = DeviceRequest::parse(&buffer[..length]);
        request.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The request succeeded; `data` is of its kind.
    ///
    /// # Errors
    /// ENODEV: the kernel ended the device.
    pub fn reply(&self, id: u64, data: &[u8]) -> io::Result<()> {
        self.send(&protocol::reply(id, 0, data.len()), data)
    }

    /// The request failed.
    ///
    /// # Errors
    /// As of [`Channel::reply`].
    pub fn fail(&self, id: u64, errno: i32) -> io::Result<()> {
        self.send(&protocol::reply(id, errno, 0), &[])
    }

    /// Wakes the programs that poll by this handle.
    ///
    /// # Errors
    /// As of [`Channel::reply`].
    pub fn notify_poll(&self, handle: u64) -> io::Result<()> {
        self.send(&protocol::poll_notification(handle), &[])
    }

    fn send(&self, header: &[u8], data: &[u8]) -> io::Result<()> {
        match writev(&self.cuse, &[IoSlice::new(header), IoSlice::new(data)]) {
            // ENOENT: no program waits for this any more.
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.cuse.as_fd()
    }
}

fn not_opened(errno: Errno) -> Diagnostic {
    match errno {
        // The node may be there without the module.
        Errno::NOENT | Errno::NXIO | Errno::NODEV => Diagnostic::machine(
            format!("the kernel has no {CUSE}, by which programs serve devices"),
            "load its module: modprobe cuse",
        )
        .with_errno(libc::ENOENT),
        Errno::ACCESS | Errno::PERM => {
            Diagnostic::refused(format!("cannot open {CUSE}"), errno, "run it as root")
        }
        _ => Diagnostic::refused(format!("cannot open {CUSE}"), errno, "see the kernel's log"),
    }
}

fn exists(name: &str) -> Diagnostic {
    Diagnostic::usage(
        format!("there is a device {name} already, or one with its number"),
        format!("end the program that serves it (fuser -v {CUSE}), or use another number"),
    )
    .with_errno(libc::EEXIST)
}
