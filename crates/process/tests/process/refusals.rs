//! What the machine, or a command line, does not permit.

use crate::common::*;
use crate::{finish, setup};
use punctual_process::*;
use punctual_test_support::ignored;

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
        let e = spawn(&journal, CommandSpec::new([name]).on(1), &park).unwrap_err();
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

#[test]
fn a_cpu_has_one_dispatcher_and_the_refusal_names_it() {
    let _alone = alone();
    let lock = CpuLock::take(1, "first one").unwrap();
    let e = CpuLock::take(1, "second one").unwrap_err();
    assert!(
        e.cause.contains("first one")
            && e.cause.contains(&std::process::id().to_string())
            && e.exit_code() == 4,
        "{e}"
    );
    CpuLock::take(0, "another CPU").unwrap();
    // A command that runs on must not hold it.
    if let Some((journal, base)) = setup(true) {
        let park = Park::for_command(&journal, base.as_ref(), "sleep").unwrap();
        let _child = spawn(&journal, CommandSpec::new(["sleep", "30"]).on(1), &park).unwrap();
        drop(lock);
        CpuLock::take(1, "third one").unwrap();
        finish(&journal);
    }
}

#[test]
fn missing_cpus_and_privileges_are_named() {
    let _alone = alone();
    let e = check_privileges(&[100_000]).unwrap_err();
    assert!(e.cause.contains("no CPU 100000") && e.exit_code() == 2, "{e}");
    if !permitted(false) {
        return;
    }
    check_privileges(&[0, 1]).unwrap();
    // As an ordinary user, in a process of its own.
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
        other => ignored(format_args!(
            "cannot become user 65534 (setpriv, or the test binary is out of its reach): {other:?}"
        )),
    }
}

#[test]
fn a_group_without_real_time_is_named_with_its_help() {
    let _alone = alone();
    let v1 = std::path::Path::new("/sys/fs/cgroup/cpu");
    if !permitted(true) {
        return;
    }
    if !v1.join("cpu.rt_runtime_us").exists() {
        return ignored("no v1 cpu controller with CONFIG_RT_GROUP_SCHED");
    }
    let dir = v1.join(format!("punctual-test-{}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();
    let mut p = std::process::Command::new("sleep").arg("30").spawn().unwrap();
    std::fs::write(dir.join("cgroup.procs"), p.id().to_string()).unwrap();
    let (journal, base) = setup(true).unwrap();
    let park = Park::for_process(&journal, base.as_ref(), p.id() as i32, "x").unwrap();
    let e = adopt(&journal, p.id() as i32, &park).unwrap_err();
    assert!(
        e.cause.contains("cpu.rt_runtime_us is 0")
            && e.help.contains("cgroup.procs")
            && e.exit_code() == 4,
        "{e}"
    );
    finish(&journal);
    p.kill().unwrap();
    await_end(&mut p);
    eventually("the group is empty", || std::fs::remove_dir(&dir).is_ok());
}
