//! Unparks the tasks of the best few ready jobs, at levels in selection order.

use punctual_dispatcher::JobId;
use punctual_trace::NEVER;

use crate::engine::Engine;
use crate::levels;
use crate::member::{MemberKind, RunMode};

/// Ready jobs that are kept unparked, so that the kernel has work when one blocks.
pub const UNPARKED: usize = 4;

impl Engine {
    /// Parks and unparks: the best few ready jobs may run, in selection order.
    pub(crate) fn dispatch(&mut self, now: u64) {
        let mut best = [0u32; UNPARKED];
        let mut count = self.best(now, &mut best);
        if count == UNPARKED && self.dispatcher.runner_up(0, UNPARKED as u32).is_some() {
            // A ready job has to wait: suspended tasks give up their places.
            if self.find_suspended(now) {
                self.follow_events(now, 0);
                count = self.best(now, &mut best);
            }
        }
        let ready = count;
        count = self.best_without_deferred(now, &mut best, count);
        self.cpu.all_ranked = count == ready
            && (count < UNPARKED || self.dispatcher.runner_up(0, UNPARKED as u32).is_none());
        let best = &best[..count];
        for k in 0..self.moving.len() {
            let i = self.moving[k];
            if best.contains(&i) {
                continue;
            }
            if let Some(m) = self.members[i as usize].as_deref_mut() {
                let suspended = m.asleep && self.dispatcher.job_of_task(m.task).is_some();
                if m.run_mode == RunMode::Unparked && !suspended {
                    if m.asleep {
                        // In its gate its wake-up cannot be observed.
                        let _ = self.dispatcher.task_ready(m.task, now);
                    }
                    m.park();
                }
            }
        }
        for &i in best {
            if let Some(m) = self.members[i as usize].as_deref_mut() {
                m.rank_threads();
            }
        }
        for rank in 0..count {
            let above = rank.checked_sub(1).and_then(|r| self.level_of(best[r]));
            let below = best.get(rank + 1).and_then(|&i| self.top_level_of(i));
            let height = self.height_of(best[rank]);
            let needed = best[rank + 1..].iter().map(|&i| 1 + self.height_of(i)).sum();
            self.let_run(best[rank], now, |own| levels::place(above, own, height, below, needed));
        }
        self.cpu.ranked.clear();
        self.cpu.ranked.extend_from_slice(best);
    }

    pub(crate) fn best(&mut self, now: u64, best: &mut [u32; UNPARKED]) -> usize {
        let mut count = 0;
        let mut job: Option<JobId> = self.dispatcher.select(0, now);
        while let Some(task) = job.and_then(|j| self.dispatcher.task_of(j)) {
            best[count] = task.0;
            count += 1;
            if count == UNPARKED {
                break;
            }
            job = self.dispatcher.runner_up(0, count as u32);
        }
        count
    }

    fn level_of(&self, i: u32) -> Option<i32> {
        self.members[i as usize].as_deref().map(|m| m.level)
    }

    fn top_level_of(&self, i: u32) -> Option<i32> {
        self.members[i as usize].as_deref().map(|m| m.top_level())
    }

    /// How many levels its threads have above its own.
    fn height_of(&self, i: u32) -> i32 {
        self.members[i as usize].as_deref().map_or(0, |m| m.top_level() - m.level)
    }

    fn let_run(&mut self, i: u32, now: u64, level: impl Fn(i32) -> i32) {
        self.read_again(i, now);
        let Some(m) = self.members[i as usize].as_deref_mut() else { return };
        // The process that demotes may have been killed before it reported that.
        m.reranked |= self.enforcing.was_interrupted() && m.run_mode != RunMode::Unparked;
        m.set_level(level(m.level));
        if m.run_mode != RunMode::Unparked {
            if !matches!(m.kind, MemberKind::Thread(_)) {
                m.periods.started(now);
            }
            m.ran_at = now;
            m.unpark();
        } else if m.periods.latest().started == NEVER {
            // Not parked since its last job: it continues at once.
            if let MemberKind::Thread(control) = &m.kind {
                if control.started() == 0 && !control.is_inside() {
                    control.stamp_now(now);
                }
            } else {
                m.periods.started(now);
            }
        }
    }

    /// Stops reading the clocks of members at rest.
    pub(crate) fn retain_moving(&mut self) {
        let Engine { members, moving, .. } = self;
        moving.retain(|&i| {
            let Some(m) = members[i as usize].as_deref_mut() else { return false };
            m.moving = !m.at_rest();
            if !m.moving {
                m.ran = 0;
            }
            m.moving
        });
    }
}
