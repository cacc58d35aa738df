//! The collector against a recomputation that keeps everything and sorts.

use super::*;
use proptest::prelude::*;

fn any_period() -> impl Strategy<Value = (u64, Option<u64>, Option<u64>, bool, bool, bool, bool)> {
    let share = prop_oneof![4 => 90_000u64..110_000, 1 => 0u64..2_000_000];
    let time = || proptest::option::of(0u64..5_000_000);
    (share, time(), time(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>())
}

/// Nearest rank by definition: the smallest value that `percent` of all do not exceed.
fn nearest_rank(sorted: &[u64], percent: usize) -> u64 {
    *sorted
        .iter()
        .find(|value| {
            sorted.iter().filter(|other| other <= value).count() * 100 >= percent * sorted.len()
        })
        .unwrap()
}

fn close(got: u64, want: u64) -> bool {
    got.abs_diff(want) <= want / 100 + 1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn counts_are_equal_and_percentiles_close(
        list in proptest::collection::vec(any_period(), 2..120)
    ) {
        let mut c = collector();
        let mut kept = Vec::new();
        for (i, given) in list.iter().enumerate() {
            let mut p = period(i as u64);
            let (latency, response);
            let stamp = |offset: Option<u64>| offset.map_or(NEVER, |ns| p.release + ns);
            (p.received, latency, response, p.ready_throughout, p.woken_late, p.miss, p.overrun) =
                *given;
            (p.started, p.completed) = (stamp(latency), stamp(response));
            c.record(&p);
            kept.push(p);
        }
        let left_out = (kept[0].received as i64 - 100_000).clamp(0, 100_000);
        let kept = &kept[1..kept.len() - 1];
        let count = |test: &dyn Fn(&Period) -> bool| kept.iter().filter(|p| test(p)).count() as u64;
        let off = |p: &Period, percent: u64| p.received.abs_diff(100_000) > percent * 1_000;
        let judged = |p: &Period| p.ready_throughout && !p.woken_late;
        let results = c.snapshot();
        let t = &results.tasks[0];
        prop_assert_eq!(t.periods, kept.len() as u64);
        prop_assert_eq!(t.misses, count(&|p| p.miss));
        prop_assert_eq!(t.overruns, count(&|p| p.overrun));
        prop_assert_eq!(t.not_ready, count(&|p| !p.ready_throughout));
        let late = |p: &Period| p.ready_throughout && p.woken_late;
        prop_assert_eq!(t.late_wakeups.periods, count(&late));
        prop_assert_eq!(t.late_wakeups.off_5_percent, count(&|p| late(p) && off(p, 5)));
        prop_assert_eq!(t.received_ns, kept.iter().map(|p| p.received).sum::<u64>());
        let ready = || kept.iter().filter(|p| p.ready_throughout);
        let beyond = |p: &Period| (p.received as i64 - 100_000).min(100_000);
        let others = kept.iter().filter(|p| !p.ready_throughout);
        let others = others.map(beyond).sum::<i64>() + left_out;
        let received = ready().map(|p| p.received as i64).sum::<i64>();
        let lacks = ready().count() as i64 * 100_000 - received - others.max(0);
        let shortfall = (lacks - (ready().count() as i64 * 1_000).max(100_000)).max(0) as u64;
        prop_assert_eq!(t.shortfall_ns, shortfall);
        prop_assert_eq!(results.totals.short, u64::from(shortfall > 0));
        prop_assert_eq!(results.exit_code(), i32::from(count(&|p| p.miss) > 0 || shortfall > 0));

        let shares = kept.iter().filter(|p| judged(p)).map(|p| p.received * 10);
        let mut shares: Vec<u64> = shares.collect();
        shares.sort_unstable();
        prop_assert_eq!(t.budget_received.is_some(), !shares.is_empty());
        if let Some(b) = t.budget_received {
            prop_assert_eq!(b.periods, shares.len() as u64);
            prop_assert_eq!(b.off_1_percent, count(&|p| judged(p) && off(p, 1)));
            prop_assert_eq!(b.off_5_percent, count(&|p| judged(p) && off(p, 5)));
            let worst = shares.iter().map(|s| s.abs_diff(1_000_000)).max().unwrap();
            prop_assert_eq!(b.worst_ppm.abs_diff(1_000_000), worst);
            for (percent, got) in [(1, b.p1_ppm), (50, b.median_ppm), (99, b.p99_ppm)] {
                let want = nearest_rank(&shares, percent);
                prop_assert_eq!(got < 1_000_000, want < 1_000_000);
                let near = close(got.abs_diff(1_000_000), want.abs_diff(1_000_000));
                prop_assert!(near, "p{} {} for {}", percent, got, want);
            }
        }
        let latencies = kept.iter().filter(|p| p.started != NEVER).map(|p| p.started - p.release);
        let mut latencies: Vec<u64> = latencies.collect();
        latencies.sort_unstable();
        prop_assert_eq!(t.release_latency.is_some(), !latencies.is_empty());
        if let Some(l) = t.release_latency {
            prop_assert_eq!(l.count, latencies.len() as u64);
            prop_assert_eq!(l.worst_ns, *latencies.last().unwrap());
            prop_assert!(close(l.median_ns, nearest_rank(&latencies, 50)));
            prop_assert!(close(l.p99_ns, nearest_rank(&latencies, 99)));
        }
    }
}
