//! Kinds of record, as `dispatcher/record.h` numbers them; it says what a record of each has in its
//! fields.
//!
//! An addition takes several records, one after the other; a change is followed by those of an
//! addition.

#![allow(missing_docs)]

pub const GRANULARITY: u32 = 1;
pub const ORDER: u32 = 2;
pub const TASK_ADD: u32 = 3;
pub const TASK_READY: u32 = 4;
pub const TASK_BLOCKED: u32 = 5;
pub const TASK_GONE: u32 = 6;
pub const TASK_DONE: u32 = 7;
pub const CHARGE_TASK: u32 = 8;
pub const CHARGE: u32 = 9;
pub const JOB_CANCEL: u32 = 10;
pub const JOB_COMPLETE: u32 = 11;
pub const ADVANCE: u32 = 12;
pub const TAKE_LOST: u32 = 13;
pub const RESERVATION_REMOVE: u32 = 14;
pub const TIMER_ASK: u32 = 15;
pub const TIMER_CANCEL: u32 = 16;
pub const WINDOW_ADD: u32 = 17;
pub const WINDOW_DROP: u32 = 18;
pub const TASK_LEND: u32 = 19;
pub const JOB_ADD: u32 = 20;
pub const JOB_ADD_2: u32 = 21;
pub const JOB_ADD_3: u32 = 22;
pub const RESERVATION_ADD: u32 = 23;
pub const RESERVATION_ADD_2: u32 = 24;
pub const RESERVATION_ADD_3: u32 = 25;
pub const RESERVATION_ADD_4: u32 = 26;
pub const RESERVATION_CHANGE: u32 = 27;
pub const TASK_RAISE: u32 = 28;

/// The first decision, and the kind of each to select; those below are inputs.
pub const SELECTED: u32 = 64;

/// Hosts' own: neither inputs nor decisions.
pub const OF_A_HOST: std::ops::Range<u32> = 96..128;
/// A thread of a task began to run (simulator; kernel host, `bpf/commands.h`).
pub const RUNNING: u32 = 96;
/// It does not run any more.
pub const STOPPED: u32 = 97;
/// `small` of the dispatcher is the task at place `a` of the set.
pub const TASK_PLACE: u32 = 98;
/// `a` records are missing here.
pub const LOST_RECORDS: u32 = 99;
/// One release of a task, as it turned out: three records.
pub const PERIOD: u32 = 100;
pub const PERIOD_2: u32 = 101;
pub const PERIOD_3: u32 = 102;
/// Since `time`, group `small` has another policy, whose name is in `a` and `b` (16 bytes, UTF-8,
/// the first in the lowest byte; padded with zeros).
pub const POLICY: u32 = 103;

/// A decision that was reported as an event: this plus the event's own kind ([`event`]).
pub const EVENT: u32 = 128;

/// Kinds of event, as `enum pd_event_kind` in `dispatcher/punctual_dispatcher.h` numbers them.
pub mod event {
    pub const COMPLETED: u32 = 1;
    pub const EXHAUSTED: u32 = 2;
    pub const EXPIRED: u32 = 3;
    pub const CANCELLED: u32 = 4;
    pub const TASK_GONE: u32 = 5;
    pub const TASK_READY: u32 = 6;
    pub const TASK_BLOCKED: u32 = 7;
    pub const GROUP_ACTIVE: u32 = 8;
    pub const GROUP_IDLE: u32 = 9;
    pub const SEGMENT_EXHAUSTED: u32 = 10;
    pub const TIMER: u32 = 11;
    pub const LOST: u32 = 12;
    pub const RELEASED: u32 = 13;
    pub const RELEASES_LOST: u32 = 14;
    pub const OVERRUN: u32 = 15;
    pub const BACKGROUND: u32 = 16;
    pub const DELAYED_SATURATED: u32 = 17;
    pub const SEGMENT_EXPIRED: u32 = 18;
    pub const WINDOW_EXHAUSTED: u32 = 19;
    pub const WINDOW_EXPIRED: u32 = 20;
}
