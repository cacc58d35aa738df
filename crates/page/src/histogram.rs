//! Distributions of times: logarithmic bins, and percentiles that are exact.

use serde::Serialize;

/// Bins in each decade.
const PER_DECADE: f64 = 20.0;

/// How often times were how long.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Histogram {
    /// The lower ends of the bins, ns, neighbours of a constant ratio; the last is the upper end.
    pub edges: Vec<f64>,
    /// How many times are in each bin, one fewer than the edges. 0 ns count as 1 ns.
    pub counts: Vec<u64>,
    /// Nearest ranks, ns.
    pub median: u64,
    pub p99: u64,
    pub p999: u64,
    pub worst: u64,
    /// How many there are.
    pub count: u64,
}

impl Histogram {
    /// Of these times, ns; `None` without any.
    pub fn of(mut times: Vec<u64>) -> Option<Histogram> {
        times.sort_unstable();
        let (&least, &worst) = (times.first()?, times.last()?);
        let bin = |ns: u64| ((ns.max(1) as f64).log10() * PER_DECADE).floor() as i64;
        let (first, last) = (bin(least), bin(worst));
        let mut counts = vec![0; (last - first + 1) as usize];
        times.iter().for_each(|&ns| counts[(bin(ns) - first) as usize] += 1);
        let edges = (first..=last + 1).map(|bin| 10_f64.powf(bin as f64 / PER_DECADE)).collect();
        let rank = |permille: usize| times[(times.len() * permille).div_ceil(1000).max(1) - 1];
        let (median, p99, p999) = (rank(500), rank(990), rank(999));
        Some(Histogram { edges, counts, median, p99, p999, worst, count: times.len() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_a_bin_and_percentiles_are_nearest_ranks() {
        let histogram = Histogram::of((0..=1000).collect()).expect("there are times");
        assert_eq!(histogram.counts.iter().sum::<u64>(), 1001);
        assert_eq!(histogram.edges.len(), histogram.counts.len() + 1);
        assert_eq!((histogram.median, histogram.p99, histogram.worst), (500, 990, 1000));
        assert_eq!(Histogram::of(Vec::new()), None);
    }
}
