//! `punctual report`: pages in a real browser, measurements of several kernels, and files that are
//! damaged, foreign or missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use punctual_test_support::Scratch;
use serde_json::Value;

/// Misses deadlines; its names would be executed if they were taken for HTML.
const SET: &str = r#"
cpu = 1
policy = "edf"
duration = "200ms"

[[task]]
name = "</script><script>document.title='executed'</script>"
period = "10ms"
budget = "4ms"
work = { spin = "5ms" }

[[task]]
name = "<img src=x onerror=\"document.title='executed'\">"
period = "3ms"
budget = "1ms"
work = { spin = "600us" }
"#;

/// A folder with a trace and a result.
fn recorded() -> Scratch {
    let scratch = Scratch::new();
    let (set, trace) = (scratch.file("set.toml", SET), scratch.path("a.trace"));
    let simulated = punctual(&["sim", &set, "--trace", &trace, "--json", "-q"]);
    scratch.file("a.json", &simulated.stdout);
    scratch
}

/// The exit code and the standard error of a report of these files, and the page.
fn report(scratch: &Scratch, files: &[&str]) -> (i32, String, Option<String>) {
    let page = scratch.path("page.html");
    let _ = std::fs::remove_file(&page);
    let files: Vec<String> = files.iter().map(|file| scratch.path(file)).collect();
    let mut args = vec!["report", "-o", &page];
    args.extend(files.iter().map(String::as_str));
    let output = punctual(&args);
    let errors = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), errors, std::fs::read_to_string(&page).ok())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What `measure` printed in virtual machines with a counted clock (vm/compare), shortened: files
/// of a stock and of a PREEMPT_RT kernel.
const MEASURED: [&str; 4] =
    ["stock-determinism.json", "rt-determinism.json", "stock-latency.json", "rt-latency.json"];

/// Copies of them.
fn measured(scratch: &Scratch) {
    for name in MEASURED {
        let from = root().join("crates/page/tests/measured").join(name);
        std::fs::copy(from, scratch.path(name)).unwrap();
    }
}

fn punctual(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_punctual")).args(args).output().unwrap()
}

