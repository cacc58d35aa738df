//! What people see. `cargo test -p punctual-report tables -- --nocapture` shows it.

use super::*;
use unicode_width::UnicodeWidthStr;

fn runs() -> Vec<Results> {
    let run = Run { machine: machine().into(), ..Run::new(HostKind::Deadline, "rm", &[1]) };
    let refused = Collector::new(run, Vec::new()).not_possible(
        "a SCHED_DEADLINE task cannot be pinned to CPU 1 (EPERM): its affinity must be the whole \
         root domain",
        &["mkdir /sys/fs/cgroup/cpuset/punctual".to_owned()],
    );
    let mut fifo = rich(HostKind::Fifo, 400_000);
    fifo.load = Some(LoadResult { share_ppm: 50_000 });
    vec![rich(HostKind::User, 0), fifo, refused]
}

#[test]
fn tables_fit_the_width_they_are_given() {
    let mut results = rich(HostKind::User, 0);
    results.notes.push(
        "a note that is long enough to be broken when the terminal is narrow, as this one may well \
         be"
            .into(),
    );
    results.dispatcher = Some(DispatcherStats {
        events: 5_500,
        handler_mean_ns: 2_310,
        handler_max_ns: 14_700,
        wakeup_latency_p50_ns: 18_100,
        wakeup_latency_p99_ns: 46_000,
        wakeup_latency_max_ns: 310_000,
        freezer_waits: 3,
        freezer_wait_max_ns: 12_400_000,
        stopped_ns: 0,
        cpu_ns: 76_000_000,
    });
    for (width, wide) in
        [120, 100, 80, 60, 40].into_iter().flat_map(|width| [(width, false), (width, true)])
    {
        let text = if wide { shown_wide(&results, width) } else { shown(&results, width) };
        println!("{text}");
        for line in text.lines() {
            assert!(line.width() <= width, "{} of {width}: {line}", line.width());
            assert_eq!(line, line.trim_end());
        }
        for task in &results.tasks {
            assert!(text.contains(&task.name));
        }
        assert_eq!(
            text.contains("dispatcher:"),
            wide,
            "the dispatcher's figures are among all columns"
        );
    }
}

#[test]
fn the_verdict_is_the_first_line() {
    let first = |results: &Results| shown(results, 100).lines().next().unwrap().to_owned();
    assert_eq!(
        first(&rich(HostKind::User, 0)),
        "All deadlines met and all budgets kept: 3 tasks, 2,597 periods in 2.0 s."
    );
    assert_eq!(first(&rich(HostKind::User, 1_000)), "wild missed 124 of 499 deadlines.");
    assert!(first(&collector().snapshot()).starts_with("No whole period"));
    let color = table(&rich(HostKind::User, 0), &View { color: true, ..View::default() });
    let verdict = color.lines().next().unwrap();
    assert!(verdict.contains("\x1b[32m"), "green: {verdict:?}");
    assert_eq!(
        anstream::adapter::strip_str(&color).to_string(),
        shown(&rich(HostKind::User, 0), 100)
    );
}

#[test]
fn unreported_periods_are_in_the_verdict_and_in_a_warning() {
    let mut c = collector();
    (0..3).for_each(|n| c.record(&period(n)));
    c.record_unreported(0, 7);
    let text = shown(&c.snapshot(), 200);
    assert!(
        text.contains("warning: 7 periods are not in these figures") && text.contains("dropped: "),
        "{text}"
    );
    let verdict = "7 periods were not reported: whether their deadlines were met is not known.";
    assert_eq!(text.lines().next(), Some(verdict));
}

