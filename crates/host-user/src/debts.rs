//! Debts: what members executed that no server and no segment has been charged for.
//!
//! A parked program goes on inside the kernel until it leaves it: a fork with its exec takes longer than a small budget.
//! By then all that it ran on may have ended, and what one job takes of it is at most one budget (design, "Reservation").
//! So a debt is paid before its member runs again, out of each budget as much as there is in it, and outlasts those that
//! it uses up. None grows meanwhile, for who owes stays parked.

use punctual_dispatcher::Dispatcher;

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
        m.track.add(ran, 0);
        m.debt += ran;
    }
}

/// As much as there is in what its job runs on.
fn pay(dispatcher: &mut Dispatcher, m: &mut Member, now: u64) -> bool {
    let Some(job) = dispatcher.job_of_task(m.task) else { return false };
    let part = m.debt.min(dispatcher.allowance(job));
    if part == 0 {
        return false;
    }
    m.debt -= part;
    let _ = dispatcher.charge_task(m.task, part, now);
    if let Who::Thread(cell) = &m.who {
        let left = m.charged.saturating_add(dispatcher.remaining(job));
        cell.exhausted_at.store(left, std::sync::atomic::Ordering::Relaxed);
    }
    true
}
