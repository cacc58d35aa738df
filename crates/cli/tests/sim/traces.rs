//! The traces of simulations, and their replay.

use std::path::Path;

use punctual_test_support::Scratch;

use crate::{ended, refused, sim, text, FULL};

#[test]
fn a_trace_replays_the_same_and_a_changed_one_is_found_out() {
    let scratch = Scratch::new();
    let (file, trace) = (scratch.file("set.toml", FULL), scratch.path("trace"));
    ended(&[&file, "--trace", &trace], 0);
    assert!(ended(&["--replay", &trace], 0).contains("led to the same"));
    let read = punctual_trace::Trace::read(&mut &std::fs::read(&trace).expect("it is there")[..])
        .expect("whole");
    let of =
        |task: u32| read.periods().filter(|p| p.task == task).map(|p| p.number).collect::<Vec<_>>();
    assert!(of(0).len() > 1 && of(1).len() > 1, "each task has its periods");
    assert!(
        [0, 1].map(of).iter().all(|numbers| numbers.iter().copied().eq(0..numbers.len() as u64)),
        "in order"
    );
    let received: u64 = read.periods().map(|p| p.received).sum();
    assert_eq!(
        received,
        read.intervals().iter().map(|i| i.to - i.from).sum::<u64>(),
        "both have all execution"
    );
    let out: serde_json::Value =
        serde_json::from_str(&ended(&["--replay", &trace, "--json"], 0)).expect("JSON");
    assert_eq!(
        (&out["result"]["replay"]["same"], &out["result"]["replay"]["host"]),
        (&true.into(), &"sim".into())
    );

    let mut bytes = std::fs::read(&trace).expect("it is there");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&trace, &bytes).expect("it can be written");
    let why = refused(&["--replay", &trace]);
    assert!(why.contains("was changed since it was written") && why.contains("help:"), "{why}");
    let out = sim(&["--replay", &trace, "--json"]);
    let value: serde_json::Value =
        serde_json::from_slice(&out.stdout).expect("errors are JSON too");
    assert_eq!(value["exit_code"], 2);
}

#[test]
fn another_decision_is_reported_with_its_record() {
    use punctual_trace::Trace;
    let scratch = Scratch::new();
    let (file, trace) = (scratch.file("set.toml", FULL), scratch.path("trace"));
    ended(&[&file, "--trace", &trace], 0);
    let mut read =
        Trace::read(&mut &std::fs::read(&trace).expect("it is there")[..]).expect("it is a trace");
    let selected: Vec<usize> =
        (0..read.records.len()).filter(|&n| read.records[n].what() == Some("selected")).collect();
    let n = selected[3];
    read.records[n].a ^= 1;
    read.write(&mut std::fs::File::create(&trace).expect("it can be written"))
        .expect("it can be written");
    let out = ended(&["--replay", &trace], 1);
    assert!(
        out.contains(&format!("Different at record {n}")) && out.contains("recorded: selected"),
        "{out}"
    );
}

#[test]
fn each_cpu_has_its_trace() {
    let scratch = Scratch::new();
    let text = FULL.replace("cpu = 0", "cpus = [0, 1]\ndomain = \"partitioned\"");
    let text = text
        .replace("name = \"short\"", "name = \"short\"\ncpu = 0")
        .replace("name = \"long\"", "name = \"long\"\ncpu = 1");
    let (file, trace) = (scratch.file("set.toml", &text), scratch.path("trace"));
    ended(&[&file, "--trace", &trace], 0);
    for cpu in 0..2 {
        let out = ended(&["--replay", &format!("{trace}.cpu{cpu}")], 0);
        assert!(out.contains(&format!("CPU {cpu}")), "{out}");
    }
}

#[test]
fn every_example_is_simulated_and_its_trace_replays() {
    let scratch = Scratch::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("it can be read").path();
        if !path.extension().is_some_and(|e| e == "toml" || e == "json") {
            continue;
        }
        let (file, trace) = (path.display().to_string(), scratch.path("trace"));
        let out = sim(&[&file, "--duration", "2s", "--trace", &trace, "--quiet"]);
        assert!(matches!(out.status.code(), Some(0 | 1)), "{file}: {}", text(&out.stderr));
        assert!(ended(&["--replay", &trace], 0).contains("led to the same"), "{file}");
        seen += 1;
    }
    assert!(seen >= 10, "{seen} examples");
}

#[test]
fn a_trace_carries_its_set_which_leads_to_the_same_trace() {
    let scratch = Scratch::new();
    scratch.file("times.txt", "1ms\n1500us\n");
    let several = FULL
        .replace("cpu = 0", "cpus = [1, 0]\ndomain = \"partitioned\"")
        .replace("[[task]]", "[[task]]\ncpu = 0")
        .replace("{ spin = \"2ms\" }", "{ recorded = \"times.txt\" }");
    let other = "[[task]]\ncpu = 1\nname = \"other\"\nperiod = \"5ms\"\nbudget = \"1ms\"\n\
                 work = { spin = \"1ms\" }\n";
    let several = scratch.file("several.toml", &(several + other));
    let trace = |file: &str, name: &str| {
        let path = scratch.path(name);
        ended(&[file, "--quiet", "--duration", "70ms", "--trace", &path], 0);
        [0, 1].map(|cpu| std::fs::read(format!("{path}.cpu{cpu}")).expect("it was written"))
    };
    let first = trace(&several, "first");
    let out = ended(&["--replay", &format!("{}.cpu0", scratch.path("first")), "--json"], 0);
    let document: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    let set = document["result"]["replay"]["set"].as_str().expect("it has the set");
    std::fs::remove_file(scratch.path("times.txt")).expect("it is there");
    assert_eq!(trace(&scratch.file("carried.toml", set), "second"), first);
}
