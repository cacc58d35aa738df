//! Debts: what members executed that no server and no segment has been charged for.
//!
//! A parked program goes on inside the kernel until it leaves it: a fork with its exec takes longer than a small budget.
//! By then all that it ran on may have ended, and what one job takes of it is at most one budget (design, "Reservation").
//! So a debt is paid before its member runs again, out of each budget as much as there is in it, and outlasts those that
//! it uses up. None grows meanwhile, for who owes stays parked.

use std::sync::atomic::Ordering::Relaxed;

use punctual_dispatcher::{Dispatcher, JobId};

use crate::arrange::UNPARKED;
use crate::engine::Engine;
use crate::member::{Member, Who};

/// How often at one instant debts may use up what was to pay for somebody; who still owes then pays at the next one.
const ROUNDS: usize = 16;

impl Engine {
    /// The best ready jobs whose tasks owe nothing any more.
    pub(crate) fn best_without_debts(&mut self, now: u64, best: &mut [u32; UNPARKED], mut count: usize) -> usize {
        for _ in 0..ROUNDS {
            let mut paid = false;
            for &i in &best[..count] {
                paid |= self.collect(i, now);
            }
            if !paid {
                break;
            }
            self.dispatcher.advance(now);
            self.follow_events(now, 0);
            count = self.best(now, best);
        }
        count
    }

    /// Whether something was charged to its job, which may be used up now.
    fn collect(&mut self, i: u32, now: u64) -> bool {
        self.read_again(i, now);
        let Engine { dispatcher, members, .. } = self;
        members[i as usize].as_deref_mut().is_some_and(|m| m.debt > 0 && pay(dispatcher, m, now))
    }

    /// From here on its clock is read at each event.
    pub(crate) fn read_again(&mut self, i: u32, now: u64) {
        let Some(m) = self.members[i as usize].as_deref_mut().filter(|m| !m.moving) else { return };
        m.moving = true;
        catch_up(m, now);
        self.moving.push(i);
    }
}

/// Nobody read its clock while it stood still. A thread in its gate may have been run by another. A program's processes
/// may have ended there, or children of it run that nobody knew of yet.
fn catch_up(m: &mut Member, now: u64) {
    let clock = m.clock(now);
    let ran = clock.saturating_sub(m.charged);
    m.charged = clock;
    if matches!(m.who, Who::Program(_)) && m.is_charged() {
        m.periods.executed(ran);
        m.debt += ran;
    }
}

fn pay(dispatcher: &mut Dispatcher, m: &mut Member, now: u64) -> bool {
    let Some(job) = dispatcher.job_of_task(m.task) else { return false };
    let part = charge_part(dispatcher, job, m.debt, now);
    m.debt -= part;
    if let (Who::Thread(cell), true) = (&m.who, part > 0) {
        cell.exhausted_at.store(m.charged.saturating_add(dispatcher.remaining(job)), Relaxed);
    }
    part > 0
}

/// Charges as much of a debt as there is in what the job runs on; so much, ns.
fn charge_part(dispatcher: &mut Dispatcher, job: JobId, debt: u64, now: u64) -> u64 {
    let part = debt.min(dispatcher.allowance(job));
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
    fn a_debt_of_more_than_two_budgets_of_a_server_is_paid_in_full_by_three() {
        let limits = Limits { jobs: 4, reservations: 2, groups: 2, ..Limits::for_tasks(1) };
        let mut d = Dispatcher::new(limits).unwrap();
        let server = Reservation::new(For::Group(1), PERIOD, BUDGET);
        d.add_reservation(&server, 0).unwrap();
        let task = d.add_task(0).unwrap();
        let job = d.add_job(&Job { group: 1, ..Job::new(For::Task(task), 100 * BUDGET) }, 0).unwrap();
        let (mut debt, mut charged, mut released) = (2 * BUDGET + 300_000, Vec::new(), Vec::new());
        let mut may_run = Vec::new();
        for now in (0..5).map(|k| k * PERIOD) {
            d.advance(now);
            assert_eq!(d.select(0, now), Some(job));
            debt -= charge_part(&mut d, job, debt, now);
            d.advance(now);
            may_run.push(d.select(0, now).is_some());
            while let Some(event) = d.next_event() {
                match event {
                    Event::JobEnded { end, used, task: TaskId::NONE, .. } => charged.push((end, used)),
                    Event::Released { budget, task: TaskId::NONE, .. } => released.push(budget),
                    _ => {}
                }
            }
        }
        assert_eq!(debt, 0);
        assert_eq!(may_run, [false, false, true, true, true]);
        let ends = [(End::Exhausted, BUDGET), (End::Exhausted, BUDGET), (End::Expired, 300_000), (End::Expired, 0)];
        assert_eq!(charged, ends);
        assert_eq!(released, [BUDGET; 5], "nothing is carried, so nothing beyond one budget can be lost");
    }
}
