//! Starting the command.

use std::ffi::OsStr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use punctual_test_support::{comes_true, judge_timing, LIVENESS};
pub use punctual_test_support::{Scratch, PUNCTUAL};
use serde_json::Value;

use crate::bounded::{end_all, end_within, tidy, wait, Said};
use crate::machine::{has_dispatcher, named_owner, wait_for_cpu};
use crate::process::{
    describe, eventually, groups_of, journals_of, marked, name_of, parent_of, pids, threads_of,
};

/// What a second dispatcher reports.
const TAKEN: &str = "already has a dispatcher";

fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// This test binary in a role, as words of a command.
pub fn adversarial(role: &str) -> Vec<String> {
    let mut words = vec![std::env::current_exe().unwrap().to_str().unwrap().to_owned()];
    let mut parts = role.split(' ');
    words.push(format!("adversarial:{}", parts.next().unwrap()));
    words.extend(parts.map(str::to_owned));
    words
}

/// Words as a TOML list.
pub fn list(words: &[String]) -> String {
    format!("{words:?}")
}

/// The words of `run` on one CPU; no option has a blank in it.
pub fn run_on(cpu: u32, options: &str) -> Vec<String> {
    let words = format!("run --cpu {cpu} {options}");
    words.split_whitespace().map(str::to_owned).collect()
}

/// `punctual` with these arguments, carrying a mark by which all that comes of it is found.
pub fn command(mark: &str, args: &[impl AsRef<OsStr>]) -> Command {
    let mut c = Command::new(&*PUNCTUAL);
    c.args(args).env("PUNCTUAL_TEST_MARK", mark).stdin(Stdio::null());
    c
}

pub fn new_mark() -> String {
    format!("real-{}-{}", std::process::id(), number())
}

/// A started `punctual` and all that comes of it.
pub struct Running {
    pub child: Child,
    pub mark: String,
    command: Command,
}

pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    pub pid: i32,
    pub took: Duration,
    pub mark: String,
}

impl Running {
    pub fn start(args: &[impl AsRef<OsStr>]) -> Running {
        Running::from(|c| c.args(args))
    }

    /// With whatever else the caller sets.
    pub fn from(arrange: impl FnOnce(&mut Command) -> &mut Command) -> Running {
        let mark = new_mark();
        let mut c = command(&mark, &[""; 0]);
        c.stdout(Stdio::piped()).stderr(Stdio::piped());
        arrange(&mut c);
        Running::of(c, mark)
    }

