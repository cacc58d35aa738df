//! SIGHUP and `punctual reload`: policies are swapped while the set runs, and a reload that is
//! refused leaves all as it was.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use punctual_session::results::Results;
use punctual_test_support::comes_true;
use punctual_top::client::Client;

use crate::kills::NEEDS;
use crate::machine::{permitted_cpu, wait_for_cpu, Cpu};
use crate::process::kill;
use crate::punctual::{Ended, Running, Scratch, PUNCTUAL};

/// 20 % of a CPU at the top, and a group with 30 %.
fn set(cpu: &Cpu, top: &str, media: &str) -> String {
    format!(
        "cpu = {}\npolicy = \"{top}\"\n[[group]]\nname = \"media\"\npolicy = \"{media}\"\n\
         period = \"10ms\"\nbudget = \"3ms\"\nserver = \"deferrable\"\n\
         [[task]]\nname = \"control\"\nperiod = \"10ms\"\nbudget = \"2ms\"\npriority = 1\n\
         work = {{ spin = \"forever\" }}\n\
         [[task]]\nname = \"video\"\nperiod = \"40ms\"\nbudget = \"4ms\"\npriority = 1\n\
         group = \"media\"\nwork = {{ spin = \"1ms\" }}\n",
        cpu.0
    )
}

/// A run of a file, and where its socket is.
struct Observed {
    running: Running,
    state: PathBuf,
}

impl Observed {
    fn start(scratch: &Scratch, args: &[&str]) -> Observed {
        Observed::with_hangup(scratch, args, libc::SIG_DFL)
    }

    /// With this disposition of SIGHUP, which the run inherits.
    fn with_hangup(scratch: &Scratch, args: &[&str], hangup: libc::sighandler_t) -> Observed {
        let state = PathBuf::from(scratch.path("state"));
        let dispose = move || {
            // SAFETY: a system call without memory.
            unsafe { libc::signal(libc::SIGHUP, hangup) };
            Ok(())
        };
        let running = Running::from(|c| {
            c.args(["run", "--quiet", "--duration", "600s"]).args(args);
            // SAFETY: signal(2) alone is called between fork and exec.
            unsafe { c.env("PUNCTUAL_STATE_DIR", &state).pre_exec(dispose) }
        });
        let mut observed = Observed { running, state };
        let socket = observed.state.join("top");
        observed
            .running
            .wait_for("its socket", |r| socket.join(format!("{}.sock", r.pid())).exists());
        observed
    }

    fn hang_up(&self) {
        kill(self.running.pid(), libc::SIGHUP);
    }

    fn results(&self) -> Results {
        let pid = Some(self.running.pid() as u32);
        let mut client = Client::connect(&self.state.join("top"), pid).expect("it runs");
        client.snapshot().expect("it answers").expect("it runs").results
    }

    fn policy_becomes(&self, top: &str) {
        assert!(comes_true(|| self.results().policy == top), "{:?}", self.results());
    }

    /// What `punctual reload` says, and its exit code.
    fn reload(&self) -> (Option<i32>, String) {
        let pid = self.running.pid().to_string();
        let mut command = Command::new(&*PUNCTUAL);
        command.args(["reload", &pid]).env("PUNCTUAL_STATE_DIR", &self.state);
        let output = command.stdin(Stdio::null()).output().expect("it was built");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    }

    fn end(self, cpu: &Cpu) -> Ended {
        kill(self.running.pid(), libc::SIGINT);
        let ended = self.running.end();
        ended.assert_code(130).assert_nothing_left(&[cpu.0]);
        ended
    }
}

