//! FIFOs within one process: against a model, between threads, by name, and when misused.

mod common;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use common::{message, name, namespace, number, page, unnamed};
use proptest::prelude::*;
use punctual_ipc::{Access, Content, Error, Fifo, FifoAttr, Lifetime, Namespace};
use punctual_sys::clock::monotonic_ns;
use rustix::event::{poll, PollFd, PollFlags, Timespec};

#[derive(Debug, Clone)]
enum Operation {
    Put(usize),
    Get(usize),
    GetSome(usize),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let size = prop_oneof![0..20usize, 0..600usize, 4000..4200usize];
    let operation = (0..5, size).prop_map(|(which, size)| match which {
        0 | 1 => Operation::Put(size),
        2 | 3 => Operation::Get(size),
        _ => Operation::GetSome(size),
    });
    prop::collection::vec(operation, 1..300)
}

proptest! {
    #[test]
    fn bytes_come_out_as_they_went_in(operations in operations(), alone: bool) {
        let fifo = unnamed(page(Content::Bytes));
        let access = if alone { Access::Exclusive } else { Access::Shared };
        let (mut writer, mut reader) = (fifo.writer(access).unwrap(), fifo.reader(access).unwrap());
        let (mut model, mut next) = (VecDeque::new(), 0u8);
        let mut into = vec![0; 5000];
        for operation in operations {
            match operation {
                Operation::Put(n) => {
                    let data: Vec<u8> = (0..n).map(|i| next.wrapping_add(i as u8)).collect();
                    let wanted = match () {
                        () if n > 4096 => Err(Error::TooLarge),
                        () if n > 4096 - model.len() => Err(Error::Full),
                        () => Ok(()),
                    };
                    prop_assert_eq!(writer.put(&data), wanted);
                    if wanted.is_ok() {
                        model.extend(data);
                        next = next.wrapping_add(n as u8);
                    }
                }
                Operation::Get(n) => {
                    let wanted = match () {
                        () if n > 4096 => Err(Error::TooLarge),
                        () if n > model.len() => Err(Error::Empty),
                        () => Ok(n),
                    };
                    prop_assert_eq!(reader.get(&mut into[..n]), wanted);
                    if wanted.is_ok() {
                        prop_assert!(model.drain(..n).eq(into[..n].iter().copied()));
                    }
                }
                Operation::GetSome(n) => {
                    let got = reader.get_some(&mut into[..n]);
                    let wanted = n.min(model.len());
                    let some = if model.is_empty() { Err(Error::Empty) } else { Ok(wanted) };
                    prop_assert_eq!(got, some);
                    if got.is_ok() {
                        prop_assert!(model.drain(..wanted).eq(into[..wanted].iter().copied()));
                    }
                }
            }
            prop_assert_eq!(fifo.state().used, model.len());
        }
    }

    #[test]
    fn messages_come_out_whole_and_in_order(operations in operations(), alone: bool) {
        let fifo = unnamed(page(Content::Messages));
        let access = if alone { Access::Exclusive } else { Access::Shared };
        let (mut writer, mut reader) = (fifo.writer(access).unwrap(), fifo.reader(access).unwrap());
        let (mut model, mut used, mut next) = (VecDeque::<Vec<u8>>::new(), 0, 0u8);
        let mut into = vec![0; 5000];
        let size = |message: &Vec<u8>| 8 + message.len().next_multiple_of(8);
        for operation in operations {
            match operation {
                Operation::Put(n) => {
                    let data = vec![next; n];
                    let wanted = match () {
                        () if size(&data) > 4096 => Err(Error::TooLarge),
                        () if size(&data) > 4096 - used => Err(Error::Full),
                        () => Ok(()),
                    };
                    prop_assert_eq!(writer.put(&data), wanted);
                    if wanted.is_ok() {
                        used += size(&data);
                        model.push_back(data);
                        next = next.wrapping_add(1);
                    }
                }
                Operation::Get(n) | Operation::GetSome(n) => {
                    let wanted = match model.front() {
                        None => Err(Error::Empty),
                        Some(first) if first.len() > n => Err(Error::LongerMessage(first.len())),
                        Some(first) => Ok(first.len()),
                    };
                    prop_assert_eq!(reader.get(&mut into[..n]), wanted);
                    if let Ok(length) = wanted {
                        let first = model.pop_front().unwrap();
                        prop_assert_eq!(&into[..length], &first[..]);
                        used -= size(&first);
                    }
                }
            }
            prop_assert_eq!(fifo.state().used, used);
        }
    }

    /// What another program of the same user may do to the memory costs its FIFO, and no more.
    #[test]
    fn damaged_memory_is_an_error_and_no_crash(
        damage in prop::collection::vec((0..8192usize, any::<u8>()), 1..60),
        operations in operations(),
        content in prop_oneof![Just(Content::Bytes), Just(Content::Messages)],
    ) {
        let (_folder, namespace) = namespace();
        let fifo = Fifo::create(&namespace, &name("f"), page(content), Lifetime::Used).unwrap();
        let mut writer = fifo.writer(Access::Exclusive).unwrap();
        let mut reader = fifo.reader(Access::Exclusive).unwrap();
        let memory = std::fs::OpenOptions::new()
            .write(true)
            .open(namespace.path().join("fifo/f/memory"))
            .unwrap();
        let mut into = vec![0; 5000];
        for (n, operation) in operations.into_iter().enumerate() {
            if let Some((at, byte)) = damage.get(n / 4) {
                std::os::unix::fs::FileExt::write_at(&memory, &[*byte], *at as u64).unwrap();
            }
            match operation {
                Operation::Put(n) => drop(writer.put(&vec![7; n])),
                Operation::Get(n) => drop(reader.get(&mut into[..n])),
                Operation::GetSome(n) => drop(reader.get_some(&mut into[..n])),
            }
        }
        let _ = fifo.state();
        let _ = Fifo::open(&namespace, &name("f"));
    }
}

