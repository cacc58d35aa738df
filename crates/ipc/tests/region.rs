//! Regions: memory of one size, by name.

mod common;

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{name, namespace};
use punctual_ipc::{Region, RobustMutex};

/// The word at the beginning of a region.
fn word(region: &Region) -> &AtomicU64 {
    // SAFETY: a region has whole pages, and all words are valid.
    unsafe { region.base().cast().as_ref() }
}

fn fill(base: NonNull<u8>) -> io::Result<()> {
    // SAFETY: as above; no other thread has it yet.
    let word: &AtomicU64 = unsafe { base.cast().as_ref() };
    // It begins as zeros, and is filled once.
    match word.fetch_add(7, Ordering::Relaxed) {
        0 => Ok(()),
        _ => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

#[test]
fn programs_that_open_a_region_share_it_until_none_has_it() {
    let (_folder, namespace) = namespace();
    let open = |length| Region::open_or_create(&namespace, &name("words"), length, fill);
    let first = open(100).expect("it is made");
    let second = open(100).expect("it is opened");
    assert_eq!(word(&second).fetch_add(1, Ordering::Relaxed), 7);
    assert_eq!(word(&first).load(Ordering::Relaxed), 8);
    let error = open(5000).expect_err("another size");
    assert_eq!(error.errno, Some(libc::EBADMSG), "{error}");
    let third = Region::open(&namespace, &name("words")).expect("it is there");
    assert_eq!(third.size(), first.size());
    assert_eq!(word(&third).load(Ordering::Relaxed), 8);
    drop((first, second, third));
    let error = Region::open(&namespace, &name("words")).expect_err("none has it");
    assert_eq!(error.errno, Some(libc::ENOENT), "{error}");
    let again = open(5000).expect("it is made");
    assert_eq!(word(&again).load(Ordering::Relaxed), 7);
}

#[test]
fn a_mutex_that_is_kept_belongs_to_its_thread_until_that_ends() {
    let (_folder, namespace) = namespace();
    let region = Region::open_or_create(&namespace, &name("mutex"), 64, |base| {
        // SAFETY: zeros, aligned, and of no other thread.
        unsafe { base.cast::<RobustMutex>().as_ref() }.init()
    })
    .expect("it is made");
    // SAFETY: as above, initialized.
    let mutex: &RobustMutex = unsafe { region.base().cast().as_ref() };
    mutex.try_lock().expect("it is good").expect("it is free").keep();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(mutex.try_lock().expect("it is good").is_none());
            assert!(!mutex.unlock_kept());
        });
    });
    assert!(mutex.unlock_kept() && !mutex.unlock_kept());
    std::thread::scope(|scope| {
        scope.spawn(|| mutex.lock().expect("it is good").keep());
    });
    assert!(mutex.lock().expect("it is good").owner_died);
    assert!(!mutex.lock().expect("it is good").owner_died);
}

#[test]
fn a_region_of_at_least_some_size_is_as_large_as_the_first_program_made_it() {
    let (_folder, namespace) = namespace();
    let open = |length| Region::open_or_create_at_least(&namespace, &name("buffer"), length);
    let none = Region::open(&namespace, &name("buffer")).expect_err("it was not made");
    assert_eq!(none.errno, Some(libc::ENOENT), "{none}");
    let first = open(5000).expect("it is made");
    let length = first.size();
    assert!(length >= 5000);
    assert_eq!(word(&first).fetch_add(5, Ordering::Relaxed), 0);
    for length in [0, 1, length] {
        assert_eq!(word(&open(length).expect("it is large enough")).load(Ordering::Relaxed), 5);
    }
    let error = open(length + 1).expect_err("more than it has");
    assert_eq!(error.errno, Some(libc::EBADMSG), "{error}");
    let any = Region::open(&namespace, &name("buffer")).expect("it is there");
    assert_eq!((any.size(), word(&any).load(Ordering::Relaxed)), (length, 5));
}