#[test]
fn a_page_works_in_a_browser() {
    if !["/usr/bin/chromium", "/usr/bin/chromedriver"]
        .iter()
        .all(|program| Path::new(program).exists())
    {
        return punctual_test_support::missing("chromium and chromium-driver (scripts/setup test)");
    }
    let scratch = recorded();
    measured(&scratch);
    let (code, errors, _) = report(&scratch, &[&["a.trace", "a.json"], &MEASURED[..]].concat());
    assert_eq!(code, 0, "{errors}");
    let script = root().join("crates/page/tests/browser.py");
    let output = Command::new(script).arg(scratch.path("page.html")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_page_has_the_verdict_without_scripts_and_names_are_text() {
    let scratch = recorded();
    let (code, errors, page) = report(&scratch, &["a.trace", "a.json"]);
    let page = page.unwrap_or_else(|| panic!("{code}: {errors}"));
    assert!(page.contains("<h1 class=\"bad\">0 of 2 runs met all deadlines"), "{}", &page[..1000]);
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;document.title"));
    assert!(!page.contains("<script>document") && !page.contains("<img"));
    // A trace makes the same figures as the result of its run.
    let verdict = "missed 19 of 20 deadlines.</p>";
    assert_eq!(page.matches(verdict).count(), 2, "of the trace and of the result");
}

#[test]
fn kernels_are_compared_by_what_was_measured_on_them() {
    let scratch = Scratch::new();
    measured(&scratch);
    let (code, errors, page) = report(&scratch, &MEASURED);
    let page = page.unwrap_or_else(|| panic!("{code}: {errors}"));
    assert_eq!(code, 0, "{errors}");
    let figure = |file: &str, task: usize, figure: &str| {
        let text = std::fs::read_to_string(scratch.path(file)).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let run = &document["result"]["runs"][1];
        assert_eq!(run["rate_hz"], 1000);
        run["tasks"][task][figure].as_u64().unwrap()
    };
    let us = |ns: u64| format!("{}.{}", (ns + 50) / 1_000, (ns + 50) / 100 % 10);
    // Both tasks of a kind make one row; the executive stands apart from the tasks of its kind.
    let cells = ["stock-determinism.json", "rt-determinism.json"].map(|file| {
        let both = |name: &str| [1, 2].map(|task| figure(file, task, name));
        let best = both("best_ns").into_iter().min().unwrap();
        let [worst, determinism] =
            ["worst_ns", "determinism_ns"].map(|name| both(name).into_iter().max().unwrap());
        [best, worst, determinism].map(us).join(", ")
    });
    let row = format!("<tr><td>dth (futex)<td>{}<td>{}\n", cells[0], cells[1]);
    assert!(page.contains(&row), "no {row}");
    assert!(page.contains("<tr><td>exec<td>") && page.contains("<tr><td>fork<td>"));
    for id in ["determinism-250", "determinism-1000", "latency"] {
        assert!(page.contains(&format!("<figure id=\"{id}\">")), "{id}");
    }
    assert!(page.contains("Latencies differ by up to") && page.contains("on 7.3.4+deb13-rt-amd64"));
    // Each alone has no comparison, and its own verdict.
    let (_, _, page) = report(&scratch, &MEASURED[..1]);
    let page = page.unwrap();
    assert!(!page.contains("<figure id=\"determinism") && page.contains("cycles was late.</h1>"));

    let folder = scratch.path("pictures");
    let files = MEASURED.map(|name| scratch.path(name));
    let mut args = vec!["report", "--svg", &folder, "--json"];
    args.extend(files.iter().map(String::as_str));
    let document: Value = serde_json::from_slice(&punctual(&args).stdout).unwrap();
    assert_eq!(document["result"]["pictures"].as_array().unwrap().len(), 3);
    assert_eq!(document["result"]["measurements"].as_array().unwrap().len(), 4);
    let svg = std::fs::read_to_string(scratch.path("pictures/determinism-1000.svg")).unwrap();
    assert!(svg.contains("<circle") && svg.contains("7.3.4+deb13-rt-amd64"));
}

#[test]
fn a_measurement_that_was_ended_early_is_shown_with_a_banner() {
    let scratch = Scratch::new();
    measured(&scratch);
    let text = std::fs::read_to_string(scratch.path(MEASURED[0])).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    document["ok"] = false.into();
    document["error"] = serde_json::json!({ "cause": "more than 90 % of the CPU was used" });
    std::fs::write(scratch.path("early.json"), document.to_string()).unwrap();
    document["result"]["runs"] = 1.into();
    std::fs::write(scratch.path("unlike.json"), document.to_string()).unwrap();
    let (code, errors, page) = report(&scratch, &["early.json"]);
    let page = page.unwrap_or_else(|| panic!("{code}: {errors}"));
    assert_eq!(code, 1, "{errors}");
    assert!(page.contains("<h1 class=\"bad\">") && page.contains("90 % of the CPU was used.</p>"));
    let (code, errors, page) = report(&scratch, &["unlike.json"]);
    assert_eq!((code, page), (2, None), "{errors}");
    assert!(errors.contains("not what its schema says"), "{errors}");
}

#[test]
fn pictures_are_written_and_the_report_is_in_the_envelope() {
    let scratch = recorded();
    let (trace, folder) = (scratch.path("a.trace"), scratch.path("pictures"));
    let output = punctual(&["report", &trace, "--svg", &folder, "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let schema = std::fs::read_to_string(root().join("docs/report.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    assert!(validator.is_valid(&document), "{document:#}");
    assert_eq!((output.status.code(), &document["result"]["page"]), (Some(0), &Value::Null));
    let pictures = document["result"]["pictures"].as_array().unwrap();
    assert_eq!(pictures.len(), 5, "a schedule, and times and budgets of two tasks: {pictures:?}");
    for picture in pictures {
        let svg = std::fs::read_to_string(picture.as_str().unwrap()).unwrap();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{picture}");
        assert!(!svg.contains("<script") && !svg.contains("<img"), "{picture}");
        assert!(svg.contains("<rect") || svg.contains("<polyline"), "{picture} is drawn");
    }
}

#[test]
fn what_can_be_read_of_a_damaged_trace_is_shown_with_a_banner() {
    let scratch = recorded();
    let whole = std::fs::read(scratch.path("a.trace")).unwrap();
    std::fs::write(scratch.path("cut.trace"), &whole[..whole.len() * 3 / 4]).unwrap();
    let mut changed = whole.clone();
    let at = whole.len() * 3 / 4;
    changed[at] ^= 1;
    std::fs::write(scratch.path("changed.trace"), changed).unwrap();
    for (file, word) in [
        ("cut.trace", "cut short at record"),
        ("changed.trace", "was changed since it was written"),
    ] {
        let (code, errors, page) = report(&scratch, &[file]);
        let page = page.unwrap_or_else(|| panic!("{file}: {code}: {errors}"));
        let banner =
            page.split("role=\"alert\">").nth(1).and_then(|rest| rest.split("</p>").next());
        assert!(banner.is_some_and(|banner| banner.contains(word)), "{file}: {banner:?}");
        assert!(page.contains(" deadlines.</h1>") && page.contains("id=\"gantt-0\""), "{file}");
        assert!(!page.contains("missed 19 of 20 deadlines"), "{file} has only a part of the run");
        assert_eq!(code, 1, "{file}: {errors}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_one_error_and_no_page() {
    let scratch = recorded();
    let trace = std::fs::read_to_string(scratch.path("a.json")).unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(scratch.path(name), bytes).unwrap();
    write("empty", b"");
    write("foreign", b"\x7fELF and more");
    write("cut.json", &trace.as_bytes()[..trace.len() / 2]);
    write("future.json", trace.replace("punctual/2", "punctual/9").as_bytes());
    write("other.json", b"{\"schema\": 1}");
    let header = std::fs::read(scratch.path("a.trace")).unwrap();
    let end = header.iter().position(|&byte| byte == b'\n').unwrap();
    let line = String::from_utf8(header[..=end].to_vec())
        .unwrap()
        .replace("\"version\":3", "\"version\":9");
    let check = crc32fast::hash(line.as_bytes()).to_le_bytes();
    write("future.trace", &[line.as_bytes(), &check].concat());
    for (file, words) in [
        ("empty", "neither a trace nor a result"),
        ("foreign", "neither a trace nor a result"),
        ("cut.json", "cut short"),
        ("future.json", "schema \"punctual/9\", this version reads \"punctual/2\""),
        ("other.json", "it has no \"schema\""),
        ("future.trace", "it is of version 9, this is version 3"),
        ("nowhere", "No such file"),
    ] {
        let (code, errors, page) = report(&scratch, &[file]);
        assert_eq!((code, page.is_none()), (2, true), "{file}: {errors}");
        assert!(errors.contains(words) && errors.matches("help:").count() == 1, "{file}: {errors}");
        // Beside one that can be read, it is named in a banner.
        let (code, errors, page) = report(&scratch, &[file, "a.trace"]);
        let page = page.unwrap_or_else(|| panic!("{file}: {errors}"));
        assert_eq!((code, page.matches("is left out").count()), (1, 1), "{file}");
    }
}

#[test]
fn a_page_that_cannot_be_written_leaves_the_one_before() {
    let scratch = recorded();
    let trace = scratch.path("a.trace");
    let output = punctual(&["report", &trace, "-o", "/dev/full"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{errors}");
    assert!(errors.contains("/dev/full cannot be written: No space left"), "{errors}");

    // A limit of the file size is a disk that is full after 8 KiB.
    let page = scratch.path("page.html");
    std::fs::write(&page, "the page before").unwrap();
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let args = ["-c", limited, env!("CARGO_BIN_EXE_punctual"), "report", &trace, "-o", &page];
    let output = Command::new("bash").args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "the page before");
    let left = std::fs::read_dir(scratch.folder()).unwrap().filter(|file| {
        file.as_ref().is_ok_and(|file| file.file_name().to_string_lossy().starts_with(".punctual"))
    });
    assert_eq!(left.count(), 0, "no temporary file is left");
}
