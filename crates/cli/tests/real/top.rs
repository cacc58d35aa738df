//! `punctual top` beside a running set, its budgets changed from there, and observers that break
//! the protocol.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

use punctual_top::client::Client;

use crate::kills::NEEDS;
use crate::machine::{one_cpu, permitted, permitted_cpu, Cpu, Need};
use crate::process::kill;
use crate::punctual::{new_mark, run, Running, Scratch, PUNCTUAL};

fn set(cpu: &Cpu) -> String {
    format!(
        "cpu = {}\npolicy = \"edf\"\n[[task]]\nname = \"first\"\nperiod = \"10ms\"\n\
         budget = \"2ms\"\n\
         work = {{ spin = \"forever\" }}\n[[task]]\nname = \"second\"\nperiod = \"20ms\"\n\
         budget = \"2ms\"\n\
         work = {{ spin = \"1ms\" }}\n",
        cpu.0
    )
}

/// A set that runs until it is ended, and where its socket is.
fn start(cpu: &Cpu, scratch: &Scratch) -> (Running, std::path::PathBuf) {
    let file = scratch.file("set.toml", &set(cpu));
    let state = scratch.path("state");
    let mut running = Running::from(|c| {
        c.args(["run", "--quiet", &file, "--duration", "600s"]).env("PUNCTUAL_STATE_DIR", &state)
    });
    let directory = std::path::Path::new(&state).join("top");
    running.wait_for("its socket", |r| directory.join(format!("{}.sock", r.pid())).exists());
    (running, directory)
}

fn end(running: Running, cpu: &Cpu) {
    kill(running.pid(), libc::SIGINT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    ended.assert_nothing_left(&[cpu.0]);
}

#[test]
fn a_running_set_is_shown_and_its_budget_changed() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let (running, directory) = start(&cpu, &scratch);
    let state = scratch.path("state");
    let pid = running.pid().to_string();
    let shown =
        Running::from(|c| c.args(["top", "--once", &pid]).env("PUNCTUAL_STATE_DIR", &state)).end();
    assert!(
        shown.out.contains("first: 2 ms in 10 ms") && shown.out.contains("second:"),
        "{}{}",
        shown.out,
        shown.err
    );

    let mut client = Client::connect(&directory, None).unwrap();
    client.change_budget(0, 3_000_000).unwrap();
    let refused = client.change_budget(0, 9_900_000).unwrap_err();
    assert!(refused.cause.contains("109 %"), "a budget that does not fit: {}", refused.cause);
    assert!(client.change_budget(1, 0).is_err() && client.change_budget(7, 1_000_000).is_err());
    // Its whole new budget is assigned in the periods from then on.
    let assigned = |client: &mut Client| {
        let first = client.snapshot().unwrap().expect("it runs").results.tasks.swap_remove(0);
        (first.periods, first.assigned_ns)
    };
    std::thread::sleep(Duration::from_millis(200));
    let before = assigned(&mut client);
    std::thread::sleep(Duration::from_millis(500));
    let after = assigned(&mut client);
    assert!(after.0 > before.0, "{before:?} {after:?}");
    assert_eq!((after.1 - before.1) / (after.0 - before.0), 3_000_000, "{before:?} {after:?}");
    end(running, &cpu);
    assert!(!directory.join(format!("{pid}.sock")).exists(), "its socket is left");
    assert!(client.snapshot().unwrap().is_none(), "the run has ended");
}

#[test]
fn observers_that_break_the_protocol_disturb_neither_the_run_nor_each_other() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let (running, directory) = start(&cpu, &scratch);
    let socket = directory.join(format!("{}.sock", running.pid()));
    let connect = || UnixStream::connect(&socket).unwrap();
    // Some that are silent, fewer than are served at one time.
    let silent: Vec<UnixStream> = (0..4).map(|_| connect()).collect();
    let mut garbage = connect();
    garbage.write_all(b"{]\n").unwrap();
    let mut reply = [0; 512];
    let count = garbage.read(&mut reply).unwrap();
    assert!(String::from_utf8_lossy(&reply[..count]).contains("not a request"));
    let mut endless = connect();
    endless.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    // A request without an end: the connection is closed.
    while endless.write_all(&[b'x'; 4096]).is_ok() {}
    let mut client = Client::connect(&directory, Some(running.pid() as u32)).unwrap();
    assert_eq!(client.snapshot().unwrap().expect("it runs").results.tasks.len(), 2);
    drop(silent);
    end(running, &cpu);
}

#[test]
fn without_a_running_set_or_a_terminal_there_is_one_error() {
    let scratch = Scratch::new();
    let state = scratch.path("state");
    let top =
        |args: &[&str]| Running::from(|c| c.args(args).env("PUNCTUAL_STATE_DIR", &state)).end();
    for (args, cause) in [
        (&["top", "--once"][..], "no set of yours runs"),
        (&["top", "--once", "1"], "process 1 runs no set"),
        (&["top"], "no terminal"),
        (&["top", "--interval", "1ms"], "at least 100ms"),
    ] {
        let ended = top(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.err);
        assert!(ended.err.contains(cause), "{args:?}: {}", ended.err);
    }
    assert_eq!(run(&["top", "--help"]).code, Some(0));
}

#[test]
fn on_a_terminal_it_is_drawn_and_leaving_it_restores_the_terminal() {
    if !permitted(&NEEDS) || !permitted(&[Need::Tool("script")]) {
        return;
    }
    let (cpu, scratch) = (one_cpu(), Scratch::new());
    let (running, _) = start(&cpu, &scratch);
    let (shown, mark) = (scratch.path("shown"), new_mark());
    let mut c = std::process::Command::new("script");
    c.args(["-qec", &format!("stty cols 40 rows 12; {} top", PUNCTUAL.display()), "/dev/null"]);
    c.env("PUNCTUAL_TEST_MARK", &mark)
        .env("TERM", "xterm")
        .env("PUNCTUAL_STATE_DIR", scratch.path("state"));
    c.stdin(Stdio::piped()).stdout(std::fs::File::create(&shown).unwrap());
    let mut script = Running::of(c, mark);
    let out = || String::from_utf8_lossy(&std::fs::read(&shown).unwrap()).into_owned();
    script.wait_for("its table", |_| out().contains("second"));
    script.child.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    let ended = script.end();
    assert_eq!(ended.code, Some(0), "{}", out());
    // The alternate screen is left.
    assert!(out().contains("\x1b[?1049l"), "{}", out());
    end(running, &cpu);
}
