//! Signals, killed programs, and a server that ends while programs wait.

mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::thread::{self, sleep, JoinHandle};

use common::{has_cuse, Served, A_WHILE};
use punctual_ipc::{Access, Content};
use punctual_test_support::{comes_true, LIVENESS};
use rustix::event::{poll, PollFd, PollFlags, Timespec};

/// In a process of its own, which `Served` starts.
#[test]
fn server() {
    common::serve();
}

/// A device with nothing to read, and one without room.
fn empty_and_full() -> (Served, Served) {
    let (empty, full) = (Served::start(Content::Bytes), Served::start(Content::Bytes));
    full.fifo.writer(Access::Exclusive).unwrap().put(&[0; 4096]).unwrap();
    (empty, full)
}

/// A read and a write that wait; each returns the number of its error.
fn waiting(empty: &Served, full: &Served) -> [JoinHandle<i32>; 2] {
    let (mut from, mut to) = (empty.open(true, false, 0), full.open(false, true, 0));
    let errno = |result: std::io::Result<usize>| result.unwrap_err().raw_os_error().unwrap();
    let read = thread::spawn(move || errno(from.read(&mut [0; 8])));
    let write = thread::spawn(move || errno(to.write(&[0; 8])));
    sleep(A_WHILE);
    assert!(!read.is_finished() && !write.is_finished());
    [read, write]
}

fn poll_of(mut file: File) -> JoinHandle<(PollFlags, i32)> {
    thread::spawn(move || {
        let mut fds = [PollFd::new(&file, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::try_from(LIVENESS).unwrap())).unwrap();
        let events = fds[0].revents();
        (events, file.read(&mut [0]).unwrap_err().raw_os_error().unwrap())
    })
}

/// Has SIGUSR1 interrupt system calls.
fn handle_signal() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: zeros are a value of it: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as *const () as usize;
    // SAFETY: the handler does nothing, which is safe at any time.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) }, 0);
}

#[test]
fn a_signal_ends_the_wait_and_takes_nothing() {
    if !has_cuse() {
        return;
    }
    handle_signal();
    let (empty, full) = empty_and_full();
    for thread in waiting(&empty, &full) {
        // SAFETY: the thread was not joined.
        assert_eq!(unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGUSR1) }, 0);
        assert_eq!(thread.join().unwrap(), libc::EINTR);
    }
    // The next one gets what comes then.
    empty.fifo.writer(Access::Exclusive).unwrap().put(b"later").unwrap();
    let mut into = [0; 8];
    assert_eq!(empty.open(true, false, 0).read(&mut into).unwrap(), 5);
    full.fifo.reader(Access::Exclusive).unwrap().get(&mut [0; 4096]).unwrap();
    assert_eq!(full.fifo.state().used, 0);
}

