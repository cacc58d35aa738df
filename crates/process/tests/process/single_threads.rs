//! Threads of other processes that are adopted alone.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use punctual_sys::sched;

use crate::common::*;
use crate::{finish, setup};
use punctual_process::*;

/// By its name and by its priority: what the kernel goes by is the latter, which is below 0 for a
/// real-time one.
fn is_ordinary(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let priority = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(15));
    let by_name = sched::policy(pid).is_none_or(|policy| {
        !matches!(policy & 0xff, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
    });
    by_name && priority.and_then(|p| p.parse().ok()).is_none_or(|p: i32| p >= 0)
}

fn children_of(pid: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    text.unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// A fork copies the class of the thread and, later, its priority.
#[test]
fn children_of_a_thread_whose_level_changes_in_the_middle_of_a_fork_are_ordinary() {
    let _alone = alone();
    let Some((journal, _)) = setup(false) else { return };
    let mut shell = Command::new("sh");
    // So many at a time, and no more: on a slow machine they would only accumulate.
    let forks = "while :; do for n in 1 2 3 4 5 6 7 8 9 10; do sleep 0.02 & done; wait; done";
    shell.args(["-c", forks]).stdin(Stdio::null()).process_group(0);
    let mut forker = shell.spawn().unwrap();
    let pid = forker.id() as i32;
    let every = sched::affinity(pid).unwrap();
    let cpu = sched::cpus(&every).last().unwrap();
    let adopted = adopt_thread(&journal, pid, pid, cpu).unwrap();
    let (begin, mut seen, mut escaped) = (Instant::now(), 0, Vec::new());
    let lasts = |seconds| begin.elapsed() < Duration::from_secs(seconds);
    while (lasts(2) || lasts(30) && seen == 0) && escaped.is_empty() {
        for _ in 0..200 {
            adopted.set_level(1);
            adopted.park();
        }
        let children = children_of(pid);
        seen += children.len();
        escaped.extend(children.into_iter().filter(|child| !is_ordinary(*child)));
    }
    assert!(adopted.give_back().is_empty());
    kill(-pid, libc::SIGKILL);
    forker.wait().unwrap();
    finish(&journal);
    assert!(seen > 0, "it forked nothing");
    assert!(escaped.is_empty(), "real-time: {escaped:?}");
}

/// The kernel reports as many words of CPUs as it was built for, and a set of one CPU has fewer.
#[test]
fn threads_that_an_adopted_thread_created_regain_all_its_cpus() {
    let _alone = alone();
    let Some((journal, _)) = setup(false) else { return };
    // Its second line is read once it is adopted: then it creates a thread, and sleeps.
    let mut python = Command::new("python3");
    let program = "import sys, threading, time\n\
        print(flush=True)\n\
        sys.stdin.readline()\n\
        threading.Thread(target=time.sleep, args=[60], daemon=True).start()\n\
        print(flush=True)\n\
        time.sleep(60)";
    python.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut creator = python.spawn().unwrap();
    let pid = creator.id() as i32;
    let mut output = BufReader::new(creator.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let every = sched::affinity(pid).unwrap();
    let cpu = sched::cpus(&every).last().unwrap();
    let adopted = adopt_thread(&journal, pid, pid, cpu).unwrap();
    writeln!(creator.stdin.take().unwrap()).unwrap();
    output.read_line(&mut line).unwrap();
    let created: Vec<i32> = threads_of(pid).into_iter().filter(|tid| *tid != pid).collect();
    let cpus_of = |tids: &[i32]| tids.iter().map(|t| sched::affinity(*t).unwrap()).collect();
    let before: Vec<_> = cpus_of(&created);
    assert!(adopted.give_back().is_empty());
    let after: Vec<_> = cpus_of(&created);
    creator.kill().unwrap();
    creator.wait().unwrap();
    finish(&journal);
    assert_eq!((before, after), (vec![sched::only(cpu)], vec![every]));
}
