//! Deferred charges: execution of members that no server and no segment has been charged for.
//!
//! A parked program executes until it leaves the kernel: a fork with its exec takes longer than a
//! small budget. By then its servers and segments may have ended, and a job is charged at most one
//! budget of it (design, "Reservation"). So a deferred charge is charged before its member runs
//! again: to each budget as much as is left in it, until nothing remains. It does not grow
//! meanwhile, because its member stays parked.

use std::sync::atomic::Ordering::Relaxed;

use punctual_dispatcher::{Dispatcher, JobId};

use crate::dispatch::UNPARKED;
use crate::engine::Engine;
use crate::member::{Member, MemberKind};

/// Rounds of deferred charges at one event, each of which may exhaust budgets. Members with a
/// charge left after them are charged at the next event.
const ROUNDS: usize = 16;

impl Engine {
    /// The best ready jobs, after their tasks' deferred charges.
    pub(crate) fn best_without_deferred(
        &mut self,
        now: u64,
        best: &mut [u32; UNPARKED],
        mut count: usize,
    ) -> usize {
        for _ in 0..ROUNDS {
            let mut charged = false;
            for &i in &best[..count] {
                charged |= self.charge_deferred(i, now);
            }
            if !charged {
                break;
            }
            self.dispatcher.advance(now);
            self.follow_events(now, 0);
            count = self.best(now, best);
        }
        count
    }

    /// Whether the member's job was charged; its budget may be exhausted now.
    fn charge_deferred(&mut self, i: u32, now: u64) -> bool {
        self.read_again(i, now);
        let Engine { dispatcher, members, .. } = self;
        members[i as usize]
            .as_deref_mut()
            .is_some_and(|m| m.deferred > 0 && charge_job_of(dispatcher, m, now))
    }

    /// From here on its clock is read at each event.
    pub(crate) fn read_again(&mut self, i: u32, now: u64) {
        let Some(m) = self.members[i as usize].as_deref_mut().filter(|m| !m.moving) else { return };
        m.moving = true;
        catch_up(m, now);
        self.moving.push(i);
    }
}

/// Accounts for execution at rest, when the engine did not read the member's clock. A program's is
/// deferred: processes of it may have ended, and children that were not found yet may have run. A
/// thread's is not charged: another thread may have caused it.
fn catch_up(m: &mut Member, now: u64) {
    let clock = m.clock(now);
    let ran = clock.saturating_sub(m.charged);
    m.charged = clock;
    if matches!(m.kind, MemberKind::Program(_)) && m.is_charged() {
        m.periods.executed(ran);
        m.deferred += ran;
    }
}

fn charge_job_of(dispatcher: &mut Dispatcher, m: &mut Member, now: u64) -> bool {
    let Some(job) = dispatcher.job_of_task(m.task) else { return false };
    let part = charge_part(dispatcher, job, m.deferred, now);
    m.deferred -= part;
    if let (MemberKind::Thread(control), true) = (&m.kind, part > 0) {
        control.exhausted_at.store(m.charged.saturating_add(dispatcher.remaining(job)), Relaxed);
    }
    part > 0
}

/// Charges as much of `deferred` ns as the job has an allowance for; returns that part, ns.
fn charge_part(dispatcher: &mut Dispatcher, job: JobId, deferred: u64, now: u64) -> u64 {
    let part = deferred.min(dispatcher.allowance(job));
    if part > 0 {
        let _ = dispatcher.charge_job(job, part, now);
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_dispatcher::{End, Event, For, Job, Limits, Reservation, TaskId};

    const PERIOD: u64 = 10_000_000;
    const BUDGET: u64 = 500_000;

    #[test]
    fn a_deferred_charge_of_more_than_two_budgets_of_a_server_takes_three() {
        let limits = Limits { jobs: 4, reservations: 2, groups: 2, ..Limits::for_tasks(1) };
        let mut d = Dispatcher::new(limits).unwrap();
        let server = Reservation::new(For::Group(1), PERIOD, BUDGET);
        d.add_reservation(&server, 0).unwrap();
        let task = d.add_task(0).unwrap();
        let job =
            d.add_job(&Job { group: 1, ..Job::new(For::Task(task), 100 * BUDGET) }, 0).unwrap();
        let (mut deferred, mut charged, mut released) =
            (2 * BUDGET + 300_000, Vec::new(), Vec::new());
        let mut may_run = Vec::new();
        for now in (0..5).map(|k| k * PERIOD) {
            d.advance(now);
            assert_eq!(d.select(0, now), Some(job));
            deferred -= charge_part(&mut d, job, deferred, now);
            d.advance(now);
            may_run.push(d.select(0, now).is_some());
            while let Some(event) = d.next_event() {
                match event {
                    Event::JobEnded { end, used, task: TaskId::NONE, .. } => {
                        charged.push((end, used))
                    }
                    Event::Released { budget, task: TaskId::NONE, .. } => released.push(budget),
                    _ => {}
                }
            }
        }
        assert_eq!(deferred, 0);
        assert_eq!(may_run, [false, false, true, true, true]);
        let ends = [
            (End::Exhausted, BUDGET),
            (End::Exhausted, BUDGET),
            (End::Expired, 300_000),
            (End::Expired, 0),
        ];
        assert_eq!(charged, ends);
        assert_eq!(
            released, [BUDGET; 5],
            "nothing is carried, so nothing beyond one budget can be lost"
        );
    }
}
