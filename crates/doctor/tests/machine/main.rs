//! The machine itself: what can be toggled is toggled, the finding follows, and all is put back.
//!
//! Children run this same test binary (`speaks_when_asked`) as another user, in another cgroup or
//! with other limits. Help is executed word for word.

mod stage;

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use punctual_doctor::{examine, exit_code, Document, Probe, Severity};
use punctual_test_support::{comes_true, ignored, missing};

use stage::{alone, get, listen, now, root, Kept, Killed, RemoveDir, Stage, ASKED, UNPRIVILEGED};

#[test]
fn speaks_when_asked() {
    if std::env::var_os(ASKED).is_some() {
        let machine = Probe::machine();
        let document = Document::new(&machine, examine(&machine));
        println!("BEGIN-DOCUMENT{}END-DOCUMENT", serde_json::json!(document));
    }
}

#[test]
fn throttling_is_read_at_that_moment() {
    let _alone = alone();
    if !root() {
        return;
    }
    let path = "/proc/sys/kernel/sched_rt_runtime_us";
    let Some(kept) = Kept::new(path) else {
        return ignored("sched_rt_runtime_us is not writable");
    };
    if kept.before == "-1" {
        return ignored("throttling is off already");
    }
    fs::write(path, "-1").unwrap();
    let off = now("rt-throttling");
    assert_eq!(off.verdict, Severity::Info, "{off:#?}");
    assert_eq!((off.value[0].from.as_str(), off.value[0].read.as_str()), (path, "-1"));
    assert!(follow_help(&off.help[0]));
    assert_eq!(now("rt-throttling").verdict, Severity::Good);
    drop(kept);
    let on = now("rt-throttling");
    assert_ne!(on.value[0].read, "-1");
}

/// Runs one help as it is printed.
fn follow_help(help: &str) -> bool {
    Command::new("sh").args(["-c", help]).stdout(Stdio::null()).status().unwrap().success()
}

#[test]
fn an_ordinary_user_is_refused_and_the_capability_helps() {
    let _alone = alone();
    if !root() {
        return;
    }
    if !follow_help("command -v setcap > /dev/null") {
        return missing("setcap (package libcap2-bin)");
    }
    let stage = Stage::new();
    let before = stage.run_unprivileged("$DOCTOR");
    let refused = get(&before[0].findings, "realtime-permitted");
    assert_eq!(refused.verdict, Severity::Obstacle, "{refused:#?}");
    assert!(
        refused.cause.contains("CAP_SYS_NICE") && refused.cause.contains("RTPRIO"),
        "{refused:#?}"
    );
    assert_eq!(exit_code(&before[0].findings), 4);
    assert_eq!(get(&before[0].findings, "capabilities").verdict, Severity::Info);
    assert_eq!(get(&before[0].findings, "realtime-priority-limit").verdict, Severity::Info);

    let setcap = &refused.help[0];
    assert!(setcap.starts_with("setcap "), "{refused:#?}");
    stage.run(setcap);
    let after = stage.run_unprivileged("$DOCTOR");
    let granted = get(&after[0].findings, "realtime-permitted");
    assert_eq!(granted.verdict, Severity::Good, "{granted:#?}");
    assert_eq!(get(&after[0].findings, "locked-memory").verdict, Severity::Good);
    assert_eq!(exit_code(&after[0].findings), 0);
}

