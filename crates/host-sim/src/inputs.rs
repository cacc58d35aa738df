//! One recorded input, applied to a dispatcher again: the inverse of `dispatcher/record.h`.

use punctual_dispatcher::{
    Attribute, Dispatcher, For, Job, JobId, OverrunPolicy, Refusal, Reservation, ReservationId,
    TaskCeiling, TaskId, TimerId,
};
use punctual_trace::{kind, Record};

/// The most records that one input takes.
pub(crate) const MOST: usize = 5;

/// How many records the input takes that begins with the first of these.
pub(crate) fn length(records: &[Record]) -> usize {
    let Some(first) = records.first() else { return 0 };
    let following = |kinds: std::ops::RangeInclusive<u32>| {
        records[1..].iter().zip(kinds).take_while(|(record, next)| record.kind == *next).count()
    };
    1 + match first.kind {
        kind::JOB_ADD => following(kind::JOB_ADD_2..=kind::JOB_ADD_3),
        kind::RESERVATION_ADD => following(kind::RESERVATION_ADD_2..=kind::RESERVATION_ADD_4),
        kind::RESERVATION_CHANGE => following(kind::RESERVATION_ADD..=kind::RESERVATION_ADD_4),
        _ => 0,
    }
}

/// How many records a whole input takes that begins with this one.
pub(crate) fn whole_length(first: &Record) -> usize {
    match first.kind {
        kind::JOB_ADD => 3,
        kind::RESERVATION_ADD => 4,
        kind::RESERVATION_CHANGE => MOST,
        _ => 1,
    }
}

/// Why an input could not be applied.
pub(crate) enum InputError {
    /// The dispatcher refuses it.
    Refused(Refusal),
    /// It makes no sense.
    Nonsense,
}

impl From<Refusal> for InputError {
    fn from(refusal: Refusal) -> InputError {
        InputError::Refused(refusal)
    }
}

/// Applies an input, given by all its records, to the dispatcher at `now`.
pub(crate) fn apply(d: &mut Dispatcher, records: &[Record], now: u64) -> Result<(), InputError> {
    let first = records.first().ok_or(InputError::Nonsense)?;
    let Record { a, b, small, .. } = *first;
    let (task, job) = (TaskId(small), JobId::from_u64(a));
    match first.kind {
        kind::GRANULARITY => d.set_granularity(a)?,
        kind::ORDER => d.set_order(small, &attributes(a)?)?,
        kind::TASK_ADD => drop(d.add_task(now)?),
        kind::TASK_READY => d.task_ready(task, now)?,
        kind::TASK_BLOCKED => d.task_blocked(task, now)?,
        kind::TASK_GONE => d.task_gone(task, now)?,
        kind::TASK_DONE => drop(d.task_done(task, now)?),
        kind::CHARGE_TASK => drop(d.charge_task(task, a, now)?),
        kind::CHARGE => drop(d.charge_job(job, b, now)?),
        kind::JOB_CANCEL => d.cancel_job(job, now)?,
        kind::JOB_COMPLETE => d.complete_job(job, now)?,
        kind::ADVANCE => d.advance(now),
        kind::TAKE_LOST => drop(d.take_lost(ReservationId(small))),
        kind::RESERVATION_REMOVE => d.remove_reservation(ReservationId(small), now)?,
        kind::TIMER_ASK => drop(d.ask_timer(a, b, now)?),
        kind::TIMER_CANCEL => d.cancel_timer(TimerId::from_u64(a), now)?,
        kind::WINDOW_ADD => d.draft_window(a, b, small != 0, now)?,
        kind::WINDOW_DROP => d.drop_windows(now),
        kind::TASK_LEND => {
            let to = u32::try_from(a).map_err(|_| InputError::Nonsense)?;
            d.lend(task, Some(TaskId(to)).filter(|&to| to != TaskId::NONE), now)?;
        }
        kind::TASK_RAISE => d.raise(task, ceiling(a, b)?, now)?,
        kind::JOB_ADD => drop(d.add_job(&job_of(records)?, now)?),
        kind::RESERVATION_ADD => drop(d.add_reservation(&reservation_of(records)?, now)?),
        kind::RESERVATION_CHANGE => {
            d.change_reservation(ReservationId(small), &reservation_of(&records[1..])?, now)?;
        }
        _ => return Err(InputError::Nonsense),
    }
    Ok(())
}

/// A ceiling, and the attribute that it is of.
fn ceiling(value: u64, attribute: u64) -> Result<Option<TaskCeiling>, InputError> {
    match attribute {
        0 => Ok(None),
        2 => Ok(Some(TaskCeiling::Finish(value))),
        4 => Ok(Some(TaskCeiling::Priority(value as i64))),
        _ => Err(InputError::Nonsense),
    }
}

/// An ordering: up to four attributes, the first in the lowest byte.
fn attributes(order: u64) -> Result<Vec<Attribute>, InputError> {
    let bytes = order.to_le_bytes();
    let used = bytes.iter().take_while(|&&b| b != 0);
    let one = |byte: &u8| match byte {
        1 => Ok(Attribute::Start),
        2 => Ok(Attribute::Finish),
        3 => Ok(Attribute::Budget),
        4 => Ok(Attribute::Priority),
        _ => Err(InputError::Nonsense),
    };
    let all = used.map(one).collect::<Result<Vec<_>, _>>()?;
    if bytes[all.len()..].iter().any(|&b| b != 0) {
        return Err(InputError::Nonsense);
    }
    Ok(all)
}

fn serves(task: u32, server: u64, node: u64) -> Result<For, InputError> {
    let number = |n: u64| u32::try_from(n).map_err(|_| InputError::Nonsense);
    match (server, node) {
        (0, 0) => Ok(For::Task(TaskId(task))),
        (group, 0) if task == TaskId::NONE.0 => Ok(For::Group(number(group)?)),
        (0, node) if task == TaskId::NONE.0 => Ok(For::Budget(number(node)?)),
        _ => Err(InputError::Nonsense),
    }
}

fn job_of(records: &[Record]) -> Result<Job, InputError> {
    let [first, second, third @ ..] = records else { return Err(InputError::Nonsense) };
    // Attributes that are all zero have no record.
    let third = third.first().copied().unwrap_or_default();
    Ok(Job {
        serves: serves(first.small, third.time, third.b)?,
        start: first.a,
        finish: first.b,
        budget: second.time,
        priority: second.a as i64,
        cookie: second.b,
        group: second.small,
        budget_group: u32::try_from(third.a).map_err(|_| InputError::Nonsense)?,
    })
}

fn reservation_of(records: &[Record]) -> Result<Reservation, InputError> {
    let [first, second, third, fourth @ ..] = records else { return Err(InputError::Nonsense) };
    let fourth = fourth.first().copied().unwrap_or_default();
    Ok(Reservation {
        serves: serves(first.small, fourth.time, fourth.b)?,
        start: first.a,
        period: first.b,
        budget: second.time,
        deadline: second.a,
        priority: second.b as i64,
        group: second.small,
        budget_group: u32::try_from(fourth.a).map_err(|_| InputError::Nonsense)?,
        cookie: (third.small != 0).then_some(third.time),
        overrun: match third.b {
            0 => OverrunPolicy::Carry,
            1 => OverrunPolicy::Skip,
            2 => OverrunPolicy::Background,
            3 => OverrunPolicy::Signal,
            _ => return Err(InputError::Nonsense),
        },
        wakeup_rule: third.a != 0,
    })
}
