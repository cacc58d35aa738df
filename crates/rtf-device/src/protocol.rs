//! The messages between the kernel and a server of a device: those of FUSE that CUSE uses
//! (include/uapi/linux/fuse.h), in the byte order of the machine.

/// The version of the protocol that is spoken, 7.21: the first whose POLL has the events.
pub const VERSION: [u32; 2] = [7, 21];

/// The kernel refuses to read a request into less than this, or less than the greatest write
/// with its headers.
pub const MIN_BUFFER: usize = 8192;

/// Bytes before the data of a write: the header of the request, and what a write says.
pub const WRITE_HEADERS: usize = HEADER + 40;

const HEADER: usize = 40;
/// Of a reply.
const REPLY_HEADER: usize = 16;

const OPEN: u32 = 14;
const READ: u32 = 15;
const WRITE: u32 = 16;
const RELEASE: u32 = 18;
const INTERRUPT: u32 = 36;
const IOCTL: u32 = 39;
const POLL: u32 = 40;
const CUSE_INIT: u32 = 4096;

/// Flag of a POLL: the program sleeps until it is notified.
const POLL_SCHEDULE_NOTIFY: u32 = 1;
/// In the place of the error, in a message that is no reply.
const NOTIFY_POLL: i32 = 1;

/// What the kernel asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct DeviceRequest<'a> {
    /// Names this request in its reply.
    pub id: u64,
    pub operation: Operation<'a>,
}

/// Files are numbers that the reply to `Open` chose; `flags` those of open(2), as they are now.
#[derive(Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    Init,
    Open {
        flags: u32,
    },
    /// `offset` is not 0 in the later parts of a call that the kernel split.
    Read {
        file: u64,
        offset: u64,
        size: usize,
        flags: u32,
    },
    Write {
        file: u64,
        offset: u64,
        flags: u32,
        data: &'a [u8],
    },
    /// `handle` names the waiting programs of this file.
    Poll {
        file: u64,
        handle: u64,
        notify: bool,
        events: u32,
    },
    Ioctl,
    /// The last descriptor of the file was closed.
    Release {
        file: u64,
    },
    /// A program that waits for the reply to request `id` has a signal. Has no reply itself.
    Interrupt {
        id: u64,
    },
    /// Any other.
    Unknown,
}

impl<'a> DeviceRequest<'a> {
    /// Reads a request; `None`: it is shorter than it must be.
    pub fn parse(message: &'a [u8]) -> Option<Self> {
        let (header, body) = message.split_at_checked(HEADER)?;
        let operation = match u32_at(header, 4)? {
            CUSE_INIT => Operation::Init,
            OPEN => Operation::Open { flags: u32_at(body, 0)? },
            READ => Operation::Read {
                file: u64_at(body, 0)?,
                offset: u64_at(body, 8)?,
                size: u32_at(body, 16)? as usize,
                flags: u32_at(body, 32)?,
            },
            WRITE => Operation::Write {
                file: u64_at(body, 0)?,
                offset: u64_at(body, 8)?,
                flags: u32_at(body, 32)?,
                data: body.get(WRITE_HEADERS - HEADER..)?.get(..u32_at(body, 16)? as usize)?,
            },
            POLL => Operation::Poll {
                file: u64_at(body, 0)?,
                handle: u64_at(body, 8)?,
                notify: u32_at(body, 16)? & POLL_SCHEDULE_NOTIFY != 0,
                events: u32_at(body, 20)?,
            },
            IOCTL => Operation::Ioctl,
            RELEASE => Operation::Release { file: u64_at(body, 0)? },
            INTERRUPT => Operation::Interrupt { id: u64_at(body, 0)? },
            _ => Operation::Unknown,
        };
        Some(Self { id: u64_at(header, 8)?, operation })
    }
}

/// The header of a reply with `length` bytes; `errno` 0: it succeeded.
pub fn reply(id: u64, errno: i32, length: usize) -> [u8; REPLY_HEADER] {
    header(id, -errno, length)
}

