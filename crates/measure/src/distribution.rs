//! Distributions of latencies in bounded memory.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A distribution of times, ns. Percentiles are nearest ranks, within 0.1 %; count, least, mean and
/// longest are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencySpread {
    /// How many were measured.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The arithmetic mean, rounded down.
    pub average_ns: u64,
    /// The middle one.
    pub p50_ns: u64,
    /// Ninety-nine in a hundred took this or less.
    pub p99_ns: u64,
    /// 999 in a thousand took this or less.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl LatencySpread {
    /// Names of its figures, as requirements write them.
    pub const FIGURES: [&'static str; 6] = ["p99", "p99.9", "p50", "min", "average", "max"];

    /// The figure of this name, ns; `None` if there is none.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<u64> {
        Some(match name {
            "min" => self.min_ns,
            "average" => self.average_ns,
            "p50" => self.p50_ns,
            "p99" => self.p99_ns,
            "p99.9" => self.p999_ns,
            "max" => self.max_ns,
            _ => return None,
        })
    }
}

/// Times in ns, as they come.
#[derive(Debug, Clone)]
pub struct Distribution {
    histogram: Histogram<u64>,
    least: u64,
    most: u64,
    sum: u128,
}

/// 18 minutes in ns: beyond it percentiles are equal.
const LIMIT: u64 = 1 << 40;

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution::new()
    }
}

impl Distribution {
    /// Nothing yet.
    ///
    /// # Panics
    /// Never: three digits are permitted.
    #[must_use]
    pub fn new() -> Distribution {
        let mut histogram = Histogram::new(3).expect("3 is a permitted number of digits");
        histogram.auto(true);
        Distribution { histogram, least: u64::MAX, most: 0, sum: 0 }
    }

    /// One more.
    pub fn add(&mut self, ns: u64) {
        // It grows by itself up to LIMIT.
        let _ = self.histogram.record(ns.min(LIMIT));
        self.least = self.least.min(ns);
        self.most = self.most.max(ns);
        self.sum += u128::from(ns);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// What they make; `None` without any.
    #[must_use]
    pub fn spread(&self) -> Option<LatencySpread> {
        let count = self.count();
        (count > 0).then(|| LatencySpread {
            count,
            min_ns: self.least,
            average_ns: u64::try_from(self.sum / u128::from(count)).unwrap_or(u64::MAX),
            p50_ns: self.per_mille(500),
            p99_ns: self.per_mille(990),
            p999_ns: self.per_mille(999),
            max_ns: self.most,
        })
    }

    /// The nearest-rank percentile, in thousandths.
    fn per_mille(&self, share: u128) -> u64 {
        let rank = (u128::from(self.count()) * share).div_ceil(1_000).max(1);
        let mut seen = 0u128;
        for class in self.histogram.iter_recorded() {
            seen += u128::from(class.count_since_last_iteration());
            if seen >= rank {
                let middle = self.histogram.median_equivalent(class.value_iterated_to());
                return middle.clamp(self.least, self.most);
            }
        }
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_mean_and_ends_are_exact_for_small_times() {
        let mut times = Distribution::new();
        assert_eq!(times.spread(), None);
        (1..=1_000).for_each(|ns| times.add(ns));
        let want = LatencySpread {
            count: 1_000,
            min_ns: 1,
            average_ns: 500,
            p50_ns: 500,
            p99_ns: 990,
            p999_ns: 999,
            max_ns: 1_000,
        };
        assert_eq!(times.spread(), Some(want));
    }

    #[test]
    fn one_late_wake_up_in_two_thousand_shows_in_the_maximum_only() {
        let mut times = Distribution::new();
        (0..1_999).for_each(|_| times.add(10));
        times.add(5_000_000);
        let spread = times.spread().expect("it has 2,000");
        assert_eq!((spread.p999_ns, spread.max_ns), (10, 5_000_000));
        times.add(6_000_000);
        times.add(u64::MAX);
        let spread = times.spread().expect("it has 2,002");
        assert!(spread.p999_ns.abs_diff(5_000_000) < 5_000, "{spread:?}");
        assert_eq!(spread.max_ns, u64::MAX);
    }
}
