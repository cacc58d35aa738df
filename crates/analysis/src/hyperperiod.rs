//! After how long a set repeats: least common multiples of periods. Times are ns.

use punctual_taskset::{Arrival, ServerSpec, TaskSet, TaskSpec};

/// Why a set has no hyperperiod within a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HyperperiodTooLong<'a> {
    /// What has the first period with which the common multiple exceeds the limit: `task`, `group`
    /// or `budget group`.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Its period or cycle, ns.
    pub period: u64,
}

/// The least common multiple, in ns, of the periods of all tasks, the periods or cycles of all
/// groups and the periods of all budget groups; 1 for a set without any. Tasks with a list of
/// release times have no period and are left out; a period of 0 counts as 1.
///
/// # Errors
/// It is more than `limit` ns, or more than 64 bits hold.
pub fn hyperperiod(set: &TaskSet, limit: u64) -> Result<u64, HyperperiodTooLong<'_>> {
    let mut all = 1;
    for (kind, name, period) in periods(set) {
        let too_long = HyperperiodTooLong { kind, name, period };
        all = lcm(all, period).filter(|&all| all <= limit).ok_or(too_long)?;
    }
    Ok(all)
}

/// Everything in a set that repeats: its kind, its name, and its period or cycle in ns, at least 1.
pub fn periods(set: &TaskSet) -> impl Iterator<Item = (&'static str, &str, u64)> {
    let periodic = |t: &&TaskSpec| !matches!(t.arrival, Arrival::List(_));
    let tasks = set.tasks.iter().filter(periodic).map(|t| ("task", t.name.as_str(), t.period));
    let groups = set.groups.iter().map(|g| {
        let period = match &g.server {
            ServerSpec::Periodic { period, .. } => *period,
            ServerSpec::Windows { cycle, .. } => *cycle,
        };
        ("group", g.name.as_str(), period)
    });
    let budgets = set.budget_groups.iter().map(|b| ("budget group", b.name.as_str(), b.period));
    tasks.chain(groups).chain(budgets).map(|(kind, name, period)| (kind, name, period.max(1)))
}

/// The greatest common divisor; of a number and 0 that number.
#[must_use]
pub fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The least common multiple of two numbers, the first at least 1; `None` beyond 64 bits.
pub(crate) fn lcm(a: u64, b: u64) -> Option<u64> {
    (a / gcd(a, b)).checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_taskset::{Body, Spin};

    const MS: u64 = 1_000_000;

    fn example(path: &str) -> TaskSet {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        TaskSet::load(path).unwrap()
    }

    #[test]
    fn the_hyperperiod_is_of_tasks_groups_and_budget_groups() {
        let good = example("crates/taskset/tests/good/groups-and-budgets.toml");
        assert_eq!(hyperperiod(&good, u64::MAX), Ok(40 * MS));
        assert_eq!(hyperperiod(&example("examples/three-levels.toml"), u64::MAX), Ok(1200 * MS));
    }

    #[test]
    fn a_hyperperiod_beyond_the_limit_names_the_first_period_that_exceeds_it() {
        let mut set = example("crates/taskset/tests/good/least.toml");
        set.tasks[0].period = 6;
        assert_eq!(hyperperiod(&set, 6), Ok(6));
        // The largest prime below 2^61: 6 times it is below 2^64, 36 times is not.
        let prime = (1 << 61) - 1;
        let task = |name: &str, period| TaskSpec::new(name, period, 1, Body::Spin(Spin::Forever));
        set.tasks.push(task("prime", prime));
        assert_eq!(hyperperiod(&set, u64::MAX), Ok(6 * prime));
        let prime = HyperperiodTooLong { kind: "task", name: "prime", period: prime };
        assert_eq!(hyperperiod(&set, 1 << 62), Err(prime));
        set.tasks.push(task("beyond", 36));
        let beyond = HyperperiodTooLong { kind: "task", name: "beyond", period: 36 };
        assert_eq!(hyperperiod(&set, u64::MAX), Err(beyond));
    }
}
