use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::SeqCst;

use rustix::fs::{fallocate, ftruncate, FallocateFlags};
use rustix::mm::{mmap, MapFlags, ProtFlags};
use rustix::param::page_size;

use super::*;

const HUGE: usize = 2 << 20;

/// A page, its client's end and its client's descriptor.
fn shared() -> (NewPage, ClientPage, File) {
    let new = NewPage::make().expect("a page");
    let client = ClientPage::open(new.memory()).expect("it is not sealed");
    let memory = File::from(new.memory().try_clone_to_owned().expect("a descriptor"));
    (new, client, memory)
}

/// Punches a hole, as a client can that has a descriptor or a mapping.
fn punch(memory: &File) -> rustix::io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(memory, flags, 0, page_size() as u64)
}

/// MADV_COLLAPSE of a mapping that is long enough; the error number.
fn collapse(memory: &File) -> i32 {
    const MADV_COLLAPSE: i32 = 25;
    let (access, flags) = (ProtFlags::READ, MapFlags::SHARED);
    // SAFETY: new mappings, of which the second replaces a part of the first.
    unsafe {
        let free = rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            3 * HUGE,
            ProtFlags::empty(),
            MapFlags::PRIVATE,
        );
        let at = (free.expect("addresses") as usize).next_multiple_of(HUGE);
        let at = mmap(at as *mut _, HUGE, access, flags | MapFlags::FIXED, memory, 0);
        let at = at.expect("a mapping");
        std::ptr::read_volatile(at.cast::<u8>());
        match libc::madvise(at, HUGE, MADV_COLLAPSE) {
            0 => 0,
            _ => std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
        }
    }
}

/// Whether this process has the page in its page table: no access of it takes a fault.
fn is_mapped(at: *const crate::words::Words) -> bool {
    let mut entry = [0; 8];
    let table = File::open("/proc/self/pagemap").expect("it is there");
    let offset = (at as usize / page_size() * 8) as u64;
    std::os::unix::fs::FileExt::read_exact_at(&table, &mut entry, offset).expect("an entry");
    u64::from_ne_bytes(entry) >> 63 == 1
}

fn release(number: u64, lost: u32) -> PageRelease {
    PageRelease { number, release: 10 * number, deadline: 10 * number + 5, budget: 3, lost }
}

fn answer(client: &ClientPage) -> Option<WaitAnswer> {
    client.await_answer(0)
}

#[test]
fn a_client_cannot_take_a_sealed_page_away() {
    let (new, client, memory) = shared();
    let page = new.seal().expect("the client has not touched it");
    let at = std::ptr::from_ref(page.words());
    for length in [0, 8 * page_size() as u64] {
        assert_eq!(ftruncate(&memory, length), Err(rustix::io::Errno::PERM));
    }
    assert_eq!(punch(&memory), Err(rustix::io::Errno::PERM));
    // SAFETY: the client's page, to which atomics alone refer.
    let removed = unsafe {
        let at = std::ptr::from_ref(client.words()).cast_mut().cast();
        libc::madvise(at, page_size(), libc::MADV_REMOVE)
    };
    assert_eq!(removed, -1);
    assert!(ClientPage::open(page_memory(&memory)).is_err(), "it is mapped for writing again");
    // Refused because of the reference, or by a kernel that does not have it.
    let refused = collapse(&memory);
    assert!(matches!(refused, libc::EAGAIN | libc::EINVAL), "{refused}");
    assert!(is_mapped(at));
    // It is the same page still.
    DispatcherPage::of(&page).publish(&release(7, 0), 0);
    assert_eq!(client.release().number, 7);
}

fn page_memory(memory: &File) -> std::os::fd::BorrowedFd<'_> {
    // SAFETY: open as long as the file is.
    unsafe { std::os::fd::BorrowedFd::borrow_raw(memory.as_raw_fd()) }
}

#[test]
fn a_page_that_was_taken_away_or_sealed_by_its_client_is_refused() {
    let (new, _client, memory) = shared();
    punch(&memory).expect("it is not sealed");
    assert_eq!(new.seal().expect_err("a hole").kind(), std::io::ErrorKind::NotFound);
    let (new, client, memory) = shared();
    punch(&memory).expect("it is not sealed");
    client.words().client.asked.store(5, SeqCst);
    assert!(new.seal().is_err(), "another page is in its place");
    let (new, _client, memory) = shared();
    rustix::fs::fcntl_add_seals(&memory, rustix::fs::SealFlags::SEAL).expect("it permits seals");
    assert!(new.seal().is_err());
}

#[test]
fn a_client_of_another_version_refuses_the_page() {
    let new = NewPage::make().expect("a page");
    let client = ClientPage::open(new.memory()).expect("it is of this version");
    client.words().service.version.store(1, SeqCst);
    let refused = ClientPage::open(new.memory()).expect_err("another version");
    assert_eq!(refused.kind(), std::io::ErrorKind::Unsupported);
}

