//! A program that dies at any of the changes of an operation has changed nothing.

use std::cell::Cell;
use std::mem::{offset_of, size_of};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::LazyLock;

use super::layout::{Layout, Word, TASKS};
use super::{arena, Arena, Handle, Owner, SlotKind, TaskSlot, Transaction};
use crate::bits::BitsChange;
use crate::blocking::now;
use crate::message::SendMode;
use crate::message_queue::Outgoing;

/// The status of a process that died in the middle.
const DIED: i32 = 9;

thread_local! {
    /// Changes after which this process dies.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Called before each change.
pub fn die_if_due() {
    match LEFT.get() {
        // SAFETY: ends the process at once, as SIGKILL does.
        0 => unsafe { libc::_exit(DIED) },
        u64::MAX => {}
        left => LEFT.set(left - 1),
    }
}

/// An arena of this test program alone.
fn own_arena() -> &'static Arena {
    static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
        std::env::set_var("PUNCTUAL_SHM_DIR", folder.path().join("objects"));
        folder
    });
    LazyLock::force(&FOLDER);
    arena().expect("it can be made")
}

/// What is no word, or changes outside of transactions.
fn is_skipped(offset: usize) -> bool {
    let tasks = offset_of!(Layout, tasks);
    let within = |range: Range<usize>| range.contains(&offset);
    if within(tasks..tasks + TASKS * size_of::<TaskSlot>()) {
        let offset = (offset - tasks) % size_of::<TaskSlot>();
        return (offset_of!(TaskSlot, life)..offset_of!(TaskSlot, tid)).contains(&offset);
    }
    let blocks = offset_of!(Layout, heap) + offset_of!(super::layout::Heap, blocks);
    within(offset_of!(Layout, lock)..offset_of!(Layout, timer_runs))
        || offset == offset_of!(Layout, reaped_at)
        || offset >= blocks
}

/// All words of the arena, without the bytes of messages.
fn words(arena: &Arena) -> Vec<(usize, u64)> {
    let base = std::ptr::from_ref(arena.layout()).cast::<AtomicU64>();
    let offsets = (0..size_of::<Layout>()).step_by(size_of::<Word>());
    let read = |offset| {
        // SAFETY: within the layout, all of which may be read as words.
        (offset, unsafe { (*base.byte_add(offset)).load(Relaxed) })
    };
    offsets.filter(|offset| !is_skipped(*offset)).map(read).collect()
}

