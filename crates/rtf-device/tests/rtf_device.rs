//! The device as ordinary programs use it: read, write, poll and epoll.

mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::thread::{self, sleep};
use std::time::Instant;

use common::{has_cuse, Served, A_WHILE};
use punctual_ipc::{Access, Content, Error, Fifo, FifoAttr};
use punctual_rtf_device::{RtfDevice, MAX_WRITE};
use punctual_test_support::{comes_true, LIVENESS};
use rustix::event::{epoll, poll, PollFd, PollFlags, Timespec};

/// In a process of its own, which `Served` starts.
#[test]
fn server() {
    common::serve();
}

/// What poll(2) says of reading and writing, after at most `wait`.
fn ready(file: &File, wait: std::time::Duration) -> PollFlags {
    let mut fds = [PollFd::new(file, PollFlags::IN | PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec::try_from(wait).unwrap())).unwrap();
    fds[0].revents()
}

fn ready_now(file: &File) -> PollFlags {
    ready(file, std::time::Duration::ZERO)
}

fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> i32 {
    result.unwrap_err().raw_os_error().unwrap()
}

#[test]
fn without_cuse_it_says_what_to_load() {
    if std::path::Path::new("/dev/cuse").exists() {
        return;
    }
    let fifo = Fifo::unnamed(FifoAttr::default()).unwrap();
    let error = RtfDevice::create(fifo, 0).unwrap_err();
    assert_eq!(error.errno, Some(libc::ENOENT));
    assert!(error.to_string().ends_with("; load its module: modprobe cuse"), "{error}");
}

#[test]
fn a_number_that_the_kernel_has_no_bits_for_is_refused() {
    let fifo = Fifo::unnamed(FifoAttr::default()).unwrap();
    let error = RtfDevice::create(fifo, 1 << 20).unwrap_err();
    assert_eq!(error.errno, Some(libc::EINVAL));
    assert!(error.to_string().contains("from 0 to 1048575"), "{error}");
}

#[test]
fn commands_of_the_shell_write_and_read() {
    if !has_cuse() {
        return;
    }
    let served = Served::start(Content::Bytes);
    let node = std::fs::metadata(&served.path).unwrap();
    assert!(node.file_type().is_char_device());
    assert_eq!(
        (rustix::fs::major(node.rdev()), rustix::fs::minor(node.rdev())),
        (150, served.number())
    );
    let mut reader = served.fifo.reader(Access::Exclusive).unwrap();
    assert!(served.shell("printf hello >$DEVICE").wait().unwrap().success());
    let mut into = [0; 10];
    let length = reader.get_some(&mut into).unwrap();
    assert_eq!(&into[..length], b"hello");
    drop(reader);
    let mut writer = served.fifo.writer(Access::Exclusive).unwrap();
    writer.put(b"0123456789").unwrap();
    let first = served.shell("dd bs=4 count=1 if=$DEVICE 2>/dev/null").wait_with_output().unwrap();
    assert_eq!(first.stdout, b"0123");
    // cat reads all, and waits for more.
    let mut cat = served.shell("exec cat $DEVICE");
    let mut out = cat.stdout.take().unwrap();
    for part in ["456789", "more"] {
        let mut into = vec![0; part.len()];
        out.read_exact(&mut into).unwrap();
        assert_eq!(into, part.as_bytes());
        let _ = writer.put(b"more");
    }
    cat.kill().unwrap();
    cat.wait().unwrap();
}

#[test]
fn a_read_waits_until_there_is_something() {
    if !has_cuse() {
        return;
    }
    let served = Served::start(Content::Bytes);
    let mut writer = served.fifo.writer(Access::Exclusive).unwrap();
    let mut file = served.open(true, false, 0);
    let read = thread::spawn(move || {
        let mut into = [0; 100];
        let length = file.read(&mut into).unwrap();
        into[..length].to_vec()
    });
    sleep(A_WHILE);
    assert!(!read.is_finished());
    writer.put(b"hello").unwrap();
    assert_eq!(read.join().unwrap(), b"hello");
}

