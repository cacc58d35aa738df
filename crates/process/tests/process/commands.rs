//! Commands execute nothing before their release.

use crate::common::*;
use crate::{finish, setup, sleeping};
use punctual_process::*;
use punctual_test_support::missing;
use std::time::{Duration, Instant};

#[test]
fn held_at_its_exec_a_command_executes_nothing_until_its_release() {
    let _alone = alone();
    let Some((journal, _)) = setup(false) else { return };
    let mark = state_dir().join("held-mark");
    let _ = std::fs::remove_file(&mark);
    let park = Park::for_command(&journal, None, "touch").unwrap();
    let words = ["touch".into(), mark.clone().into_os_string()];
    let mut child =
        spawn(&journal, CommandSpec { hold: Hold::AtExec, ..CommandSpec::new(words).on(1) }, &park)
            .unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(!mark.exists() && !child.has_ended());
    assert!(child.try_wait().unwrap().is_none(), "a stop at its exec is no end");
    child.release(&park).unwrap();
    assert!(poll_in(&child.pidfd(), 2000));
    assert!(child.has_ended() && child.try_wait().unwrap().unwrap().success());
    assert!(mark.exists());
    finish(&journal);
}

fn nothing_before_release(freezer: bool) {
    let _alone = alone();
    let Some((journal, base)) = setup(freezer) else { return };
    let mark = state_dir().join("mark");
    let _ = std::fs::remove_file(&mark);
    let park = Park::for_command(&journal, base.as_ref(), "touch").unwrap();
    let mut spec = CommandSpec::new(["touch".into(), mark.clone().into_os_string()]).on(1);
    spec.level = 10;
    let mut child = spawn(&journal, spec, &park).unwrap();
    assert!(child.was_held());
    let pid = child.id().pid;
    eventually("it is parked", || park.is_parked().unwrap());
    assert_eq!(park.usage_ns().unwrap() / 1_000_000, 0);
    std::thread::sleep(Duration::from_millis(50));
    assert!(!mark.exists() && child.try_wait().unwrap().is_none());
    let a = attributes(pid).unwrap();
    // A stopped leader waits at the level from which it is sure to be stopped.
    assert_eq!((a.0, a.1, a.3[0]), (policy(freezer), if freezer { 10 } else { LEADER_LEVEL }, 2));
    child.release(&park).unwrap();
    assert!(poll_in(&child.pidfd(), 2000));
    assert!(child.try_wait().unwrap().unwrap().success());
    assert!(mark.exists());
    if freezer {
        assert!(!park.procs().contains(&pid));
    }
    park.remove().unwrap();
    finish(&journal);
}

#[test]
fn by_freezer_a_command_executes_nothing_before_its_release_and_has_its_level_and_cpu() {
    nothing_before_release(true);
}

#[test]
fn by_stop_signals_a_command_executes_nothing_before_its_release_and_has_its_level_and_cpu() {
    nothing_before_release(false);
}

#[test]
fn commands_end_with_all_that_they_started_and_a_dead_guardian_is_replaced() {
    let _alone = alone();
    let mut commands = Commands::new(&[]).unwrap();
    let words = ["sh", "-c", "setsid sleep 53 & exit 3"];
    commands.start(CommandSpec::new(words), "daemon").unwrap();
    let guardian = || {
        let comm = |p: &i32| std::fs::read_to_string(format!("/proc/{p}/comm")).unwrap_or_default();
        descendants(&[std::process::id() as i32])
            .into_iter()
            .find(|p| comm(p).trim() == "punctual-guard")
    };
    assert_eq!(commands.replace_dead_guardian(), None);
    let first = guardian().expect("it stands watch");
    kill(first, libc::SIGKILL);
    eventually("another one watches", || commands.replace_dead_guardian().is_some());
    assert!(guardian().is_some_and(|second| second != first));
    std::thread::sleep(Duration::from_millis(20));
    assert!(commands.iter().all(|command| !command.has_ended()), "it is held");
    commands.release();
    eventually("its first process has ended", || commands.try_wait(0).unwrap().is_some());
    assert_eq!(commands.try_wait(0).unwrap().and_then(|s| s.code()), Some(3));
    eventually("the daemon runs", || sleeping("53").is_some());
    assert_eq!(commands.end(), [""; 0]);
    eventually("the daemon is gone", || sleeping("53").is_none());
    assert_eq!(guardian(), None);
}

