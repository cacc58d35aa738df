//! Events in the reference's names.

use punctual_dispatcher::End;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelEvent {
    Ended {
        at: u64,
        end: Ending,
        job: u64,
        task: u32,
        cookie: u64,
        used: u64,
        remaining: u64,
    },
    WindowEnded {
        at: u64,
        end: Ending,
        job: u64,
        task: u32,
        cookie: u64,
        used: u64,
        remaining: u64,
    },
    SegmentEnded {
        at: u64,
        end: Ending,
        job: u64,
        node: u32,
        cookie: u64,
        used: u64,
        remaining: u64,
    },
    Timer {
        at: u64,
        timer: u64,
        cookie: u64,
        due: u64,
    },
    Released {
        at: u64,
        job: u64,
        task: u32,
        number: u64,
        release: u64,
        budget: u64,
    },
    ReleasesLost {
        at: u64,
        task: u32,
        first: u64,
        count: u64,
    },
    Overrun {
        at: u64,
        task: u32,
        number: u64,
    },
    Background {
        at: u64,
        task: u32,
        number: u64,
    },
    Saturated {
        at: u64,
        task: u32,
    },
    Ready {
        at: u64,
        task: u32,
    },
    Blocked {
        at: u64,
        task: u32,
    },
    Active {
        at: u64,
        group: u32,
    },
    Idle {
        at: u64,
        group: u32,
    },
    Lost {
        at: u64,
        count: u64,
    },
}

impl ModelEvent {
    /// Of a group: the order of these within one call is not specified.
    pub fn is_of_group(&self) -> bool {
        matches!(self, ModelEvent::Active { .. } | ModelEvent::Idle { .. })
    }
}

/// [`End`], with an order to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    Completed,
    Exhausted,
    Expired,
    Cancelled,
    TaskGone,
}

impl From<End> for Ending {
    fn from(end: End) -> Ending {
        match end {
            End::Completed => Ending::Completed,
            End::Exhausted => Ending::Exhausted,
            End::Expired => Ending::Expired,
            End::Cancelled => Ending::Cancelled,
            End::TaskGone => Ending::TaskGone,
        }
    }
}
