//! `trace export`: what is drawn is what happened, in formats that others read.

use crate::perfetto::{decode, instants, slices, Event, COUNTER};
use crate::{json, punctual, records_at, simulated, text, trace, Scratch, FITS, OVERRUNS};

const MS: u64 = 1_000_000;

fn exported(scratch: &Scratch, set: &str) -> (Vec<Event>, serde_json::Value) {
    let (file, results) = simulated(scratch, set);
    let output = trace(&["export", &file]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let picture = std::fs::read(format!("{file}.pftrace")).expect("it was written");
    (decode(&picture), results)
}

#[test]
fn jobs_execution_and_deadlines_are_drawn_where_they_were() {
    let scratch = Scratch::new();
    let (events, _) = exported(&scratch, FITS);
    // EDF by hand; at 30 ms both have the same deadline, and `long` is not preempted.
    let on_cpu: Vec<_> = slices(&events, "CPU 0 (sim host, edf)");
    let expected: Vec<_> = [
        (0, 2, "short"),
        (2, 6, "long"),
        (6, 8, "short"),
        (8, 12, "long"),
        (12, 14, "short"),
        (14, 15, "long"),
        (15, 17, "short"),
        (17, 20, "long"),
        (20, 22, "short"),
        (22, 26, "long"),
        (26, 28, "short"),
        (28, 32, "long"),
        (32, 34, "short"),
    ]
    .map(|(from, to, name)| (from * MS, to * MS, name.to_owned()))
    .into();
    assert_eq!(on_cpu, expected);
    let jobs: Vec<_> =
        slices(&events, "long").iter().map(|&(from, to, _)| (from / MS, to / MS)).collect();
    assert_eq!(jobs[..5], [(0, 6), (7, 12), (14, 20), (21, 26), (28, 32)]);
    let execution = slices(&events, "long/execution");
    assert_eq!(execution.iter().map(|(from, to, _)| to - from).sum::<u64>(), 5 * 4 * MS);
    let releases = instants(&events, "short", "release");
    assert_eq!(releases[..7], [0, 5, 10, 15, 20, 25, 30].map(|at| at * MS));
    assert_eq!(
        instants(&events, "short", "deadline")[..7],
        [5, 10, 15, 20, 25, 30, 35].map(|at| at * MS)
    );
    assert!(instants(&events, "short", "deadline missed").is_empty());
}

#[test]
fn a_flow_leads_from_each_release_to_where_it_executes_first() {
    let scratch = Scratch::new();
    let (events, _) = exported(&scratch, FITS);
    for (task, expected) in
        [("short", vec![0, 6, 12, 15, 20, 26, 32]), ("long", vec![2, 8, 14, 22, 28])]
    {
        let of = |track: String| events.iter().filter(move |event| event.track == track);
        let begun: Vec<_> =
            of(task.to_owned()).filter_map(|e| Some((e.begins_flow?, e.at))).collect();
        let ended: Vec<_> = of(format!("{task}/execution"))
            .filter_map(|e| Some((e.ends_flow?, e.at / MS)))
            .collect();
        assert_eq!(ended.iter().map(|&(_, at)| at).collect::<Vec<_>>(), expected, "{task}");
        let same = begun
            .iter()
            .zip(&ended)
            .all(|(begun, ended)| begun.0 == ended.0 && begun.1 / MS <= ended.1);
        assert!(same, "{begun:?} {ended:?}");
    }
}

#[test]
fn a_budget_goes_from_all_of_it_to_nothing() {
    let scratch = Scratch::new();
    let (events, _) = exported(&scratch, OVERRUNS);
    let of_wild =
        |event: &&Event| event.kind == COUNTER && event.track == "wild \"one\"/remaining budget";
    let values: Vec<_> =
        events.iter().filter(of_wild).map(|event| (event.at, event.value)).collect();
    assert_eq!(values[0], (0, MS as i64));
    assert!(values.contains(&(MS, 0)), "{values:?}");
    assert!(values.iter().all(|&(_, value)| (0..=MS as i64).contains(&value)));
}

#[test]
fn overruns_and_misses_are_those_of_the_results() {
    let scratch = Scratch::new();
    let (events, results) = exported(&scratch, OVERRUNS);
    for task in results["result"]["tasks"].as_array().expect("tasks") {
        let name = task["name"].as_str().expect("a name");
        let drawn = |what| instants(&events, name, what).len() as u64;
        assert_eq!(Some(drawn("deadline missed")), task["misses"].as_u64(), "{name}");
        assert_eq!(Some(drawn("overrun")), task["overruns"].as_u64(), "{name}");
        assert_eq!(name.starts_with("wild"), drawn("overrun") > 0, "{name}");
    }
}

#[test]
fn the_json_for_chrome_has_the_same() {
    let scratch = Scratch::new();
    let (events, _) = exported(&scratch, OVERRUNS);
    let (file, picture) = (scratch.path("t"), scratch.path("picture"));
    let output = trace(&["export", &file, "--format", "chrome", "-o", &picture]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document = std::fs::read(&picture).expect("it was written");
    let document: serde_json::Value = serde_json::from_slice(&document).expect("it is JSON");
    let document = document["traceEvents"].as_array().expect("events");
    let count = |phase: &str| document.iter().filter(|event| event["ph"] == phase).count();
    let of_kind = |kind: i32| events.iter().filter(|event| event.kind == kind).count();
    assert_eq!([count("X"), count("i"), count("C")], [of_kind(1), of_kind(3), of_kind(4)]);
    assert!(count("f") > 0 && count("s") >= count("f"));
    let wild = |event: &&serde_json::Value| {
        event["ph"] == "X" && event["pid"] == 2 && event["name"] == "wild \"one\""
    };
    // The rest of what its first job had no budget for.
    let second = document.iter().filter(wild).nth(1).expect("a second job");
    assert_eq!((second["ts"].as_f64(), second["dur"].as_f64()), (Some(4_000.0), Some(500.0)));
}

#[test]
fn the_traces_of_several_cpus_are_one_picture() {
    let scratch = Scratch::new();
    let set = "cpus = [0, 1]\ndomain = \"partitioned\"\npolicy = \"edf\"\nduration = \"20ms\"\n\
               [[task]]\nname = \"a\"\ncpu = 0\nperiod = \"5ms\"\nbudget = \"2ms\"\n\
               work = { spin = \"2ms\" }\n\
               [[task]]\nname = \"b\"\ncpu = 1\nperiod = \"5ms\"\nbudget = \"3ms\"\n\
               work = { spin = \"3ms\" }\n";
    let (file, _) = simulated(&scratch, set);
    let (first, second, picture) =
        (format!("{file}.cpu0"), format!("{file}.cpu1"), scratch.path("picture"));
    let output = trace(&["export", &first, &second, "-o", &picture]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let events = decode(&std::fs::read(&picture).expect("it was written"));
    for (cpu, task, ms) in [(0, "a", 2), (1, "b", 3)] {
        let drawn = slices(&events, &format!("CPU {cpu} (sim host, edf)"));
        assert!(
            drawn.iter().all(|(from, to, name)| name == task && to - from == ms * MS),
            "{drawn:?}"
        );
        assert_eq!(drawn.len(), 4);
    }
    let twice = trace(&["export", &first, &first, "-o", &picture]);
    assert_eq!(twice.status.code(), Some(2));
    assert!(text(&twice.stderr).contains("is of CPU 0, as one before it"), "{twice:?}");
}

#[test]
fn of_a_damaged_trace_what_stands_before_is_exported_and_the_damage_named() {
    let scratch = Scratch::new();
    let (file, _) = simulated(&scratch, FITS);
    let whole = std::fs::read(&file).expect("it was written");
    let middle = records_at(&whole) + 36 * 60;
    let mut changed = whole.clone();
    changed[middle + 5] ^= 1;
    for (bytes, cause) in [
        (&whole[..middle + 20], "cut short at record 60"),
        (&changed[..], "record 60 was changed since it was written"),
    ] {
        let damaged = scratch.file("damaged", bytes);
        let output = trace(&["export", &damaged, "--json"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let document = json(&output);
        assert_eq!(document["ok"], false);
        assert!(
            document["error"]["cause"].as_str().is_some_and(|found| found.contains(cause)),
            "{document}"
        );
        assert_eq!(document["result"]["export"]["traces"][0]["records"], 60);
        assert_eq!(document["result"]["export"]["traces"][0]["whole"], false);
        let events = decode(&std::fs::read(format!("{damaged}.pftrace")).expect("it was written"));
        assert!(!slices(&events, "short/execution").is_empty());
        let output = trace(&["export", &damaged]);
        assert!(
            text(&output.stdout).starts_with("Exported as far as it can be read: 60 records"),
            "{output:?}"
        );
        assert_eq!(text(&output.stderr).matches("punctual: ").count(), 1, "one error");
    }
}

#[test]
fn a_full_disk_is_one_error_in_each_format_and_a_trace_is_never_written_over() {
    let scratch = Scratch::new();
    let (file, _) = simulated(&scratch, FITS);
    let before = std::fs::read(&file).expect("it was written");
    let itself = trace(&["export", &file, "-o", &file]);
    assert_eq!(itself.status.code(), Some(2));
    assert!(text(&itself.stderr).contains("is the trace itself"), "{itself:?}");
    assert_eq!(std::fs::read(&file).expect("it is there"), before);
    for format in ["perfetto", "chrome"] {
        let full = trace(&["export", &file, "--format", format, "-o", "/dev/full"]);
        assert_eq!(full.status.code(), Some(4), "{full:?}");
        let error = text(&full.stderr);
        assert!(
            error.contains("/dev/full cannot be written, and is incomplete: No space left"),
            "{error}"
        );
        assert!(full.stdout.is_empty());
    }
}

#[test]
fn help_names_the_subcommands() {
    let help = text(&punctual(&["trace", "--help"]).stdout);
    assert!(help.contains("export") && help.contains("stats"), "{help}");
}
