//! Events of reservations on their way to the clients, which fetch them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use punctual::RunEvent;
use punctual_service::{EventsReply, PeriodReport, TaskEvent};
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::release_after;
use serde::{Deserialize, Serialize};

/// Events of one lease that may wait; more are dropped and counted.
const ROOM: usize = 2048;
/// Events in one answer.
const AT_ONCE: usize = 256;

/// The name of a reservation's task in its set: the client's, and a number that makes it unique.
pub fn task_name(name: &str, id: u64) -> String {
    format!("{name}#{id}")
}

fn id_of(task: &str) -> Option<u64> {
    task.rsplit_once('#')?.1.parse().ok()
}

/// The events of all leases.
#[derive(Debug, Default)]
pub struct Mailboxes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By reservation.
    registered: BTreeMap<u64, Registered>,
    /// By lease.
    boxes: BTreeMap<u64, Mailbox>,
}

/// With which release a reservation continues in another process of the service.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct NextRelease {
    /// Number of its period.
    pub number: u64,
    /// When it is due, or another one of its releases was, CLOCK_MONOTONIC; none: the service makes
    /// it.
    pub due_ns: Option<u64>,
}

/// A reservation, until it has ended and is forgotten.
#[derive(Debug)]
struct Registered {
    lease: u64,
    period_ns: u64,
    /// Number of the dispatcher's period 0: another process of the service had those before.
    first: u64,
    next: NextRelease,
    /// Its first release is not before that, CLOCK_MONOTONIC ns.
    starts: u64,
    /// No period was reported here yet.
    is_new: bool,
    /// Another process takes it over: its end here is no end for the client.
    leaves: bool,
    /// It has ended. When its next release would have come, CLOCK_MONOTONIC ns.
    ended: Option<u64>,
    /// It waits for the report of its end alone.
    is_forgotten: bool,
}

impl Registered {
    /// Numbers a period. Those that came while no process had the reservation are counted.
    fn number(&mut self, period: &mut PeriodReport) {
        if std::mem::replace(&mut self.is_new, false) {
            let due = self.next.due_ns.unwrap_or(period.release_ns);
            let lost = period.release_ns.saturating_sub(due) / self.period_ns;
            self.first = (self.first + lost).saturating_sub(period.number);
        }
        period.number += self.first;
        let due_ns = Some(period.release_ns.saturating_add(self.period_ns));
        self.next = NextRelease { number: period.number + 1, due_ns };
    }

    /// Its first release after now, or later.
    fn next_due(&self) -> u64 {
        release_after(self.next.due_ns, self.period_ns, monotonic_ns())
    }

    /// It has ended, with its next release then: whether it had one before.
    fn was_released(&self, next_due: u64) -> bool {
        self.starts.saturating_add(self.period_ns) <= next_due
    }
}

/// The events of one lease on their way to another process of the service.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PassedMail {
    lease: u64,
    events: VecDeque<TaskEvent>,
    dropped: u64,
}

#[derive(Debug, Default)]
struct Mailbox {
    events: VecDeque<TaskEvent>,
    dropped: u64,
}

impl Mailboxes {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Events of this reservation go to this lease from now on; `next`: its first period, which is
    /// not released before `starts`, CLOCK_MONOTONIC ns.
    pub fn register(&self, id: u64, lease: u64, next: NextRelease, starts: u64, period_ns: u64) {
        let mut state = self.state();
        let (first, is_new, leaves) = (next.number, true, false);
        let (ended, is_forgotten) = (None, false);
        let registered = Registered {
            lease,
            period_ns,
            first,
            next,
            starts,
            is_new,
            leaves,
            ended,
            is_forgotten,
        };
        state.registered.insert(id, registered);
        state.boxes.entry(lease).or_default();
    }

    /// The client has gone, and its events with it.
    pub fn close(&self, lease: u64) {
        self.state().boxes.remove(&lease);
    }

    /// A reservation was refused.
    pub fn remove(&self, id: u64) {
        self.state().registered.remove(&id);
    }

    /// A reservation has ended: when its next release would have come, CLOCK_MONOTONIC ns; `None`:
    /// it had none. The report of its end may come later.
    pub fn forget(&self, id: u64) -> Option<u64> {
        let mut state = self.state();
        let registered = state.registered.get_mut(&id)?;
        registered.is_forgotten = true;
        let (has_ended, next) = (registered.ended.is_some(), registered.next_due());
        let next = registered.ended.unwrap_or(next);
        let next = Some(next).filter(|&next| registered.was_released(next));
        if has_ended {
            state.registered.remove(&id);
        }
        next
    }

    /// Another process takes this reservation over.
    pub fn set_leaves(&self, id: u64) {
        self.state().registered.entry(id).and_modify(|r| r.leaves = true);
    }

