//! This program, where `RTload` of another one has started it: that one has it scheduled, and gets
//! its priorities by a FIFO.

use std::sync::{Mutex, OnceLock, PoisonError};

use punctual::fifo::{Access, Content, Fifo, FifoAttr, Lifetime, Name, Namespace, Writer};
use punctual::Error;

/// Names the FIFO, in the environment of a loaded program.
pub const VARIABLE: &str = "PUNCTUAL_RTLINUX_LOADED";

/// Bytes of the FIFO: some hundred requests.
const CAPACITY: usize = 4096;

/// What a loaded program asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityRequest {
    /// Which program.
    pub pid: i32,
    /// As the paper has it: smaller first.
    pub priority: i32,
}

/// Its length as a message.
pub const REQUEST: usize = 8;

impl PriorityRequest {
    fn bytes(self) -> [u8; REQUEST] {
        let [pid, priority] = [self.pid, self.priority].map(i32::to_ne_bytes);
        let mut bytes = [0; REQUEST];
        bytes[..4].copy_from_slice(&pid);
        bytes[4..].copy_from_slice(&priority);
        bytes
    }

    pub fn from_bytes(bytes: [u8; REQUEST]) -> PriorityRequest {
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let [pid, priority] = [0, 4].map(|at| i32::from_ne_bytes(word(at)));
        PriorityRequest { pid, priority }
    }
}

/// The FIFO for the programs that this one loads, and its name.
///
/// # Errors
/// It cannot be made.
pub fn make_fifo() -> Result<(Fifo, String), Error> {
    let name = format!("rtlinux-{}", std::process::id());
    let attr = FifoAttr { capacity: CAPACITY, limit: None, content: Content::Messages };
    let fifo = Fifo::create(&Namespace::of_user()?, &name.parse::<Name>()?, attr, Lifetime::Used)?;
    Ok((fifo, name))
}

fn writer() -> Option<&'static Mutex<Writer>> {
    static WRITER: OnceLock<Option<Mutex<Writer>>> = OnceLock::new();
    let open = || {
        let name = std::env::var(VARIABLE).ok()?.parse::<Name>().ok()?;
        let fifo = Fifo::open(&Namespace::of_user().ok()?, &name).ok()?;
        Some(Mutex::new(fifo.writer(Access::Shared).ok()?))
    };
    WRITER.get_or_init(open).as_ref()
}

/// Whether another program has loaded this one, and is still there.
pub fn is_loaded() -> bool {
    writer().is_some()
}

/// Asks the program that has loaded this one for another priority. False: it takes no more now.
pub fn ask_for_priority(priority: i32) -> bool {
    let Some(writer) = writer() else { return false };
    let request = PriorityRequest { pid: std::process::id() as i32, priority };
    writer.lock().unwrap_or_else(PoisonError::into_inner).put(&request.bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_arrives_as_it_was_made() {
        for request in [
            PriorityRequest { pid: 1, priority: -2 },
            PriorityRequest { pid: i32::MAX, priority: 7 },
        ] {
            assert_eq!(PriorityRequest::from_bytes(request.bytes()), request);
        }
    }
}