/// 200,000 messages from one thread to another, by `put` and `get` or waiting.
fn between_threads(waits: bool) {
    const COUNT: u64 = 200_000;
    let fifo = unnamed(page(Content::Messages));
    let mut writer = fifo.writer(Access::Exclusive).unwrap();
    let mut reader = fifo.reader(Access::Exclusive).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..COUNT {
                let data = message(n);
                if waits {
                    writer.put_until(&data, u64::MAX).unwrap();
                } else {
                    while writer.put(&data) == Err(Error::Full) {
                        thread::yield_now();
                    }
                }
            }
        });
        let mut into = [0; 256];
        for n in 0..COUNT {
            let length = loop {
                match if waits {
                    reader.get_until(&mut into, u64::MAX)
                } else {
                    reader.get(&mut into)
                } {
                    Err(Error::Empty) => thread::yield_now(),
                    got => break got.unwrap(),
                }
            };
            assert_eq!(number(&into[..length]), Some(n));
        }
        assert_eq!(reader.get(&mut into), Err(Error::Empty));
    });
}

#[test]
fn two_threads_exchange_messages_without_waiting() {
    between_threads(false);
}

#[test]
fn two_threads_that_wait_miss_no_message() {
    between_threads(true);
}

#[test]
fn ends_that_share_a_side_get_each_message_once_and_in_the_order_of_its_writer() {
    const WRITERS: u64 = 3;
    const READERS: u64 = 3;
    const EACH: u64 = 30_000;
    let fifo = unnamed(page(Content::Messages));
    let count = AtomicU64::new(0);
    let got: Vec<Vec<u64>> = thread::scope(|scope| {
        for writer in 0..WRITERS {
            let mut end = fifo.writer(Access::Shared).unwrap();
            scope.spawn(move || {
                for n in 0..EACH {
                    end.put_until(&message(n * WRITERS + writer), u64::MAX).unwrap();
                }
            });
        }
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let mut end = fifo.reader(Access::Shared).unwrap();
                let count = &count;
                scope.spawn(move || {
                    let (mut got, mut into) = (Vec::new(), [0; 256]);
                    while count.fetch_add(1, Ordering::Relaxed) < WRITERS * EACH {
                        let length = end.get_until(&mut into, u64::MAX).unwrap();
                        got.push(number(&into[..length]).expect("it is whole"));
                    }
                    got
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    for one in &got {
        for writer in 0..WRITERS {
            let of_writer: Vec<u64> =
                one.iter().copied().filter(|n| n % WRITERS == writer).collect();
            assert!(of_writer.is_sorted());
        }
    }
    let mut all: Vec<u64> = got.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..WRITERS * EACH));
}

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
fn a_name_is_of_one_object_while_a_process_has_it_open() {
    let (_folder, namespace) = namespace();
    let create = |lifetime| Fifo::create(&namespace, &name("0"), FifoAttr::default(), lifetime);
    let fifo = create(Lifetime::Used).unwrap();
    let error = create(Lifetime::Used).unwrap_err();
    assert_eq!(error.errno, Some(libc::EEXIST));
    assert!(error.to_string().contains("there is a fifo 0 already"), "{error}");
    let same = Fifo::open(&namespace, &name("0")).unwrap();
    fifo.writer(Access::Shared).unwrap().put(b"hello").unwrap();
    drop(fifo);
    let mut into = [0; 5];
    same.reader(Access::Shared).unwrap().get(&mut into).unwrap();
    assert_eq!(&into, b"hello");
    assert_eq!(Fifo::names(&namespace).unwrap(), [name("0")]);
    drop(same);
    assert_eq!(Fifo::names(&namespace).unwrap(), []);
    let error = Fifo::open(&namespace, &name("0")).unwrap_err();
    assert_eq!(error.errno, Some(libc::ENOENT));
    assert!(error.to_string().contains("there is no fifo 0; make it first"), "{error}");
}

#[test]
fn a_persistent_fifo_lives_until_it_is_removed_and_its_ends_even_longer() {
    let (_folder, namespace) = namespace();
    let name = name("kept");
    drop(Fifo::create(&namespace, &name, FifoAttr::default(), Lifetime::Persistent).unwrap());
    let fifo = Fifo::open(&namespace, &name).unwrap();
    assert_eq!(fifo.state().lifetime, Lifetime::Persistent);
    let mut writer = fifo.writer(Access::Exclusive).unwrap();
    Fifo::remove(&namespace, &name).unwrap();
    assert_eq!(Fifo::remove(&namespace, &name).unwrap_err().errno, Some(libc::ENOENT));
    writer.put(b"x").unwrap();
    assert_eq!(fifo.state().used, 1);
    // The name is free for another, which the end of the first does not touch.
    let other = Fifo::create(&namespace, &name, FifoAttr::default(), Lifetime::Used).unwrap();
    drop((writer, fifo));
    assert_eq!(Fifo::names(&namespace).unwrap(), std::slice::from_ref(&name));
    assert_eq!(other.state().used, 0);
}

#[test]
fn a_side_has_one_sole_end_or_some_that_share_it() {
    let (_folder, namespace) = namespace();
    let fifo = Fifo::create(&namespace, &name("f"), FifoAttr::default(), Lifetime::Used).unwrap();
    let sole = fifo.writer(Access::Exclusive).unwrap();
    assert_eq!(fifo.state().sole_writer, Some(std::process::id()));
    for access in [Access::Exclusive, Access::Shared] {
        let error = fifo.writer(access).unwrap_err();
        assert_eq!(error.errno, Some(libc::EBUSY));
        assert!(error.to_string().contains("has the only writer of this FIFO"), "{error}");
    }
    drop(sole);
    let _one = fifo.writer(Access::Shared).unwrap();
    let _other = fifo.writer(Access::Shared).unwrap();
    let error = fifo.writer(Access::Exclusive).unwrap_err();
    assert!(error.to_string().contains("the FIFO has a writer already"), "{error}");
    // The sides have nothing to do with each other.
    fifo.reader(Access::Exclusive).unwrap();
    assert_eq!(fifo.state().sole_writer, None);
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

#[test]
fn capacities_are_rounded_up_and_bounded() {
    let capacity = |capacity| {
        let attr = FifoAttr { capacity, ..FifoAttr::default() };
        Fifo::unnamed(attr).map(|fifo| fifo.attr().capacity)
    };
    assert_eq!(capacity(1).unwrap(), 4096);
    assert_eq!(capacity(4097).unwrap(), 8192);
    for bad in [0, punctual_ipc::MAX_CAPACITY + 1, usize::MAX] {
        let error = capacity(bad).unwrap_err();
        assert!(error.to_string().contains("use 1 to 1073741824"), "{error}");
    }
}

#[test]
fn a_folder_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, namespace) = namespace();
    let path = folder.path().join("objects");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
    let error = Namespace::at(&path).unwrap_err();
    assert!(error.to_string().contains("is open to other users (mode 750)"), "{error}");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(namespace.path(), &link).unwrap();
    assert!(Namespace::at(&link).is_err());
}

#[test]
fn a_fifo_of_another_version_is_refused_whole() {
    let (_folder, namespace) = namespace();
    let fifo =
        Fifo::create(&namespace, &name("f"), FifoAttr::default(), Lifetime::Persistent).unwrap();
    let memory = namespace.path().join("fifo/f/memory");
    let memory = std::fs::OpenOptions::new().write(true).open(memory).unwrap();
    std::os::unix::fs::FileExt::write_at(&memory, &[99], 8).unwrap();
    let error = Fifo::open(&namespace, &name("f")).unwrap_err();
    assert_eq!(error.errno, Some(libc::EBADMSG));
    assert!(error.to_string().contains("of another version of Punctual; remove it"), "{error}");
    drop(fifo);
    memory.set_len(100).unwrap();
    assert_eq!(Fifo::open(&namespace, &name("f")).unwrap_err().errno, Some(libc::EBADMSG));
}
