//! What people see. `cargo test -p punctual-report tables -- --nocapture` shows it.

use super::*;
use unicode_width::UnicodeWidthStr;

fn runs() -> Vec<Results> {
    let run = Run { machine: machine(), ..Run::new(Host::Deadline, "rm", &[1]) };
    let refused = Collector::new(run, Vec::new()).not_possible(
        "a SCHED_DEADLINE task cannot be pinned to CPU 1 (EPERM): its affinity must be the whole root domain",
        &["mkdir /sys/fs/cgroup/cpuset/punctual".to_owned()],
    );
    let mut fifo = rich(Host::Fifo, 400_000);
    fifo.load = Some(LoadResult { share_ppm: 50_000 });
    vec![rich(Host::User, 0), fifo, refused]
}

#[test]
fn tables_fit_the_width_they_are_given() {
    let mut results = rich(Host::User, 0);
    results
        .notes
        .push("a note that is long enough to be broken when the terminal is narrow, as this one may well be".into());
    results.dispatcher = Some(DispatcherStats {
        events: 5_500,
        handler_mean_ns: 2_310,
        handler_max_ns: 14_700,
        wakeup_latency_p50_ns: 18_100,
        wakeup_latency_p99_ns: 46_000,
        wakeup_latency_max_ns: 310_000,
        freezer_waits: 3,
        freezer_wait_max_ns: 12_400_000,
        cpu_ns: 76_000_000,
    });
    for width in [120, 100, 80, 60, 40] {
        let text = table(&results, width, false);
        println!("{text}");
        for line in text.lines() {
            assert!(line.width() <= width, "{} of {width}: {line}", line.width());
            assert_eq!(line, line.trim_end());
        }
        for task in &results.tasks {
            assert!(text.contains(&task.name));
        }
    }
}

#[test]
fn the_verdict_is_the_last_line() {
    let last = |results: &Results| table(results, 100, false).lines().last().unwrap().to_owned();
    assert_eq!(last(&rich(Host::User, 0)), "all deadlines met (2597 periods)");
    assert_eq!(last(&rich(Host::Fifo, 1_000)), "124 of 2597 periods missed their deadline: wild");
    assert!(last(&collector().snapshot()).starts_with("no whole period"));
    assert!(table(&rich(Host::User, 0), 100, true).contains("\x1b[32m"));
}

#[test]
fn live_is_small_and_constant_in_height() {
    let text = live(&rich(Host::User, 0));
    println!("{text}{}\n", plain_line(&rich(Host::User, 0)));
    assert_eq!(text.lines().count(), 5);
    assert_eq!(live(&collector().snapshot()).lines().count(), 3);
    assert!(text.lines().all(|line| line.width() <= 100));
}

#[test]
fn plain_line_is_one_line() {
    let line = plain_line(&rich(Host::Fifo, 1_000));
    assert!(!line.contains('\n') && line.contains("124 missed"), "{line}");
    assert_eq!(plain_line(&collector().snapshot()), "0.0 s: 0 periods, 0 missed");
}

#[test]
fn side_by_side_has_a_column_per_host_and_the_reasons() {
    let text = side_by_side(&runs());
    println!("{text}");
    assert!(text.lines().next().unwrap().contains("punctual"));
    assert!(text.contains("deadline: not run: a SCHED_DEADLINE task cannot be pinned"));
    assert!(text.contains("  mkdir /sys"));
    // Nobody can judge a command under SCHED_FIFO: 0 misses would be a lie.
    let player = text.lines().find(|line| line.contains("player")).unwrap();
    assert_eq!(player.split_whitespace().rev().take(3).collect::<Vec<_>>(), ["-", "-", "0"], "{player}");
    assert!(text.lines().all(|line| line.width() <= 120));
    assert_eq!(side_by_side(&[]), "");
}
