//! What a command starts ends with it.

use crate::common::*;
use crate::{finish, setup, sleeping};
use punctual_process::*;

fn descendants_die(freezer: bool) {
    let _alone = alone();
    let Some((journal, base)) = setup(freezer) else { return };
    let park = Park::for_command(&journal, base.as_ref(), "tree").unwrap();
    // A daemon that changes its session and whose parent ends, a child that ignores SIGTERM, a
    // grandchild.
    let script =
        "setsid sleep 41 & (trap '' TERM; sleep 42; sleep 43) & (sleep 44 & sleep 45) & sleep 46";
    let child = spawn(&journal, CommandSpec::new(["sh", "-c", script]).on(1), &park).unwrap();
    child.release(&park).unwrap();
    let ours = || {
        let marks = ["41", "42", "44", "45", "46"];
        let all = descendants(&[std::process::id() as i32]);
        let cmd =
            |p: i32| std::fs::read_to_string(format!("/proc/{p}/cmdline")).unwrap_or_default();
        all.into_iter()
            .filter(|p| marks.iter().any(|m| cmd(*p) == format!("sleep\0{m}\0")))
            .collect::<Vec<_>>()
    };
    eventually("all are there", || ours().len() == 5);
    let pids = ours();
    park.rescan().unwrap();
    assert!(park.procs().len() >= 6, "{:?}", park.procs());
    park.park().unwrap();
    eventually("all stand still", || park.is_parked().unwrap());
    finish(&journal);
    for p in pids {
        eventually("dead", || matches!(state_of(p), None | Some('Z')));
    }
}

#[test]
fn by_freezer_all_descendants_of_a_command_end_with_it_while_parked() {
    descendants_die(true);
}

#[test]
fn by_stop_signals_all_descendants_of_a_command_end_with_it_while_parked() {
    descendants_die(false);
}

/// No stop signal reaches a child that the housekeeper has not found. At its parent's real-time
/// level one that spins would keep the CPU from the housekeeper.
#[test]
fn by_stop_signals_a_child_is_an_ordinary_process_until_it_is_found() {
    let _alone = alone();
    let Some((journal, base)) = setup(false) else { return };
    let park = Park::for_command(&journal, base.as_ref(), "parent").unwrap();
    let mut spec = CommandSpec::new(["sh", "-c", "sleep 48 & sleep 49"]).on(1);
    spec.level = 20;
    let child = spawn(&journal, spec, &park).unwrap();
    child.release(&park).unwrap();
    let parent = child.id().pid;
    let children = || descendants(&[parent]);
    eventually("both children are there", || children().len() == 2);
    assert_eq!(attributes(parent).map(|a| a.0), Some(policy(false)));
    for pid in children() {
        assert_eq!(attributes(pid).map(|a| a.0), Some(libc::SCHED_OTHER), "{pid}");
    }
    park.rescan().unwrap();
    park.park().unwrap();
    eventually("all stand still", || park.is_parked().unwrap());
    finish(&journal);
}

#[test]
fn by_stop_signals_a_daemon_whose_parent_ended_at_once_ends_with_the_run() {
    let _alone = alone();
    let Some((journal, base)) = setup(false) else { return };
    let park = Park::for_command(&journal, base.as_ref(), "daemon").unwrap();
    // In a session of its own, and not found before its parent was gone.
    let mut child =
        spawn(&journal, CommandSpec::new(["sh", "-c", "setsid sleep 47 & exit 0"]).on(1), &park)
            .unwrap();
    child.release(&park).unwrap();
    eventually("its first process has ended", || child.try_wait().unwrap().is_some());
    eventually("the daemon runs", || sleeping("47").is_some());
    finish(&journal);
    eventually("the daemon is gone", || sleeping("47").is_none());
}
