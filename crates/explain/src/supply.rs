//! When a group's server, or a budget group, had budget.

/// What grants budget to several tasks: a group's server, or a budget group's segments. A server
/// with windows has a reservation for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Supply {
    reservations: Vec<Reserved>,
    /// When its budget ended, ns, in order.
    ends: Vec<u64>,
}

/// A reservation: first replenishment, period, relative deadline, and budget, ns.
#[derive(Clone, Copy, Debug)]
struct Reserved {
    start: u64,
    period: u64,
    deadline: u64,
    budget: u64,
}

impl Reserved {
    /// The latest replenishment up to `at`, ns.
    fn latest(&self, at: u64) -> Option<u64> {
        Some(self.start + at.checked_sub(self.start)? / self.period * self.period)
    }
}

/// Why there is no budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Used up, or given up, since the last replenishment.
    Exhausted,
    /// Not replenished yet, or outside its windows.
    NotReplenished,
}

impl Supply {
    /// `budget` is replenished at `start` and each `period` ns from then on.
    pub fn reserve(&mut self, start: u64, period: u64, deadline: u64, budget: u64) {
        self.reservations.push(Reserved { start, period: period.max(1), deadline, budget });
    }

    /// How far `used`, ns, is from its budget: the server whose budget that was is the nearest.
    pub fn distance(&self, used: u64) -> u64 {
        self.reservations.iter().map(|r| r.budget.abs_diff(used)).min().unwrap_or(u64::MAX)
    }

    /// Its budget ended at this time, ns.
    pub fn ended(&mut self, at: u64) {
        self.ends.push(at);
    }

    /// The latest replenishment up to `at`, and its finish, ns.
    pub fn replenished(&self, at: u64) -> Option<(u64, u64)> {
        let all = self
            .reservations
            .iter()
            .filter_map(|r| r.latest(at).map(|release| (release, r.deadline)));
        all.max().map(|(release, deadline)| (release, release.saturating_add(deadline)))
    }

    /// What is in the way of executing on it at `at`; `None` if nothing is, or it is unknown.
    pub fn lack(&self, at: u64) -> Option<Lack> {
        if self.reservations.is_empty() {
            return None;
        }
        let Some((release, finish)) = self.replenished(at) else {
            return Some(Lack::NotReplenished);
        };
        // The end of the job before, at the instant of this replenishment, ends nothing of it.
        let first = self.ends.partition_point(|&end| end <= release);
        match self.ends.get(first) {
            Some(&end) if end <= at && end < finish => Some(Lack::Exhausted),
            _ if at >= finish => Some(Lack::NotReplenished),
            _ => None,
        }
    }

    /// The times in `from..to`, ns, at which the answer of [`lack`](Supply::lack) may change.
    pub fn changes(&self, from: u64, to: u64, out: &mut Vec<u64>) {
        let first = self.ends.partition_point(|&end| end < from);
        out.extend(self.ends[first..].iter().take_while(|&&end| end < to));
        for r in &self.reservations {
            let mut release = r.latest(from).unwrap_or(r.start);
            while release < to {
                out.extend([release, release.saturating_add(r.deadline)]);
                release = release.saturating_add(r.period);
            }
        }
    }
}
