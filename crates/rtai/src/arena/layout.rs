//! What the arena has in it. All of it begins as zeros.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use punctual_ipc::RobustMutex;

/// Tasks of all programs of a user at one time.
pub const TASKS: usize = 256;
/// Other objects of all programs of a user at one time; a mailbox is three of them.
pub const OBJECTS: usize = 2048;
/// Bytes of a block of the heap.
pub const BLOCK: usize = 256;
/// Blocks of the heap: 4 MiB.
pub const BLOCKS: usize = 16384;
/// Words that one operation can change. The longest ones wake all tasks, and change some ten words
/// of each.
pub const CHANGES: usize = 8192;

/// A word of the arena: only [`Transaction`](super::Transaction) changes it.
#[repr(transparent)]
#[derive(Debug)]
pub struct Word(AtomicU64);

impl Word {
    /// Its value; outside of a transaction it may be one that is withdrawn.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Its value as a number that may be negative.
    #[inline]
    pub fn signed(&self) -> i64 {
        self.get() as i64
    }

    /// Changes it without a record: for transactions, and for memory that no other program has.
    #[inline]
    pub fn store(&self, value: u64) {
        // After the record of the value before, which is stored the same way.
        self.0.store(value, Ordering::Release);
    }
}

/// The whole memory.
#[repr(C)]
pub struct Layout {
    pub magic: Word,
    pub version: Word,
    /// Of this structure: that of the mutex is the C library's.
    pub size: Word,
    /// The PID namespace of the programs: numbers of threads are compared.
    pub pid_namespace: Word,
    /// Held for each operation.
    pub lock: RobustMutex,
    pub undo: UndoLog,
    /// The timer was started, and not stopped.
    pub timer_runs: Word,
    pub watchdog: WatchdogSettings,
    /// Names that were given to objects without one.
    pub names_given: Word,
    /// When what dead processes left was last looked for, CLOCK_MONOTONIC ns.
    pub reaped_at: Word,
    /// Slots from these on were never used.
    pub tasks_used: Word,
    pub objects_used: Word,
    /// Tasks that wait for any of some objects: each change of one wakes them all.
    pub pollers: Queue,
    pub tasks: [TaskSlot; TASKS],
    pub objects: [ObjectSlot; OBJECTS],
    pub heap: Heap,
}

/// What the watchdog does about tasks without a budget that overrun their periods.
#[repr(C)]
pub struct WatchdogSettings {
    /// WD_*.
    pub policy: Word,
    /// A task overruns when it is late by `grace` / `grace_divisor` of its periods.
    pub grace: Word,
    pub grace_divisor: Word,
    /// A task that is late by so many of its first periods is suspended; negative: by none.
    pub safety: Word,
    /// Percent of the period.
    pub slip: Word,
    /// Percent of the first period.
    pub stretch: Word,
    /// With its overrun of this number a task is suspended; negative: with none.
    pub limit: Word,
}

/// Memory for messages.
#[repr(C, align(4096))]
pub struct Heap {
    /// A bit for each block that is in use.
    pub used: [Word; BLOCKS / 64],
    pub blocks: UnsafeCell<[u8; BLOCK * BLOCKS]>,
}

// SAFETY: the lock of the arena excludes those that access the blocks.
unsafe impl Sync for Heap {}

/// Blocks of the heap in a row.
#[repr(C)]
pub struct Buffer {
    /// The number of the first block, and 1; 0: it has none.
    pub first: Word,
    /// Bytes of its blocks.
    pub room: Word,
    /// Bytes in it.
    pub length: Word,
}

/// The values before the current operation of the words that it has changed, the last ones last.
#[repr(C)]
pub struct UndoLog {
    pub length: Word,
    pub entries: [UndoEntry; CHANGES],
}

#[repr(C)]
pub struct UndoEntry {
    /// From the beginning of the arena, bytes.
    pub offset: Word,
    pub value: Word,
}

