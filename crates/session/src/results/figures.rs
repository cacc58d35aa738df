//! The figures of one task: what its periods add up to.

use super::adaptive::Assigned;
use super::balance::Balance;
use super::collector::TaskInfo;
use super::spread::{ppm, ppm_wide, Shares, Times, WHOLE};
use super::{BudgetReceived, Late, TaskResult};
use punctual_trace::{Period, NEVER};

/// Sums and distributions of whole periods.
#[derive(Debug)]
pub(super) struct Figures {
    periods: u64,
    misses: u64,
    pub(super) unreported: u64,
    overruns: u64,
    received: u128,
    assigned: u128,
    budgets: Assigned,
    reclaimed: u128,
    not_ready: u64,
    pub(super) balance: Balance,
    off_1: u64,
    off_5: u64,
    late: u64,
    late_off_5: u64,
    /// The share of these that is furthest from all of the budget, ppm.
    late_worst: Option<u64>,
    shares: Shares,
    latency: Times,
    response: Times,
}

impl Figures {
    pub(super) fn new() -> Figures {
        Figures {
            periods: 0,
            misses: 0,
            unreported: 0,
            overruns: 0,
            received: 0,
            assigned: 0,
            budgets: Assigned::new(),
            reclaimed: 0,
            not_ready: 0,
            balance: Balance::default(),
            off_1: 0,
            off_5: 0,
            late: 0,
            late_off_5: 0,
            late_worst: None,
            shares: Shares::new(),
            latency: Times::new(),
            response: Times::new(),
        }
    }

    /// A whole period of a task with this `budget`, ns.
    pub(super) fn count(&mut self, p: &Period, budget: u64) {
        self.periods += 1;
        self.misses += u64::from(p.miss);
        self.overruns += u64::from(p.overrun);
        self.received += u128::from(p.received);
        self.assigned += u128::from(p.assigned);
        self.budgets.count(p, budget);
        self.reclaimed += u128::from(p.assigned.saturating_sub(budget));
        self.balance.count(p);
        if p.started != NEVER {
            self.latency.add(p.started.saturating_sub(p.release));
        }
        if p.completed != NEVER {
            self.response.add(p.completed.saturating_sub(p.release));
        }
        if !p.ready_throughout {
            self.not_ready += 1;
            return;
        }
        if p.woken_late {
            self.late += 1;
            self.late_off_5 += u64::from(off_by_more_than(p, 5));
            self.late_worst =
                self.late_worst.into_iter().chain([share(p)]).max_by_key(|s| s.abs_diff(WHOLE));
            return;
        }
        self.off_1 += u64::from(off_by_more_than(p, 1));
        self.off_5 += u64::from(off_by_more_than(p, 5));
        self.shares.add(share(p));
    }

    /// The results of the task that `info` describes.
    pub(super) fn result(&self, info: &TaskInfo) -> TaskResult {
        let f = self;
        let measured = f.shares.len();
        TaskResult {
            name: info.name.clone(),
            kind: info.kind,
            period_ns: info.period,
            budget_ns: info.budget,
            deadline_ns: info.deadline,
            periods: f.periods,
            misses: f.misses,
            misses_ppm: ppm(f.misses, f.periods),
            unreported: f.unreported,
            overruns: f.overruns,
            overruns_ppm: ppm(f.overruns, f.periods),
            received_ns: narrow(f.received),
            assigned_ns: narrow(f.assigned),
            adaptive_budget: f.budgets.result().filter(|_| info.adaptive),
            reclaimed_ns: info.reclaims.then(|| narrow(f.reclaimed)),
            not_ready: f.not_ready,
            long_run_ppm: f
                .balance
                .long_run()
                .map(|(received, assigned)| ppm_wide(received, assigned)),
            shortfall_ns: narrow(f.balance.shortfall(info.budget)),
            budget_received: (measured > 0).then(|| BudgetReceived {
                periods: measured,
                p1_ppm: f.shares.percentile(1),
                median_ppm: f.shares.percentile(50),
                p99_ppm: f.shares.percentile(99),
                worst_ppm: f.shares.worst(),
                off_1_percent: f.off_1,
                off_1_percent_ppm: ppm(f.off_1, measured),
                off_5_percent: f.off_5,
                off_5_percent_ppm: ppm(f.off_5, measured),
            }),
            late_wakeups: Late {
                periods: f.late,
                off_5_percent: f.late_off_5,
                off_5_percent_ppm: ppm(f.late_off_5, f.late),
                worst_ppm: f.late_worst,
            },
            release_latency: f.latency.spread(),
            response_time: f.response.spread(),
        }
    }
}

/// Received per assigned, ppm.
fn share(p: &Period) -> u64 {
    if p.assigned == 0 {
        return WHOLE;
    }
    ppm(p.received, p.assigned)
}

/// In exact integers, so that a period off by exactly 5 % is not off by more.
fn off_by_more_than(p: &Period, percent: u64) -> bool {
    u128::from(p.received.abs_diff(p.assigned)) * 100 > u128::from(p.assigned) * u128::from(percent)
}

/// 584 years of execution time are enough.
fn narrow(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}