#[test]
fn the_end_of_one_run_leaves_the_commands_of_another_run_of_the_same_process() {
    let _alone = alone();
    let [mut ended, mut other] = [(); 2].map(|()| Commands::new(&[]).unwrap());
    for (commands, seconds) in [(&mut ended, "59"), (&mut other, "61")] {
        let words = ["sleep", seconds];
        commands.start(CommandSpec::new(words), "sleep").unwrap();
        commands.release();
    }
    eventually("both execute", || sleeping("59").is_some() && sleeping("61").is_some());
    assert_eq!(ended.end(), [""; 0]);
    assert!(sleeping("59").is_none() && sleeping("61").is_some());
    assert_eq!(other.end(), [""; 0]);
    assert!(sleeping("61").is_none());
}

#[test]
fn commands_that_are_dropped_before_their_release_execute_nothing() {
    let _alone = alone();
    let mark = state_dir().join("dropped-mark");
    let _ = std::fs::remove_file(&mark);
    let mut commands = Commands::new(&[]).unwrap();
    let words = ["touch".into(), mark.clone().into_os_string()];
    let pid = commands.start(CommandSpec::new(words), "touch").unwrap().id().pid;
    drop(commands);
    assert!(Identity::of(pid).is_none() && !mark.exists());
}

#[test]
fn output_goes_where_the_run_wants_it() {
    let _alone = alone();
    let link = |of: &dyn std::fmt::Display, fd: i32| {
        std::fs::read_link(format!("/proc/{of}/fd/{fd}")).unwrap()
    };
    let (null, of_ours) = (std::path::PathBuf::from("/dev/null"), |fd| link(&"self", fd));
    let mut commands = Commands::new(&[]).unwrap();
    for (output, stdin, expected) in [
        (Output::Inherit, true, [of_ours(0), of_ours(1), of_ours(2)]),
        (Output::StandardError, false, [null.clone(), of_ours(2), of_ours(2)]),
        (Output::Nowhere, false, [null.clone(), null.clone(), null.clone()]),
    ] {
        let spec = CommandSpec { streams: output.streams(stdin), ..CommandSpec::new(["true"]) };
        let pid = commands.start(spec, "true").unwrap().id().pid;
        assert_eq!([0, 1, 2].map(|fd| link(&pid, fd)), expected, "{output:?}");
    }
}

#[test]
fn usage_is_exact_for_what_ran_on_the_same_cpu() {
    let _alone = alone();
    let Some((journal, base)) = setup(true) else { return };
    let park = Park::for_command(&journal, base.as_ref(), "burn").unwrap();
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; cat /proc/self/stat; times";
    let mut spec = CommandSpec::new(["sh", "-c", script]).on(1);
    spec.streams[1] = Stream::Null;
    let mut child = spawn(&journal, spec, &park).unwrap();
    let start = Instant::now();
    child.release(&park).unwrap();
    assert!(poll_in(&child.pidfd(), punctual_test_support::LIVENESS.as_millis() as i32));
    let wall = start.elapsed();
    child.try_wait().unwrap();
    let used = park.usage_ns().unwrap();
    assert!(used > 0 && used <= wall.as_nanos() as u64 * 2, "{used} of {wall:?}");
    park.remove().unwrap();
    finish(&journal);
}

#[test]
fn a_command_started_apart_has_its_memory_locked_without_its_help_and_its_own_end() {
    let _alone = alone();
    let commands = Commands::new(&[]).unwrap();
    let start = |words: &[&str]| commands.start_apart(CommandSpec::new(words), "apart").unwrap();
    // It prints how much of its memory is locked, when it has mapped its libraries.
    let output = state_dir().join("locked");
    let print = format!("grep VmLck /proc/$$/status >{}; exit 7", output.display());
    let mut child = start(&["sh", "-c", &print]);
    match child.lock_memory() {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::ESRCH)) => {
            return missing(format!("no system call in another process: {e}"));
        }
        locked => locked.unwrap(),
    }
    assert!(child.try_wait().unwrap().is_none());
    child.release().unwrap();
    assert!(poll_in(&child.pidfd(), 20_000));
    assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(7), "it executes as before");
    let text = std::fs::read_to_string(&output).unwrap();
    let kib: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib > 1000, "{text}");
    // One that was killed while it is held, and one that is held at the end.
    let mut killed = start(&["sleep", "51"]);
    killed.kill();
    assert!(poll_in(&killed.pidfd(), 20_000));
    let error = killed.lock_memory().expect_err("it is gone");
    assert_eq!(error.raw_os_error(), Some(libc::ESRCH), "{error}");
    assert!(killed.try_wait().unwrap().is_some());
    let held = start(&["sleep", "52"]);
    assert_eq!(commands.end(), Vec::<String>::new());
    assert!(poll_in(&held.pidfd(), 20_000));
}