#[test]
fn a_write_is_all_or_nothing_and_waits_for_room() {
    if !has_cuse() {
        return;
    }
    let served = Served::start(Content::Bytes);
    let mut reader = served.fifo.reader(Access::Exclusive).unwrap();
    let mut file = served.open(false, true, libc::O_NONBLOCK);
    assert_eq!(file.write(&[1; 4000]).unwrap(), 4000);
    assert_eq!(errno(file.write(&[2; 97])), libc::EAGAIN);
    assert_eq!(served.fifo.state().used, 4000);
    for too_large in [4097, MAX_WRITE, MAX_WRITE + 1, 300_000] {
        assert_eq!(errno(file.write(&vec![3; too_large])), libc::EMSGSIZE, "{too_large}");
    }
    assert_eq!(served.fifo.state().used, 4000);
    let mut waiting = served.open(false, true, 0);
    let write = thread::spawn(move || waiting.write(&[4; 100]).unwrap());
    sleep(A_WHILE);
    assert!(!write.is_finished());
    reader.get(&mut [0; 3]).unwrap();
    sleep(A_WHILE);
    assert!(!write.is_finished(), "99 bytes are not enough");
    reader.get(&mut [0; 1]).unwrap();
    assert_eq!(write.join().unwrap(), 100);
    let mut into = [0; 4096];
    reader.get(&mut into).unwrap();
    assert_eq!((into[3995], into[3996]), (1, 4));
}

#[test]
fn poll_says_what_a_read_and_a_write_would_find() {
    if !has_cuse() {
        return;
    }
    let served = Served::start(Content::Bytes);
    let mut file = served.open(true, true, libc::O_NONBLOCK);
    assert_eq!(ready_now(&file), PollFlags::OUT);
    assert_eq!(errno(file.read(&mut [0; 10])), libc::EAGAIN);
    assert_eq!(file.write(&[1; 4096]).unwrap(), 4096);
    assert_eq!(ready_now(&file), PollFlags::IN);
    file.read_exact(&mut [0; 100]).unwrap();
    assert_eq!(ready_now(&file), PollFlags::IN | PollFlags::OUT);
    // After a write without room: as much as that needs.
    assert_eq!(errno(file.write(&[1; 200])), libc::EAGAIN);
    assert_eq!(ready_now(&file), PollFlags::IN);
    file.read_exact(&mut [0; 100]).unwrap();
    assert_eq!(ready_now(&file), PollFlags::IN | PollFlags::OUT);
    assert_eq!(file.write(&[1; 200]).unwrap(), 200);
    file.read_exact(&mut [0; 4096]).unwrap();
    assert_eq!(ready_now(&file), PollFlags::OUT);
    // A file that is open for one direction has no other.
    file.write_all(b"x").unwrap();
    assert_eq!(ready_now(&served.open(true, false, 0)), PollFlags::IN);
    assert_eq!(ready_now(&served.open(false, true, 0)), PollFlags::OUT);
}

#[test]
fn programs_that_poll_are_woken() {
    if !has_cuse() {
        return;
    }
    let served = Served::start(Content::Bytes);
    let mut writer = served.fifo.writer(Access::Shared).unwrap();
    let poll_in_thread = |flag| {
        let file = served.open(flag == PollFlags::IN, flag == PollFlags::OUT, 0);
        thread::spawn(move || {
            let since = Instant::now();
            assert_eq!(ready(&file, LIVENESS), flag);
            since.elapsed()
        })
    };
    for _ in 0..3 {
        let polls = [poll_in_thread(PollFlags::IN), poll_in_thread(PollFlags::IN)];
        sleep(A_WHILE);
        assert!(polls.iter().all(|poll| !poll.is_finished()));
        writer.put(&[0; 4096]).unwrap();
        let waited = polls.map(|poll| poll.join().unwrap());
        // By the notification, not because the server looked again after a second.
        punctual_test_support::judge_timing(|| {
            assert!(waited.iter().all(|waited| *waited < 5 * A_WHILE), "{waited:?}");
        });
        let poll = poll_in_thread(PollFlags::OUT);
        sleep(A_WHILE);
        assert!(!poll.is_finished());
        served.fifo.reader(Access::Shared).unwrap().get(&mut [0; 4096]).unwrap();
        let waited = poll.join().unwrap();
        punctual_test_support::judge_timing(|| assert!(waited < 5 * A_WHILE, "{waited:?}"));
    }
}