    /// A reservation has another period, ns, from its next release on.
    pub fn set_period(&self, id: u64, period_ns: u64) {
        self.state().registered.entry(id).and_modify(|r| r.period_ns = period_ns);
    }

    /// The next release of a reservation; its time may be that of one before.
    pub fn next_release(&self, id: u64) -> NextRelease {
        let state = self.state();
        let Some(registered) = state.registered.get(&id) else { return NextRelease::default() };
        let due_ns = registered.next.due_ns.or(Some(registered.starts));
        NextRelease { due_ns, ..registered.next }
    }

    /// When a reservation is released after now, CLOCK_MONOTONIC ns; before its first release, a
    /// period from now.
    pub fn next_due(&self, id: u64) -> u64 {
        self.state().registered.get(&id).map_or(0, Registered::next_due)
    }

    /// A reservation of this lease has ended on its way from one process to another; `cause`: it
    /// was refused there.
    pub fn end(&self, id: u64, lease: u64, ended: &str, cause: Option<String>) {
        let mut state = self.state();
        state.registered.remove(&id);
        let event = TaskEvent { id, ended: Some(ended.to_owned()), cause, ..TaskEvent::default() };
        state.boxes.entry(lease).or_default().put(event);
    }

    /// All that clients have not fetched, for another process.
    pub fn export(&self) -> Vec<PassedMail> {
        let state = self.state();
        let pass = |(&lease, mailbox): (&u64, &Mailbox)| {
            let (events, dropped) = (mailbox.events.clone(), mailbox.dropped);
            PassedMail { lease, events, dropped }
        };
        state.boxes.iter().map(pass).collect()
    }

    /// What clients had not fetched of another process: comes before all of this one.
    pub fn import(&self, passed: Vec<PassedMail>) {
        let mut state = self.state();
        for PassedMail { lease, mut events, dropped } in passed {
            let mailbox = state.boxes.entry(lease).or_default();
            mailbox.dropped += dropped;
            std::mem::swap(&mut mailbox.events, &mut events);
            events.into_iter().for_each(|event| mailbox.put(event));
        }
    }

    /// An event of a dispatcher; true if it is the end of a reservation.
    pub fn deliver(&self, event: &RunEvent) -> bool {
        let (task, event) = match event {
            RunEvent::Period { task, period } => (
                task,
                TaskEvent { period: Some(PeriodReport::from(period)), ..TaskEvent::default() },
            ),
            RunEvent::Unreported { task, count } => {
                (task, TaskEvent { unreported: Some(*count), ..TaskEvent::default() })
            }
            RunEvent::Ended { task, how } => {
                let how = match how {
                    punctual::TaskEnd::Stopped => "released",
                    punctual::TaskEnd::Refused => "refused",
                    _ => "ended",
                };
                (task, TaskEvent { ended: Some(how.to_owned()), ..TaskEvent::default() })
            }
            RunEvent::Warning(text) => {
                eprintln!("punctuald: {text}");
                return false;
            }
            RunEvent::Executed { .. } | RunEvent::PolicyStopped(_) => return false,
        };
        let Some(id) = id_of(task) else { return false };
        let ended = event.ended.is_some();
        let mut state = self.state();
        let Some(registered) = state.registered.get_mut(&id) else { return ended };
        let (lease, leaves) = (registered.lease, registered.leaves);
        let mut event = TaskEvent { id, ..event };
        if let Some(period) = &mut event.period {
            registered.number(period);
        }
        if ended && leaves {
            return ended;
        }
        if ended {
            registered.ended = Some(registered.next_due());
            if registered.is_forgotten {
                state.registered.remove(&id);
            }
        }
        if let Some(mailbox) = state.boxes.get_mut(&lease) {
            mailbox.put(event);
        }
        ended
    }

    /// The oldest events of a lease.
    pub fn take(&self, lease: u64) -> EventsReply {
        let mut state = self.state();
        let Some(mailbox) = state.boxes.get_mut(&lease) else {
            return EventsReply { events: Vec::new(), more: false, dropped: 0 };
        };
        let count = mailbox.events.len().min(AT_ONCE);
        EventsReply {
            events: mailbox.events.drain(..count).collect(),
            more: !mailbox.events.is_empty(),
            dropped: std::mem::take(&mut mailbox.dropped),
        }
    }
}

