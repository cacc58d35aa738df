//! Events of reservations on their way to the clients, which fetch them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use punctual::RunEvent;
use punctual_service::{EventsReply, PeriodReport, TaskEvent};
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

/// A reservation that has not ended.
#[derive(Debug)]
struct Registered {
    lease: u64,
    /// Number of its first period here: it had those before in another process of the service.
    first: u64,
    /// Number of the next one.
    next: u64,
    /// Another process takes it over: its end here is no end for the client.
    leaves: bool,
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

    /// Events of this reservation go to this lease from now on; its periods are numbered from
    /// `first`.
    pub fn register(&self, id: u64, lease: u64, first: u64) {
        let mut state = self.state();
        state.registered.insert(id, Registered { lease, first, next: first, leaves: false });
        state.boxes.entry(lease).or_default();
    }

    /// The client has gone, and its events with it.
    pub fn close(&self, lease: u64) {
        let mut state = self.state();
        state.boxes.remove(&lease);
        state.registered.retain(|_, r| r.lease != lease);
    }

    /// Another process takes this reservation over.
    pub fn set_leaves(&self, id: u64) {
        self.state().registered.entry(id).and_modify(|r| r.leaves = true);
    }

    /// Number of the next period of a reservation.
    pub fn next_period(&self, id: u64) -> u64 {
        self.state().registered.get(&id).map_or(0, |r| r.next)
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
            period.number += registered.first;
            registered.next = period.number + 1;
        }
        if ended && leaves {
            return ended;
        }
        if ended {
            state.registered.remove(&id);
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
        mail.register(7, 1, 0);
        mail.register(8, 2, 0);
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
        mail.register(7, 1, 0);
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
    fn events_follow_a_reservation_to_another_process_and_its_periods_are_numbered_on() {
        let (old, new) = (Mailboxes::default(), Mailboxes::default());
        old.register(7, 1, 0);
        old.deliver(&period("t#7", 0));
        old.deliver(&period("t#7", 1));
        old.set_leaves(7);
        old.deliver(&RunEvent::Ended { task: "t#7".into(), how: TaskEnd::Stopped });
        new.register(7, 1, old.next_period(7));
        new.deliver(&period("t#7", 0));
        new.import(old.export());
        new.end(7, 1, "refused", Some("it does not fit".to_owned()));
        let events = new.take(1).events;
        let numbers: Vec<_> =
            events.iter().filter_map(|e| Some(e.period.as_ref()?.number)).collect();
        assert_eq!((numbers, events.len()), (vec![0, 1, 2], 4));
        assert_eq!(events[3].cause.as_deref(), Some("it does not fit"));
    }
}
