//! What people see while it runs.

use std::io::Write;

use punctual_test_support::judge_timing;

use crate::kills::NEEDS;
use crate::machine::{one_cpu, permitted, permitted_cpu, Need};
use crate::punctual::{run_set, Running, Scratch};

fn synthetic(cpu: u32) -> String {
    format!(
        "cpu = {cpu}\npolicy = \"rm\"\n[[task]]\nname = \"servo\"\nperiod = \"10ms\"\n\
         budget = \"2ms\"\nwork = {{ spin = \"1ms\" }}\n"
    )
}

#[test]
fn where_there_is_no_terminal_a_line_tells_progress_every_two_seconds() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let ended = run_set(&synthetic(cpu.0), &["--duration", "4300ms"]);
    ended.assert_nothing_left(&[cpu.0]);
    let lines: Vec<&str> =
        ended.err.lines().filter(|l| l.contains("periods") && l.contains("missed")).collect();
    judge_timing(|| assert_eq!(lines.len(), 2, "{}", ended.err));
    assert!(
        !ended.err.contains('\x1b') && !ended.out.contains('\x1b'),
        "plain text: {}{}",
        ended.err,
        ended.out
    );
    assert!(ended.out.contains("used %"), "the final table goes to standard output: {}", ended.out);
}

#[test]
fn on_a_terminal_a_table_is_redrawn_in_place() {
    if !permitted(&NEEDS) || !permitted(&[Need::Tool("script")]) {
        return;
    }
    let (cpu, scratch) = (one_cpu(), Scratch::new());
    let file = scratch.file("set.toml", &synthetic(cpu.0));
    let line = format!("{} run {file} --duration 600s", crate::punctual::PUNCTUAL.display());
    let shown = scratch.path("shown");
    let mut script = {
        let mark = crate::punctual::new_mark();
        let mut c = std::process::Command::new("script");
        c.args(["-qec", &line, "/dev/null"]).env("PUNCTUAL_TEST_MARK", &mark).env("TERM", "xterm");
        c.stdin(std::process::Stdio::piped()).stdout(std::fs::File::create(&shown).unwrap());
        Running::of(c, mark)
    };
    let out = || std::fs::read_to_string(&shown).unwrap();
    script.wait_for("a second table", |_| out().contains("A\x1b[J"));
    // Ctrl-C, as its terminal sends it.
    script.child.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    let ended = script.end();
    assert_eq!(ended.code, Some(130), "{}", out());
    assert!(out().contains("servo") && out().contains("p99"), "{}", out());
    ended.assert_nothing_left(&[cpu.0]);
}
