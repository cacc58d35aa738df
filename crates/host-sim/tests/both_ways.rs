//! Two ways to carry out one policy: the dispatcher's own reservations, and jobs that the policy
//! adds one by one in answer to timers. What becomes of each release must be the same.

mod common;

use common::{run_with, set, Seen};
use punctual_host_sim::Options;
use punctual_taskset::TaskSet;

/// Numbers from a seed (xorshift64*): the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % n
    }
}

/// What a task of that budget does: it overruns at times, and sleeps at times.
fn random_work(random: &mut Random, period: u64, budget: u64) -> String {
    let spin = budget / 2 + random.below(budget);
    match random.below(3) {
        0 => format!("{{ spin = \"{spin}ns\" }}"),
        1 => format!(
            "{{ uniform = [\"{}ns\", \"{}ns\"], seed = {} }}",
            spin / 2,
            spin,
            random.below(1 << 40)
        ),
        _ => format!(
            "{{ steps = [{{ spin = \"{}ns\" }}, {{ sleep = \"{}ns\" }}, {{ spin = \"{}ns\" }}] }}",
            spin / 3 + 1,
            1 + random.below(period / 2),
            spin / 2 + 1
        ),
    }
}

fn random_overrun(random: &mut Random) -> &'static str {
    ["carry", "skip", "background", "signal"][random.below(4) as usize]
}