#[test]
fn of_what_is_read_nothing_is_lost_to_signals() {
    if !has_cuse() {
        return;
    }
    handle_signal();
    const COUNT: u32 = 3000;
    let served = Served::start(Content::Messages);
    let mut writer = served.fifo.writer(Access::Exclusive).unwrap();
    let mut file = served.open(true, false, 0);
    let interrupted = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&interrupted);
    let read = thread::spawn(move || {
        let (mut next, mut into) = (0, [0; 4]);
        while next < COUNT {
            match file.read(&mut into) {
                Ok(length) => {
                    assert_eq!((length, u32::from_le_bytes(into)), (4, next));
                    next += 1;
                }
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(libc::EINTR));
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    let thread = read.as_pthread_t();
    // SAFETY: the thread is joined below.
    let signal = || assert_eq!(unsafe { libc::pthread_kill(thread, libc::SIGUSR1) }, 0);
    for n in 0..COUNT {
        // While it reads or waits; while it waits; just before something comes.
        if n % 3 == 0 {
            signal();
        }
        if n % 50 == 0 {
            let before = interrupted.load(Ordering::Relaxed);
            assert!(comes_true(|| {
                signal();
                interrupted.load(Ordering::Relaxed) > before
            }));
        }
        if n % 50 == 25 {
            assert!(comes_true(|| served.fifo.state().used == 0));
            signal();
        }
        writer.put_until(&n.to_le_bytes(), u64::MAX).unwrap();
    }
    read.join().unwrap();
    println!("{interrupted:?} reads were interrupted");
}

#[test]
fn a_signal_to_the_first_that_waits_lets_the_next_one_write() {
    if !has_cuse() {
        return;
    }
    handle_signal();
    let served = Served::start(Content::Bytes);
    served.fifo.writer(Access::Exclusive).unwrap().put(&[0; 4000]).unwrap();
    let write = |size| {
        let mut file = served.open(false, true, 0);
        let thread = thread::spawn(move || file.write(&vec![1; size]));
        sleep(A_WHILE);
        assert!(!thread.is_finished());
        thread
    };
    let (large, small) = (write(200), write(50));
    // Neither does one that cannot wait overtake them, nor is it said to be possible.
    let mut other = served.open(false, true, libc::O_NONBLOCK);
    let mut poll_other = || {
        let mut fds = [PollFd::new(&other, PollFlags::OUT)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
        (fds[0].revents(), other.write(b"x").map_err(|error| error.raw_os_error()))
    };
    assert_eq!(poll_other(), (PollFlags::empty(), Err(Some(libc::EAGAIN))));
    // SAFETY: the thread was not joined.
    assert_eq!(unsafe { libc::pthread_kill(large.as_pthread_t(), libc::SIGUSR1) }, 0);
    assert_eq!(large.join().unwrap().unwrap_err().raw_os_error(), Some(libc::EINTR));
    assert_eq!(small.join().unwrap().unwrap(), 50);
    assert_eq!(poll_other(), (PollFlags::OUT, Ok(1)));
}

#[test]
fn killed_programs_leave_their_side() {
    if !has_cuse() {
        return;
    }
    let (empty, full) = empty_and_full();
    for _ in 0..5 {
        let mut clients =
            [empty.shell("exec cat $DEVICE"), full.shell("exec dd of=$DEVICE if=/dev/zero 2>&-")];
        // Both do something first.
        empty.fifo.writer(Access::Exclusive).unwrap().put(b"x").unwrap();
        clients[0].stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        full.fifo.reader(Access::Exclusive).unwrap().get(&mut [0; 512]).unwrap();
        assert!(comes_true(|| full.fifo.state().used == 4096));
        sleep(A_WHILE);
        assert!(empty.fifo.reader(Access::Exclusive).is_err());
        assert!(full.fifo.writer(Access::Exclusive).is_err());
        for client in &mut clients {
            assert!(client.try_wait().unwrap().is_none());
            client.kill().unwrap();
            client.wait().unwrap();
        }
        empty.fifo.reader(Access::Exclusive).unwrap();
        full.fifo.writer(Access::Exclusive).unwrap();
    }
    assert_eq!((empty.fifo.state().used, full.fifo.state().used), (0, 4096));
    assert!(full
        .shell("dd if=$DEVICE of=/dev/null bs=4096 count=1 2>&-")
        .wait()
        .unwrap()
        .success());
}

#[test]
fn programs_that_wait_get_an_error_when_the_server_ends() {
    if !has_cuse() {
        return;
    }
    for is_killed in [false, true] {
        let (mut empty, mut full) = empty_and_full();
        let [read, write] = waiting(&empty, &full);
        let polling = poll_of(empty.open(true, false, 0));
        let mut idle = empty.open(true, false, 0);
        sleep(A_WHILE);
        for served in [&mut empty, &mut full] {
            if is_killed {
                served.kill();
            } else {
                served.stop();
            }
        }
        let wanted = if is_killed { libc::ECONNABORTED } else { libc::ENODEV };
        assert_eq!(read.join().unwrap(), wanted);
        assert_eq!(write.join().unwrap(), wanted);
        let (events, errno) = polling.join().unwrap();
        assert!(events.contains(PollFlags::ERR), "{events:?}");
        assert_eq!(errno, libc::ENOTCONN);
        let error = idle.read(&mut [0]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN));
        assert!(!empty.path.exists() && !full.path.exists());
    }
}