/// Of the periods of `wild` all but one are ready throughout; `player` never wants all of its
/// budget.
#[test]
fn a_row_has_what_was_received_of_a_budget_where_all_of_it_was_wanted() {
    let mut results = rich(HostKind::User, 0);
    let text = shown(&results, 100);
    let row = |text: &str, name: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("no {name}: {text}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let columns = "task periods missed used % periods received % worst %";
    let heads = row(&text, "task").join(" ");
    assert!(columns.split(' ').all(|word| heads.contains(word)), "{text}");
    assert_eq!(row(&text, "player")[6..11], ["0", "66.83", "0", "-", "-"], "{text}");
    let late = &mut results.tasks[0].late_wakeups;
    assert!(late.periods > 0 && late.worst_ppm.is_some());
    // The worst period counts, whether the dispatcher was in time or not.
    late.worst_ppm = Some(120_000);
    assert!(row(&shown(&results, 100), "servo").contains(&"12.00".to_owned()), "{text}");
}

#[test]
fn many_tasks_that_missed_are_added_up() {
    let run = Run { machine: machine().into(), ..Run::new(HostKind::User, "edf", &[1]) };
    let names = ["a", "b", "c", "d", "e"];
    let mut c = Collector::new(
        run,
        names.map(|n| TaskInfo::new(n, 1_000_000, 100_000, 1_000_000)).to_vec(),
    );
    for (n, task) in (0..2_000).flat_map(|n| (0..5).map(move |task| (n, task))) {
        c.record(&Period { task, miss: n % 100 < u64::from(task) * 10, ..period(n) });
    }
    c.finish(u64::MAX);
    let verdict =
        "e missed 799 of 1,999 deadlines, d 599 of 1,999, c 399 of 1,999, 1 other task 199.";
    assert_eq!(headline(&c.snapshot()), verdict);
}

#[test]
fn live_is_small_and_constant_in_height() {
    let text = live(&rich(HostKind::User, 0));
    println!("{text}{}\n", plain_line(&rich(HostKind::User, 0)));
    assert_eq!(text.lines().count(), 5);
    assert_eq!(live(&collector().snapshot()).lines().count(), 3);
    assert!(text.lines().all(|line| line.width() <= 100));
}

#[test]
fn plain_line_is_one_line() {
    let line = plain_line(&rich(HostKind::Fifo, 1_000));
    assert!(!line.contains('\n') && line.contains("124 missed"), "{line}");
    assert_eq!(plain_line(&collector().snapshot()), "0.0 s: 0 periods, 0 missed");
}

#[test]
fn side_by_side_has_a_column_per_host_and_the_reasons() {
    let text = side_by_side(&runs(), &View::default());
    println!("{text}");
    assert!(text.lines().next().unwrap().contains("punctual"));
    assert!(text.contains("deadline: mkdir /sys"));
    let verdicts = verdicts(&runs(), &View::default());
    println!("{verdicts}");
    assert!(
        verdicts.contains("deadline: It could not be run: a SCHED_DEADLINE task cannot be pinned")
    );
    // A command under SCHED_FIFO cannot be judged: 0 misses would be wrong.
    let player = text.lines().find(|line| line.contains("player")).unwrap();
    assert_eq!(
        player.split_whitespace().rev().take(3).collect::<Vec<_>>(),
        ["-", "-", "0"],
        "{player}"
    );
    assert!(text.lines().all(|line| line.width() <= 120));
    assert_eq!(side_by_side(&[], &View::default()), "");
}

#[test]
fn an_adaptive_budget_has_a_line_and_its_misses_are_named_in_the_verdict() {
    let mut results = rich(HostKind::User, 0);
    let budget = AdaptiveBudget {
        least_ns: 400_000,
        mean_ns: 1_500_000,
        most_ns: 3_000_000,
        last_ns: 600_000,
        exhausted: 2,
        misses: 1,
    };
    assert!(!shown(&results, 200).contains("adaptive"));
    let player = results.tasks.iter_mut().find(|t| t.name == "player").expect("it");
    (player.adaptive_budget, player.misses) = (Some(budget), 3);
    let periods = player.periods;
    results.totals = Totals::of(&results.tasks);
    let text = shown(&results, 200);
    let line =
        "adaptive budget of player: 1.5 ms on average, from 400 us to 3 ms, 600 us at last; \
                used up in 2 periods in which it was below 3 ms";
    assert!(text.contains(line), "{text}");
    let verdict =
        format!("player missed 3 of {periods} deadlines (1 when its adaptive budget was used up).");
    assert_eq!(headline(&results), verdict);
}

#[test]
fn what_a_task_reclaimed_has_a_line() {
    let mut results = rich(HostKind::User, 0);
    assert!(!shown(&results, 200).contains("reclaimed"));
    let player = results.tasks.iter_mut().find(|t| t.name == "player").expect("it");
    player.reclaimed_ns = Some(player.periods * 1_500_000);
    let text = shown(&results, 200);
    assert!(text.contains("player reclaimed 1.5 ms beyond its budget in each period"), "{text}");
}
