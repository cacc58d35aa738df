//! `trace cut`: a part is a trace, and says of its time what the whole says.

use crate::{json, punctual, simulated, text, trace, Scratch, FITS, OVERRUNS};

const MS: u64 = 1_000_000;

/// Executions (task, from, to), and periods (task, number).
type Schedule = (Vec<(u32, u64, u64)>, Vec<(u32, u64)>);

/// The schedule of a trace in `from..to`, ns.
fn schedule(file: &str, (from, to): (u64, u64)) -> Schedule {
    let bytes = std::fs::read(file).expect("it was written");
    let trace = punctual_trace::Trace::read(&mut &bytes[..]).expect("it is whole");
    let clipped = trace.intervals().into_iter().filter_map(|i| {
        let (from, to) = (i.from.max(from), i.to.min(to));
        (from < to).then_some((i.task, from, to))
    });
    let mut intervals: Vec<_> = clipped.collect();
    intervals.sort_by_key(|i| i.1);
    let periods = trace.periods().filter(|p| (from..to).contains(&p.release));
    (intervals, periods.map(|p| (p.task, p.number)).collect())
}

#[test]
fn a_part_has_the_schedule_of_its_time_and_no_other() {
    let scratch = Scratch::new();
    let (file, _) = simulated(&scratch, FITS);
    let part = scratch.path("part");
    // 8 to 12 ms: `long` executes at both ends of it.
    for (from, to) in [(9, 11), (5, 20), (0, 12), (14, 100)] {
        let (from_text, to_text) = (format!("{from}ms"), format!("{to}ms"));
        let output =
            trace(&["cut", &file, "--from", &from_text, "--to", &to_text, "-o", &part, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let span = (from * MS, to * MS);
        let (whole, cut) = (schedule(&file, span), schedule(&part, (0, u64::MAX)));
        assert_eq!(whole, cut, "{from} to {to} ms");
        let summary = &json(&output)["result"]["cut"];
        assert_eq!(summary["periods"], whole.1.len() as u64);
        assert_eq!(summary["can_be_replayed"], from == 0, "{summary}");
        let replay = punctual(&["sim", "--replay", &part]);
        match from {
            0 => assert_eq!(replay.status.code(), Some(0), "{replay:?}"),
            _ => {
                assert_eq!(replay.status.code(), Some(2), "{replay:?}");
                let error = text(&replay.stderr);
                assert!(error.contains("cut out of a longer run"), "{error}");
                assert_eq!(error.matches("punctual: ").count(), 1, "{error}");
            }
        }
        let stats = json(&trace(&["stats", &part, "--json"]));
        let executed = |task: u32| whole.0.iter().filter(|i| i.0 == task).map(|i| i.2 - i.1).sum();
        for task in 0..2u32 {
            let sum: u64 = executed(task);
            assert_eq!(stats["result"]["stats"]["tasks"][task as usize]["executed_ns"], sum);
        }
        let same = trace(&["diff", &file, &part]);
        assert_eq!(same.status.code(), Some(0), "{same:?}");
        assert_eq!(trace(&["export", &part]).status.code(), Some(0));
        let report = punctual(&["report", &part, "-o", &scratch.path("page.html")]);
        assert_eq!(report.status.code(), Some(0), "{report:?}");
    }
}

#[test]
fn a_part_of_a_part_is_that_part_of_the_whole() {
    let scratch = Scratch::new();
    let (file, _) = simulated(&scratch, FITS);
    let (once, twice, direct) =
        (scratch.path("once"), scratch.path("twice"), scratch.path("direct"));
    for (of, from, to, out) in [
        (&file, "5ms", "30ms", &once),
        (&once, "9ms", "21ms", &twice),
        (&file, "9ms", "21ms", &direct),
    ] {
        let output = trace(&["cut", of, "--from", from, "--to", to, "-o", out]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let all = (0, u64::MAX);
    assert_eq!(schedule(&twice, all), schedule(&direct, all));
}

/// Why deadlines were missed, without what names the file.
fn why(file: &str, task: &str, number: &str) -> serde_json::Value {
    let output = trace(&["why", file, task, number, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let mut document = json(&output)["result"].take();
    document["periods"] = 0.into();
    document
}

#[test]
fn around_a_miss_the_cause_is_the_same() {
    // Work that is carried over, servers that are exhausted, and a budget that overran before.
    let late = "cpu = 0\npolicy = \"edf\"\nduration = \"200ms\"\n[[task]]\nname = \"servo\"\n\
        period = \"10ms\"\nbudget = \"3ms\"\n\
            work = { recorded = [\"1ms\", \"5ms\", \"4ms\", \"2ms\", \"500us\"] }\n";
    let server = "cpu = 0\npolicy = \"edf\"\nduration = \"200ms\"\n\
        [[group]]\nname = \"media\"\npolicy = \"fp\"\nperiod = \"40ms\"\nbudget = \"6ms\"\n\
        [[task]]\nname = \"audio\"\ngroup = \"media\"\npriority = 2\nperiod = \"10ms\"\n\
            budget = \"2ms\"\nwork = { spin = \"2ms\" }\n\
        [[task]]\nname = \"video\"\ngroup = \"media\"\npriority = 1\nperiod = \"20ms\"\n\
            budget = \"2ms\"\nwork = { spin = \"2ms\" }\n";
    let skips =
        OVERRUNS.replace("8ms", "7ms").replace("duration = \"40ms\"", "duration = \"300ms\"");
    let scratch = Scratch::new();
    let part = scratch.path("part");
    for set in [late, server, &skips] {
        let (file, _) = simulated(&scratch, set);
        let all = json(&trace(&["why", &file, "--json"]));
        let misses = all["result"]["misses"].as_array().expect("misses").clone();
        assert!(misses.len() > 3, "{all}");
        for miss in misses {
            let (task, number) =
                (miss["task"].as_str().expect("a name"), miss["number"].to_string());
            let output = trace(&["cut", &file, "--around", task, &number, "-o", &part]);
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let (mut whole, mut cut) = (why(&file, task, &number), why(&part, task, &number));
            // When it was done may be behind the part.
            for document in [&mut whole, &mut cut] {
                document["misses"][0]["late_ns"] = 0.into();
            }
            assert_eq!(
                whole["misses"][0]["cause"], cut["misses"][0]["cause"],
                "{task} {number} of {set}"
            );
            assert_eq!(whole["time_line"], cut["time_line"], "{task} {number} of {set}");
        }
        let missing = trace(&["cut", &file, "--around", "servo", "9999", "-o", &part]);
        assert_eq!(missing.status.code(), Some(2));
    }
}

#[test]
fn one_task_alone_is_a_picture_but_no_explanation() {
    let scratch = Scratch::new();
    let (file, _) = simulated(&scratch, OVERRUNS);
    let part = scratch.path("part");
    let output = trace(&["cut", &file, "--task", "calm", "-o", &part]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let stats = json(&trace(&["stats", &part, "--json"]));
    let tasks = &stats["result"]["stats"]["tasks"];
    assert_eq!((&tasks[0]["executed_ns"], &tasks[0]["releases"]), (&0.into(), &0.into()));
    assert!(tasks[1]["executed_ns"].as_u64() > Some(0), "{tasks}");
    for refused in [punctual(&["sim", "--replay", &part]), trace(&["why", &part])] {
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert_eq!(text(&refused.stderr).matches("punctual: ").count(), 1);
    }
}

#[test]
fn what_makes_no_part_is_refused() {
    let scratch = Scratch::new();
    let (file, _) = simulated(&scratch, FITS);
    let part = scratch.path("part");
    for arguments in [
        &["--from", "3ms", "--to", "2ms"][..],
        &["--from", "3"],
        &["--from", "10s"],
        &["--around", "missing", "1"],
        &["--around", "short", "x"],
        &["--task", "missing"],
        &[],
    ] {
        let output = trace(&[&["cut", &file, "-o", &part], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    }
    let itself = trace(&["cut", &file, "--from", "3ms", "-o", &file]);
    assert!(text(&itself.stderr).contains("is the trace itself"), "{itself:?}");
}
