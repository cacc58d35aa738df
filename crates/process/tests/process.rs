//! Adoption, commands and their return, by one owner in good order.

mod common;
use common::*;
use punctual_process::*;
use std::time::{Duration, Instant};

/// A role: nothing unless it was started for it.
#[test]
fn victim() {
    if is_role("victim") {
        be_victim();
    }
}

fn setup(freezer: bool) -> Option<(Journal, Option<CgroupBase>)> {
    if !permitted(freezer) {
        return None;
    }
    let journal = Journal::create().unwrap();
    let base = freezer.then(|| CgroupBase::create(&journal).unwrap());
    Some((journal, base))
}

fn finish(journal: &Journal) -> RestoreReport {
    let report = restore(journal);
    assert!(report.is_complete(), "{report:?}");
    assert!(!journal.path().exists());
    assert!(groups_of(std::process::id() as i32).is_empty());
    report
}

fn adopted_process_comes_back(freezer: bool) {
    let _alone = alone();
    let Some((journal, base)) = setup(freezer) else { return };
    let victim = Victim::start();
    let before = Snapshot::of(victim.pid());
    let park = Park::for_process(&journal, base.as_ref(), victim.pid(), "victim").unwrap();
    let adopted = adopt(&journal, victim.pid(), &park).unwrap();
    let threads = Threads::new(&park, 64, 1);
    assert!(threads.rescan(&park.threads()).unwrap() >= 4);
    threads.set_level(30).unwrap();
    park.set_level(30);
    for _ in 0..5 {
        park.park().unwrap();
        eventually("it stands still", || park.is_parked().unwrap());
        let n = cpu_switches(victim.pid());
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(cpu_switches(victim.pid()), n, "it ran while parked");
        park.resume().unwrap();
        eventually("it goes on", || cpu_switches(victim.pid()) > n);
        threads.rescan(&park.threads()).unwrap();
        assert_eq!(attributes(victim.pid()).map(|a| (a.0, a.1)), Some((policy(freezer), 30)));
    }
    park.park().unwrap();
    let report = adopted.give_back(&park);
    assert!(report.is_complete() && report.given_back >= 1 && report.threads >= 4, "{report:?}");
    park.remove().unwrap();
    assert_eq!(Snapshot::of(victim.pid()), before);
    assert_no_fifo(victim.pid());
    let n = cpu_switches(victim.pid());
    eventually("it goes on", || cpu_switches(victim.pid()) > n);
    assert_eq!(finish(&journal).given_back, 0);
}

#[test]
fn adopted_by_freezer_a_process_with_many_kinds_of_threads_stands_still_and_comes_back_as_it_was() {
    adopted_process_comes_back(true);
}

#[test]
fn adopted_by_stop_signals_a_process_with_many_kinds_of_threads_stands_still_and_comes_back_as_it_was() {
    adopted_process_comes_back(false);
}