impl Mailbox {
    /// An end is never dropped: a lease has few reservations.
    fn put(&mut self, event: TaskEvent) {
        if self.events.len() < ROOM || event.ended.is_some() {
            self.events.push_back(event);
        } else {
            self.dropped += event.unreported.unwrap_or(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual::{Period, TaskEnd};

    fn period(task: &str, number: u64) -> RunEvent {
        let period = Period::unjudged(0, number, 0, 1, 1);
        RunEvent::Period { task: task.into(), period }
    }

    #[test]
    fn a_lease_gets_the_events_of_its_reservations_alone() {
        let mail = Mailboxes::default();
        mail.register(7, 1, NextRelease::default(), 0, 10);
        mail.register(8, 2, NextRelease::default(), 0, 10);
        assert!(!mail.deliver(&period("odd#name#7", 3)));
        assert!(!mail.deliver(&period("other#8", 4)));
        assert!(mail.deliver(&RunEvent::Ended { task: "odd#name#7".into(), how: TaskEnd::Gone }));
        let events = mail.take(1).events;
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].period.as_ref().map(|p| p.number), Some(3));
        assert_eq!(events[1].ended.as_deref(), Some("ended"));
        assert_eq!(mail.take(2).events.len(), 1);
        assert!(mail.take(1).events.is_empty() && mail.take(99).events.is_empty());
    }

    #[test]
    fn a_client_that_fetches_nothing_loses_reports_but_no_end() {
        let mail = Mailboxes::default();
        mail.register(7, 1, NextRelease::default(), 0, 10);
        for number in 0..ROOM as u64 + 10 {
            mail.deliver(&period("t#7", number));
        }
        mail.deliver(&RunEvent::Ended { task: "t#7".into(), how: TaskEnd::Stopped });
        let first = mail.take(1);
        assert_eq!((first.events.len(), first.more, first.dropped), (AT_ONCE, true, 10));
        let mut last = first;
        while last.more {
            last = mail.take(1);
            assert_eq!(last.dropped, 0);
        }
        assert_eq!(last.events.last().and_then(|e| e.ended.as_deref()), Some("released"));
    }

    #[test]
    fn events_follow_a_reservation_to_another_process_and_lost_periods_are_counted() {
        let (old, new) = (Mailboxes::default(), Mailboxes::default());
        let released = |number, at| {
            let period = Period::unjudged(0, number, at, at + 10, 1);
            RunEvent::Period { task: "t#7".into(), period }
        };
        old.register(7, 1, NextRelease::default(), 0, 10);
        old.deliver(&released(0, 1000));
        old.set_period(7, 20);
        old.deliver(&released(1, 1010));
        old.set_leaves(7);
        old.deliver(&RunEvent::Ended { task: "t#7".into(), how: TaskEnd::Stopped });
        let next = old.next_release(7);
        assert_eq!((next.number, next.due_ns), (2, Some(1030)));
        new.register(7, 1, next, 0, 20);
        // The dispatcher here had two releases before the first of which it has a report.
        new.deliver(&released(2, 1090));
        new.deliver(&released(3, 1110));
        new.import(old.export());
        new.end(7, 1, "refused", Some("it does not fit".to_owned()));
        let events = new.take(1).events;
        let numbers: Vec<_> =
            events.iter().filter_map(|e| Some(e.period.as_ref()?.number)).collect();
        assert_eq!((numbers, events.len()), (vec![0, 1, 5, 6], 5));
        assert_eq!(events[4].cause.as_deref(), Some("it does not fit"));
    }

    #[test]
    fn a_reservation_is_forgotten_when_its_end_was_reported_and_says_until_when_it_has_its_share() {
        let hour = 3_600_000_000_000;
        let mail = Mailboxes::default();
        let end = |id| RunEvent::Ended { task: format!("t#{id}").into(), how: TaskEnd::Stopped };
        let released = monotonic_ns();
        let now = || monotonic_ns();
        // Forgotten before and after the report; with and without a period that was reported.
        for (id, is_early, is_reported) in
            [(1, true, true), (2, false, true), (3, true, false), (4, false, false)]
        {
            mail.register(id, 9, NextRelease::default(), 0, hour);
            if is_reported {
                let period = Period::unjudged(0, 0, released, released + hour, 1);
                mail.deliver(&RunEvent::Period { task: format!("t#{id}").into(), period });
            }
            let earliest = now();
            let deliver = || assert!(mail.deliver(&end(id)));
            if !is_early {
                deliver();
            }
            let until = mail.forget(id).expect("it was released");
            if is_early {
                deliver();
            }
            match is_reported {
                true => assert_eq!(until, released + hour, "{id}"),
                false => assert!((earliest + hour..=now() + hour).contains(&until), "{id}"),
            }
            assert_eq!(mail.forget(id), None);
        }
        // It has ended before its first release.
        mail.register(5, 9, NextRelease::default(), now() + hour, hour);
        assert_eq!(mail.forget(5), None);
        mail.deliver(&end(5));
        let events = mail.take(9).events;
        assert_eq!(events.iter().filter(|event| event.ended.is_some()).count(), 5);
        assert!(mail.state().registered.is_empty());
    }
}
