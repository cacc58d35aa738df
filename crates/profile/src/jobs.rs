//! From bursts to jobs: bursts with only short pauses between them belong to one job, which waits
//! for a device or another program in its middle.

use std::ops::Range;

use crate::activity::Burst;

/// Bursts that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedJob {
    /// When the first burst began, ns.
    pub release: u64,
    /// What its bursts executed, ns.
    pub executed: u64,
    /// Which bursts.
    pub bursts: Range<usize>,
}

/// Jobs whose bursts are at most `gap` ns apart.
#[must_use]
pub fn jobs_of(bursts: &[Burst], gap: u64) -> Vec<RecordedJob> {
    let mut jobs: Vec<RecordedJob> = Vec::new();
    for (n, burst) in bursts.iter().enumerate() {
        let joins = n > 0 && burst.wake - bursts[n - 1].end <= gap;
        match jobs.last_mut() {
            Some(job) if joins => {
                job.executed += burst.executed;
                job.bursts.end = n + 1;
            }
            _ => jobs.push(RecordedJob {
                release: burst.wake,
                executed: burst.executed,
                bursts: n..n + 1,
            }),
        }
    }
    jobs
}

/// The most that bursts execute in any window of this length, ns; a burst counts where it begins.
#[must_use]
pub fn busiest_window(bursts: &[Burst], length: u64) -> u64 {
    let (mut first, mut sum, mut most) = (0, 0, 0);
    for burst in bursts {
        sum += burst.executed;
        while bursts[first].wake + length <= burst.wake {
            sum -= bursts[first].executed;
            first += 1;
        }
        most = most.max(sum);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURSTS: [Burst; 4] = [
        Burst { wake: 0, end: 10, executed: 10 },
        Burst { wake: 12, end: 15, executed: 3 },
        Burst { wake: 40, end: 44, executed: 4 },
        Burst { wake: 47, end: 49, executed: 2 },
    ];

    #[test]
    fn pauses_up_to_the_gap_join_bursts() {
        let of = |gap| {
            let jobs = jobs_of(&BURSTS, gap);
            jobs.iter().map(|job| (job.release, job.executed)).collect::<Vec<_>>()
        };
        assert_eq!(of(0), [(0, 10), (12, 3), (40, 4), (47, 2)]);
        assert_eq!(of(2), [(0, 13), (40, 4), (47, 2)]);
        assert_eq!(of(3), [(0, 13), (40, 6)]);
        assert_eq!(jobs_of(&BURSTS, 3)[1].bursts, 2..4);
        assert_eq!(of(25), [(0, 19)]);
        assert_eq!(jobs_of(&[], 3), []);
    }

    #[test]
    fn the_busiest_window_slides_over_all_bursts() {
        assert_eq!(busiest_window(&BURSTS, 12), 10);
        assert_eq!(busiest_window(&BURSTS, 13), 13);
        assert_eq!(busiest_window(&BURSTS, 36), 13);
        assert_eq!(busiest_window(&BURSTS, 48), 19);
        assert_eq!(busiest_window(&[], 1), 0);
    }
}
