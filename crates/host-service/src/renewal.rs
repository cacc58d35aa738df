//! Reservations of threads of this program that end when the service is replaced: each is made
//! again, by the process that has taken over. The thread finds it where it waits (`thread.rs`).

use std::time::{Duration, Instant};

use punctual_service::{ReservationInfo, TaskRequest};
use punctual_taskset::TaskChange;
use punctual_trace::TaskEnd;

use crate::thread::{lock, LastRelease};
use crate::{ServiceHost, TaskBody};

/// How long refusals may pass: the dispatcher of the older process may still have the CPU.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a thread is reserved for again.
#[derive(Debug)]
pub(crate) struct Renewal {
    request: TaskRequest,
    /// Period, budget and deadline, ns, which a role may have.
    values: [u64; 3],
    /// It was made again after this release: where no other one was reported since, it is not made
    /// once more.
    since: Option<Option<u64>>,
    /// Refusals are final from here on.
    until: Option<Instant>,
}

impl Renewal {
    /// Of a request that was answered so.
    pub fn new(request: TaskRequest, info: &ReservationInfo) -> Box<Renewal> {
        // The first release was then.
        let request = TaskRequest { offset_ns: None, ..request };
        let values = [info.period_ns, info.budget_ns, info.deadline_ns];
        Box::new(Renewal { request, values, since: None, until: None })
    }

    /// Time between its releases, ns.
    pub fn period_ns(&self) -> u64 {
        self.values[0]
    }

    /// The reservation has other values.
    pub fn change(&mut self, change: &TaskChange) {
        let [period, budget, deadline] = self.values;
        let (period, deadline) = change.times(period, deadline);
        self.values = [period, change.budget.unwrap_or(budget), deadline];
        let [period_ns, budget_ns, deadline_ns] = self.values.map(Some);
        let request = self.request.clone();
        self.request = TaskRequest { role: None, period_ns, budget_ns, deadline_ns, ..request };
    }
}

impl ServiceHost {
    /// Reserves again for threads whose reservations were refused by another process of the
    /// service, as their older ones were.
    pub(crate) fn renew(&mut self) {
        let refused = self.tasks.iter().filter(|(_, task)| task.ended == Some(TaskEnd::Refused));
        for id in refused.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.renew_one(id);
        }
    }

    fn renew_one(&mut self, id: u64) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let TaskBody::Own(entry, renewal) = &mut task.body else { return };
        let mut client = lock(&self.client);
        let Some(client) = client.as_mut().filter(|_| !entry.is_over()) else { return };
        let last = task.last.map(|last| last.number);
        if renewal.since == Some(last) {
            return entry.set_over();
        }
        let until = *renewal.until.get_or_insert_with(|| Instant::now() + PATIENCE);
        let next = |last: LastRelease| last.time.saturating_add(renewal.period_ns());
        let first_release_ns = task.last.map(next);
        let request = TaskRequest { first_release_ns, ..renewal.request.clone() };
        let renewed = client.reserve_thread(&request).and_then(|reserved| {
            let renewed = reserved.info().id;
            match task.reservation.set(renewed, client) {
                Ok(()) => Ok(reserved),
                Err(refusal) => client.release(renewed).and(Err(refusal)),
            }
        });
        match renewed {
            Ok(reserved) => {
                (renewal.since, renewal.until) = (Some(last), None);
                (task.before, task.ended, task.cause) = (task.last, None, None);
                let renewed = reserved.info().id;
                entry.pass_again(reserved, task.last);
                let task = self.tasks.remove(&id);
                self.tasks.extend(task.map(|task| (renewed, task)));
            }
            Err(refusal) if Instant::now() >= until => {
                task.cause = Some(refusal.cause);
                entry.set_over();
            }
            Err(_) => {}
        }
    }
}