#[test]
fn waits_return_with_their_releases_and_late_ones_at_once() {
    let (new, client, _) = shared();
    let mut dispatcher = DispatcherPage::of(&new.seal().expect("it is whole"));
    // The first wait is for the first release, and no end of a job.
    client.ask();
    assert!(!dispatcher.has_asked());
    assert_eq!(answer(&client), None);
    dispatcher.publish(&release(0, 0), 0);
    dispatcher.answer(0);
    assert_eq!(answer(&client), Some(WaitAnswer::Released(release(0, 0))));
    client.ask();
    assert!(dispatcher.has_asked());
    dispatcher.serve();
    assert!(!dispatcher.has_asked());
    assert_eq!(answer(&client), None);
    dispatcher.publish(&release(3, 2), 0);
    dispatcher.answer(0);
    assert_eq!(answer(&client), Some(WaitAnswer::Released(release(3, 2))));
    // Releases 4 and 5 come while it executes: two waits are late.
    dispatcher.publish(&release(4, 0), 0);
    dispatcher.answer(1);
    dispatcher.publish(&release(5, 0), 0);
    dispatcher.answer(2);
    for _ in 0..2 {
        client.ask();
        assert_eq!(answer(&client), Some(WaitAnswer::Released(release(5, 0))));
    }
    client.ask();
    assert_eq!(answer(&client), None);
    for _ in 0..3 {
        assert!(dispatcher.has_asked());
        dispatcher.serve();
    }
    assert!(!dispatcher.has_asked());
}

#[test]
fn waits_are_counted_beyond_the_range_of_their_counter() {
    let (new, client, _) = shared();
    let mut dispatcher = DispatcherPage::of(&new.seal().expect("it is whole"));
    let last = u32::MAX - 2;
    dispatcher.set_counts(last);
    client.set_asked(last);
    for number in 0..6 {
        client.ask();
        assert!(dispatcher.has_asked());
        dispatcher.serve();
        assert_eq!(answer(&client), None);
        dispatcher.publish(&release(number, 0), 0);
        dispatcher.answer(0);
        assert_eq!(answer(&client), Some(WaitAnswer::Released(release(number, 0))));
    }
}

#[test]
fn a_wait_ends_when_it_is_answered_and_when_the_reservation_ends() {
    let (new, client, _) = shared();
    let mut dispatcher = DispatcherPage::of(&new.seal().expect("it is whole"));
    let waits = std::thread::spawn(move || {
        client.ask();
        let first = client.await_answer(u64::MAX);
        client.ask();
        (first, client.await_answer(u64::MAX))
    });
    dispatcher.publish(&release(0, 0), 0);
    dispatcher.answer(0);
    dispatcher.wake();
    while !dispatcher.has_asked() {
        std::thread::yield_now();
    }
    drop(dispatcher);
    let answers = waits.join().expect("it does not panic");
    assert_eq!(answers, (Some(WaitAnswer::Released(release(0, 0))), Some(WaitAnswer::Over)));
}

#[test]
fn a_release_is_read_whole_while_the_next_one_is_published() {
    let (new, client, _) = shared();
    let page = new.seal().expect("it is whole");
    let mut dispatcher = DispatcherPage::of(&page);
    let publish = std::thread::spawn(move || {
        (0..200_000).for_each(|number| dispatcher.publish(&release(number, 0), 0));
    });
    while !client.is_over() {
        let PageRelease { number, release, deadline, .. } = client.release();
        assert!(deadline == 0 || (release, deadline) == (10 * number, 10 * number + 5));
    }
    publish.join().expect("it does not panic");
}

#[test]
fn whatever_a_client_writes_changes_nothing_that_the_dispatcher_counts() {
    let (new, client, _) = shared();
    let mut dispatcher = DispatcherPage::of(&new.seal().expect("it is whole"));
    let words = client.words();
    for garbage in [0, 1, 2, 1 << 31, u32::MAX - 1, u32::MAX] {
        for word in [&words.service.answered, &words.service.sequence, &words.service.lost] {
            word.store(garbage, SeqCst);
        }
        words.client.asked.store(garbage, SeqCst);
        if dispatcher.has_asked() {
            dispatcher.serve();
        }
        dispatcher.publish(&release(9, 0), 0);
        dispatcher.answer(0);
        dispatcher.wake();
    }
    // The next answer is right, whatever stood there.
    dispatcher.serve();
    dispatcher.answer(0);
    client.set_asked(dispatcher.served());
    assert_eq!(answer(&client), Some(WaitAnswer::Released(release(9, 0))));
}

#[test]
fn the_layout_is_that_of_the_documents() {
    use crate::words::{ClientWords, ServiceWords, Words};
    use std::mem::offset_of;

    assert_eq!((offset_of!(Words, service), offset_of!(Words, client)), (0, 128));
    let service = [
        offset_of!(ServiceWords, version),
        offset_of!(ServiceWords, answered),
        offset_of!(ServiceWords, over),
        offset_of!(ServiceWords, sequence),
        offset_of!(ServiceWords, number),
        offset_of!(ServiceWords, release),
        offset_of!(ServiceWords, deadline),
        offset_of!(ServiceWords, budget),
        offset_of!(ServiceWords, exhausted_at),
        offset_of!(ServiceWords, lost),
        offset_of!(ServiceWords, waits_by),
        offset_of!(ServiceWords, period),
        offset_of!(ServiceWords, suspensions),
    ];
    assert_eq!(service, [0, 4, 8, 12, 16, 24, 32, 40, 48, 56, 60, 64, 72]);
    assert_eq!((offset_of!(ClientWords, asked), offset_of!(ClientWords, asked_at)), (0, 8));
}