/// What each object begins with.
#[repr(C)]
pub struct SlotHead {
    /// [`SlotKind`] of the object; 0: the slot is free.
    pub kind: Word,
    /// How many objects the slot has had.
    pub generation: Word,
    pub name: Word,
    /// Programs that use an object that none of them owns.
    pub users: Word,
    /// The process with which the object ends; 0: none.
    pub process: Word,
    /// When that process began, in the kernel's ticks.
    pub process_start: Word,
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum SlotKind {
    Free = 0,
    Task = 1,
    Semaphore = 2,
    /// In the slot of a task: what sends a message when it is triggered.
    Proxy = 3,
    Mailbox = 4,
    Bits = 5,
    MessageQueue = 6,
}

impl SlotKind {
    pub fn of(head: &SlotHead) -> Option<SlotKind> {
        match head.kind.get() {
            1 => Some(SlotKind::Task),
            2 => Some(SlotKind::Semaphore),
            3 => Some(SlotKind::Proxy),
            4 => Some(SlotKind::Mailbox),
            5 => Some(SlotKind::Bits),
            6 => Some(SlotKind::MessageQueue),
            _ => None,
        }
    }
}

/// A task of RTAI: a thread of a program.
#[repr(C, align(64))]
pub struct TaskSlot {
    pub head: SlotHead,
    /// Locked by its thread from its beginning to its end.
    pub life: RobustMutex,
    /// Counts how often it was made ready: its thread sleeps on it.
    pub wake: AtomicU32,
    _pad: AtomicU32,
    pub tid: Word,
    pub priority: Word,
    pub base_priority: Word,
    /// Bits of RT_SCHED_*; it executes only with READY alone.
    pub state: Word,
    /// What ended or holds up its wait: see [`WaitOutcome`](super::queue::WaitOutcome).
    pub blocked_on: Word,
    /// How often it was suspended; negative: resumed in advance.
    pub suspend_depth: Word,
    /// Its neighbours in the queue in which it waits; 0: none, else the task and 1.
    pub next: Word,
    pub previous: Word,
    /// That queue, from the beginning of the arena, bytes; 0: none.
    pub queue: Word,
    /// The first resource semaphore that it owns; 0: none, else the object and 1.
    pub owned: Word,
    /// ns.
    pub period: Word,
    /// How often the watchdog found it late, and its period at the first time.
    pub overruns: Word,
    pub first_period: Word,
    /// Execution time in each period, ns; 0: it has no reservation of its own.
    pub budget: Word,
    /// Counts changes of what the host of its thread is to know.
    pub changes: Word,
    /// CLOCK_MONOTONIC ns.
    pub resume_time: Word,
    pub periodic_resume_time: Word,
    pub is_hard: Word,
    /// CLOCK_MONOTONIC ns.
    pub first_executed: Word,
    pub cpus: Word,
    /// Of a short message: what the task sends, or has received.
    pub message: Word,
    /// The task that it sends to, or receives from; 0: none, or any, else the task and 1. A proxy's
    /// receiver.
    pub partner: Word,
    /// The task has received what it waited for.
    pub has_received: Word,
    /// Messages of a proxy that its receiver has not received.
    pub pending: Word,
    /// Tasks that send to this one, and tasks to which it has to return.
    pub senders: Queue,
    pub callers: Queue,
    /// Of a long message: what the task sends, and what is returned to it.
    pub outgoing: Buffer,
    /// What was sent to it while it waited.
    pub incoming: Buffer,
    /// What bits the task waits for: which test, and its masks.
    pub test: Word,
    pub test_masks: Word,
    /// Bytes that may be returned.
    pub reply_room: Word,
    /// The receiver is to return at once: nothing waits for an answer.
    pub wants_no_reply: Word,
}

/// The ends of a queue of tasks; 0: it is empty, else the task and 1.
#[repr(C)]
pub struct Queue {
    pub first: Word,
    pub last: Word,
}

/// An object of another kind.
#[repr(C, align(64))]
pub struct ObjectSlot {
    pub head: SlotHead,
    /// A semaphore's; it is negative by the tasks that wait.
    pub count: Word,
    /// Of a semaphore: -1 binary, 0 counting, n a resource locked n times.
    pub sem_type: Word,
    /// Of a resource: what a second wait of the owner does (RESEM_*).
    pub resource_type: Word,
    /// 1: tasks wait in the order in which they came; 0: in that of their priorities.
    pub is_fifo: Word,
    /// Of a resource: the task and 1. Of a barrier: how many tasks it takes.
    pub owner: Word,
    /// Of a resource: the next one of its owner; 0: none, else the object and 1.
    pub next_owned: Word,
    /// Of a resource: its owner has the best priority of those that wait.
    pub inherits: Word,
    /// The tasks that wait.
    pub waiters: Queue,
    /// Of bits: those that are set.
    pub mask: Word,
    /// Of a mailbox: what is in it, from `position` on and around its end; `size` bytes at most.
    pub buffer: Buffer,
    pub size: Word,
    pub position: Word,
    /// Of a queue of messages: the block of the first one, and 1; how many there are, of `size` at
    /// most; and the tasks that send.
    pub first_message: Word,
    pub messages: Word,
    pub senders: Queue,
    /// Of a mailbox: the resources of the task that sends, and of the one that receives.
    pub send_lock: Word,
    pub receive_lock: Word,
}