/// Two to five tasks, up to some 120 % of a CPU, with overruns and sleeps. Periods are odd numbers
/// of ns, so that two things seldom happen at one instant, where their order would be open.
fn random_set(random: &mut Random, policy: &str) -> TaskSet {
    let tasks: Vec<String> = (0..2 + random.below(4))
        .map(|_| {
            let period = 1_000_003 + 2 * random.below(5_000_000);
            let budget = period / 20 + random.below(period / 4);
            let deadline = budget + random.below(period - budget);
            let work = random_work(random, period, budget);
            let overrun = random_overrun(random);
            format!(
                "period = \"{period}ns\"; budget = \"{budget}ns\"; deadline = \"{deadline}ns\"; \
                 offset = \"{}ns\"; overrun = \"{overrun}\"; work = {work}",
                random.below(period)
            )
        })
        .collect();
    set(policy, &tasks.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Tasks for a time table that is found: one task's jobs are cut by those of shorter periods,
/// otherwise in each release of a cycle.
fn found(random: &mut Random, count: u64) -> Vec<String> {
    let shortest = 1_000_003 + 2 * random.below(500_000);
    (0..count)
        .map(|n| {
            let period = shortest * [1, 2, 3, 6][random.below(4) as usize];
            let budget = period / 40 + random.below(period * 3 / (4 * count));
            let (work, overrun) = (random_work(random, period, budget), random_overrun(random));
            let start = if n % 2 == 0 { 0 } else { random.below(period) };
            format!(
                "period = \"{period}ns\"; budget = \"{budget}ns\"; offset = \"{start}ns\"; overrun \
                 = \"{overrun}\"; work = {work}"
            )
        })
        .collect()
}

/// Tasks whose windows are given, in turn; what they need may be less than the windows, which gives
/// room for what is carried.
fn given(random: &mut Random, count: u64) -> Vec<String> {
    let turns = 1 + random.below(4);
    let length = 100_001 + 2 * random.below(100_000);
    let period = length * count * turns + random.below(500_000);
    (0..count)
        .map(|n| {
            let windows: Vec<String> = (0..turns)
                .map(|turn| {
                    format!(
                        "{{ start = \"{}ns\", length = \"{length}ns\" }}",
                        (turn * count + n) * length
                    )
                })
                .collect();
            let budget = length * turns - random.below(length * turns / 2);
            let (work, overrun) = (random_work(random, period, budget), random_overrun(random));
            format!(
                "period = \"{period}ns\"; budget = \"{budget}ns\"; windows = [{}]; overrun = \
                 \"{overrun}\"; work = {work}",
                windows.join(", ")
            )
        })
        .collect()
}

fn run(set: &TaskSet, job_by_job: bool) -> Seen {
    let mut options = Options::default();
    options.allocators.job_by_job = job_by_job;
    run_with(set, 200_000_000, options).0
}

#[test]
fn reservations_and_jobs_added_one_by_one_lead_to_the_same_releases_and_the_same_schedule() {
    let mut random = Random(0x5eed);
    let (mut releases, mut overruns, mut misses) = (0, 0, 0);
    for n in 0..300 {
        let policy = ["rm", "dm", "edf"][n % 3];
        let set = random_set(&mut random, policy);
        let (reserved, made) = (run(&set, false), run(&set, true));
        assert_eq!(reserved.intervals, made.intervals, "set {n}: {set:#?}");
        assert_eq!(reserved.periods, made.periods, "set {n}: {set:#?}");
        releases += reserved.periods.len();
        overruns += reserved.periods.iter().filter(|p| p.overrun).count();
        misses += reserved.misses().len();
    }
    assert!(
        releases > 30_000 && overruns > 1_000 && misses > 1_000,
        "{releases}, {overruns}, {misses}"
    );
}

#[test]
fn windows_made_by_the_dispatcher_and_one_by_one_lead_to_the_same_releases_and_the_same_schedule() {
    let mut random = Random(0x7ab1e);
    let (mut releases, mut overruns, mut pieces) = (0, 0, 0);
    for n in 0..200 {
        let count = 2 + random.below(3);
        let tasks = if n % 2 == 0 { found(&mut random, count) } else { given(&mut random, count) };
        let set = set("td", &tasks.iter().map(String::as_str).collect::<Vec<_>>());
        let (mut reserved, mut made) = (run(&set, false), run(&set, true));
        assert_eq!(reserved.intervals, made.intervals, "set {n}: {set:#?}");
        // The order of the reports of two periods that end at one instant is not specified.
        reserved.periods.sort_by_key(|p| (p.task, p.number));
        made.periods.sort_by_key(|p| (p.task, p.number));
        assert_eq!(reserved.periods, made.periods, "set {n}: {set:#?}");
        releases += reserved.periods.len();
        overruns += reserved.periods.iter().filter(|p| p.overrun).count();
        pieces += reserved.intervals.len();
    }
    assert!(
        releases > 20_000 && overruns > 1_000 && pieces > releases,
        "{releases}, {overruns}, {pieces}"
    );
}

#[test]
fn whatever_the_set_no_two_tasks_execute_at_once_and_no_release_more_than_its_budget() {
    let mut random = Random(0xb0a7);
    for n in 0..300 {
        let set = random_set(&mut random, ["rm", "dm", "edf"][n % 3]);
        let seen = run(&set, n % 2 == 0);
        assert!(seen.intervals.windows(2).all(|w| w[0].2 <= w[1].1), "set {n}: {set:#?}");
        let executed: u64 = seen.intervals.iter().map(|(_, from, to)| to - from).sum();
        let received: u64 = seen.periods.iter().map(|p| p.received).sum();
        assert_eq!(executed, received + seen.background, "set {n}: time executed is time charged");
        for p in &seen.periods {
            assert!(p.received <= p.assigned, "set {n}: {p:?}");
            assert!(p.started == u64::MAX || p.started >= p.release, "set {n}: {p:?}");
            assert!(p.completed == u64::MAX || p.completed <= p.deadline, "set {n}: {p:?}");
        }
        for task in 0..set.tasks.len() as u32 {
            let numbers: Vec<u64> =
                seen.periods.iter().filter(|p| p.task == task).map(|p| p.number).collect();
            assert!(
                numbers.iter().copied().eq(0..numbers.len() as u64),
                "set {n}: each release is reported once"
            );
        }
    }
}
