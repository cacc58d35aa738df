//! What the traces of the figures' programs have to show (RED-Linux, section IV-E).

use punctual_test_support::judge_timing;
use punctual_trace::kind::event;
use punctual_trace::Trace;

use crate::traced_jobs::{ended_jobs, TracedJob};

/// ns in a ms.
const MS: u64 = 1_000_000;

/// The pairs of jobs that follow each other with these priorities.
fn pairs(jobs: &[TracedJob], priorities: (i64, i64)) -> impl Iterator<Item = [TracedJob; 2]> + '_ {
    let both = jobs.windows(2).map(|pair| [pair[0], pair[1]]);
    both.filter(move |pair| (pair[0].priority, pair[1].priority) == priorities)
}

/// Both are of one period. What ends when it is sent, by a program that is late, is not in the
/// trace, so that jobs of different periods may follow each other there.
fn within([first, second]: &[TracedJob; 2], period: u64) -> bool {
    second.start < first.start + period
}

/// The optional part has what the mandatory one left, in the same period, when that is over.
/// Returns how many mandatory parts completed whose optional parts executed.
fn is_imprecise(jobs: &[TracedJob], period: u64, budget: u64) -> usize {
    const HIGH: i64 = 3;
    const LOW: i64 = 1;
    let mut executed = 0;
    for [mandatory, optional] in pairs(jobs, (HIGH, LOW)).filter(|pair| within(pair, period)) {
        assert_eq!((mandatory.start, mandatory.finish), (optional.start, optional.finish));
        assert_eq!(mandatory.finish - mandatory.start, period);
        // Up to a twenty-fifth more settles what an earlier one lost to the dispatcher.
        let left = budget - mandatory.used.min(budget);
        assert!(optional.budget <= left * 26 / 25, "{mandatory:?} {optional:?}");
        let completed = mandatory.end == event::COMPLETED;
        executed += usize::from(completed && optional.used > 0);
    }
    for [optional, mandatory] in pairs(jobs, (LOW, HIGH)) {
        assert_eq!((mandatory.start - optional.start) % period, 0);
        assert!(mandatory.start > optional.start && mandatory.budget <= budget * 26 / 25);
    }
    executed
}

/// Figs. 3 and 4: how many optional parts executed on what the mandatory ones left.
pub fn figures_3_and_4(jobs: &[Vec<TracedJob>]) -> usize {
    assert_eq!(jobs.len(), 1, "one process");
    let executed = is_imprecise(&jobs[0], 10 * MS, 3 * MS);
    assert!(executed > 0, "{jobs:?}");
    // 20 rounds of 1 ms each.
    let all: u64 = jobs[0].iter().map(|job| job.used).sum();
    assert!(all >= 39 * MS, "{all}");
    executed
}

/// Two tasks by Fig. 4, and a job between their bands: mandatory parts come before other jobs, and
/// optional ones after them. How many optional parts executed.
pub fn bands(jobs: &[Vec<TracedJob>]) -> usize {
    assert_eq!(jobs.len(), 3, "two tasks and a job between the bands");
    // What was selected while what waited is checked with the reading of the trace.
    let imprecise = jobs.iter().filter(|jobs| jobs.iter().any(|job| job.priority == 3));
    let executed: Vec<usize> = imprecise.map(|jobs| is_imprecise(jobs, 20 * MS, 6 * MS)).collect();
    assert_eq!(executed.len(), 2);
    let all = executed.iter().sum();
    assert!(all > 0, "{executed:?}");
    all
}

/// Fig. 5: the promotion of what the low band did not complete. How many promoted jobs executed.
pub fn figure_5(jobs: &[Vec<TracedJob>]) -> usize {
    const LOW: i64 = 1;
    const HIGH: i64 = 3;
    let (period, promotion, budget) = (20 * MS, 10 * MS, 6 * MS);
    let dual = jobs.iter().find(|jobs| jobs.iter().any(|job| job.priority == LOW));
    let dual = dual.expect("a task of two priorities");
    let mut executed = 0;
    for [low, high] in pairs(dual, (LOW, HIGH)).filter(|pair| within(pair, period)) {
        assert_ne!(low.end, event::COMPLETED, "it has nothing left to promote");
        assert_eq!(low.finish, low.start + promotion);
        assert_eq!(high.start, low.finish, "it starts at the promotion");
        assert_eq!(high.finish, low.start + period);
        let left = budget - low.used.min(budget);
        assert!(high.budget <= left * 26 / 25, "{low:?} {high:?}");
        executed += usize::from(high.used > 0);
    }
    assert!(executed > 0, "{dual:?}");
    for pair in [(LOW, LOW), (HIGH, LOW)].iter().flat_map(|&p| pairs(dual, p)) {
        let begun = if pair[0].priority == HIGH { promotion } else { 0 };
        assert_eq!((pair[1].start + begun - pair[0].start) % period, 0, "{pair:?}");
    }
    executed
}

/// Figs. 6 and 7, as `gsi_groups.c` has them.
pub fn figures_6_and_7(trace: &Trace) {
    let jobs: Vec<TracedJob> = ended_jobs(trace, |_, _| {}).into_values().flatten().collect();
    println!("{jobs:?}");
    let job = |priority: i64, budget: u64| {
        let mut its = jobs.iter().filter(|job| (job.priority, job.budget) == (priority, budget));
        let its = (its.next(), its.next());
        let (Some(&job), None) = its else { panic!("{priority} {budget}: {its:?} of {jobs:?}") };
        job
    };
    // Fig. 7: J_0 has 30 ms for J_3. With the other 45 ms J_3 and J_4 execute all that they have,
    // and J_2 what is left.
    let (j2, j3, j4, other) = (job(7, 50 * MS), job(9, 40 * MS), job(8, 30 * MS), job(1, 5 * MS));
    assert_eq!([j3, j4, other].map(|job| job.end), [event::EXHAUSTED; 3], "{jobs:?}");
    assert!(other.at < j3.at, "the most important job waits while its budget group has nothing");
    assert!(j3.at < j4.at && j4.at < j2.at, "{jobs:?}");
    assert_eq!(j2.end, event::TASK_GONE);
    let of_the_group = j2.used + j3.used + j4.used;
    assert!(of_the_group >= 74 * MS, "{jobs:?}");
    // Fig. 6: the group's order is by finish, not by priority.
    let (early, late) = (job(1, 6 * MS), job(9, 6 * MS));
    assert_eq!([early, late].map(|job| job.end), [event::EXHAUSTED; 2], "{jobs:?}");
    assert!(early.at < late.at);
    let without_server = jobs.iter().filter(|job| job.priority == 0 && job.at < early.at);
    assert_eq!(without_server.count(), 2, "others execute while a group has no server job");
    judge_timing(|| {
        assert!(of_the_group < 76 * MS, "{jobs:?}");
        for job in [j3, j4, other, early, late] {
            assert!(job.used.abs_diff(job.budget) < MS / 2, "{jobs:?}");
        }
    });
}
