//! Figures of one task's periods.

use punctual_trace::{Period, NEVER};

/// Figures of some periods of one task. Times are ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// Periods that were reported.
    pub releases: u64,
    /// Deadlines that were missed.
    pub misses: u64,
    /// Periods in which it used up its budget, or reached its finish, before it was done.
    pub overruns: u64,
    /// What it executed per period.
    pub execution: Option<Percentiles>,
    /// From release to completion.
    pub response: Option<Percentiles>,
    /// From release to its first execution, where the host knows it.
    pub latency: Option<Percentiles>,
}

/// Median, 99th percentile and longest of some times, ns, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentiles {
    /// Half of them are at most this.
    pub p50: u64,
    /// 99 % of them are at most this.
    pub p99: u64,
    /// The longest.
    pub worst: u64,
}

impl Percentiles {
    /// `None` without times.
    fn of(times: impl Iterator<Item = u64>) -> Option<Percentiles> {
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
        (!times.is_empty()).then(|| Percentiles { p50: at(50), p99: at(99), worst: at(100) })
    }

    /// By name.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 3] {
        [("p50", self.p50), ("p99", self.p99), ("worst", self.worst)]
    }
}

impl Figures {
    pub(super) fn of(periods: &[&Period]) -> Figures {
        let count = |what: fn(&Period) -> bool| periods.iter().filter(|p| what(p)).count() as u64;
        let since = |at: fn(&Period) -> u64| {
            let come = periods.iter().filter(move |p| at(p) != NEVER);
            Percentiles::of(come.map(move |p| at(p).saturating_sub(p.release)))
        };
        Figures {
            releases: periods.len() as u64,
            misses: count(|p| p.miss),
            overruns: count(|p| p.overrun),
            execution: Percentiles::of(periods.iter().map(|p| p.received)),
            response: since(|p| p.completed),
            latency: since(|p| p.started),
        }
    }

    /// Counts by name.
    #[must_use]
    pub fn counts(&self) -> [(&'static str, u64); 3] {
        [("releases", self.releases), ("missed", self.misses), ("overruns", self.overruns)]
    }

    /// Times by name.
    #[must_use]
    pub fn times(&self) -> [(&'static str, Option<Percentiles>); 3] {
        [("execution", self.execution), ("response", self.response), ("latency", self.latency)]
    }

    /// The same counts, and times that are at most `tolerance`, ns, apart. What one host does not
    /// know is no difference.
    pub(super) fn is_same(&self, other: &Figures, tolerance: u64) -> bool {
        let near = |(a, b): (Option<Percentiles>, Option<Percentiles>)| match (a, b) {
            (Some(a), Some(b)) => {
                let pairs = a.named().into_iter().zip(b.named());
                pairs.map(|(a, b)| a.1.abs_diff(b.1)).all(|apart| apart <= tolerance)
            }
            _ => true,
        };
        let times = self.times().into_iter().zip(other.times());
        self.counts() == other.counts() && times.map(|(a, b)| (a.1, b.1)).all(near)
    }
}
