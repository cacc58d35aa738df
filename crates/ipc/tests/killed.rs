//! Ends in processes that are killed at any instant.

mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use common::role::{folder_of, random, Role};
use common::{message, name, namespace, number, page};
use punctual_ipc::{Access, Content, Fifo, Lifetime, Namespace};

/// In a process of this role: what it uses.
fn role(role: &str) -> Option<(Fifo, File)> {
    let folder = folder_of(role)?;
    let namespace = Namespace::at(&folder.join("objects")).unwrap();
    let fifo = Fifo::open(&namespace, &name("f")).unwrap();
    Some((fifo, ledger(&folder, role)))
}

/// What a role has done, where its death does not touch it.
fn ledger(folder: &Path, role: &str) -> File {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(folder.join(role)).unwrap()
}

fn numbers<const N: usize>(ledger: &File) -> [u64; N] {
    let mut bytes = vec![0; N * 8];
    let _ = ledger.read_exact_at(&mut bytes, 0);
    std::array::from_fn(|n| u64::from_le_bytes(bytes[n * 8..][..8].try_into().unwrap()))
}

fn record<const N: usize>(ledger: &File, numbers: [u64; N]) {
    ledger.write_all_at(&numbers.map(u64::to_le_bytes).concat(), 0).unwrap();
}

/// Puts message after message. One that it put but did not record is put once more by the next.
#[test]
fn writer() {
    let Some((fifo, ledger)) = role("writer") else { return };
    let mut end = fifo.writer(Access::Exclusive).unwrap();
    let [mut next] = numbers(&ledger);
    loop {
        end.put_until(&message(next), u64::MAX).unwrap();
        next += 1;
        record(&ledger, [next]);
    }
}

/// Gets message after message. One that it got but did not record is lost.
#[test]
fn reader() {
    let Some((fifo, ledger)) = role("reader") else { return };
    let mut end = fifo.reader(Access::Exclusive).unwrap();
    let [mut next, mut lost, mut again] = numbers(&ledger);
    let mut into = [0; 256];
    loop {
        let length = end.get_until(&mut into, u64::MAX).unwrap();
        // Nothing comes after what is not as it was made: the test waits in vain.
        let number = number(&into[..length]).unwrap();
        lost += number.saturating_sub(next);
        again += u64::from(number < next);
        next = next.max(number + 1);
        record(&ledger, [next, lost, again]);
    }
}

#[test]
fn of_a_million_messages_a_killed_end_costs_at_most_the_one_in_its_hands() {
    const COUNT: u64 = 1_000_000;
    let (folder, namespace) = namespace();
    let _fifo =
        Fifo::create(&namespace, &name("f"), page(Content::Messages), Lifetime::Used).unwrap();
    let ledgers = ["writer", "reader"].map(|role| ledger(folder.path(), role));
    let mut roles = ["writer", "reader"].map(|role| Role::start(role, folder.path()));
    let mut kills = [0; 2];
    let mut seed = u64::from(std::process::id()) << 32 | punctual_sys::clock::monotonic_ns();
    println!("seed {seed}");
    let (mut before, mut idle) = (0, 0);
    loop {
        thread::sleep(Duration::from_micros(random(&mut seed, 20_000)));
        let [next, ..] = numbers::<3>(&ledgers[1]);
        if next >= COUNT {
            break;
        }
        // Killed before it did anything, it says nothing.
        idle = if next == before { idle + 1 } else { 0 };
        assert!(idle < 5000, "nothing moves after message {next}");
        if next == before {
            continue;
        }
        before = next;
        let which = random(&mut seed, 2) as usize;
        roles[which].kill();
        kills[which] += 1;
        roles[which] = Role::start(["writer", "reader"][which], folder.path());
    }
    roles.iter_mut().for_each(Role::kill);
    let [next, lost, again] = numbers::<3>(&ledgers[1]);
    println!("{next} messages, {kills:?} kills: {lost} lost, {again} again");
    assert!(kills[0] > 5 && kills[1] > 5, "{kills:?}");
    assert!(again <= kills[0] && lost <= kills[1], "{kills:?}: {lost} lost, {again} again");
}

/// One of several that share the writers' side; its numbers are those of its process.
#[test]
fn sharing_writer() {
    let Some((fifo, _)) = role("sharing_writer") else { return };
    let mut end = fifo.writer(Access::Shared).unwrap();
    for n in 0.. {
        end.put_until(&message(u64::from(std::process::id()) << 32 | n), u64::MAX).unwrap();
    }
}

#[test]
fn a_writer_that_is_killed_in_a_put_stops_no_other() {
    let (folder, namespace) = namespace();
    let fifo =
        Fifo::create(&namespace, &name("f"), page(Content::Messages), Lifetime::Used).unwrap();
    let start = || Role::start("sharing_writer", folder.path());
    let mut writers = [start(), start(), start()];
    let mut end = fifo.reader(Access::Exclusive).unwrap();
    let mut seed = punctual_sys::clock::monotonic_ns();
    let mut next = std::collections::HashMap::new();
    let mut into = [0; 256];
    for kills in 0..60 {
        for _ in 0..random(&mut seed, 3000) {
            let length = end.get_until(&mut into, u64::MAX).unwrap();
            let number = number(&into[..length]).expect("it is whole");
            let of_writer = next.entry(number >> 32).or_insert(number & 0xffff_ffff);
            assert_eq!(number & 0xffff_ffff, *of_writer, "in order, and none is lost");
            *of_writer += 1;
        }
        let one = &mut writers[kills % 3];
        one.kill();
        *one = start();
    }
}

/// Makes a FIFO, and stays.
#[test]
fn owner() {
    let Some(folder) = folder_of("owner") else { return };
    let namespace = Namespace::at(&folder.join("objects")).unwrap();
    let _fifo =
        Fifo::create(&namespace, &name("mine"), page(Content::Bytes), Lifetime::Used).unwrap();
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn the_name_of_a_killed_process_is_free_again_and_nothing_is_left_of_it() {
    let (folder, namespace) = namespace();
    let mut owner = Role::start("owner", folder.path());
    while Fifo::open(&namespace, &name("mine")).is_err() {
        thread::sleep(Duration::from_millis(1));
    }
    owner.kill();
    let create = || Fifo::create(&namespace, &name("mine"), page(Content::Bytes), Lifetime::Used);
    common::until(|| create().is_ok());
    // Killed while they make one, too.
    for n in 0..40 {
        let mut owner = Role::start("owner", folder.path());
        thread::sleep(Duration::from_micros(n * 100));
        owner.kill();
    }
    common::until(|| Fifo::names(&namespace).unwrap().is_empty());
    let left: Vec<_> = std::fs::read_dir(namespace.path().join("fifo")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