    pub fn of(mut command: Command, mark: String) -> Running {
        Running { child: command.spawn().unwrap(), mark, command }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Its dispatcher's thread, once it is there.
    pub fn dispatcher(&self) -> Option<i32> {
        self.thread("dispatch/")
    }

    /// Its freezer thread, once it is there.
    pub fn freezer(&self) -> Option<i32> {
        self.thread("freezer/")
    }

    fn thread(&self, name: &str) -> Option<i32> {
        let pid = self.pid();
        let named = |t: &i32| {
            std::fs::read_to_string(format!("/proc/{pid}/task/{t}/comm"))
                .is_ok_and(|n| n.starts_with(name))
        };
        threads_of(pid).into_iter().find(named)
    }

    /// Its guardian, once it is there.
    pub fn guardian(&self) -> Option<i32> {
        pids()
            .into_iter()
            .find(|p| parent_of(*p) == Some(self.pid()) && name_of(*p) == "punctual-guard")
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until something of it is there. Where another Punctual on this machine took the CPU at
    /// this moment, it is started again.
    pub fn wait_for(&mut self, what: &str, mut found: impl FnMut(&Running) -> bool) {
        let end = Instant::now() + LIVENESS;
        while !found(self) {
            if self.has_ended() || Instant::now() > end {
                let processes: Vec<String> = marked(&self.mark).into_iter().map(describe).collect();
                let _ = self.child.kill();
                let _ = end_within(&mut self.child, LIVENESS);
                let (err, out) =
                    (Said::by(self.child.stderr.take()), Said::by(self.child.stdout.take()));
                let said = |said: Said| said.until_end(Duration::from_secs(2)).0;
                let text = said(err) + &said(out);
                assert!(
                    text.contains(TAKEN) && Instant::now() < end,
                    "{what} never came; it said: {text}\n{processes:#?}"
                );
                std::thread::sleep(Duration::from_millis(100));
                self.child = self.command.spawn().unwrap();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for its end, reading what it says.
    pub fn end(mut self) -> Ended {
        let since = Instant::now();
        let pid = self.pid();
        let (out, err) = (Said::by(self.child.stdout.take()), Said::by(self.child.stderr.take()));
        let Some(status) = end_within(&mut self.child, LIVENESS) else {
            let all: Vec<String> = marked(&self.mark).into_iter().map(describe).collect();
            panic!(
                "it does not end: {all:?}; it said: {}{}",
                out.until_end(Duration::ZERO).0,
                err.until_end(Duration::ZERO).0
            );
        };
        let took = since.elapsed();
        let all_of = |said: Said| {
            let (text, over) = said.until_end(LIVENESS);
            let left = || marked(&self.mark).into_iter().map(describe).collect::<Vec<_>>();
            assert!(over, "a process holds its output open: {:?}", left());
            text
        };
        Ended {
            code: status.code(),
            out: all_of(out),
            err: all_of(err),
            pid,
            took,
            mark: self.mark.clone(),
        }
    }

    /// Waits for its end, saying nothing of what it said.
    pub fn reap(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }
}

/// No test leaves anything behind, failed or not.
impl Drop for Running {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let _ = self.child.kill();
        // Its guardian gives back what it had. Where that is dead too, or cannot, we do.
        let all_gone = |patience| {
            let end = Instant::now() + patience;
            while !marked(&self.mark).is_empty() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        all_gone(Duration::from_secs(2));
        tidy(self.pid(), &self.mark);
        let _ = end_within(&mut self.child, LIVENESS);
    }
}

pub fn run(args: &[impl AsRef<OsStr>]) -> Ended {
    patiently(|| Running::start(args).end())
}

/// Runs `once` again while another Punctual on this machine has the CPU.
pub fn patiently(once: impl Fn() -> Ended) -> Ended {
    while_refused(Ended::met_another, once)
}

/// As [`patiently`], for a run whose streams are closed, so that it cannot report the other one:
/// the CPU's lock names the last process that had it.
pub fn patiently_silent(cpu: u32, once: impl Fn() -> Ended) -> Ended {
    let refused = |e: &Ended| e.code == Some(125) && named_owner(cpu) != Some(e.pid);
    while_refused(refused, || {
        wait_for_cpu(cpu);
        once()
    })
}

fn while_refused(refused: impl Fn(&Ended) -> bool, once: impl Fn() -> Ended) -> Ended {
    let end = Instant::now() + LIVENESS;
    loop {
        let ended = once();
        if !refused(&ended) || Instant::now() > end {
            return ended;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Runs a set file made of this text.
pub fn run_set(text: &str, more: &[&str]) -> Ended {
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", text);
    let mut args = vec!["run", file.as_str()];
    args.extend(more);
    run(&args)
}

impl Ended {
    pub fn met_another(&self) -> bool {
        matches!(self.code, Some(4 | 125)) && (self.err.contains(TAKEN) || self.out.contains(TAKEN))
    }

    /// The result in its JSON document.
    pub fn result(&self) -> Value {
        self.json()["result"].take()
    }

    /// Its standard output, which is to be one JSON document with its own exit code.
    pub fn json(&self) -> Value {
        let document: Value = serde_json::from_str(&self.out).unwrap_or_else(|e| {
            panic!("no JSON ({e}):\n{}\nstandard error:\n{}", self.out, self.err)
        });
        assert_eq!(document["exit_code"].as_i64(), self.code.map(i64::from), "{}", self.out);
        document
    }

    pub fn assert_code(&self, code: i32) -> &Ended {
        assert_eq!(
            self.code,
            Some(code),
            "standard output:\n{}\nstandard error:\n{}",
            self.out,
            self.err
        );
        self
    }

    /// It ran to its end, or to that of its duration (124 with `-- COMMAND`); whether deadlines
    /// were met is the machine's luck.
    pub fn assert_ran(&self) -> &Ended {
        let code = self.code.filter(|code| [1, 124].contains(code));
        self.assert_code(code.unwrap_or(0))
    }

    /// `run ... -- COMMAND` was ended by `--duration`.
    pub fn assert_timed_out(&self) -> &Ended {
        self.assert_code(124)
    }

    /// It ran to its end and, where timing is judged, met all deadlines.
    pub fn assert_met(&self) -> &Ended {
        self.assert_ran();
        judge_timing(|| {
            self.assert_code(0);
        });
        self
    }

    pub fn assert_says(&self, words: &[&str]) -> &Ended {
        // However it was wrapped.
        let text = self.err.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(text.contains(word), "\"{word}\" is not said:\n{}", self.err);
        }
        assert!(!text.contains("panicked"), "{}", self.err);
        self
    }

    pub fn assert_nothing_left(&self, cpus: &[u32]) -> &Ended {
        assert_nothing_left(self.pid, &self.mark, cpus);
        self
    }
}

/// No process of it, no cgroup, no journal, and its CPUs are free.
pub fn assert_nothing_left(pid: i32, mark: &str, cpus: &[u32]) {
    if !comes_true(|| marked(mark).is_empty()) {
        let left: Vec<String> = marked(mark).into_iter().map(describe).collect();
        end_all(marked(mark));
        panic!("processes of {pid} are left: {left:#?}");
    }
    eventually(&format!("the cgroups of {pid} are gone: {:?}", groups_of(pid)), || {
        groups_of(pid).is_empty()
    });
    eventually(&format!("the journal of {pid} is gone"), || journals_of(pid).is_empty());
    for &cpu in cpus {
        eventually(&format!("CPU {cpu} is free"), || {
            !has_dispatcher(cpu) || named_owner(cpu) != Some(pid)
        });
    }
}

/// Where a task of the set stands in the results.
pub fn task<'a>(results: &'a Value, name: &str) -> &'a Value {
    let tasks = results["tasks"].as_array().unwrap_or_else(|| panic!("no tasks in {results:#}"));
    tasks.iter().find(|t| t["name"] == name).unwrap_or_else(|| panic!("no {name} in {results:#}"))
}
