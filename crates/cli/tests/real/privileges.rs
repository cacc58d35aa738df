//! Without root: what is missing is named with its help, and with just that it works.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use punctual_test_support::{ignored, judge_timing};

use crate::kills::NEEDS;
use crate::machine::{one_cpu, permitted, wait_for_cpu, Need, Random};
use crate::process::{eventually, kill};
use crate::punctual::{
    adversarial, assert_nothing_left, patiently, run_on, Ended, Running, Scratch, PUNCTUAL,
};

pub const UNPRIVILEGED: u32 = 65534;

/// Every user may enter it.
pub fn open_folder(folder: &Path) {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A copy of the command that every user may execute.
pub struct Elsewhere {
    pub punctual: String,
    helper: String,
    _scratch: Scratch,
}

/// What an ordinary user was given.
#[derive(Clone, Copy)]
enum Given {
    Nothing,
    /// CAP_SYS_NICE, but little memory to lock.
    Priority,
    /// CAP_SYS_NICE and CAP_IPC_LOCK, as `setcap` gives them.
    Capabilities,
    /// RLIMIT_RTPRIO and RLIMIT_MEMLOCK, as limits.conf gives them.
    Limits,
}

impl Given {
    /// What stands before the command to make it so.
    fn words(self) -> Vec<&'static str> {
        let unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let (limits, more): (&[&str], &[&str]) = match self {
            Given::Nothing => (&["prlimit", "--memlock=65536", "--rtprio=0"], &[]),
            Given::Priority => (
                &["prlimit", "--memlock=65536"],
                &["--inh-caps=+sys_nice", "--ambient-caps=+sys_nice"],
            ),
            Given::Capabilities => {
                (&[], &["--inh-caps=+sys_nice,+ipc_lock", "--ambient-caps=+sys_nice,+ipc_lock"])
            }
            Given::Limits => (&["prlimit", "--memlock=unlimited", "--rtprio=99"], &[]),
        };
        limits.iter().chain(&unprivileged).chain(more).copied().collect()
    }

    /// Where root itself may not raise limits (a container without CAP_SYS_RESOURCE), says so.
    fn is_possible(self) -> bool {
        let words = self.words();
        let tried =
            Command::new(words[0]).args(&words[1..]).arg("true").stderr(Stdio::null()).status();
        let possible = tried.is_ok_and(|s| s.success());
        if !possible {
            ignored(format_args!("in part: this machine refuses it to root: {}", words.join(" ")));
        }
        possible
    }
}

impl Elsewhere {
    pub fn new() -> Elsewhere {
        let scratch = Scratch::new();
        let open = |p: &str| open_folder(Path::new(p));
        open_folder(scratch.folder());
        let (punctual, helper) = (scratch.path("punctual"), scratch.path("helper"));
        // Each has a hundred megabytes, and in a virtual machine the files are in its memory.
        let place = |from: &Path, to: &str| {
            std::fs::hard_link(from, to).or_else(|_| std::fs::copy(from, to).map(drop)).unwrap();
            open(to);
        };
        place(PUNCTUAL.as_ref(), &punctual);
        place(&std::env::current_exe().unwrap(), &helper);
        Elsewhere { punctual, helper, _scratch: scratch }
    }

    /// As an ordinary user, with what it was given.
    fn start(&self, given: Given, args: &[impl AsRef<OsStr>]) -> Running {
        let mark = crate::punctual::new_mark();
        let words = given.words();
        let mut c = Command::new(words[0]);
        c.args(&words[1..]).arg(&self.punctual).args(args);
        c.env("PUNCTUAL_TEST_MARK", &mark).env_remove("XDG_RUNTIME_DIR").current_dir("/");
        c.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::of(c, mark)
    }

    fn run(&self, given: Given, args: &[impl AsRef<OsStr>]) -> Ended {
        patiently(|| self.start(given, args).end())
    }
}

/// Whether the unprivileged run `pid` has removed its journals.
fn journal_is_gone(pid: i32) -> bool {
    let files =
        std::fs::read_dir(format!("/tmp/punctual-{UNPRIVILEGED}")).into_iter().flatten().flatten();
    !files.map(|f| f.file_name()).any(|name| name.to_string_lossy().starts_with(&format!("{pid}-")))
}

fn single(cpu: u32, program: &[&str]) -> Vec<String> {
    let mut words = run_on(cpu, "--period 20ms --budget 5ms --duration 600ms --json --");
    words.extend(program.iter().map(|w| (*w).to_owned()));
    words
}

#[test]
fn without_privileges_it_says_which_and_how_to_get_them() {
    if !permitted(&[Need::Root]) {
        return;
    }
    let (elsewhere, cpu) = (Elsewhere::new(), one_cpu());
    let args = run_on(cpu.0, "--period 10ms --budget 1ms -- true");
    let ended = elsewhere.run(Given::Nothing, &args);
    ended.assert_code(125).assert_says(&[
        "SCHED_FIFO 99 is refused",
        "setcap cap_sys_nice,cap_ipc_lock+ep",
        "rtprio 99",
    ]);
    ended.assert_nothing_left(&[cpu.0]);
    // One of the two is not enough.
    let ended = elsewhere.run(Given::Priority, &args);
    ended.assert_code(125).assert_says(&[
        "64 KiB of memory may be locked",
        "CAP_IPC_LOCK",
        "memlock",
    ]);
    ended.assert_nothing_left(&[cpu.0]);
}

