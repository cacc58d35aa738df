//! The dispatcher's structures as `dispatcher/punctual_dispatcher.h` lays them out, for
//! callers that reach a dispatcher other than by [`Dispatcher`](crate::Dispatcher)'s calls, such as
//! the kernel host, whose dispatcher is in a BPF arena.
//!
//! All of them are numbers without padding; any bytes are a value of them. Times are ns.

use punctual_trace::kind::event;

use crate::{
    Attribute, End, For, Job, JobId, Refusal, Reservation, TaskCeiling, TaskId, TimerId,
    MOST_ATTRIBUTES,
};

/// `struct pd_limits`; ranges are those of [`crate::Limits`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Limits {
    pub jobs: u32,
    pub tasks: u32,
    pub reservations: u32,
    pub groups: u32,
    pub budget_groups: u32,
    pub timers: u32,
    pub depth: u32,
    pub events: u32,
    pub records: u32,
    /// Of the domain: 1.
    pub cpus: u32,
    pub windows: u32,
    pub unused: u32,
}

impl From<&crate::Limits> for Limits {
    fn from(limits: &crate::Limits) -> Limits {
        let crate::Limits {
            jobs,
            tasks,
            reservations,
            groups,
            budget_groups,
            timers,
            depth,
            events,
            records,
            windows,
        } = *limits;
        Limits {
            jobs,
            tasks,
            reservations,
            groups,
            budget_groups,
            timers,
            depth,
            events,
            records,
            cpus: 1,
            windows,
            unused: 0,
        }
    }
}

/// `struct pd_job_attr`: a [`Job`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct JobAttr {
    pub start: u64,
    pub finish: u64,
    pub budget: u64,
    pub priority: i64,
    pub cookie: u64,
    /// [`TaskId::NONE`]'s number for server jobs and segments.
    pub task: u32,
    pub group: u32,
    pub server: u32,
    pub budget_group: u32,
    pub budget_server: u32,
    pub reserved: u32,
}

impl From<&Job> for JobAttr {
    fn from(job: &Job) -> JobAttr {
        let (task, server, budget_server) = serves(job.serves);
        JobAttr {
            start: job.start,
            finish: job.finish,
            budget: job.budget,
            priority: job.priority,
            cookie: job.cookie,
            task,
            group: job.group,
            server,
            budget_group: job.budget_group,
            budget_server,
            reserved: 0,
        }
    }
}

/// `struct pd_reservation_attr`: a [`Reservation`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct ReservationAttr {
    pub start: u64,
    pub period: u64,
    pub budget: u64,
    pub deadline: u64,
    pub priority: i64,
    pub cookie: u64,
    /// [`TaskId::NONE`]'s number for those of server jobs and segments.
    pub task: u32,
    pub group: u32,
    pub overrun: u32,
    pub wakeup_rule: u32,
    pub server: u32,
    pub budget_group: u32,
    pub budget_server: u32,
    /// 1: its jobs have `cookie`, and not the number of the release.
    pub own_cookie: u32,
}

impl From<&Reservation> for ReservationAttr {
    fn from(r: &Reservation) -> ReservationAttr {
        let (task, server, budget_server) = serves(r.serves);
        ReservationAttr {
            start: r.start,
            period: r.period,
            budget: r.budget,
            deadline: r.deadline,
            priority: r.priority,
            cookie: r.cookie.unwrap_or(0),
            task,
            group: r.group,
            overrun: r.overrun as u32,
            wakeup_rule: r.wakeup_rule.into(),
            server,
            budget_group: r.budget_group,
            budget_server,
            own_cookie: r.cookie.is_some().into(),
        }
    }
}

/// Task, server and node of the budget groups, of which just one is there.
fn serves(subject: For) -> (u32, u32, u32) {
    match subject {
        For::Task(task) => (task.0, 0, 0),
        For::Group(group) => (TaskId::NONE.0, group, 0),
        For::Budget(node) => (TaskId::NONE.0, 0, node),
    }
}

/// A group's ordering as one number: the first attribute in the lowest byte.
///
/// # Errors
/// [`Refusal::Invalid`] for more than [`MOST_ATTRIBUTES`]; the rest is the dispatcher's to refuse.
pub fn order(by: &[Attribute]) -> Result<u32, Refusal> {
    if by.len() > MOST_ATTRIBUTES {
        return Err(Refusal::Invalid);
    }
    Ok(by.iter().rev().fold(0, |order, &a| order << 8 | a as u32))
}

