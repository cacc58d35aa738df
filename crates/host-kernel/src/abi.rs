//! What stands in `bpf/orders.h`, for this side.

use punctual_dispatcher::{
    Attribute, End, Event, For, Job, JobId, Limits, Refusal, Reservation, Standing, TaskId, TimerId,
};

pub(crate) const ELSEWHERE: i64 = -100;
pub(crate) const NO_THREAD: i64 = -101;
pub(crate) const ABOVE: i64 = -102;

/// `enum punctual_what`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum What {
    JobAdd = 2,
    JobCancel = 3,
    ReservationAdd = 6,
    ReservationChange = 7,
    ReservationRemove = 8,
    WindowAdd = 10,
    WindowDrop = 11,
    Remaining = 16,
    Used = 17,
    Standing = 18,
    JobOf = 19,
    Delayed = 20,
    TaskAdd = 32,
    Join = 34,
    SetOrder = 36,
    TimerAsk = 37,
    TimerCancel = 38,
}

impl What {
    /// The program that does it.
    pub fn program(self) -> &'static str {
        match self {
            What::TaskAdd | What::Join | What::SetOrder | What::TimerAsk | What::TimerCancel => "punctual_member",
            _ => "punctual_order",
        }
    }
}

/// `enum punctual_member_flag`.
pub(crate) const COOPERATES: u64 = 1;
pub(crate) const ALLOCATOR: u64 = 2;

/// A structure of `orders.h`: plain numbers without padding.
///
/// # Safety
/// As it says: any bytes are a value of it.
pub(crate) unsafe trait Plain: Copy {
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: no padding, and whatever is written is a value: the implementor's promise.
        unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(self).cast(), size_of::<Self>()) }
    }
}

/// `struct punctual_create`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Create {
    pub domain: u32,
    pub cpu: u32,
    pub hears: u32,
    pub unused: u32,
    limits: [u32; 12],
    pub granularity: u64,
}

impl Create {
    pub fn new(domain: u32, cpu: u32, hears: bool, l: &Limits, granularity: u64) -> Create {
        let Limits { jobs, tasks, reservations, groups, budget_groups, timers, depth, events, records, windows } = *l;
        let limits = [jobs, tasks, reservations, groups, budget_groups, timers, depth, events, records, 1, windows, 0];
        Create { domain, cpu, hears: hears.into(), unused: 0, limits, granularity }
    }
}

/// `struct punctual_order`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Order {
    pub domain: u32,
    pub what: u32,
    pub result: i64,
    pub now: u64,
    pub id: u64,
    pub time: u64,
    pub cookie: u64,
    pub number: u32,
    pub value: u32,
    /// A union: the larger one of both.
    pub attributes: Attributes,
}

/// `struct pd_reservation_attr`, or `struct pd_job_attr`, which is as far as its `task` the same but for the meaning.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Attributes {
    words: [u64; 6],
    halves: [u32; 8],
}

fn serves(who: For) -> (u32, u32, u32) {
    match who {
        For::Task(task) => (task.0, 0, 0),
        For::Group(group) => (u32::MAX, group, 0),
        For::Budget(node) => (u32::MAX, 0, node),
    }
}

impl Attributes {
    pub fn of_job(j: &Job) -> Attributes {
        let (task, server, node) = serves(j.serves);
        // Five words, then halves: the first two of these stand where the other kind has its sixth word.
        let sixth = u64::from(task) | u64::from(j.group) << 32;
        Attributes {
            words: [j.start, j.finish, j.budget, j.priority as u64, j.cookie, sixth],
            halves: [server, j.budget_group, node, 0, 0, 0, 0, 0],
        }
    }

    pub fn of_reservation(r: &Reservation) -> Attributes {
        let (task, server, node) = serves(r.serves);
        let own = u32::from(r.cookie.is_some());
        let rule = u32::from(r.wakeup_rule);
        Attributes {
            words: [r.start, r.period, r.budget, r.deadline, r.priority as u64, r.cookie.unwrap_or(0)],
            halves: [task, r.group, r.overrun as u32, rule, server, r.budget_group, node, own],
        }
    }
}

/// `struct punctual_look`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Look {
    pub domain: u32,
    pub pop: u32,
    pub records: u64,
    pub events: u64,
    pub record_count: u64,
    pub event_head: u64,
    pub event_tail: u64,
    pub event_lost: u64,
    pub throttled: u64,
    pub next: u64,
}

const REASON: usize = 128;
const MESSAGE: usize = 1024;

/// `struct punctual_exit`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Exit {
    pub code: i64,
    pub kind: u32,
    pub unused: u32,
    reason: [u8; REASON],
    message: [u8; MESSAGE],
}