#[test]
fn sighup_swaps_the_policies_of_the_file_and_the_trace_replays() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", &set(&cpu, "edf", "edf"));
    let trace = scratch.path("trace");
    let run = Observed::start(&scratch, &["--json", "--trace", &trace, &file]);
    // From reservations of the dispatcher to jobs of the policy, and back.
    for (top, media) in [("rm", "edf"), ("imprecise", "dm"), ("edf", "fp"), ("rm", "edf")] {
        scratch.file("set.toml", &set(&cpu, top, media));
        // Several in a row are one reload, or the later ones find no difference.
        (0..3).for_each(|_| run.hang_up());
        run.policy_becomes(top);
        let before = run.results().tasks[0].periods;
        assert!(comes_true(|| run.results().tasks[0].periods > before + 5), "releases continue");
    }
    assert_eq!(run.results().groups[0].policy.as_deref(), Some("edf"));
    let ended = run.end(&cpu);
    let line = "set.toml: policy rm -> imprecise, group \"media\" edf -> dm";
    assert!(ended.err.contains("reloaded ") && ended.err.contains(line), "{}", ended.err);
    let result = ended.result();
    let changes = result["policy_changes"].as_array().expect("a list");
    let of = |group: &str| changes.iter().filter(|c| c["group"] == *group).count();
    assert_eq!((changes.len(), of("media")), (7, 3), "{changes:#?}");
    let mut times: Vec<u64> = changes.iter().filter_map(|c| c["at_ns"].as_u64()).collect();
    assert!(times.is_sorted(), "{times:?}");
    times.dedup();
    assert_eq!(times.len(), 4, "all groups at one instant: {times:?}");
    let replay = Command::new(&*PUNCTUAL).args(["sim", "--replay", &trace]).output();
    let replay = replay.expect("it was built");
    assert_eq!(replay.status.code(), Some(0), "{}", String::from_utf8_lossy(&replay.stdout));
    let read = punctual_trace::Trace::read(&mut std::io::BufReader::new(
        std::fs::File::open(&trace).expect("it was written"),
    ));
    let named: Vec<String> =
        read.expect("it is whole").records.iter().filter_map(|r| r.policy_name()).collect();
    assert_eq!(named, ["rm", "imprecise", "dm", "edf", "fp", "rm", "edf"]);
}

#[test]
fn a_reload_that_is_refused_changes_nothing_and_the_run_continues() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let good = set(&cpu, "edf", "edf");
    let file = scratch.file("set.toml", &good);
    let run = Observed::start(&scratch, &[&file]);
    assert_eq!(
        run.reload(),
        (Some(0), "Reloaded: no policy is another one, nothing changes.\n".into())
    );
    let tight = |policy: &str| {
        let task = |name: &str, period: u64, budget: u64| {
            format!(
                "[[task]]\nname = \"{name}\"\nperiod = \"{period}ms\"\nbudget = \"{budget}ms\"\n\
                 work = {{ spin = \"1ms\" }}\n"
            )
        };
        let tasks = task("a", 80, 40) + &task("b", 120, 42);
        format!("cpu = {}\npolicy = \"{policy}\"\n{tasks}", cpu.0)
    };
    let replaced = |from: &str, to: &str| good.replacen(from, to, 1);
    for (text, code, says) in [
        (replaced("policy = \"edf\"", "policy = "), 2, &["set.toml:2:"][..]),
        (replaced("\"edf\"", "\"edff\""), 2, &["set.toml:2:10", "did you mean"]),
        (replaced("\"2ms\"", "\"1ms\""), 2, &["set.toml: task \"control\"", "its budget"]),
        (replaced("server = \"deferrable\"\n", ""), 2, &["group \"media\"", "server"]),
        (replaced("name = \"video\"", "name = \"audio\""), 2, &["tasks and groups"]),
        (tight("edf"), 2, &["tasks and groups"]),
    ] {
        scratch.file("set.toml", &text);
        let (found, said) = run.reload();
        assert_eq!(found, Some(code), "{said}");
        says.iter().for_each(|word| assert!(said.contains(word), "no {word:?}: {said}"));
    }
    std::fs::remove_file(&file).expect("it was there");
    let (found, said) = run.reload();
    assert!(found == Some(2) && said.contains("there is no such file"), "{said}");
    std::fs::create_dir(&file).expect("it is gone");
    assert!(run.reload().1.contains("directory"), "{}", run.reload().1);
    // The signal reports on the run's standard error.
    run.hang_up();
    std::thread::sleep(Duration::from_millis(200));
    std::fs::remove_dir(&file).expect("it is empty");
    assert_eq!(run.results().policy, "edf");
    assert_eq!(run.results().policy_changes, []);
    scratch.file("set.toml", &set(&cpu, "rm", "edf"));
    assert_eq!(run.reload(), (Some(0), "Reloaded: policy edf -> rm.\n".into()));
    let ended = run.end(&cpu);
    assert!(ended.err.contains("punctual: not reloaded: "), "{}", ended.err);

    // The set fits under edf, and not under rm.
    wait_for_cpu(cpu.0);
    scratch.file("set.toml", &tight("edf"));
    let run = Observed::start(&scratch, &[&file]);
    scratch.file("set.toml", &tight("rm"));
    let (_, said) = run.reload();
    assert!(said.contains("task \"b\"") && run.results().policy == "edf", "{said}");
    run.end(&cpu);
}

