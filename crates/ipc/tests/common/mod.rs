//! What the tests have in common.

#![allow(dead_code)]

pub mod role;

use std::thread;
use std::time::Duration;

use punctual_ipc::{Content, Fifo, FifoAttr, Name, Namespace};

/// A namespace of its own, in memory.
pub fn namespace() -> (tempfile::TempDir, Namespace) {
    let folder = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
    let namespace = Namespace::at(&folder.path().join("objects")).expect("it can be made");
    (folder, namespace)
}

pub fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// A page of bytes or messages.
pub fn page(content: Content) -> FifoAttr {
    FifoAttr { capacity: 4096, limit: None, content }
}

pub fn unnamed(attr: FifoAttr) -> Fifo {
    Fifo::unnamed(attr).expect("there is memory")
}

/// The message of a number: 8 to 207 bytes, all of which follow from it.
pub fn message(number: u64) -> Vec<u8> {
    let length = 8 + (number.wrapping_mul(2_654_435_761) >> 7) as usize % 200;
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((8..length).map(|n| (number as usize * 31 + n * 7) as u8));
    bytes
}

/// The number of a message that is as it was made.
pub fn number(bytes: &[u8]) -> Option<u64> {
    let number = u64::from_le_bytes(*bytes.first_chunk()?);
    (bytes == message(number)).then_some(number)
}

/// Waits until no process has an object open. A child that another test starts has what was open
/// here at its fork, until it executes its program.
pub fn until(mut is_free: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if is_free() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("it is free when no process has it open");
}
