//! What stands in `bpf/orders.h`, for this side.

use punctual_dispatcher::raw::{JobAttr, Limits, ReservationAttr};
use punctual_dispatcher::{Job, Reservation};

/// Error numbers of commands, as the header describes them.
pub(crate) const WRONG_CPU: i64 = -(libc::EXDEV as i64);
pub(crate) const NO_THREAD: i64 = -(libc::ESRCH as i64);
pub(crate) const REAL_TIME: i64 = -(libc::EOPNOTSUPP as i64);
pub(crate) const BUSY: i64 = -(libc::EBUSY as i64);
/// Below any enforcement error, ns: an answer below 0 is a refusal.
pub(crate) const LEAST_ERROR: i64 = -(1 << 62);

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
    EnforcementError = 21,
    TaskAdd = 32,
    Join = 34,
    SetOrder = 36,
    TimerAsk = 37,
    TimerCancel = 38,
    Over = 39,
    TimerCreate = 48,
    TimerTurn = 49,
}

/// The program whose context an [`Order`] is.
pub(crate) const ORDER: &str = "punctual_order";

/// `enum punctual_member_flag`.
pub(crate) const COOPERATES: u64 = 1;
pub(crate) const ALLOCATOR: u64 = 2;

/// `enum punctual_over`.
pub(crate) const LATE: u64 = 1;
pub(crate) const IN_BACKGROUND: u64 = 2;

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
    pub asks_policies: u32,
    pub unused: u32,
    pub limits: Limits,
    pub granularity: u64,
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
    pub attributes: Attributes,
}

/// Of a job or of a reservation, whose is the larger one.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Attributes {
    job: JobAttr,
    reservation: ReservationAttr,
}

impl Default for Attributes {
    fn default() -> Attributes {
        Attributes { reservation: ReservationAttr::default() }
    }
}

impl From<&Job> for Attributes {
    fn from(job: &Job) -> Attributes {
        // What a job leaves free stays zero: every byte of it is read (`Plain`).
        let mut attributes = Attributes::default();
        attributes.job = job.into();
        attributes
    }
}

impl From<&Reservation> for Attributes {
    fn from(reservation: &Reservation) -> Attributes {
        Attributes { reservation: reservation.into() }
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
    pub arm_failures: u64,
    pub next: u64,
    pub head: u64,
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

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_dispatcher::{For, Overrun, TaskId};

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(size_of::<Create>(), 16 + 48 + 8);
        assert_eq!(size_of::<Order>(), 56 + 80);
        assert_eq!(size_of::<Look>(), 88);
        assert_eq!(size_of::<Exit>(), 16 + REASON + MESSAGE);
    }

    fn half(order: &mut Order, at: usize) -> u32 {
        let bytes = &order.bytes()[56 + at..];
        u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    /// By the offsets of `struct pd_job_attr`: five words, then task, group, server, budget_group, budget_server.
    #[test]
    fn a_job_stands_where_the_dispatcher_reads_it() {
        let mut job = Job::new(For::Task(TaskId(7)), 500);
        (job.start, job.finish, job.priority, job.cookie) = (1, 2, -3, 4);
        (job.group, job.budget_group) = (5, 6);
        let mut order = Order { attributes: (&job).into(), ..Order::default() };
        assert_eq!([0, 8, 16, 32].map(|at| half(&mut order, at)), [1, 2, 500, 4]);
        assert_eq!(half(&mut order, 24) as i32, -3);
        assert_eq!([40, 44, 48, 52, 56].map(|at| half(&mut order, at)), [7, 5, 0, 6, 0]);
        assert_eq!([60, 64, 68, 72, 76].map(|at| half(&mut order, at)), [0; 5]);
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
        let mut order = Order { attributes: (&reservation).into(), ..Order::default() };
        assert_eq!([0, 8, 16, 24, 32, 40].map(|at| half(&mut order, at)), [1, 2, 3, 4, 5, 8]);
        let halves = [48, 52, 56, 60, 64, 68, 72, 76].map(|at| half(&mut order, at));
        assert_eq!(halves, [u32::MAX, 6, 3, 1, 3, 7, 0, 1]);
    }
}
