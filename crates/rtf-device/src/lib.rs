//! Serves a FIFO as the character device `/dev/rtfN` that programs of RT-Linux use, by the
//! kernel's CUSE (character devices in user space).
//!
//! ```text
//! RtfDevice   a device, made by `create`; removed when it is dropped
//!   server    requests of programs, those that wait, and the ends of the FIFO
//!   channel   /dev/cuse: requests come from there, replies go there
//!   protocol  the messages (the kernel's include/uapi/linux/fuse.h)
//! ```
//!
//! What programs see:
//!
//! - read waits until there is something, and gets at most as many bytes as it asks for; of a FIFO
//!   of messages, one (EMSGSIZE: it is longer, and stays where it is).
//! - write puts all or nothing, and waits for room (EMSGSIZE: more than the FIFO can hold, or than
//!   [`MAX_WRITE`] bytes). No write overtakes one that waits.
//! - With O_NONBLOCK neither waits (EAGAIN). A signal ends the wait (EINTR, also with SA_RESTART).
//! - poll, select and epoll: POLLIN while there is something; POLLOUT while there is room and no
//!   write waits for it, after a write that found none (EAGAIN) while there is room for as much.
//! - While another program has a side of the FIFO alone, those who would use that side get EBUSY.
//! - Where the device ends, waiting programs get ENODEV, and later calls ENOTCONN.
//!
//! The kernel splits a call with more than 32 buffers (readv, writev), or of more than
//! [`MAX_WRITE`] bytes. A split read takes from a FIFO of messages still one; a split writev is not
//! one write.

mod channel;
mod protocol;
mod server;

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use punctual_diagnostic::Diagnostic;
use punctual_ipc::Fifo;
use rustix::fs::{major, minor, stat, FileType};

use channel::Channel;
use server::DeviceServer;

pub use channel::MAX_WRITE;

/// The major number of RT-FIFOs (the kernel's Documentation/admin-guide/devices.txt), so that
/// device nodes that RT-Linux's scripts made are valid.
const MAJOR: u32 = 150;

/// Numbers of devices are below this: what the kernel has bits for.
const NUMBERS: u32 = 1 << 20;

/// The device `/dev/rtfN` of a FIFO. Dropping it removes the device.
#[derive(Debug)]
pub struct RtfDevice {
    channel: Channel,
    fifo: Fifo,
    path: PathBuf,
}

impl RtfDevice {
    /// Makes the device of this number, for root (mode 0600, where no udev rule changes that).
    /// Programs that open it wait until it is served.
    ///
    /// # Errors
    /// The kernel has no CUSE (ENOENT), or the process may not use it (EACCES); the device exists
    /// (EEXIST); `number` is not below 1,048,576 (EINVAL); /dev does not show it.
    pub fn create(fifo: Fifo, number: u32) -> Result<Self, Diagnostic> {
        let name = format!("rtf{number}");
        let path = Path::new("/dev").join(&name);
        if number >= NUMBERS {
            return Err(Diagnostic::usage(
                format!("there can be no device {}", path.display()),
                format!("use a number from 0 to {}", NUMBERS - 1),
            )
            .with_errno(libc::EINVAL));
        }
        let channel = Channel::create(&name, MAJOR, number)?;
        let node = stat(&path);
        let is_shown = node.is_ok_and(|node| {
            FileType::from_raw_mode(node.st_mode) == FileType::CharacterDevice
                && (major(node.st_rdev), minor(node.st_rdev)) == (MAJOR, number)
        });
        if !is_shown {
            let path = path.display();
            return Err(Diagnostic::machine(
                format!("the kernel makes the device {MAJOR}:{number}, but {path} is not it"),
                format!("mount devtmpfs on /dev, or make it: mknod {path} c {MAJOR} {number}"),
            ));
        }
        Ok(Self { channel, fifo, path })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Serves the device in this thread until `stop` (an eventfd, a pipe) is readable or hung up,
    /// and removes it.
    ///
    /// # Errors
    /// The kernel ended the device (`/sys/class/cuse/rtfN/abort`), or refused a system call.
    pub fn serve(self, stop: BorrowedFd<'_>) -> Result<(), Diagnostic> {
        let path = self.path.display();
        DeviceServer::new(self.channel, self.fifo).run(stop).map_err(|error| {
            let ended = error.raw_os_error() == Some(libc::ENODEV);
            let help = match ended {
                true => "start it again; writing to `abort` in /sys/class/cuse ends a device",
                false => "start it again, and see the kernel's log for what it refused",
            };
            Diagnostic::refused(format!("the device {path} ended"), error, help)
        })
    }
}
