//! One call of the dispatcher, as plain data: so that a sequence can be printed, run again and cut
//! down to what matters.

use punctual_dispatcher::{Attribute, Job, Reservation, TaskCeiling};

/// Jobs and timers are chosen by their place among those that are there; one place beyond the last
/// is one that has ended.
#[derive(Clone, Debug)]
pub enum Op {
    /// Time passes, ns, without a call.
    Pass(u64),
    Advance,
    /// What a host asks after each instant: the selected job, its path, the runners-up, the timer.
    Look {
        ranks: u32,
    },
    /// So many events are taken (where they are not all taken after each call).
    Take(usize),
    AddTask,
    Block(u32),
    Wake(u32),
    Gone(u32),
    Done(u32),
    Lend(u32, Option<u32>),
    Raise(u32, Option<TaskCeiling>),
    AddJob(Job),
    Cancel(usize),
    Complete(usize),
    Charge(usize, u64),
    ChargeTask(u32, u64),
    /// The selected job.
    ChargeSelected(u64),
    Order(u32, Vec<Attribute>),
    Granularity(u64),
    AskTimer(u64, u64),
    CancelTimer(usize),
    /// Start, length, and whether it begins a row.
    DraftWindow(u64, u64, bool),
    DropWindows,
    AddReservation(Reservation),
    ChangeReservation(u32, Reservation),
    RemoveReservation(u32),
    TakeLost(u32),
}
