//! What is put into a FIFO comes out of it: against a model, between threads, and from memory that
//! another program damaged.

mod common;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use common::{message, name, namespace, number, page, unnamed};
use proptest::prelude::*;
use punctual_ipc::{Access, Content, Error, Fifo, FifoAttr, Lifetime};

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
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

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
fn no_more_than_the_limit_is_ever_in_a_fifo() {
    let attr = FifoAttr { capacity: 100, limit: Some(10), content: Content::Bytes };
    let fifo = Fifo::unnamed(attr).expect("there is memory");
    assert_eq!(fifo.attr(), FifoAttr { capacity: 4096, ..attr });
    let mut writer = fifo.writer(Access::Shared).expect("a writer");
    let mut reader = fifo.reader(Access::Shared).expect("a reader");
    // Beyond the end of its memory, too.
    for _ in 0..1000 {
        writer.put(b"1234567").expect("there is room");
        assert_eq!(writer.put(b"8901"), Err(Error::Full));
        assert_eq!(writer.is_ready_for(4), Ok(false));
        writer.put(b"890").expect("it fits exactly");
        let mut all = [0; 10];
        assert_eq!(reader.get(&mut [0; 11]), Err(Error::TooLarge));
        assert_eq!(reader.get(&mut all), Ok(10));
        assert_eq!(&all, b"1234567890");
    }
    assert_eq!(writer.put(&[0; 11]), Err(Error::TooLarge));
    for limit in [0, 101] {
        let error = Fifo::unnamed(FifoAttr { limit: Some(limit), ..attr }).expect_err("no limit");
        assert_eq!(error.errno, Some(libc::EINVAL), "{error}");
    }
}

#[test]
fn a_destroyed_fifo_is_known_as_such_by_all_that_have_it_open() {
    let (_folder, namespace) = namespace();
    let make = |lifetime| Fifo::create(&namespace, &name("7"), page(Content::Bytes), lifetime);
    for lifetime in [Lifetime::Used, Lifetime::Persistent] {
        let first = make(lifetime).expect("it is made");
        let second = Fifo::open(&namespace, &name("7")).expect("it is there");
        let mut writer = second.writer(Access::Shared).expect("a writer");
        assert!(!second.is_destroyed());
        first.destroy().expect("it has its name");
        assert!(first.is_destroyed() && second.is_destroyed());
        assert_eq!(second.destroy().expect_err("once").errno, Some(libc::ENOENT));
        writer.put(b"still").expect("its memory is there");
        // Its name is free, and what has it then is another one.
        let third = make(lifetime).expect("the name is free");
        assert_eq!(first.destroy().expect_err("not its own").errno, Some(libc::ENOENT));
        assert!(!third.is_destroyed());
        third.destroy().expect("it has its name");
    }
    let unnamed = Fifo::unnamed(page(Content::Bytes)).expect("there is memory");
    assert_eq!(unnamed.destroy().expect_err("no name").errno, Some(libc::ENOENT));
}

#[test]
fn an_end_waits_until_the_other_side_has_moved_in_any_way() {
    let fifo = unnamed(page(Content::Bytes));
    let mut writer = fifo.writer(Access::Shared).expect("a writer");
    let mut reader = fifo.reader(Access::Shared).expect("a reader");
    let mut watcher = fifo.reader(Access::Shared).expect("another one");
    let begin = watcher.wait_for_puts(0, u64::MAX).expect("it begins at the capacity");
    assert_eq!(watcher.wait_for_puts(begin, 1), Err(Error::TimedOut));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| watcher.wait_for_puts(begin, u64::MAX));
        writer.put(b"abc").expect("there is room");
        assert_eq!(waits.join().expect("it does not panic"), Ok(begin + 3));
    });
    // Also of what another end has got by then.
    reader.get(&mut [0; 3]).expect("it is there");
    assert_eq!(watcher.wait_for_puts(begin, u64::MAX), Ok(begin + 3));
    assert_eq!(writer.wait_for_gets(begin, u64::MAX), Ok(begin + 3));
    assert_eq!(writer.wait_for_gets(begin + 3, 1), Err(Error::TimedOut));
}