#[test]
fn the_limit_of_real_time_priority_is_followed() {
    let _alone = alone();
    if !root() {
        return;
    }
    let stage = Stage::new();
    let limit = libc::rlimit { rlim_cur: 50, rlim_max: 99 };
    // SAFETY: `limit` is a valid rlimit; only a forked child sets it, on itself.
    let raise = move || unsafe { libc::setrlimit(libc::RLIMIT_RTPRIO, &limit) };
    let with_limit = |script: &str| {
        let mut command = stage.command(script);
        // std sets the user before pre_exec, and only root may raise the limit: so setpriv comes
        // last. SAFETY: setrlimit is async-signal-safe.
        unsafe {
            command.pre_exec(move || match raise() {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
        command
    };
    if with_limit("true").status().is_err() {
        // Not a failure in CI: some machines withhold this one capability from their own root.
        return ignored("raising RLIMIT_RTPRIO needs CAP_SYS_RESOURCE, which root has not here");
    }
    let docs = listen(with_limit(
        "drop='setpriv --reuid=65534 --regid=65534 --clear-groups'; $drop $DOCTOR; ulimit -r 99; \
         $drop $DOCTOR",
    ));
    let half = get(&docs[0].findings, "realtime-permitted");
    assert_eq!(half.verdict, Severity::Obstacle, "{half:#?}");
    assert!(half.cause.contains("RTPRIO is 50"), "{half:#?}");
    let whole = get(&docs[1].findings, "realtime-permitted");
    assert_eq!(whole.verdict, Severity::Good, "{whole:#?}");
    assert_eq!(get(&docs[1].findings, "realtime-priority-limit").verdict, Severity::Good);
}

#[test]
fn a_cgroup_without_real_time_runtime_is_an_obstacle_with_two_remedies() {
    let _alone = alone();
    if !root() {
        return;
    }
    let top = Path::new("/sys/fs/cgroup/cpu");
    if !top.join("cpu.rt_runtime_us").exists() {
        return ignored("no cpu hierarchy of version 1 with RT_GROUP_SCHED here");
    }
    let group = top.join(format!("punctual-doctor-{}", std::process::id()));
    fs::create_dir(&group).unwrap();
    let _removed = RemoveDir(group.clone());
    let stage = Stage::new();
    let enter = format!("echo $$ > {}/cgroup.procs", group.display());

    let docs = stage.run(&format!("{enter}; $DOCTOR"));
    let f = get(&docs[0].findings, "rt-group-sched");
    assert_eq!(f.verdict, Severity::Obstacle, "{f:#?}");
    let permitted = get(&docs[0].findings, "realtime-permitted");
    assert_eq!(permitted.verdict, Severity::Obstacle, "{permitted:#?}");
    assert!(permitted.cause.contains("RT_GROUP_SCHED"), "{permitted:#?}");
    assert_eq!(exit_code(&docs[0].findings), 4);

    let commands: Vec<&String> = f.help.iter().filter(|c| !c.starts_with('#')).collect();
    assert!(commands.len() >= 2, "{f:#?}");
    for help in &commands[..2] {
        let docs = stage.run(&format!("{enter}; {help}; $DOCTOR"));
        assert_eq!(get(&docs[0].findings, "realtime-permitted").verdict, Severity::Good, "{help}");
        assert_ne!(get(&docs[0].findings, "rt-group-sched").verdict, Severity::Obstacle, "{help}");
    }
}

#[test]
fn limits_are_followed() {
    let _alone = alone();
    if !root() {
        return;
    }
    let stage = Stage::new();
    let docs = stage.run("ulimit -S -n 64; $DOCTOR; ulimit -n 512; $DOCTOR");
    let few = get(&docs[0].findings, "open-files");
    assert_eq!(few.verdict, Severity::Warning, "{few:#?}");
    assert_eq!(few.help, ["ulimit -n 512"]);
    assert_eq!(get(&docs[1].findings, "open-files").verdict, Severity::Good);

    let docs = stage.run_unprivileged("ulimit -l 64; $DOCTOR");
    let locked = get(&docs[0].findings, "locked-memory");
    assert_eq!(locked.verdict, Severity::Obstacle, "{locked:#?}");
    assert!(locked.cause.contains("65536 bytes"), "{locked:#?}");
}

#[test]
fn a_delegated_cgroup_permits_the_freezer() {
    let _alone = alone();
    if !root() {
        return;
    }
    let stage = Stage::new();
    let here = get(&examine(&Probe::machine()), "cgroup-version");
    if here.verdict != Severity::Good {
        return ignored("no cgroup version 2 here");
    }
    // The unprivileged shell asks, waits until root has executed the help, and asks again.
    let mut command = stage.command("$DOCTOR; read go; $DOCTOR; exit 0");
    let mut child = command
        .uid(UNPRIVILEGED)
        .gid(UNPRIVILEGED)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut received = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    while !received.contains("END-DOCUMENT") {
        assert!(std::io::BufRead::read_line(&mut out, &mut received).unwrap() > 0, "{received}");
    }
    let parse = |text: &str| -> Document {
        let body =
            text.split("BEGIN-DOCUMENT").nth(1).unwrap().split("END-DOCUMENT").next().unwrap();
        serde_json::from_str(body).unwrap()
    };
    let before = get(&parse(&received).findings, "freezer");
    assert_eq!(before.verdict, Severity::Warning, "{before:#?}");
    let dir = before.help[0].split_whitespace().nth(2).unwrap().to_string();
    let _outer = RemoveDir(Path::new(&dir).parent().unwrap().into());
    let _inner = RemoveDir(dir.into());
    for help in before.help.iter().filter(|c| !c.starts_with('#')) {
        assert!(follow_help(help), "{help}");
    }
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    let after = get(&parse(&rest).findings, "freezer");
    assert_eq!(after.verdict, Severity::Good, "{after:#?}");
}

#[test]
fn affinity_of_ourselves_and_of_interrupts_is_followed() {
    let _alone = alone();
    if !root() {
        return;
    }
    let stage = Stage::new();
    let docs = stage.run("taskset -c -p 0 $$ > /dev/null; $DOCTOR");
    let allowed = get(&docs[0].findings, "cpus-allowed");
    if docs[0].machine.cpus.len() < 2 {
        return ignored("needs two CPUs");
    }
    assert_eq!(docs[0].machine.allowed_cpus, [0]);
    assert_eq!(allowed.verdict, Severity::Info, "{allowed:#?}");
    let helped = stage
        .run(&format!("taskset -c -p 0 $$ > /dev/null; {} > /dev/null; $DOCTOR", allowed.help[0]));
    assert_eq!(get(&helped[0].findings, "cpus-allowed").verdict, Severity::Good);

    let path = "/proc/irq/default_smp_affinity";
    let Some(_kept) = Kept::new(path) else {
        return ignored("default_smp_affinity is not writable");
    };
    let all: u64 = docs[0].machine.cpus.iter().fold(0, |m, c| m | 1 << c);
    fs::write(path, format!("{all:x}")).unwrap();
    let everywhere = now("irq-default-affinity");
    assert_eq!(everywhere.verdict, Severity::Info, "{everywhere:#?}");
    assert!(follow_help(&everywhere.help[0]));
    assert_eq!(now("irq-default-affinity").verdict, Severity::Good);
}

#[test]
fn a_thread_of_the_highest_priority_is_named() {
    let _alone = alone();
    if !root() {
        return;
    }
    let Ok(child) = Command::new("chrt").args(["--fifo", "99", "sleep", "60"]).spawn() else {
        return missing("chrt (package util-linux)");
    };
    let child = Killed(child);
    let name = format!("sleep ({}), SCHED_FIFO 99", child.0.id());
    let mut found = now("realtime-threads");
    for _ in 0..20 {
        if found.value.iter().any(|v| v.read == name) {
            break;
        }
        found = now("realtime-threads");
    }
    assert_eq!(found.verdict, Severity::Warning, "{found:#?}");
    let help = format!("chrt --fifo --pid 90 {}", child.0.id());
    if found.help.contains(&help) {
        assert!(follow_help(&help));
        assert!(!now("realtime-threads").help.contains(&help));
    } else {
        assert!(found.help.len() >= 5, "{found:#?}");
    }
}

#[test]
fn huge_pages_are_followed() {
    let _alone = alone();
    if !root() {
        return;
    }
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Ok(before) = fs::read_to_string(path) else {
        return ignored("no transparent huge pages here");
    };
    let mode = before.split(['[', ']']).nth(1).unwrap_or("madvise").to_string();
    let _kept = Kept { path: path.into(), before: mode };
    fs::write(path, "always").unwrap();
    let always = now("transparent-hugepages");
    assert_eq!(always.verdict, Severity::Info, "{always:#?}");
    assert!(follow_help(&always.help[0]));
    assert_eq!(now("transparent-hugepages").verdict, Severity::Good);
}

/// In a mount namespace of its own, so that no other process sees it.
#[test]
fn what_is_not_mounted_is_said_and_its_mount_helps() {
    let _alone = alone();
    if !root() {
        return;
    }
    let stage = Stage::new();
    let apart = |script: &str| stage.run(&format!("exec unshare --mount sh -ec '{script}'"));
    if !follow_help("unshare --mount true") {
        return ignored("unshare is refused");
    }
    // Whatever is mounted there is taken away first.
    let bare = "umount /sys/kernel/debug/tracing /sys/kernel/debug /sys/kernel/security 2> \
                /dev/null || true";
    let docs = apart(&format!(
        "{bare}; $DOCTOR; mount -t debugfs none /sys/kernel/debug; mount -t securityfs none \
         /sys/kernel/security; $DOCTOR"
    ));
    let (before, after) = (&docs[0].findings, &docs[1].findings);
    assert_eq!(get(before, "debugfs").verdict, Severity::Info);
    for id in ["hrtick", "hrtick-deadline", "fair-server"] {
        assert_eq!(get(before, id).verdict, Severity::Unknown, "{id}");
    }
    let lockdown = get(after, "lockdown");
    if lockdown.value.iter().any(|v| v.read.contains("[none]")) {
        assert_eq!(get(after, "debugfs").verdict, Severity::Good);
        for id in ["hrtick", "hrtick-deadline", "fair-server"] {
            assert_ne!(get(after, id).verdict, Severity::Unknown, "{id}");
        }
    } else if lockdown.verdict != Severity::Unknown {
        // Locked down: root too is refused, and no help may pretend otherwise.
        for id in ["hrtick", "hrtick-deadline", "fair-server", "debugfs"] {
            let f = get(after, id);
            assert!(f.help.iter().all(|c| c.starts_with('#')), "{f:#?}");
        }
    }
}

#[test]
fn a_missing_cgroup2_is_mounted_by_its_help() {
    let _alone = alone();
    if !root() {
        return;
    }
    let stage = Stage::new();
    let Some(mount) =
        now("cgroup-version").value[0].read.strip_prefix("cgroup2 on ").map(str::to_string)
    else {
        return ignored("no cgroup version 2 here");
    };
    let bare = format!("umount {mount}");
    if !follow_help(&format!("unshare --mount sh -ec '{bare}' 2> /dev/null")) {
        return ignored("cgroup version 2 cannot be unmounted here");
    }
    let apart = |script: &str| stage.run(&format!("exec unshare --mount sh -ec '{script}'"));
    let docs = apart(&format!("{bare}; $DOCTOR"));
    let without = get(&docs[0].findings, "cgroup-version");
    assert_eq!(without.verdict, Severity::Warning, "{without:#?}");
    assert_eq!(get(&docs[0].findings, "freezer").verdict, Severity::Warning);
    let docs = apart(&format!("{bare}; {}; $DOCTOR", without.help[0]));
    assert_eq!(get(&docs[0].findings, "cgroup-version").verdict, Severity::Good);
    assert_eq!(get(&docs[0].findings, "freezer").verdict, Severity::Good);
}

#[test]
fn an_examination_changes_nothing() {
    let _alone = alone();
    let files = [
        "/proc/self/mountinfo",
        "/proc/self/cgroup",
        "/proc/self/limits",
        "/proc/sys/kernel/sched_rt_runtime_us",
        "/proc/irq/default_smp_affinity",
    ];
    let read = || files.map(|f| fs::read_to_string(f).ok());
    // SAFETY: 0 is the calling thread.
    let policy = || unsafe { libc::sched_getscheduler(0) };
    let before = (read(), policy());
    examine(&Probe::machine());
    assert_eq!(before, (read(), policy()));
    // A thread that was joined may still be listed for a moment.
    let gone = || {
        let mut threads = fs::read_dir("/proc/self/task").unwrap().flatten();
        threads.all(|task| {
            fs::read_to_string(task.path().join("comm"))
                .map_or(true, |name| name.trim() != "doctor-fifo")
        })
    };
    assert!(comes_true(gone), "the thread that tried SCHED_FIFO is still there");
}