#[test]
fn an_edge_triggered_epoll_has_an_event_for_each_put_after_the_fifo_was_empty() {
    if !has_cuse() {
        return;
    }
    let served = Served::start(Content::Bytes);
    let mut writer = served.fifo.writer(Access::Exclusive).unwrap();
    let mut file = served.open(true, false, libc::O_NONBLOCK);
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&set, file.as_fd(), epoll::EventData::new_u64(1), flags).unwrap();
    let wait = |time| {
        let mut events = Vec::with_capacity(4);
        let time = Timespec::try_from(time).unwrap();
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), Some(&time)).unwrap()
    };
    for _ in 0..5 {
        assert_eq!(wait(A_WHILE), 0);
        writer.put(b"x").unwrap();
        assert_eq!(wait(LIVENESS), 1);
        file.read_exact(&mut [0]).unwrap();
        assert_eq!(errno(file.read(&mut [0])), libc::EAGAIN);
    }
}

#[test]
fn the_server_sleeps_while_it_has_nothing_to_do() {
    if !has_cuse() {
        return;
    }
    let served = Served::start(Content::Bytes);
    let mut file = served.open(true, true, libc::O_NONBLOCK);
    let sleeps = |what: &str| {
        let before = served.server_ticks();
        sleep(10 * A_WHILE);
        let ticks = served.server_ticks() - before;
        punctual_test_support::judge_timing(|| assert!(ticks < 5, "{what}: {ticks}"));
    };
    assert_eq!(ready_now(&file), PollFlags::OUT);
    assert_eq!(errno(file.read(&mut [0])), libc::EAGAIN);
    sleeps("an empty FIFO that a program polled");
    file.write_all(&[0; 4000]).unwrap();
    assert_eq!(ready_now(&file), PollFlags::IN | PollFlags::OUT);
    sleeps("there is something that no program reads");
    let mut waiting = served.open(false, true, 0);
    let write = thread::spawn(move || waiting.write(&[0; 200]).unwrap());
    sleeps("a write that waits, with some room");
    let mut polling = [PollFd::new(&file, PollFlags::OUT)];
    assert_eq!(errno(file.try_clone().unwrap().write(&[0; 300])), libc::EAGAIN);
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    let before = served.server_ticks();
    assert_eq!(poll(&mut polling, Some(&second)).unwrap(), 0);
    let ticks = served.server_ticks() - before;
    punctual_test_support::judge_timing(|| assert!(ticks < 5, "a program that polls: {ticks}"));
    file.read_exact(&mut [0; 200]).unwrap();
    assert_eq!(write.join().unwrap(), 200);
}

#[test]
fn readers_share_what_comes() {
    if !has_cuse() {
        return;
    }
    let served = Served::start(Content::Messages);
    let mut writer = served.fifo.writer(Access::Exclusive).unwrap();
    let reads = [(); 2].map(|()| {
        let mut file = served.open(true, false, 0);
        thread::spawn(move || {
            let (mut got, mut into) = (Vec::new(), [0; 100]);
            loop {
                let length = file.read(&mut into).unwrap();
                assert_eq!(length, 4);
                match u32::from_le_bytes(into[..4].try_into().unwrap()) {
                    u32::MAX => return got,
                    number => got.push(number),
                }
            }
        })
    });
    for number in (0..2000).chain([u32::MAX; 2]) {
        writer.put_until(&number.to_le_bytes(), u64::MAX).unwrap();
    }
    let [mut all, other] = reads.map(|read| read.join().unwrap());
    assert!(all.is_sorted() && other.is_sorted());
    all.extend(other);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..2000));
}