/// Wakes the programs that poll a file.
pub fn poll_notification(handle: u64) -> Vec<u8> {
    let body = handle.to_ne_bytes();
    [&header(0, NOTIFY_POLL, body.len())[..], &body].concat()
}

/// What is said of a device in reply to `Init`.
pub fn init_reply(name: &str, [major, minor]: [u32; 2], max_transfer: u32) -> Vec<u8> {
    let [version, revision] = VERSION;
    let (unused, flags) = (0, 0);
    let words = [version, revision, unused, flags, max_transfer, max_transfer, major, minor];
    let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let spare = [0; 40];
    body.extend(spare);
    body.extend(format!("DEVNAME={name}\0").bytes());
    body
}

/// What is said of a new file in reply to `Open`.
pub fn open_reply(file: u64) -> [u8; 16] {
    pair(file, 0)
}

/// In reply to `Write`: so many bytes were written.
pub fn write_reply(size: usize) -> [u8; 8] {
    word_and_padding(size as u32)
}

/// In reply to `Poll`: what is ready.
pub fn poll_reply(events: u32) -> [u8; 8] {
    word_and_padding(events)
}

fn header(id: u64, error: i32, length: usize) -> [u8; REPLY_HEADER] {
    let mut bytes = [0; REPLY_HEADER];
    bytes[..4].copy_from_slice(&((REPLY_HEADER + length) as u32).to_ne_bytes());
    bytes[4..8].copy_from_slice(&error.to_ne_bytes());
    bytes[8..].copy_from_slice(&id.to_ne_bytes());
    bytes
}

fn pair(first: u64, second: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_ne_bytes());
    bytes[8..].copy_from_slice(&second.to_ne_bytes());
    bytes
}

fn word_and_padding(word: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&word.to_ne_bytes());
    bytes
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(opcode: u32, words: &[u32], data: &[u8]) -> Vec<u8> {
        let length = HEADER + words.len() * 4 + data.len();
        let header = [length as u32, opcode, 6, 0, 0, 0, 0, 0, 0, 0];
        let words = header.iter().chain(words).flat_map(|word| word.to_ne_bytes());
        words.chain(data.iter().copied()).collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn requests_are_read_as_the_kernel_writes_them() {
        fn read(message: &[u8]) -> Option<Operation<'_>> {
            DeviceRequest::parse(message).map(|request| request.operation)
        }
        let words = [3, 0, 4096, 0, 5, 0, 0, 0, 0x800, 0];
        let wanted = Operation::Write { file: 3, offset: 4096, flags: 0x800, data: b"hello" };
        let message = request(WRITE, &words, b"hello");
        assert_eq!(
            DeviceRequest::parse(&message),
            Some(DeviceRequest { id: 6, operation: wanted })
        );
        let wanted = Operation::Read { file: 3, offset: 4096, size: 5, flags: 0x800 };
        assert_eq!(read(&request(READ, &words, b"")), Some(wanted));
        let wanted = Operation::Poll { file: 3, handle: 9, notify: true, events: 4 };
        assert_eq!(read(&request(POLL, &[3, 0, 9, 0, 1, 4], b"")), Some(wanted));
        let wanted = Operation::Interrupt { id: 4 };
        assert_eq!(read(&request(INTERRUPT, &[4, 0], b"")), Some(wanted));
        assert_eq!(read(&request(99, &[], b"")), Some(Operation::Unknown));
        for short in 0..message.len() {
            assert_eq!(DeviceRequest::parse(&message[..short]), None);
        }
    }

    #[test]
    fn replies_have_the_sizes_that_the_kernel_requires() {
        assert_eq!(init_reply("rtf0", [150, 0], 4096).len(), 72 + "DEVNAME=rtf0\0".len());
        assert_eq!(poll_notification(7).len(), 24);
        assert_eq!(reply(1, libc::EINTR, 0)[..8], header(0, -4, 0)[..8]);
    }
}
