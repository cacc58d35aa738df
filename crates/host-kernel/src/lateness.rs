//! From a release's due time to its task running, where nothing stood in between.

/// A sample of latenesses, ns.
#[derive(Default)]
pub(crate) struct Latenesses(Vec<u64>);

/// More are not kept: the figures stand by then.
const MOST: usize = 1 << 22;

/// From due to running, ns, over the releases that the dispatcher selected at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lateness {
    /// So many releases.
    pub releases: u64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// The latest.
    pub max: u64,
}

impl Lateness {
    /// Of two CPUs: all releases of both, each with the larger figure.
    pub(crate) fn worse(a: Option<Lateness>, b: Option<Lateness>) -> Option<Lateness> {
        let (Some(x), Some(y)) = (a, b) else { return a.or(b) };
        let releases = x.releases + y.releases;
        Some(Lateness {
            releases,
            p50: x.p50.max(y.p50),
            p99: x.p99.max(y.p99),
            max: x.max.max(y.max),
        })
    }
}

impl Latenesses {
    pub fn add(&mut self, ns: u64) {
        if self.0.len() < MOST {
            self.0.push(ns);
        }
    }

    /// By nearest rank; `None` of nothing.
    pub fn figures(&mut self) -> Option<Lateness> {
        self.0.sort_unstable();
        let rank = |percent: usize| {
            self.0.get((self.0.len() * percent).div_ceil(100).saturating_sub(1)).copied()
        };
        Some(Lateness {
            releases: self.0.len() as u64,
            p50: rank(50)?,
            p99: rank(99)?,
            max: rank(100)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut all = Latenesses::default();
        assert_eq!(all.figures(), None);
        (1..=200).rev().for_each(|n| all.add(n));
        assert_eq!(all.figures(), Some(Lateness { releases: 200, p50: 100, p99: 198, max: 200 }));
    }
}
