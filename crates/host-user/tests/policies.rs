//! Every policy and every kind of arrival, carried out with real threads.

use std::time::{Duration, Instant};

use punctual_diagnostic::Diagnostic;
use punctual_host_sim::{Options, Simulation, Watcher};
use punctual_host_user::{now, Host, HostOptions, Output, RunEvent};
use punctual_program_jobs::ProgramGroups;
use punctual_taskset::TaskSet;
use punctual_test_support::{judge_timing, LIVENESS};
use punctual_trace::{JobEnd, Period};

const MS: u64 = 1_000_000;
/// From handing over to the first release, ns.
const LEAD: u64 = 5 * MS;

/// Runs a set on the first CPU that is free; `None` where the machine does not permit it. Another
/// test on this machine may occupy the CPUs for a while.
fn carried_out(text: &str, duration: u64) -> Option<Vec<Period>> {
    let until = Instant::now() + LIVENESS;
    loop {
        for cpu in [1, 0] {
            let set = parsed(text, cpu);
            match once(&set, duration) {
                Ok(periods) => return Some(periods),
                Err(e)
                    if e.cause.contains("already has a dispatcher") && Instant::now() < until => {}
                Err(e) if e.cause.contains("CPU 1") && cpu == 1 => {}
                Err(e) => {
                    assert!(std::env::var_os("CI").is_none(), "cannot run here: {e}");
                    eprintln!("not run, for this is missing: {e}");
                    return None;
                }
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn parsed(text: &str, cpu: u32) -> TaskSet {
    TaskSet::parse(&format!("cpu = {cpu}\n{text}"), "test").expect("the set is right")
}

fn once(set: &TaskSet, duration: u64) -> Result<Vec<Period>, Diagnostic> {
    let options = HostOptions {
        set: set.clone(),
        room: 0,
        program_groups: ProgramGroups::default(),
        owner: "test".to_owned(),
        traces: Vec::new(),
        records: 0,
        confine: false,
    };
    let mut host = Host::start(&options)?;
    for (index, spec) in set.tasks.iter().enumerate() {
        host.add_spec(index as u32, spec, false, Output::Nowhere)?;
    }
    let origin = now() + LEAD;
    host.begin(origin)?;
    let mut periods = Vec::new();
    let mut sink = |event| match event {
        RunEvent::Period { period, .. } => periods.push(period),
        RunEvent::Warning(text) => panic!("{text}"),
        RunEvent::PolicyStopped(stop) => panic!("{stop:?}"),
        RunEvent::Unreported { task, count } => {
            panic!("{count} periods of task {task} are unreported")
        }
        RunEvent::Ended { .. } | RunEvent::Executed { .. } => {}
    };
    while now() < origin + duration {
        std::thread::sleep(Duration::from_millis(25));
        host.housekeep(&mut sink);
    }
    let problems = host.finish(&mut sink).problems;
    assert!(problems.is_empty(), "{problems:?}");
    Ok(periods)
}

fn simulated(text: &str, duration: u64) -> Vec<Period> {
    struct All(Vec<Period>);
    impl Watcher for All {
        fn period(&mut self, period: &Period) {
            self.0.push(*period);
        }
    }
    let mut all = All(Vec::new());
    let simulation =
        Simulation::new(&parsed(text, 0), Options::default()).expect("the set is right");
    simulation.run(duration, &mut all).expect("it runs to its end");
    all.0
}

/// The first releases of a task, from the first one on.
fn releases(periods: &[Period], task: u32, most: usize) -> Vec<(u64, u64)> {
    let mine = periods.iter().filter(|p| p.task == task);
    let first = mine.clone().map(|p| p.release).min().unwrap_or(0);
    mine.map(|p| (p.number, p.release - first)).take(most).collect()
}

fn three_tasks(policy: &str) -> String {
    let policy = match policy {
        "objective" => "{ name = \"objective\", order = \"finish - budget\" }".to_owned(),
        name => format!("\"{name}\""),
    };
    format!(
        "policy = {policy}\n\
         [[task]]\nname = \"a\"\nperiod = \"5ms\"\nbudget = \"1ms\"\npriority = 3\n\
         work = {{ spin = \"500us\" }}\n{}[[task]]\nname = \"b\"\nperiod = \"10ms\"\n\
         budget = \"2ms\"\npriority = 2\nwork = {{ spin = \"1ms\" }}\n\
         [[task]]\nname = \"c\"\nperiod = \"20ms\"\nbudget = \"4ms\"\npriority = 1\n\
         work = {{ spin = \"3ms\" }}\n",
        if policy == "\"imprecise\"" { "mandatory = \"600us\"\n" } else { "" }
    )
}

#[test]
fn under_every_policy_each_release_is_carried_out() {
    for policy in punctual_policies::POLICIES.iter().filter(|policy| !policy.info.takes_weights) {
        let Some(periods) = carried_out(&three_tasks(policy.info.name), 600 * MS) else { return };
        for (task, work, about) in [(0, 500_000, 119), (1, MS, 59), (2, 3 * MS, 29)] {
            let mine: Vec<&Period> = periods.iter().filter(|p| p.task == task).collect();
            let done: Vec<_> = mine.iter().filter(|p| p.end == JobEnd::Completed).collect();
            assert!(
                !done.is_empty(),
                "{}: none of {} releases of task {task} is done",
                policy.info.name,
                mine.len()
            );
            judge_timing(|| {
                // The last one may not be reported yet.
                assert!(
                    mine.len() >= about,
                    "{}: {} releases of task {task}",
                    policy.info.name,
                    mine.len()
                );
                assert_eq!(done.len(), mine.len(), "{}: task {task}", policy.info.name);
            });
            // What a release did not get done in time, the next one ends with.
            let late = |p: &Period| {
                mine.iter().any(|q| q.number + 1 == p.number && q.end != JobEnd::Completed)
            };
            assert!(
                done.iter().all(|p| p.received >= work || late(p)),
                "{}: done with less than its work",
                policy.info.name
            );
        }
    }
}

/// A task of weight 3, one of weight 1, and one that sleeps most of the time.
#[test]
fn under_fair_queueing_tasks_share_their_group_by_weight() {
    for policy in ["wfq", "sfq"] {
        let text = format!(
            "policy = \"edf\"\n\
             [[task]]\nname = \"control\"\nperiod = \"5ms\"\nbudget = \"1ms\"\n\
             work = {{ spin = \"500us\" }}\n\
             [[group]]\nname = \"shared\"\npolicy = {{ name = \"{policy}\", quantum = \"1ms\" }}\n\
             period = \"10ms\"\nbudget = \"4ms\"\n\
             [[task]]\nname = \"three\"\ngroup = \"shared\"\nweight = 3\n\
             work = {{ spin = \"forever\" }}\n\
             [[task]]\nname = \"one\"\ngroup = \"shared\"\nweight = 1\n\
             work = {{ spin = \"forever\" }}\n\
             [[task]]\nname = \"sleeper\"\ngroup = \"shared\"\nweight = 1\n\
             work = {{ steps = [{{ spin = \"100us\" }}, {{ sleep = \"20ms\" }}] }}\n"
        );
        let Some(periods) = carried_out(&text, 600 * MS) else { return };
        let received = |periods: &[Period], task| -> u64 {
            periods.iter().filter(|p| p.task == task).map(|p| p.received).sum()
        };
        let simulated = simulated(&text, 600 * MS);
        for (of, exactly) in [(&simulated, true), (&periods, false)] {
            let [three, one, sleeper] = [1, 2, 3].map(|task| received(of, task));
            assert!(one > 0 && sleeper > 0, "{policy}: {one} and {sleeper} ns");
            let differ = || {
                // A quantum of each, that of the end being unknown, and what a switch costs.
                let within = if exactly { 4 * MS } else { 10 * MS };
                assert!(three.abs_diff(3 * one) <= within, "{policy}: {three} and {one} ns");
            };
            if exactly {
                differ();
            } else {
                judge_timing(|| {
                    differ();
                    let missed = of.iter().filter(|p| p.task == 0 && p.miss).count();
                    assert_eq!(missed, 0, "{policy}: the control task");
                });
            }
        }
    }
}

/// Requests that queue, and a periodic task beside them.
#[test]
fn under_every_kind_of_server_of_a_task_all_requests_are_served() {
    for (policy, server) in [
        ("edf", "soft_constant_bandwidth"),
        ("edf", "total_bandwidth"),
        ("edf", "constant_utilization"),
        ("rm", "sporadic"),
    ] {
        let text = format!(
            "policy = \"{policy}\"\n\
             [[task]]\nname = \"requests\"\nserver = \"{server}\"\nperiod = \"10ms\"\n\
             budget = \"2ms\"\n\
             arrival = [\"5ms\", \"5ms\", \"7ms\", \"60ms\", \"200ms\", \"250ms\"]\n\
             work = {{ spin = \"1ms\" }}\n\
             [[task]]\nname = \"beside\"\nperiod = \"5ms\"\nbudget = \"2ms\"\n\
             work = {{ spin = \"1ms\" }}\n"
        );
        let Some(periods) = carried_out(&text, 300 * MS) else { return };
        let served = |periods: &[Period]| {
            periods.iter().filter(|p| p.task == 0 && p.end == JobEnd::Completed).count()
        };
        assert_eq!(served(&simulated(&text, 300 * MS)), 6, "{server} in the simulator");
        judge_timing(|| {
            // This host reports a release when the next one begins: the last one never.
            assert_eq!(served(&periods), 5, "{server}: {periods:?}");
            let missed = periods.iter().filter(|p| p.task == 1 && p.miss).count();
            assert_eq!(missed, 0, "{server}: the task beside");
        });
    }
}

/// A task that always wants to execute takes what another one leaves of its budget.
#[test]
fn unused_budgets_are_reclaimed_and_the_task_that_leaves_them_misses_nothing() {
    let text = "policy = { name = \"edf\", reclaim = true }\n\
                [[task]]\nname = \"greedy\"\nperiod = \"10ms\"\nbudget = \"2ms\"\n\
                work = { spin = \"forever\" }\n\
                [[task]]\nname = \"modest\"\nperiod = \"20ms\"\nbudget = \"8ms\"\n\
                work = { spin = \"2ms\" }\n";
    let Some(periods) = carried_out(text, 700 * MS) else { return };
    let received = |periods: &[Period]| -> Vec<u64> {
        periods.iter().filter(|p| p.task == 0).map(|p| p.received).collect()
    };
    let expected = received(&simulated(text, 700 * MS));
    assert!(expected[0] < 3 * MS && expected[1] > 8 * MS, "{expected:?}");
    let mine: Vec<&Period> = periods.iter().filter(|p| p.task == 0).collect();
    assert!(mine.iter().all(|p| p.assigned >= 2 * MS), "{mine:?}");
    judge_timing(|| {
        // In every other period both are released: what the rules of one period give.
        let mean = |all: &[u64]| all.iter().sum::<u64>() / all.len() as u64;
        let (got, want) = (mean(&received(&periods)), mean(&expected));
        assert!(got.abs_diff(want) < want / 10, "{got} ns in a period, {want} simulated");
        let missed = periods.iter().filter(|p| p.miss).count();
        assert_eq!(missed, 0, "{periods:?}");
    });
}

/// A task whose load steps up after 50 releases: its budget follows, down from the whole one and up
/// again, and the task beside it misses nothing.
#[test]
fn an_adaptive_budget_follows_a_load_that_steps() {
    let times = |count: usize, time: &str| vec![format!("\"{time}\""); count].join(", ");
    let text = format!(
        "policy = \"edf\"\n\
         [[task]]\nname = \"stepping\"\nserver = \"adaptive\"\nperiod = \"5ms\"\nbudget = \"3ms\"\n\
         work = {{ recorded = [{}, {}] }}\n\
         [[task]]\nname = \"beside\"\nperiod = \"10ms\"\nbudget = \"2ms\"\n\
         work = {{ spin = \"1ms\" }}\n",
        times(50, "400us"),
        times(200, "1600us")
    );
    let Some(periods) = carried_out(&text, 700 * MS) else { return };
    let mine: Vec<&Period> = periods.iter().filter(|p| p.task == 0).collect();
    let in_limits = mine.iter().all(|p| (300_000..=3 * MS).contains(&p.assigned));
    assert!(in_limits, "{mine:?}");
    judge_timing(|| {
        let budgets = |from: u64, to: u64| -> Vec<u64> {
            mine.iter().filter(|p| (from..to).contains(&p.number)).map(|p| p.assigned).collect()
        };
        assert_eq!(budgets(0, 31), [3 * MS; 31]);
        // The work and an eighth, and what the host's clocks and switches add.
        let (low, high) = (budgets(33, 50), budgets(102, 130));
        assert!(low.iter().all(|b| (450_000..600_000).contains(b)), "{low:?}");
        assert!(high.iter().all(|b| (1_800_000..2_200_000).contains(b)), "{high:?}");
        assert!(high.len() > 20, "{high:?}");
        let late = mine.iter().filter(|p| p.end != JobEnd::Completed).count();
        assert!(late <= 4, "{late} while the budget grows");
        let missed = periods.iter().filter(|p| p.task == 1 && p.miss).count();
        assert_eq!(missed, 0, "the task beside");
    });
}

#[test]
fn releases_at_random_and_listed_times_come_when_the_simulator_has_them() {
    let text = r#"
policy = "edf"
[[group]]
name = "polled"
period = "5ms"
budget = "1ms"
server = "polling"
policy = "fp"
[[task]]
name = "sporadic"
period = "4ms"
budget = "500us"
arrival = { sporadic = "12ms", seed = 3 }
work = { spin = "200us" }
[[task]]
name = "aperiodic"
group = "polled"
period = "5ms"
budget = "500us"
priority = 1
arrival = { aperiodic = "9ms", seed = 4 }
work = { spin = "200us" }
[[task]]
name = "listed"
group = "polled"
period = "5ms"
budget = "500us"
priority = 2
arrival = ["0ms", "7ms", "30ms", "31ms", "90ms", "200ms", "201ms"]
work = { spin = "200us" }
"#;
    let Some(periods) = carried_out(text, 400 * MS) else { return };
    let expected = simulated(text, 400 * MS);
    for (task, count) in [(0, 30), (1, 25), (2, 6)] {
        let (got, want) = (releases(&periods, task, count), releases(&expected, task, count));
        assert_eq!(want.len(), count, "task {task} in the simulator");
        judge_timing(|| assert_eq!(got, want, "task {task}"));
    }
}

#[test]
fn a_task_that_overruns_gets_its_signal_and_the_process_survives_it() {
    let text = "policy = \"rm\"\n[[task]]\nname = \"late\"\nperiod = \"5ms\"\n\
                budget = \"500us\"\n\
                overrun = \"signal\"\n\
                work = { spin = \"800us\" }\n";
    let Some(periods) = carried_out(text, 300 * MS) else { return };
    let overruns = periods.iter().filter(|p| p.overrun).count();
    judge_timing(|| assert!(overruns > 20, "{periods:?}"));
}