/// Executes the operation in a child, which dies before change `limit`; its status.
fn in_child(arena: &Arena, limit: u64, operation: &dyn Fn(&mut Transaction<'_>)) -> i32 {
    // SAFETY: the child makes system calls alone, and changes words of the arena.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0, "a process can be made");
        if child == 0 {
            LEFT.set(limit);
            arena.transact(operation);
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(libc::WIFEXITED(status), "{status:x}");
        libc::WEXITSTATUS(status)
    }
}

/// At each change of the operation a program dies, and then none does.
fn dies_everywhere(name: &str, operation: &dyn Fn(&mut Transaction<'_>)) {
    let arena = own_arena();
    let before = words(arena);
    let mut limit = 0;
    while in_child(arena, limit, operation) == DIED {
        // The next operation withdraws what it had changed.
        arena.transact(|_| ());
        let after = words(arena);
        let change = before.iter().zip(&after).find(|(before, after)| before != after);
        assert_eq!(change, None, "{name}, after {limit} changes");
        limit += 1;
    }
    assert!(limit > 1, "{name} changes something");
    assert_ne!(words(arena), before, "{name} has an effect when it is complete");
}

/// Tasks without threads, which wait for what `wait` says.
fn waiting(count: u64, wait: impl Fn(&mut Transaction<'_>, super::TaskIndex)) {
    for n in 0..count {
        own_arena().transact(|transaction| {
            let name = transaction.unused_name();
            let task = transaction.new_task(name, n as i64, u64::MAX).expect("there is room");
            wait(transaction, task);
        });
    }
}

fn semaphore(value: i32, kind: i32) -> super::ObjectIndex {
    own_arena().transact(|transaction| {
        let name = transaction.unused_name();
        let handle = transaction.new_semaphore(name, value, kind, Owner::Process);
        let handle: Handle = handle.expect("there is room");
        transaction.find_object(handle, SlotKind::Semaphore).expect("it is there")
    })
}

fn wait_for(semaphore: super::ObjectIndex) -> impl Fn(&mut Transaction<'_>, super::TaskIndex) {
    move |transaction, task| {
        let semaphore = transaction.handle_of_object(semaphore);
        let wait = crate::semaphore::SemaphoreWait { semaphore, task, until: None };
        transaction.begin_semaphore_wait(wait, now());
    }
}

// One test, for all operations change one arena.
#[test]
fn an_operation_of_a_program_that_dies_has_had_no_effect() {
    let counting = semaphore(0, 2);
    dies_everywhere("a signal without waiters", &|t| {
        t.signal(counting, None);
    });
    waiting(3, wait_for(counting));
    dies_everywhere("a signal", &|t| {
        t.signal(counting, None);
    });
    dies_everywhere("a broadcast", &|t| t.broadcast(counting));
    waiting(2, wait_for(counting));
    dies_everywhere("a deletion", &|t| t.delete_semaphore(counting));

    let resource = semaphore(1, 3);
    waiting(4, wait_for(resource));
    dies_everywhere("the release of a resource", &|t| {
        let owner = super::TaskIndex::from_word(t.object(resource).owner.get());
        assert_eq!(t.signal(resource, owner), 0);
    });
    dies_everywhere("a change of priority", &|t| {
        let owner = super::TaskIndex::from_word(t.object(resource).owner.get());
        t.change_priority(owner.expect("it has one"), 3);
    });
    dies_everywhere("the end of an owner", &|t| {
        let owner = super::TaskIndex::from_word(t.object(resource).owner.get());
        t.delete_task(owner.expect("it has one"));
    });

    dies_everywhere("a mailbox", &|t| {
        let name = t.unused_name();
        t.new_mailbox(name, 100_000, 0, Owner::Process);
    });
    dies_everywhere("bits", &|t| {
        t.new_bits(crate::api::NAMES_END - 1, 5);
    });
    dies_everywhere("a change of bits", &|t| {
        let (handle, _) = t.find_name(crate::api::NAMES_END - 1).expect("they are there");
        let id = t.find_object(handle, SlotKind::Bits).expect("they are bits");
        t.change_bits(id, BitsChange::new(1, 1).expect("a change"));
    });

    let partners = own_arena().transact(|t| {
        [1, 2].map(|n| {
            let name = t.unused_name();
            t.new_task(name, n, 0).expect("there is room")
        })
    });
    let [from, to] = partners;
    let send = move |t: &mut Transaction<'_>| {
        // SAFETY: the bytes are there.
        assert!(unsafe { t.put_message(from, ([7; 700].as_ptr(), 700), Some(900)) });
        t.begin_send(from, to, (0, SendMode::Call), (false, None), now());
    };
    dies_everywhere("a call", &send);
    dies_everywhere("the receipt of a call", &|t| {
        t.begin_receive(to, None, (true, None), now());
    });
    dies_everywhere("a return", &|t| assert!(t.give_back(to, from, 5)));

    let queue = own_arena().transact(|t| {
        let name = t.unused_name();
        t.new_message_queue(name, 3, Owner::Process).expect("there is room")
    });
    let put = |t: &mut Transaction<'_>, priority| {
        let message = Outgoing { bytes: [1; 300].as_ptr(), length: 300, priority };
        // SAFETY: the bytes are there.
        unsafe { t.begin_queue_send(queue, from, message, (true, None), now()) };
    };
    dies_everywhere("a message in a queue", &|t| put(t, 5));
    dies_everywhere("one before it", &|t| put(t, 1));
    dies_everywhere("the deletion of a queue", &|t| {
        let id = t.find_object(queue, SlotKind::MessageQueue).expect("it is there");
        t.delete_message_queue(id);
    });
}
