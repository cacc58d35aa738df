//! Ends that wait: descriptors for poll, and times.

mod common;

use std::thread;

use common::{message, number, page, unnamed};
use punctual_ipc::{Access, Content, Error};
use punctual_sys::clock::monotonic_ns;
use rustix::event::{poll, PollFd, PollFlags, Timespec};

fn is_readable(fd: std::os::fd::BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
}

#[test]
fn a_descriptor_of_a_reader_is_readable_while_there_is_something() {
    for access in [Access::Exclusive, Access::Shared] {
        let fifo = unnamed(page(Content::Messages));
        let (mut writer, mut reader) = (fifo.writer(access).unwrap(), fifo.reader(access).unwrap());
        let mut into = [0; 8];
        writer.put(b"before").unwrap();
        assert!(is_readable(reader.descriptor()));
        reader.get(&mut into).unwrap();
        assert!(!is_readable(reader.descriptor()));
        for _ in 0..3 {
            writer.put(b"a").unwrap();
            writer.put(b"b").unwrap();
            assert!(is_readable(reader.descriptor()));
            reader.get(&mut into).unwrap();
            assert!(is_readable(reader.descriptor()));
            reader.get(&mut into).unwrap();
            assert!(!is_readable(reader.descriptor()));
        }
    }
}

#[test]
fn a_descriptor_of_a_writer_is_readable_when_there_is_room_again() {
    let fifo = unnamed(page(Content::Bytes));
    let mut writer = fifo.writer(Access::Exclusive).unwrap();
    let mut reader = fifo.reader(Access::Exclusive).unwrap();
    assert!(is_readable(writer.descriptor()));
    writer.put(&[1; 4096]).unwrap();
    assert_eq!(writer.put(&[1]), Err(Error::Full));
    assert!(!is_readable(writer.descriptor()));
    reader.get(&mut [0; 100]).unwrap();
    assert!(is_readable(writer.descriptor()));
    writer.put(&[1; 100]).unwrap();
}

#[test]
fn an_end_that_looks_takes_nothing_and_makes_its_descriptor_unready_where_it_must_wait() {
    for content in [Content::Bytes, Content::Messages] {
        let fifo = unnamed(page(content));
        let mut writer = fifo.writer(Access::Shared).unwrap();
        let mut reader = fifo.reader(Access::Shared).unwrap();
        assert_eq!(reader.is_ready(), Ok(false));
        assert!(is_readable(reader.descriptor()), "it may have moved meanwhile");
        assert_eq!(reader.is_ready(), Ok(false));
        assert!(!is_readable(reader.descriptor()));
        assert_eq!(writer.is_ready_for(4097), Err(Error::TooLarge));
        // 8 bytes of the FIFO: all of an empty message. One more message has 8 besides its length.
        let (length, room) = if content == Content::Messages { (0, 4080) } else { (8, 4088) };
        writer.put(&[0; 8][..length]).unwrap();
        assert!(is_readable(reader.descriptor()));
        assert_eq!((reader.is_ready(), reader.is_ready()), (Ok(true), Ok(true)));
        assert_eq!(writer.is_ready_for(room), Ok(true));
        assert!(is_readable(writer.descriptor()));
        assert_eq!(writer.is_ready_for(room + 1), Ok(false));
        assert!(!is_readable(writer.descriptor()));
        reader.get_some(&mut [0; 8]).unwrap();
        assert!(is_readable(writer.descriptor()));
        assert_eq!(reader.is_ready(), Ok(false));
    }
}

#[test]
fn a_thread_that_polls_is_woken_for_each_message() {
    let fifo = unnamed(page(Content::Messages));
    let mut writer = fifo.writer(Access::Exclusive).unwrap();
    let mut reader = fifo.reader(Access::Exclusive).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..20_000 {
                while writer.put(&message(n)) == Err(Error::Full) {
                    poll(&mut [PollFd::new(&writer.descriptor(), PollFlags::IN)], None).unwrap();
                }
            }
        });
        let (mut n, mut into) = (0, [0; 256]);
        while n < 20_000 {
            match reader.get(&mut into) {
                Ok(length) => {
                    assert_eq!(number(&into[..length]), Some(n));
                    n += 1;
                }
                Err(error) => {
                    assert_eq!(error, Error::Empty);
                    poll(&mut [PollFd::new(&reader.descriptor(), PollFlags::IN)], None).unwrap();
                }
            }
        }
    });
}

#[test]
fn waiting_ends_with_its_time() {
    let fifo = unnamed(page(Content::Bytes));
    let mut reader = fifo.reader(Access::Exclusive).unwrap();
    let until = monotonic_ns() + 2_000_000;
    assert_eq!(reader.get_until(&mut [0], until), Err(Error::TimedOut));
    assert!(monotonic_ns() >= until);
    assert_eq!(reader.get_until(&mut [0], 0), Err(Error::TimedOut));
}