#[test]
fn a_read_gets_one_message() {
    if !has_cuse() {
        return;
    }
    let served = Served::start(Content::Messages);
    let mut file = served.open(true, true, libc::O_NONBLOCK);
    file.write_all(b"first").unwrap();
    file.write_all(b"second").unwrap();
    // A buffer for which the kernel splits the call.
    let mut into = vec![0; 1 << 20];
    assert_eq!(file.read(&mut into).unwrap(), 5);
    assert_eq!(&into[..5], b"first");
    assert_eq!(errno(file.read(&mut into[..5])), libc::EMSGSIZE);
    assert_eq!(file.read(&mut into[..6]).unwrap(), 6);
    assert_eq!(&into[..6], b"second");
    assert_eq!(errno(file.read(&mut into)), libc::EAGAIN);
    // With its header, it is more than the FIFO can hold.
    assert_eq!(errno(file.write(&[0; 4089])), libc::EMSGSIZE);
    assert_eq!(file.write(&[0; 4088]).unwrap(), 4088);
    assert_eq!(ready_now(&file), PollFlags::IN);
}

#[test]
fn a_writev_of_many_buffers_is_split_by_the_kernel() {
    if !has_cuse() {
        return;
    }
    let many = [std::io::IoSlice::new(&[1; 10]); 40];
    for (content, wanted) in [(Content::Bytes, 400), (Content::Messages, 320)] {
        let served = Served::start(content);
        let mut file = served.open(true, true, libc::O_NONBLOCK);
        assert_eq!(file.write_vectored(&many[..32]).unwrap(), 320);
        assert_eq!(file.read(&mut [0; 4096]).unwrap(), 320);
        // Its first part is a message; there is no second.
        assert_eq!(file.write_vectored(&many).unwrap(), wanted);
        assert_eq!(file.read(&mut [0; 4096]).unwrap(), wanted);
        assert_eq!(errno(file.read(&mut [0; 4096])), libc::EAGAIN);
    }
}

#[test]
fn a_side_is_busy_while_a_program_has_it_alone_and_free_after_the_last_close() {
    if !has_cuse() {
        return;
    }
    let served = Served::start(Content::Bytes);
    let alone = served.fifo.writer(Access::Exclusive).unwrap();
    let mut file = served.open(true, true, libc::O_NONBLOCK);
    assert_eq!(errno(file.write(b"x")), libc::EBUSY);
    assert_eq!(ready_now(&file), PollFlags::ERR);
    assert_eq!(errno(file.read(&mut [0])), libc::EAGAIN);
    drop(alone);
    file.write_all(b"x").unwrap();
    file.read_exact(&mut [0]).unwrap();
    assert!(served.fifo.writer(Access::Exclusive).is_err());
    drop(file);
    served.fifo.writer(Access::Exclusive).unwrap();
    let mut reader = served.fifo.reader(Access::Exclusive).unwrap();
    assert_eq!(reader.get(&mut [0]), Err(Error::Empty));
}

#[test]
fn a_number_is_of_one_device_and_no_request_is_an_unknown_one() {
    if !has_cuse() {
        return;
    }
    let mut served = Served::start(Content::Bytes);
    let other = Fifo::unnamed(FifoAttr::default()).unwrap();
    let error = RtfDevice::create(other.clone(), served.number()).unwrap_err();
    assert_eq!(error.errno, Some(libc::EEXIST));
    let file = served.open(true, false, 0);
    assert!(!std::io::IsTerminal::is_terminal(&file));
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOTTY));
    drop(file);
    served.stop();
    assert!(!served.path.exists());
    let device = RtfDevice::create(other, served.number()).unwrap();
    assert_eq!(device.path(), served.path);
    drop(device);
    assert!(comes_true(|| !served.path.exists()));
}
