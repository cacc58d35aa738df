//! Proposals for recorded sequences, to the step.

use super::*;
use crate::jobs::jobs_of;

const MS: u64 = 1_000_000;

/// Jobs at these times, ms, that execute so long, us.
fn recorded(jobs: impl IntoIterator<Item = (u64, u64)>) -> (Vec<RecordedJob>, Vec<Burst>) {
    let burst = |(wake, us): (u64, u64)| Burst {
        wake: wake * MS,
        end: wake * MS + us * 1_000,
        executed: us * 1_000,
    };
    let bursts: Vec<Burst> = jobs.into_iter().map(burst).collect();
    (jobs_of(&bursts, 0), bursts)
}

fn all(
    (jobs, bursts): &(Vec<RecordedJob>, Vec<Burst>),
    deadline: u64,
    share_ppm: u64,
) -> Vec<Candidate> {
    let capacity = Capacity::THEORY;
    let wanted = Wanted { deadline: deadline * MS, share_ppm, capacity, policy: "edf".to_owned() };
    candidates(jobs, bursts, &wanted, &mut |_| {}).unwrap()
}

fn proposed(candidates: &[Candidate]) -> Option<Candidate> {
    candidates.iter().copied().find(|candidate| candidate.proposed)
}

#[test]
fn a_shorter_period_needs_less_for_a_program_in_any_phase() {
    // 8 ms in each 40. In the phase in which it wakes when the others have just begun, or shortly
    // before its budget expires, a long period costs most.
    let candidates = all(&recorded((0..100).map(|n| (n * 40, 8_000))), 40, 999_000);
    let rows: Vec<_> = candidates
        .iter()
        .map(|c| (c.period_ns / MS, c.budget_ns / 1_000, c.alone_ppm, c.beside_ppm, c.proposed))
        .collect();
    let all = Some(1_000_000);
    let want = [
        (40, 16_000, all, all, false),
        (20, 5_700, all, all, false),
        (10, 2_000, all, Some(0), false),
        (10, 2_400, all, all, true),
    ];
    assert_eq!(rows, want);
}

#[test]
fn a_smaller_share_of_jobs_needs_a_smaller_budget() {
    // Each fiftieth job executes 20 ms, the others 4 ms.
    let jobs = recorded((0..200).map(|n| (n * 40, if n % 50 == 49 { 20_000 } else { 4_000 })));
    let budget = |share| proposed(&all(&jobs, 40, share)).unwrap();
    let (most, all) = (budget(900_000), budget(1_000_000));
    assert!(most.share_ppm < all.share_ppm, "{most:?} {all:?}");
    assert!(most.beside_ppm >= Some(900_000) && all.beside_ppm == Some(1_000_000));
}

#[test]
fn what_not_even_all_of_a_cpu_can_do_has_no_proposal() {
    let candidates = all(&recorded((0..100).map(|n| (n * 40, 39_000))), 40, 999_000);
    assert_eq!(proposed(&candidates), None);
}

#[test]
fn one_of_the_candidates_is_proposed_and_they_are_in_order() {
    let jobs = recorded((0..200).map(|n| (n * 10, 1_000 + n % 10 * 100)));
    let candidates = all(&jobs, 10, 990_000);
    assert_eq!(candidates.iter().filter(|candidate| candidate.proposed).count(), 1);
    let order = |c: &Candidate| (std::cmp::Reverse(c.period_ns), c.budget_ns);
    assert!(candidates.is_sorted_by_key(order), "{candidates:#?}");
    assert!(candidates.len() >= 4, "{candidates:#?}");
    let longest = candidates.last().unwrap();
    assert_eq!(longest.alone_ppm, Some(1_000_000), "{candidates:#?}");
}

#[test]
fn budgets_are_round_and_shares_for_a_greedy_program_are_offered() {
    for (period, step) in
        [(MS, 10_000), (20 * MS, 100_000), (33_300_000, 100_000), (100 * MS, 500_000)]
    {
        assert_eq!(Search::step(period), step, "{period}");
    }
    let shares: Vec<u64> = shares().iter().map(|candidate| candidate.share_ppm).collect();
    assert_eq!(shares, [100_000, 250_000, 500_000, 750_000]);
}
