//! Distributions in bounded memory: a few ten KB per task however long it runs.

use super::TimeSpread;
use hdrhistogram::Histogram;

/// Whole of anything in parts per million.
pub const WHOLE: u64 = 1_000_000;

/// `part` per `whole` in parts per million, exact integers, rounded to nearest.
pub fn ppm(part: u64, whole: u64) -> u64 {
    ppm_wide(u128::from(part), u128::from(whole))
}

/// As [`ppm`] for sums; 0 of 0 is 0.
pub fn ppm_wide(part: u128, whole: u128) -> u64 {
    if whole == 0 {
        return 0;
    }
    u64::try_from((part * u128::from(WHOLE) + whole / 2) / whole).unwrap_or(u64::MAX)
}

/// Rank (from 1) of the nearest-rank percentile `percent` among `count` values.
fn rank(count: u64, percent: u64) -> u64 {
    u64::try_from((u128::from(count) * u128::from(percent)).div_ceil(100)).unwrap_or(count).max(1)
}

/// Two significant digits: within 1 %. It grows with the largest value; at its bound, some 40 bits,
/// it has 20 KB.
fn histogram() -> Histogram<u32> {
    let mut empty = Histogram::new(2).expect("2 is a permitted number of digits");
    empty.auto(true);
    empty
}

/// 18 minutes in ns, or a millionfold share: more than either is the end of the scale.
const LIMIT: u64 = 1 << 40;

fn put(into: &mut Histogram<u32>, value: u64) {
    // It grows by itself up to LIMIT; a count that is full stays full.
    let _ = into.record(value.min(LIMIT));
}

/// The value at a rank, as the middle of its class.
fn at(from: &Histogram<u32>, rank: u64) -> u64 {
    let mut seen = 0u64;
    for class in from.iter_recorded() {
        seen += class.count_since_last_iteration();
        if seen >= rank {
            return from.median_equivalent(class.value_iterated_to());
        }
    }
    0
}

/// Times in ns.
#[derive(Debug, Clone)]
pub struct Times {
    histogram: Histogram<u32>,
    worst: u64,
}

impl Times {
    /// Nothing yet.
    pub fn new() -> Times {
        Times { histogram: histogram(), worst: 0 }
    }

    /// One more.
    pub fn add(&mut self, ns: u64) {
        put(&mut self.histogram, ns);
        self.worst = self.worst.max(ns);
    }

    /// What they make; `None` without any.
    pub fn spread(&self) -> Option<TimeSpread> {
        let count = self.histogram.len();
        (count > 0).then(|| TimeSpread {
            count,
            median_ns: at(&self.histogram, rank(count, 50)).min(self.worst),
            p99_ns: at(&self.histogram, rank(count, 99)).min(self.worst),
            worst_ns: self.worst,
        })
    }
}

/// Shares in ppm, kept as distances below and above the whole. What matters are hundredths of a
/// percent around 100 %, and a histogram is finest near its zero.
#[derive(Debug, Clone)]
pub struct Shares {
    below: Histogram<u32>,
    above: Histogram<u32>,
    worst: u64,
    least: u64,
    most: u64,
}

impl Shares {
    /// Nothing yet.
    pub fn new() -> Shares {
        Shares { below: histogram(), above: histogram(), worst: WHOLE, least: u64::MAX, most: 0 }
    }

    /// One more.
    pub fn add(&mut self, share: u64) {
        if share < WHOLE {
            put(&mut self.below, WHOLE - share);
        } else {
            put(&mut self.above, share - WHOLE);
        }
        if share.abs_diff(WHOLE) > self.worst.abs_diff(WHOLE) {
            self.worst = share;
        }
        self.least = self.least.min(share);
        self.most = self.most.max(share);
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.below.len() + self.above.len()
    }

    /// The one furthest from the whole.
    pub fn worst(&self) -> u64 {
        self.worst
    }

    /// Nearest-rank percentile; the whole without any.
    pub fn percentile(&self, percent: u64) -> u64 {
        if self.len() == 0 {
            return WHOLE;
        }
        let (rank, below) = (rank(self.len(), percent), self.below.len());
        let share = if rank <= below {
            WHOLE.saturating_sub(at(&self.below, below - rank + 1))
        } else {
            WHOLE + at(&self.above, rank - below)
        };
        share.clamp(self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ppm_rounds_to_nearest_and_stands_zero() {
        assert_eq!(ppm(1, 3), 333_333);
        assert_eq!(ppm(2, 3), 666_667);
        assert_eq!(ppm(5, 0), 0);
        assert_eq!(ppm(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn ranks_are_the_nearest() {
        assert_eq!((rank(100, 1), rank(100, 50), rank(100, 99)), (1, 50, 99));
        assert_eq!((rank(1, 1), rank(1, 99), rank(101, 1)), (1, 1, 2));
    }

    #[test]
    fn shares_on_both_sides_by_hand() {
        let mut shares = Shares::new();
        // Ten values: three below, seven above or at the whole.
        for share in [
            900_000, 990_000, 999_960, 1_000_000, 1_000_010, 1_000_020, 1_000_030, 1_000_040,
            1_000_050, 1_300_000,
        ] {
            shares.add(share);
        }
        assert_eq!(shares.len(), 10);
        assert_eq!(shares.worst(), 1_300_000);
        assert_eq!(shares.percentile(1), 900_000);
        assert_eq!(shares.percentile(30), 999_960);
        assert_eq!(shares.percentile(50), 1_000_010);
        assert_eq!(shares.percentile(99), 1_300_000);
        let second = shares.percentile(20);
        assert!(second.abs_diff(990_000) <= 100, "{second}");
    }

    #[test]
    fn a_starved_task_is_at_zero() {
        let mut shares = Shares::new();
        (0..5).for_each(|_| shares.add(0));
        assert_eq!((shares.percentile(1), shares.percentile(99), shares.worst()), (0, 0, 0));
    }

    #[test]
    fn times_by_hand_and_memory_stays_small() {
        let mut times = Times::new();
        (1..=100).for_each(|i| times.add(i));
        times.add(u64::MAX);
        let spread = times.spread().unwrap();
        assert_eq!(
            (spread.count, spread.median_ns, spread.p99_ns, spread.worst_ns),
            (101, 51, 100, u64::MAX)
        );
        assert!(times.histogram.buckets() > 0 && times.histogram.distinct_values() * 4 < 20_000);
        assert_eq!(Times::new().spread(), None);
    }
}