#[test]
fn measuring_determinism_says_so_too() {
    if !permitted(&[Need::Root]) {
        return;
    }
    let (elsewhere, cpu) = (Elsewhere::new(), one_cpu());
    let number = cpu.0.to_string();
    let args = ["measure", "determinism", "--duration", "1s", "--cpu", &number];
    let ended = elsewhere.run(Given::Nothing, &args);
    ended
        .assert_code(4)
        .assert_says(&["SCHED_FIFO 99 is refused", "setcap cap_sys_nice,cap_ipc_lock+ep"]);
    let ended = elsewhere.run(Given::Priority, &args);
    ended.assert_code(4).assert_says(&["64 KiB of memory may be locked", "CAP_IPC_LOCK"]);
}

#[test]
fn with_just_those_an_ordinary_user_s_budgets_hold() {
    if !permitted(&NEEDS) {
        return;
    }
    let (elsewhere, cpu) = (Elsewhere::new(), one_cpu());
    let helper = elsewhere.helper.clone();
    for given in [Given::Capabilities, Given::Limits] {
        if !given.is_possible() {
            continue;
        }
        // Without a cgroup of its own it is parked by stop signals, and a note says so.
        for role in [
            "adversarial:spin",
            "adversarial:spin-threads",
            "adversarial:late-threads",
            "adversarial:exec",
            "adversarial:deaf",
        ] {
            let args = single(cpu.0, &[&helper, role]);
            let ended = elsewhere.run(given, &args);
            let results = ended.assert_timed_out().result();
            ended.assert_nothing_left(&[cpu.0]);
            eventually("its journal is gone", || journal_is_gone(ended.pid));
            assert!(results["notes"].to_string().contains("SIGSTOP"), "{:#}", results["notes"]);
            judge_timing(|| {
                let t = &results["tasks"][0];
                let share = t["received_ns"].as_u64().unwrap() * 100
                    / t["assigned_ns"].as_u64().unwrap().max(1);
                assert!((90..=110).contains(&share), "{role} got {share} %: {results:#}");
            });
        }
    }
    // Processes that come later are found late (docs/faults.md), but found.
    for role in ["adversarial:family", "adversarial:daemon", "adversarial:fork-storm"] {
        let ended = elsewhere.run(Given::Capabilities, &single(cpu.0, &[&helper, role]));
        ended.assert_ran().assert_nothing_left(&[cpu.0]);
        eventually("its journal is gone", || journal_is_gone(ended.pid));
    }
}

#[test]
fn an_ordinary_user_s_run_that_is_killed_leaves_nothing_either() {
    if !permitted(&NEEDS) {
        return;
    }
    let (elsewhere, cpu, mut random) = (Elsewhere::new(), one_cpu(), Random::seeded(7));
    let helper = elsewhere.helper.clone();
    for _ in 0..6 {
        wait_for_cpu(cpu.0);
        let mut punctual =
            elsewhere.start(Given::Capabilities, &single(cpu.0, &[&helper, "adversarial:family"]));
        punctual.wait_for("its guardian", |p| p.guardian().is_some());
        std::thread::sleep(Duration::from_micros(random.below(200_000)));
        kill(punctual.pid(), libc::SIGKILL);
        assert_nothing_left(punctual.pid(), &punctual.mark, &[cpu.0]);
        punctual.reap();
        eventually("its journal is gone", || journal_is_gone(punctual.pid()));
    }
}

#[test]
fn a_cgroup_that_forbids_real_time_is_named_with_its_help() {
    if !permitted(&NEEDS) {
        return;
    }
    let v1 = std::path::Path::new("/sys/fs/cgroup/cpu");
    if !v1.join("cpu.rt_runtime_us").exists() {
        return ignored("there is no cpu.rt_runtime_us (CONFIG_RT_GROUP_SCHED with cgroup v1)");
    }
    let cpu = one_cpu();
    let group = v1.join(crate::punctual::new_mark());
    std::fs::create_dir(&group).unwrap();
    assert_eq!(std::fs::read_to_string(group.join("cpu.rt_runtime_us")).unwrap().trim(), "0");
    let procs = group.join("cgroup.procs");

    let inside = |c: &mut Command| {
        let path = std::ffi::CString::new(procs.to_str().unwrap()).unwrap();
        // SAFETY: system calls only, between fork and exec.
        unsafe {
            c.pre_exec(move || {
                let fd = libc::open(path.as_ptr(), libc::O_WRONLY);
                let done = libc::write(fd, c"0".as_ptr().cast(), 1);
                libc::close(fd);
                (done == 1).then_some(()).ok_or_else(std::io::Error::last_os_error)
            });
        }
    };
    let refused = Running::from(|c| {
        inside(c);
        c.args(run_on(cpu.0, "--period 10ms --budget 1ms -- true"))
    })
    .end();

    // And a process in it cannot be adopted.
    let words = adversarial("spin");
    let mut c = Command::new(&words[0]);
    c.args(&words[1..]);
    inside(&mut c);
    let mut inmate = c.spawn().unwrap();
    let options = format!("--period 10ms --budget 1ms --pid {}", inmate.id());
    let adopted = crate::punctual::run(&run_on(cpu.0, &options));
    let state = crate::process::state_of(inmate.id() as i32);
    inmate.kill().unwrap();
    crate::bounded::wait(&mut inmate);
    eventually("the group can go", || std::fs::remove_dir(&group).is_ok());

    let name = group.to_str().unwrap();
    let words = ["cpu.rt_runtime_us is 0", name, "CONFIG_RT_GROUP_SCHED", "echo 900000 >"];
    refused.assert_code(125).assert_says(&words).assert_nothing_left(&[cpu.0]);
    adopted.assert_code(4).assert_says(&words).assert_nothing_left(&[cpu.0]);
    assert_eq!(state, Some('R'), "and continues as it was");
}