#[test]
fn a_budget_that_was_changed_stays_after_a_reload() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", &set(&cpu, "edf", "edf"));
    let run = Observed::start(&scratch, &[&file]);
    let pid = Some(run.running.pid() as u32);
    let mut client = Client::connect(&run.state.join("top"), pid).expect("it runs");
    client.change_budget(0, 3_000_000).expect("it fits");
    scratch.file("set.toml", &set(&cpu, "rm", "edf"));
    assert_eq!(run.reload().0, Some(0));
    let assigned = || {
        let task = run.results().tasks.swap_remove(0);
        (task.periods, task.assigned_ns)
    };
    let start = assigned();
    // The latest release may have been before the change.
    assert!(comes_true(|| assigned().0 > start.0 + 3));
    let before = assigned();
    assert!(comes_true(|| assigned().0 > before.0 + 5));
    let after = assigned();
    assert_eq!((after.1 - before.1) / (after.0 - before.0), 3_000_000, "{before:?} {after:?}");
    run.end(&cpu);
}

#[test]
fn with_sighup_ignored_as_by_nohup_a_run_continues_and_is_reloaded_by_command_alone() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", &set(&cpu, "edf", "edf"));
    let run = Observed::with_hangup(&scratch, &[&file], libc::SIG_IGN);
    scratch.file("set.toml", &set(&cpu, "rm", "edf"));
    run.hang_up();
    let before = run.results().tasks[0].periods;
    assert!(comes_true(|| run.results().tasks[0].periods > before + 10));
    assert_eq!(run.results().policy, "edf");
    assert_eq!(run.reload().0, Some(0));
    assert_eq!(run.results().policy, "rm");
    assert!(!run.end(&cpu).err.contains("not reloaded"));
}

#[test]
fn without_a_file_sighup_ends_the_run() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let number = cpu.0.to_string();
    let command = ["--cpu", &number, "--period", "10ms", "--budget", "1ms", "--", "sleep", "600"];
    let run = Observed::start(&scratch, &command);
    let (code, said) = run.reload();
    assert!(code == Some(2) && said.contains("no file"), "{said}");
    run.hang_up();
    run.running.end().assert_code(130).assert_nothing_left(&[cpu.0]);
}

/// A new terminal: the side that a terminal emulator has, and the program's.
fn terminal() -> (OwnedFd, OwnedFd) {
    let (mut outer, mut inner) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: both numbers are written; the other arguments may be null.
    let made = unsafe { libc::openpty(&mut outer, &mut inner, none, none.cast(), none.cast()) };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: they were just made, and belong to nothing else.
    unsafe { (OwnedFd::from_raw_fd(outer), OwnedFd::from_raw_fd(inner)) }
}

#[test]
fn a_terminal_that_closes_ends_the_run_and_before_that_sighup_reloads() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", &set(&cpu, "edf", "edf"));
    let state = PathBuf::from(scratch.path("state"));
    let (outer, inner) = terminal();
    // SAFETY: as below: the number is ours.
    unsafe { libc::fcntl(outer.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    let number = inner.as_raw_fd();
    let own_terminal = move || {
        // SAFETY: system calls without memory; the number is open in the child.
        unsafe {
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            libc::setsid();
            match libc::ioctl(number, libc::TIOCSCTTY, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        }
    };
    let mut running = Running::from(|c| {
        c.args(["run", "--quiet", "--duration", "600s", &file]).env("PUNCTUAL_STATE_DIR", &state);
        // SAFETY: system calls alone are called between fork and exec.
        unsafe { c.pre_exec(own_terminal) }
    });
    let socket = state.join("top");
    running.wait_for("its socket", |r| socket.join(format!("{}.sock", r.pid())).exists());
    let run = Observed { running, state };
    scratch.file("set.toml", &set(&cpu, "rm", "edf"));
    run.hang_up();
    run.policy_becomes("rm");
    drop((outer, inner));
    run.running.end().assert_code(130).assert_nothing_left(&[cpu.0]);
}

#[test]
fn a_run_that_is_killed_during_a_reload_leaves_nothing_behind() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", &set(&cpu, "edf", "edf"));
    for after in [0, 5, 15, 26, 40] {
        wait_for_cpu(cpu.0);
        scratch.file("set.toml", &set(&cpu, "edf", "edf"));
        let run = Observed::start(&scratch, &[&file]);
        scratch.file("set.toml", &set(&cpu, "imprecise", "rm"));
        run.hang_up();
        std::thread::sleep(Duration::from_millis(after));
        kill(run.running.pid(), libc::SIGKILL);
        let ended = run.running.end();
        assert_eq!(ended.code, None);
        ended.assert_nothing_left(&[cpu.0]);
    }
}
