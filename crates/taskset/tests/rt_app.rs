//! What becomes of rt-app's threads, and what is said of the rest.

use punctual_taskset::{Arrival, Body, Loaded, Overrides, Overrun, Spin, Step, TaskSpec};

fn load(text: &str) -> Loaded {
    Loaded::parse(text, "x.json", &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The one task of a file with one thread, which has the CPU 0 and SCHED_FIFO unless it says more.
fn thread(body: &str) -> (TaskSpec, Vec<String>) {
    let text = format!(
        "{{ \"global\" : {{ \"default_policy\" : \"SCHED_FIFO\" }},\n\
         \"tasks\" : {{ \"a\" : {{ \"cpus\" : [0], {body} }} }} }}"
    );
    let mut loaded = load(&text);
    assert_eq!(loaded.set.tasks.len(), 1, "{body}");
    (loaded.set.tasks.remove(0), loaded.unrepresented)
}

const MS: u64 = 1_000_000;

#[test]
fn run_and_an_absolute_timer_are_a_periodic_task_and_nothing_is_lost() {
    let (task, losses) = thread(
        r#""run" : 2000, "timer" : { "ref" : "unique", "period" : 10000, "mode" : "absolute" }"#,
    );
    let mut wanted = TaskSpec::new("a", 10 * MS, 2_200_000, Body::Spin(Spin::For(2 * MS)));
    wanted.priority = 10;
    wanted.line = Some(2);
    assert_eq!(task, wanted);
    assert_eq!(losses, Vec::<String>::new());
}

#[test]
fn a_relative_timer_does_not_catch_up() {
    let (task, _) = thread(r#""run" : 2000, "timer" : { "ref" : "unique", "period" : 10000 }"#);
    assert_eq!(task.overrun, Overrun::Skip);
}

#[test]
fn a_budget_is_a_tenth_or_50_us_above_the_execution_and_no_more_than_the_period() {
    let budget = |run: u32| {
        thread(&format!(r#""run" : {run}, "timer" : {{ "ref" : "unique", "period" : 10000 }}"#))
            .0
            .budget
    };
    assert_eq!(budget(100), 150_000);
    assert_eq!(budget(5000), 5_500_000);
    assert_eq!(budget(9999), 10 * MS);
}

#[test]
fn a_sleep_after_the_run_gives_the_period_and_is_named() {
    let (task, losses) = thread(r#""run" : 2000, "sleep" : 8000"#);
    assert_eq!((task.period, task.overrun), (10 * MS, Overrun::Skip));
    assert_eq!(task.body, Body::Spin(Spin::For(2 * MS)));
    assert_eq!(
        losses,
        ["tasks.a: a sleep counts from the end of a job; here its releases have fixed times"]
    );
}

#[test]
fn a_sleep_between_runs_is_a_step_and_one_before_a_timer_is_not() {
    let (task, _) = thread(
        r#""run" : 1000, "runtime" : 500, "sleep" : 2000, "run1" : 300, "sleep1" : 100,
           "timer" : { "ref" : "unique", "period" : 10000 }"#,
    );
    let spin = |ns| Step::Spin(Spin::For(ns));
    assert_eq!(task.body, Body::Steps(vec![spin(1_500_000), Step::Sleep(2 * MS), spin(300_000)]));
    assert_eq!(task.budget, 1_980_000);
}

/// Tutorial, "unique" timer device: light and heavy phases with one timer.
#[test]
fn phases_with_one_timer_are_jobs_of_different_lengths() {
    let phases = r#""phases" : {
        "light" : { "loop" : 2, "run" : 1000, "timer" : { "ref" : "unique", "period" : 30000 } },
        "heavy" : { "loop" : 3, "run" : 4000, "timer" : { "ref" : "unique", "period" : 30000 } }
    }"#;
    let (task, _) = thread(phases);
    assert_eq!(task.arrival, Arrival::Periodic);
    assert_eq!(task.body, Body::Spin(Spin::Recorded([1, 1, 4, 4, 4].map(|ms| ms * MS).to_vec())));
    assert_eq!((task.period, task.budget), (30 * MS, 4_400_000));

    let (task, _) = thread(&format!(r#""loop" : 1, "delay" : 500, {phases}"#));
    let times = [0, 30, 60, 90, 120].map(|ms| ms * MS + 500_000);
    assert_eq!((task.arrival, task.offset), (Arrival::List(times.to_vec()), 0));
}

#[test]
fn timers_of_different_periods_end_with_the_loops_or_with_the_duration() {
    let phases = r#""phases" : {
        "light" : { "run" : 1000, "timer" : { "ref" : "uniqueA", "period" : 10000 } },
        "heavy" : { "run" : 4000, "timer" : { "ref" : "uniqueB", "period" : 40000 } } }"#;
    let (task, _) = thread(&format!(r#""loop" : 2, {phases}"#));
    assert_eq!(task.arrival, Arrival::List([0, 10, 50, 60].map(|ms| ms * MS).to_vec()));
    assert_eq!(task.period, 10 * MS);

    let endless = |duration: i32| {
        format!(
            r#"{{ "global" : {{ "duration" : {duration} }}, "tasks" : {{ "a" : {{ {phases} }},
                 "b" : {{ "run" : 1, "sleep" : 999 }} }} }}"#
        )
    };
    let loaded = load(&endless(1));
    let Arrival::List(times) = &loaded.set.tasks[0].arrival else { panic!() };
    assert_eq!((times.len(), times[39]), (40, 960 * MS));
    let loaded = load(&endless(-1));
    assert_eq!(loaded.set.tasks.len(), 1);
    let said = "tasks.a: left out: its jobs come at unequal distances without end";
    assert!(loaded.unrepresented.iter().any(|loss| loss == said), "{:?}", loaded.unrepresented);
}

#[test]
fn a_sched_deadline_thread_is_its_reservation_under_edf() {
    let (task, losses) = thread(
        r#""policy" : "SCHED_DEADLINE",
           "dl-runtime" : 2000, "dl-period" : 10000, "dl-deadline" : 5000,
           "run" : 1500, "yield" : """#,
    );
    assert_eq!((task.budget, task.deadline, task.period), (2 * MS, 5 * MS, 10 * MS));
    assert_eq!(task.body, Body::Spin(Spin::For(1_500_000)));
    assert_eq!(losses, Vec::<String>::new());

    // One that never waits uses its whole runtime.
    let (task, _) = thread(
        r#""policy" : "SCHED_DEADLINE", "dl-runtime" : 2000, "dl-period" : 10000, "run" : 1500"#,
    );
    assert_eq!((task.body, task.deadline), (Body::Spin(Spin::Forever), 10 * MS));
}

#[test]
fn instances_are_tasks_of_their_own() {
    let text = r#"{ "tasks" : { "a" : { "instance" : 3, "cpus" : [2], "run" : 1, "sleep" : 999 },
        "b" : { "instance" : 0, "run" : 1, "sleep" : 999 } } }"#;
    let loaded = load(text);
    let names: Vec<&str> = loaded.set.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a-0", "a-1", "a-2"]);
    assert_eq!(loaded.set.cpus(), [2]);
    assert!(loaded
        .unrepresented
        .contains(&"tasks.b: left out: it has no instance, and no task forks it".to_owned()));
}

#[test]
fn fixed_priorities_serve_fifo_above_the_ordinary_classes() {
    let text = r#"{ "tasks" : {
        "rr"    : { "cpus" : [0], "policy" : "SCHED_RR", "priority" : 30,
                    "run" : 1, "sleep" : 999 },
        "fifo"  : { "cpus" : [0], "policy" : "SCHED_FIFO", "run" : 1, "sleep" : 999 },
        "nice"  : { "cpus" : [0], "priority" : -20, "run" : 1, "sleep" : 999 },
        "other" : { "cpus" : [0], "priority" : 19, "run" : 1, "sleep" : 999 },
        "idle"  : { "cpus" : [0], "policy" : "SCHED_IDLE", "run" : 1, "sleep" : 999 } } }"#;
    let loaded = load(text);
    assert_eq!(loaded.set.policy.name, "fp");
    let priorities: Vec<i64> = loaded.set.tasks.iter().map(|task| task.priority).collect();
    assert_eq!(priorities, [30, 10, -1, -40, -41]);
    let named =
        |path: &str| loaded.unrepresented.iter().filter(|loss| loss.starts_with(path)).count();
    assert_eq!(
        (named("tasks.rr.policy"), named("tasks.fifo.policy"), named("tasks.idle.policy")),
        (1, 0, 1)
    );
    assert_eq!(named("tasks.nice (global.default_policy)"), 1);
}

/// Each kind of thing that has no counterpart, with its path.
#[test]
fn what_cannot_be_represented_is_named() {
    let text = r#"{
        "global" : { "calibration" : 20, "pi_enabled" : true, "lock_pages" : false,
            "logdir" : "./", "log_basename" : "x", "log_size" : "file", "ftrace" : "main",
            "gnuplot" : true, "cumulative_slack" : true, "frag" : 1,
            "io_device" : "/dev/null", "mem_buffer_size" : 4096, "default_policy" : "SCHED_FIFO" },
        "resources" : { "m" : { "type" : "mutex" } },
        "tasks" : {
            "a" : {
                "cpus" : [0, 1], "util_min" : 1, "util_max" : 2, "nodes_membind" : [0],
                "taskgroup" : "/tg", "colour" : 3,
                "dl-runtime" : 1000,
                "lock" : "m", "unlock" : "m", "wait" : { "ref" : "c", "mutex" : "m" },
                "signal" : "c", "broad" : "c",
                "sync" : { "ref" : "c", "mutex" : "m" }, "barrier" : "b", "suspend" : "a",
                "resume" : "b", "mem" : 1,
                "iorun" : 1, "memrun" : { "type" : "read" }, "yield" : "", "fork" : "b",
                "sem_post" : "s",
                "sem_wait" : "s", "run" : 100,
                "timer" : { "ref" : "tick", "period" : 1000, "jitter" : 3 }
            },
            "b" : { "cpus" : [0], "run" : 9, "phases" : {
                "p" : { "cpus" : [1], "run" : 100, "timer" : { "ref" : "tick", "period" : 1000 } }
            } },
            "c" : { "run" : 100 }
        },
        "comment" : ""
    }"#;
    let loaded = load(text);
    let paths: Vec<&str> =
        loaded.unrepresented.iter().map(|loss| loss.split(": ").next().unwrap()).collect();
    let events = [
        "lock", "unlock", "wait", "signal", "broad", "sync", "barrier", "suspend", "resume", "mem",
        "iorun", "memrun", "yield", "fork", "sem_post", "sem_wait",
    ];
    let mut wanted: Vec<String> =
        ["comment", "global.calibration", "global.pi_enabled", "global.lock_pages"]
            .into_iter()
            .chain([
                "global.logdir",
                "global.log_basename",
                "global.log_size",
                "global.ftrace",
                "global.gnuplot",
            ])
            .chain([
                "global.cumulative_slack",
                "global.frag",
                "tasks.a.cpus",
                "tasks.a.util_min",
                "tasks.a.util_max",
            ])
            .chain([
                "tasks.a.nodes_membind",
                "tasks.a.taskgroup",
                "tasks.a.colour",
                "tasks.a.dl-runtime",
            ])
            .map(str::to_owned)
            .collect();
    wanted.extend(events.map(|event| format!("tasks.a.{event}")));
    wanted.push("tasks.a.timer.jitter".to_owned());
    let rest = [
        "tasks.b.run",
        "tasks.b.phases.p.cpus",
        "tasks.b.phases.p.timer.ref",
        "tasks.c",
        "tasks.c",
    ];
    wanted.extend(rest.map(str::to_owned));
    assert_eq!(paths, wanted);
    assert!(loaded.unrepresented.iter().all(|loss| loss.lines().count() == 1));
}

#[test]
fn loops_are_unrolled_within_limits() {
    let (task, losses) = thread(
        r#""loop" : 2000000000, "run" : 1, "timer" : { "ref" : "unique", "period" : 1000 }"#,
    );
    assert_eq!(task.arrival, Arrival::Periodic);
    assert_eq!(losses, ["tasks.a.loop: more than 100000 rounds never end"]);
    let (task, _) =
        thread(r#""loop" : 100000, "run" : 1, "timer" : { "ref" : "unique", "period" : 1000 }"#);
    let Arrival::List(times) = task.arrival else { panic!() };
    assert_eq!((times.len(), times[99_999]), (100_000, 99_999 * MS));

    let phase = r#" : { "loop" : 100000, "run" : 1, "run" : 1, "run" : 1, "sleep" : 1 }"#;
    let phases: Vec<String> = (0..100).map(|n| format!("\"p{n}\"{phase}")).collect();
    let text = format!(
        r#"{{ "tasks" : {{
            "a" : {{ "loop" : 100000, "phases" : {{ {} }} }},
            "b" : {{ "run" : 1, "sleep" : 999 }}
        }} }}"#,
        phases.join(", ")
    );
    let said = "tasks.a: left out: its loops are too long to be unrolled".to_owned();
    assert!(load(&text).unrepresented.contains(&said));
}

#[test]
fn an_endless_phase_is_all_that_is_kept() {
    let (task, losses) = thread(
        r#""phases" : { "first" : { "run" : 7, "timer" : { "ref" : "unique", "period" : 1000 } },
           "ever" : { "loop" : -1, "run" : 300, "timer" : { "ref" : "unique", "period" : 2000 } }
        }"#,
    );
    assert_eq!((task.period, task.body), (2 * MS, Body::Spin(Spin::For(300_000))));
    assert_eq!(losses, ["tasks.a: the phases beside the endless one are left out"]);
}