#[test]
fn held_at_its_exec_a_command_executes_nothing_until_its_release() {
    let _alone = alone();
    let Some((journal, _)) = setup(false) else { return };
    let mark = state_dir().join("held-mark");
    let _ = std::fs::remove_file(&mark);
    let park = Park::for_command(&journal, None, "touch").unwrap();
    let words = ["touch".into(), mark.clone().into_os_string()];
    let mut child = spawn(&journal, CommandSpec { hold: Hold::AtExec, ..CommandSpec::new(words, 1) }, &park).unwrap();
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
    let mut spec = CommandSpec::new(["touch".into(), mark.clone().into_os_string()], 1);
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
fn a_command_that_cannot_start_is_one_clear_error_and_leaves_nothing() {
    let _alone = alone();
    let Some((journal, base)) = setup(true) else { return };
    let park = Park::for_command(&journal, base.as_ref(), "bad").unwrap();
    let script = state_dir().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let text = state_dir().join("text");
    std::fs::write(&text, "hello\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let cases = [
        ("no-such-program", "there is no program"),
        (text.to_str().unwrap(), "may not be executed"),
        (script.to_str().unwrap(), "interpreter"),
    ];
    for (name, words) in cases {
        let e = spawn(&journal, CommandSpec::new([name], 1), &park).unwrap_err();
        assert!(e.cause.contains(words) && e.exit_code() == 2, "{e}");
    }
    assert!(park.procs().is_empty());
    finish(&journal);
}

#[test]
fn refusals_name_the_process_and_change_nothing() {
    let _alone = alone();
    let Some((journal, base)) = setup(true) else { return };
    let victim = Victim::start();
    let park = Park::for_process(&journal, base.as_ref(), victim.pid(), "x").unwrap();
    let thread = *threads_of(victim.pid()).iter().find(|t| **t != victim.pid()).unwrap();
    // SAFETY: passes no memory.
    let parent = unsafe { libc::getppid() };
    for (pid, words) in [
        (0, "no process"),
        (-1, "no process"),
        (4_194_303, "no process"),
        (1, "init"),
        (2, "kernel thread"),
        (std::process::id() as i32, "ourselves"),
        (parent, "started us"),
        (thread, "is a thread of process"),
    ] {
        let e = adopt(&journal, pid, &park).unwrap_err();
        assert!(e.cause.contains(words) && e.exit_code() == 2, "{pid}: {e}");
    }
    let guardian = Guardian::start(&journal, &[]).unwrap();
    assert!(adopt(&journal, guardian.pid(), &park).unwrap_err().cause.contains("guardian"));
    let _adopted = adopt(&journal, victim.pid(), &park).unwrap();
    assert!(adopt(&journal, victim.pid(), &park).unwrap_err().cause.contains("already adopted"));
    finish(&journal);
    guardian.dismiss();
}

fn descendants_die(freezer: bool) {
    let _alone = alone();
    let Some((journal, base)) = setup(freezer) else { return };
    let park = Park::for_command(&journal, base.as_ref(), "tree").unwrap();
    // A daemon that changes its session and whose parent ends, a child that ignores SIGTERM, a grandchild.
    let script = "setsid sleep 41 & (trap '' TERM; sleep 42; sleep 43) & (sleep 44 & sleep 45) & sleep 46";
    let child = spawn(&journal, CommandSpec::new(["sh", "-c", script], 1), &park).unwrap();
    child.release(&park).unwrap();
    let ours = || {
        let marks = ["41", "42", "44", "45", "46"];
        let all = descendants(&[std::process::id() as i32]);
        let cmd = |p: i32| std::fs::read_to_string(format!("/proc/{p}/cmdline")).unwrap_or_default();
        all.into_iter().filter(|p| marks.iter().any(|m| cmd(*p) == format!("sleep\0{m}\0"))).collect::<Vec<_>>()
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

/// No stop signal reaches a child that the housekeeper has not found. At its parent's real-time level one that spins would keep
/// the CPU from the housekeeper.
#[test]
fn by_stop_signals_a_child_is_an_ordinary_process_until_it_is_found() {
    let _alone = alone();
    let Some((journal, base)) = setup(false) else { return };
    let park = Park::for_command(&journal, base.as_ref(), "parent").unwrap();
    let mut spec = CommandSpec::new(["sh", "-c", "sleep 48 & sleep 49"], 1);
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
    // In a session of its own, and nobody looked before its parent was gone.
    let mut child = spawn(&journal, CommandSpec::new(["sh", "-c", "setsid sleep 47 & exit 0"], 1), &park).unwrap();
    child.release(&park).unwrap();
    eventually("its first process has ended", || child.try_wait().unwrap().is_some());
    eventually("the daemon runs", || sleeping("47").is_some());
    finish(&journal);
    eventually("the daemon is gone", || sleeping("47").is_none());
}

/// The process `sleep SECONDS`.
fn sleeping(seconds: &str) -> Option<i32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let command = format!("sleep\0{seconds}\0").into_bytes();
    pids.find(|p| std::fs::read(format!("/proc/{p}/cmdline")).is_ok_and(|c| c == command))
}

#[test]
fn commands_end_with_all_that_they_started_and_a_dead_guardian_is_replaced() {
    let _alone = alone();
    let mut commands = Commands::new(&[]).unwrap();
    let words = ["sh", "-c", "setsid sleep 53 & exit 3"];
    commands.start(CommandSpec { cpu: None, ..CommandSpec::new(words, 0) }, "daemon").unwrap();
    let guardian = || {
        let comm = |p: &i32| std::fs::read_to_string(format!("/proc/{p}/comm")).unwrap_or_default();
        descendants(&[std::process::id() as i32]).into_iter().find(|p| comm(p).trim() == "punctual-guard")
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
        commands.start(CommandSpec { cpu: None, ..CommandSpec::new(words, 0) }, "sleep").unwrap();
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
    let pid = commands.start(CommandSpec { cpu: None, ..CommandSpec::new(words, 0) }, "touch").unwrap().id().pid;
    drop(commands);
    assert!(Identity::of(pid).is_none() && !mark.exists());
}

#[test]
fn output_goes_where_the_run_wants_it() {
    let _alone = alone();
    let link = |of: &dyn std::fmt::Display, fd: i32| std::fs::read_link(format!("/proc/{of}/fd/{fd}")).unwrap();
    let (null, of_ours) = (std::path::PathBuf::from("/dev/null"), |fd| link(&"self", fd));
    let mut commands = Commands::new(&[]).unwrap();
    for (output, stdin, expected) in [
        (Output::Inherit, true, [of_ours(0), of_ours(1), of_ours(2)]),
        (Output::StandardError, false, [null.clone(), of_ours(2), of_ours(2)]),
        (Output::Nowhere, false, [null.clone(), null.clone(), null.clone()]),
    ] {
        let spec = CommandSpec { cpu: None, streams: output.streams(stdin), ..CommandSpec::new(["true"], 0) };
        let pid = commands.start(spec, "true").unwrap().id().pid;
        assert_eq!([0, 1, 2].map(|fd| link(&pid, fd)), expected, "{output:?}");
    }
}

#[test]
fn a_journal_does_nothing_to_a_process_that_got_the_number_of_another() {
    let _alone = alone();
    let Some((journal, _)) = setup(false) else { return };
    let mut bystander = std::process::Command::new("sleep").arg("30").spawn().unwrap();
    let id = Identity::of(bystander.id() as i32).unwrap();
    // What an earlier process of that number would have left: its child, its stopped process, its records.
    let lines = format!(
        "{{\"what\":\"child\",\"id\":{{\"pid\":{0},\"start\":{1}}}}}\n{{\"what\":\"stopping\",\"id\":{{\"pid\":{0},\"start\":{1}}}}}\n",
        id.pid,
        id.start - 1
    );
    use std::io::Write;
    std::fs::OpenOptions::new().append(true).open(journal.path()).unwrap().write_all(lines.as_bytes()).unwrap();
    kill(id.pid, libc::SIGSTOP);
    eventually("it is stopped", || state_of(id.pid) == Some('T'));
    let report = finish(&journal);
    assert_eq!((report.killed, report.continued), (0, 0));
    assert_eq!(state_of(id.pid), Some('T'));
    bystander.kill().unwrap();
    await_end(&mut bystander);
}

#[test]
fn a_process_that_was_stopped_before_is_stopped_again_afterwards() {
    let _alone = alone();
    for freezer in [false, true] {
        let Some((journal, base)) = setup(freezer) else { return };
        let mut p = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let pid = p.id() as i32;
        kill(pid, libc::SIGSTOP);
        eventually("it is stopped", || state_of(pid) == Some('T'));
        let park = Park::for_process(&journal, base.as_ref(), pid, "sleep").unwrap();
        let _adopted = adopt(&journal, pid, &park).unwrap();
        park.resume().unwrap();
        finish(&journal);
        eventually("it is stopped", || state_of(pid) == Some('T'));
        p.kill().unwrap();
        await_end(&mut p);
    }
}

#[test]
fn a_cpu_has_one_dispatcher_and_the_refusal_names_it() {
    let _alone = alone();
    let lock = CpuLock::take(1, "first one").unwrap();
    let e = CpuLock::take(1, "second one").unwrap_err();
    assert!(
        e.cause.contains("first one") && e.cause.contains(&std::process::id().to_string()) && e.exit_code() == 4,
        "{e}"
    );
    CpuLock::take(0, "another CPU").unwrap();
    // A command that runs on must not hold it.
    if let Some((journal, base)) = setup(true) {
        let park = Park::for_command(&journal, base.as_ref(), "sleep").unwrap();
        let _child = spawn(&journal, CommandSpec::new(["sleep", "30"], 1), &park).unwrap();
        drop(lock);
        CpuLock::take(1, "third one").unwrap();
        finish(&journal);
    }
}

#[test]
fn missing_cpus_and_privileges_are_told() {
    let _alone = alone();
    let e = check_privileges(&[100_000]).unwrap_err();
    assert!(e.cause.contains("no CPU 100000") && e.exit_code() == 2, "{e}");
    if !permitted(false) {
        return;
    }
    check_privileges(&[0, 1]).unwrap();
    // As an ordinary user (nobody), in a process of its own.
    let out = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "unprivileged", "--nocapture"])
        .env("PUNCTUAL_TEST_ROLE", "unprivileged")
        .output();
    match out {
        Ok(out) if out.status.success() => {
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            assert!(text.contains("SCHED_FIFO 99 is refused") && text.contains("setcap"), "{text}");
        }
        other => {
            eprintln!("NOT TESTED: cannot become nobody (setpriv, or the test binary out of its reach): {other:?}")
        }
    }
}

/// A role: nothing unless it was started for it.
#[test]
fn unprivileged() {
    if is_role("unprivileged") {
        println!("{}", check_privileges(&[0]).unwrap_err());
    }
}

#[test]
fn a_group_without_real_time_is_told_with_its_cure() {
    let _alone = alone();
    let v1 = std::path::Path::new("/sys/fs/cgroup/cpu");
    if !permitted(true) || !v1.join("cpu.rt_runtime_us").exists() {
        eprintln!("NOT TESTED: no v1 cpu controller with CONFIG_RT_GROUP_SCHED here");
        return;
    }
    let dir = v1.join(format!("punctual-test-{}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();
    let mut p = std::process::Command::new("sleep").arg("30").spawn().unwrap();
    std::fs::write(dir.join("cgroup.procs"), p.id().to_string()).unwrap();
    let (journal, base) = setup(true).unwrap();
    let park = Park::for_process(&journal, base.as_ref(), p.id() as i32, "x").unwrap();
    let e = adopt(&journal, p.id() as i32, &park).unwrap_err();
    assert!(e.cause.contains("cpu.rt_runtime_us is 0") && e.help.contains("cgroup.procs") && e.exit_code() == 4, "{e}");
    finish(&journal);
    p.kill().unwrap();
    await_end(&mut p);
    eventually("the group is empty", || std::fs::remove_dir(&dir).is_ok());
}

#[test]
fn usage_is_exact_for_what_ran_on_the_same_cpu() {
    let _alone = alone();
    let Some((journal, base)) = setup(true) else { return };
    let park = Park::for_command(&journal, base.as_ref(), "burn").unwrap();
    let mut spec = CommandSpec::new(
        ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; cat /proc/self/stat; times"],
        1,
    );
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