/// A ceiling as `pd_task_raise` takes it: the attribute, and the value.
pub fn ceiling(ceiling: Option<TaskCeiling>) -> (u32, u64) {
    match ceiling {
        None => (0, 0),
        Some(TaskCeiling::Finish(finish)) => (Attribute::Finish as u32, finish),
        Some(TaskCeiling::Priority(priority)) => (Attribute::Priority as u32, priority as u64),
    }
}

/// `struct pd_event`: what the fields mean depends on the kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Event {
    pub time: u64,
    /// Of [`punctual_trace::kind::event`].
    pub kind: u32,
    pub task: u32,
    pub job: u64,
    pub cookie: u64,
    pub used: u64,
    pub remaining: u64,
}

impl Event {
    /// Decodes the event; `None` for an unknown kind.
    pub fn decode(&self) -> Option<crate::Event> {
        use crate::Event;
        let Self { time: at, kind, task: node, job: id, cookie, used, remaining } = *self;
        let (task, job) = (TaskId(node), JobId(id));
        let ended = |end| Event::JobEnded { at, end, job, task, cookie, used, remaining };
        let window = |end| Event::WindowEnded { at, end, job, task, cookie, used, remaining };
        let segment = |end| Event::SegmentEnded { at, end, job, node, cookie, used, remaining };
        Some(match kind {
            event::COMPLETED => ended(End::Completed),
            event::EXHAUSTED => ended(End::Exhausted),
            event::EXPIRED => ended(End::Expired),
            event::CANCELLED => ended(End::Cancelled),
            event::TASK_GONE => ended(End::TaskGone),
            event::TASK_READY => Event::TaskReady { at, task },
            event::TASK_BLOCKED => Event::TaskBlocked { at, task },
            event::GROUP_ACTIVE => Event::GroupActive { at, group: node },
            event::GROUP_IDLE => Event::GroupIdle { at, group: node },
            event::SEGMENT_EXHAUSTED => segment(End::Exhausted),
            event::TIMER => Event::Timer { at, timer: TimerId(id), cookie, due: used },
            event::LOST => Event::Lost { at, count: used },
            event::RELEASED => {
                Event::Released { at, job, task, number: cookie, release: used, budget: remaining }
            }
            event::RELEASES_LOST => Event::ReleasesLost { at, task, first: cookie, count: used },
            event::OVERRUN => Event::Overrun { at, task, number: cookie },
            event::BACKGROUND => Event::Background { at, task, number: cookie },
            event::DELAYED_SATURATED => Event::DelayedSaturated { at, task },
            event::SEGMENT_EXPIRED => segment(End::Expired),
            event::WINDOW_EXHAUSTED => window(End::Exhausted),
            event::WINDOW_EXPIRED => window(End::Expired),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::{c_char, CStr};
    use std::mem::offset_of;

    use super::*;
    use crate::{OverrunPolicy, Record};

    #[repr(C)]
    struct Number {
        name: *const c_char,
        value: u64,
    }

    extern "C" {
        static pd_numbers: [Number; 1];
    }

    fn numbers() -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        // SAFETY: the table's names are C strings; one that is null ends it.
        unsafe {
            let mut at = (&raw const pd_numbers).cast::<Number>();
            while !(*at).name.is_null() {
                let name = CStr::from_ptr((*at).name).to_str().expect("plain").to_owned();
                all.insert(name, (*at).value);
                at = at.add(1);
            }
        }
        all
    }

    #[test]
    fn numbers_sizes_and_offsets_are_those_of_the_headers() {
        macro_rules! consts {
            ($prefix:literal, $module:path, $($name:ident)*) => {{
                use $module as of;
                vec![$((concat!($prefix, stringify!($name)), u64::from(of::$name))),*]
            }};
        }
        macro_rules! structure {
            ($c:literal, $ty:ident, $($field:ident)*) => {
                vec![
                    ($c, size_of::<$ty>() as u64),
                    $((concat!($c, ".", stringify!($field)), offset_of!($ty, $field) as u64)),*
                ]
            };
        }
        let mut here = vec![
            ("PD_NONE", u64::from(TaskId::NONE.0)),
            ("PD_INFINITE", crate::INFINITE),
            ("PD_MAX_DELAYED", crate::late_waits::MAX_DELAYED.into()),
            ("ENOENT", libc::ENOENT as u64),
            ("EBUSY", libc::EBUSY as u64),
            ("EINVAL", libc::EINVAL as u64),
            ("ENOSPC", libc::ENOSPC as u64),
            ("ELOOP", libc::ELOOP as u64),
            ("PD_BY_START", Attribute::Start as u64),
            ("PD_BY_FINISH", Attribute::Finish as u64),
            ("PD_BY_BUDGET", Attribute::Budget as u64),
            ("PD_BY_PRIORITY", Attribute::Priority as u64),
            ("PD_CARRY", OverrunPolicy::Carry as u64),
            ("PD_SKIP", OverrunPolicy::Skip as u64),
            ("PD_BACKGROUND", OverrunPolicy::Background as u64),
            ("PD_SIGNAL", OverrunPolicy::Signal as u64),
        ];
        here.extend(consts!("PD_EV_", punctual_trace::kind::event,
            COMPLETED EXHAUSTED EXPIRED CANCELLED TASK_GONE TASK_READY TASK_BLOCKED GROUP_ACTIVE
            GROUP_IDLE SEGMENT_EXHAUSTED TIMER LOST RELEASED RELEASES_LOST OVERRUN BACKGROUND
            DELAYED_SATURATED SEGMENT_EXPIRED WINDOW_EXHAUSTED WINDOW_EXPIRED
        ));
        here.extend(consts!("PD_REC_", punctual_trace::kind,
            GRANULARITY ORDER TASK_ADD TASK_READY TASK_BLOCKED TASK_GONE TASK_DONE CHARGE_TASK
            CHARGE JOB_CANCEL JOB_COMPLETE ADVANCE TAKE_LOST RESERVATION_REMOVE TIMER_ASK
            TIMER_CANCEL WINDOW_ADD WINDOW_DROP TASK_LEND JOB_ADD JOB_ADD_2 JOB_ADD_3
            RESERVATION_ADD RESERVATION_ADD_2 RESERVATION_ADD_3 RESERVATION_ADD_4
            RESERVATION_CHANGE TASK_RAISE SELECTED EVENT
        ));
        here.extend(structure!("pd_limits", Limits,
            jobs tasks reservations groups budget_groups timers depth events records cpus
            windows
        ));
        here.extend(structure!("pd_job_attr", JobAttr,
            start finish budget priority cookie task group server budget_group budget_server
            reserved
        ));
        here.extend(structure!("pd_reservation_attr", ReservationAttr,
            start period budget deadline priority cookie task group overrun wakeup_rule server
            budget_group budget_server own_cookie
        ));
        here.extend(structure!("pd_event", Event,
            time kind task job cookie used remaining
        ));
        here.extend(structure!("pd_record", Record,
            time a b small kind
        ));
        let there = numbers();
        for (name, value) in here {
            assert_eq!(there.get(name), Some(&value), "{name}");
        }
    }

    #[test]
    fn of_task_group_and_node_just_one_is_there() {
        let subject = |serves| {
            let raw = JobAttr::from(&Job::new(serves, 1));
            [raw.task, raw.server, raw.budget_server]
        };
        assert_eq!(subject(For::Task(TaskId(7))), [7, 0, 0]);
        assert_eq!(subject(For::Group(3)), [u32::MAX, 3, 0]);
        assert_eq!(subject(For::Budget(2)), [u32::MAX, 0, 2]);
    }

    #[test]
    fn a_reservation_without_a_cookie_says_so() {
        let r = Reservation {
            serves: For::Group(3),
            start: 1,
            period: 2,
            budget: 3,
            deadline: 4,
            priority: -5,
            group: 6,
            budget_group: 7,
            cookie: Some(0),
            overrun: OverrunPolicy::Signal,
            wakeup_rule: true,
        };
        let raw = ReservationAttr::from(&r);
        assert_eq!((raw.cookie, raw.own_cookie, raw.overrun, raw.wakeup_rule), (0, 1, 3, 1));
        assert_eq!(ReservationAttr::from(&Reservation { cookie: None, ..r }).own_cookie, 0);
    }

    #[test]
    fn an_order_has_its_first_attribute_lowest_and_four_at_most() {
        assert_eq!(order(&[Attribute::Finish, Attribute::Priority]), Ok(0x0402));
        assert_eq!(order(&[Attribute::Start; 5]), Err(Refusal::Invalid));
    }

    #[test]
    fn an_unknown_kind_decodes_to_none() {
        let raw = Event { time: 1, kind: 21, task: 0, job: 0, cookie: 0, used: 0, remaining: 0 };
        assert_eq!(raw.decode(), None);
        assert_eq!(
            Event { kind: 12, used: 9, ..raw }.decode(),
            Some(crate::Event::Lost { at: 1, count: 9 })
        );
    }
}