impl Exit {
    pub fn of(bytes: &[u8]) -> Option<Exit> {
        // SAFETY: as many bytes as it has, and any bytes are a value of it.
        (bytes.len() >= size_of::<Exit>()).then(|| unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
    }

    pub fn reason(&self) -> String {
        text(&self.reason)
    }

    pub fn message(&self) -> String {
        text(&self.message)
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

// SAFETY: each is made of numbers alone, laid out without a gap (the tests have the sizes).
unsafe impl Plain for Create {}
// SAFETY: as above.
unsafe impl Plain for Order {}
// SAFETY: as above.
unsafe impl Plain for Look {}

/// `struct pd_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawEvent {
    pub time: u64,
    pub kind: u32,
    pub task: u32,
    pub job: u64,
    pub cookie: u64,
    pub used: u64,
    pub remaining: u64,
}

impl RawEvent {
    /// `None` for a kind that this version does not know.
    pub fn event(&self) -> Option<Event> {
        let RawEvent { time: at, kind, task, job: id, cookie, used, remaining } = *self;
        let (job, node, task) = (JobId::from_u64(id), task, TaskId(task));
        let ended = |end| Event::JobEnded { at, end, job, task, cookie, used, remaining };
        let window = |end| Event::WindowEnded { at, end, job, task, cookie, used, remaining };
        let segment = |end| Event::SegmentEnded { at, end, job, node, cookie, used, remaining };
        Some(match kind {
            1 => ended(End::Completed),
            2 => ended(End::Exhausted),
            3 => ended(End::Expired),
            4 => ended(End::Cancelled),
            5 => ended(End::TaskGone),
            6 => Event::TaskReady { at, task },
            7 => Event::TaskBlocked { at, task },
            8 => Event::GroupActive { at, group: node },
            9 => Event::GroupIdle { at, group: node },
            10 => segment(End::Exhausted),
            11 => Event::Timer { at, timer: TimerId::from_u64(id), cookie, due: used },
            12 => Event::Lost { at, count: used },
            13 => Event::Released { at, job, task, number: cookie, release: used, budget: remaining },
            14 => Event::ReleasesLost { at, task, first: cookie, count: used },
            15 => Event::Overrun { at, task, number: cookie },
            16 => Event::Background { at, task, number: cookie },
            17 => Event::DelayedSaturated { at, task },
            18 => segment(End::Expired),
            19 => window(End::Exhausted),
            20 => window(End::Expired),
            _ => return None,
        })
    }
}

/// A group's ordering, as the dispatcher has it.
pub(crate) fn ordering(by: &[Attribute]) -> Result<u32, Refusal> {
    if by.len() > 4 {
        return Err(Refusal::Invalid);
    }
    Ok(by.iter().rev().fold(0, |all, &a| all << 8 | a as u32))
}

/// `enum pd_job_state`.
pub(crate) fn standing(state: i64) -> Option<Standing> {
    Some(match state {
        1 => Standing::Waiting,
        2 => Standing::Ready,
        3 => Standing::Blocked,
        4 => Standing::Starved,
        5 => Standing::Idle,
        6 => Standing::Open,
        _ => return None,
    })
}

/// `enum pd_error`.
pub(crate) fn refusal(code: i64) -> Refusal {
    match code {
        -1 => Refusal::Full,
        -2 => Refusal::Nothing,
        -4 => Refusal::Tree,
        -5 => Refusal::Busy,
        _ => Refusal::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_dispatcher::Overrun;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(size_of::<Create>(), 16 + 48 + 8);
        assert_eq!(size_of::<Order>(), 56 + 80);
        assert_eq!(size_of::<Look>(), 72);
        assert_eq!(size_of::<Exit>(), 16 + REASON + MESSAGE);
        assert_eq!(size_of::<RawEvent>(), 48);
    }

    /// By the offsets of `struct pd_job_attr`: five words, then task, group, server, budget_group, budget_server.
    #[test]
    fn a_job_stands_where_the_dispatcher_reads_it() {
        let mut job = Job::new(For::Task(TaskId(7)), 500);
        (job.start, job.finish, job.priority, job.cookie) = (1, 2, -3, 4);
        (job.group, job.budget_group) = (5, 6);
        let mut order = Order { attributes: Attributes::of_job(&job), ..Order::default() };
        let bytes = &order.bytes()[56..];
        let half = |n: usize| u32::from_ne_bytes([bytes[n], bytes[n + 1], bytes[n + 2], bytes[n + 3]]);
        assert_eq!([half(0), half(8), half(16), half(32)], [1, 2, 500, 4]);
        assert_eq!(half(24) as i32, -3);
        assert_eq!([half(40), half(44), half(48), half(52), half(56)], [7, 5, 0, 6, 0]);
    }

    /// By the offsets of `struct pd_reservation_attr`: six words, then eight halves.
    #[test]
    fn a_reservation_stands_where_the_dispatcher_reads_it() {
        let reservation = Reservation {
            serves: For::Group(3),
            start: 1,
            period: 2,
            budget: 3,
            deadline: 4,
            priority: 5,
            group: 6,
            budget_group: 7,
            cookie: Some(8),
            overrun: Overrun::Signal,
            wakeup_rule: true,
        };
        let Attributes { words, halves } = Attributes::of_reservation(&reservation);
        assert_eq!(words, [1, 2, 3, 4, 5, 8]);
        assert_eq!(halves, [u32::MAX, 6, 3, 1, 3, 7, 0, 1]);
    }
}
