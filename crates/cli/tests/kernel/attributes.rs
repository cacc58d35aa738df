//! Nice value, class, affinity and cgroup of a running thread change: the kernel dequeues and
//! requeues it, and it is ready throughout.

use std::path::{Path, PathBuf};
use std::time::Duration;

use punctual_trace::{kind, Trace};

use crate::machine::{set_affinity, Machine};
use crate::punctual::{adversarial, list, results, start, task, trace, words_of, Scratch};

/// A task of 8 ms in 20 ms, and one that executes for the first 9 ms of each 20 ms. Under EDF a
/// task that wakes with 8 ms left of its budget and 11 ms until its deadline has the budget cut to
/// 4.4 ms.
fn beside(command: &[String]) -> String {
    let first =
        "period = \"20ms\"\nbudget = \"9ms\"\ndeadline = \"10ms\"\nwork = { spin = \"forever\" }\n";
    format!(
        "cpu = 0\npolicy = \"edf\"\nduration = \"1s\"\n[[task]]\nname = \"first\"\n{first}\
         [[task]]\nname = \"changing\"\nperiod = \"20ms\"\nbudget = \"8ms\"\ncommand = {}\n",
        list(command)
    )
}

/// A budget of 8 ms, which `check::precision` on 7.3-rt lets be off by 50 us, and a soft interrupt
/// of some 30 us elsewhere.
const WORST_PPM: u64 = 10_000;

/// How often the dispatcher recorded that the task sleeps, from the first time that the task ran.
fn sleeps(trace: &Trace, task: u32) -> usize {
    let of_task = |r: &&punctual_trace::Record| r.small == task;
    let records = trace.records.iter().filter(of_task).skip_while(|r| r.kind != kind::RUNNING);
    records.filter(|r| r.kind == kind::TASK_BLOCKED).count()
}

fn change_is_no_sleep(attribute: &str) {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let set = scratch.file("set.toml", &beside(&adversarial(&format!("reattribute {attribute}"))));
    let path = scratch.path("trace");
    let results =
        results(&start(&set, &["--load", "--trace", path.to_str().expect("plain")]).output());
    let changing = task(&results, "changing");
    let asleep = sleeps(&trace(&path), 1);
    assert!(asleep == 0, "asleep {asleep} times: {changing:#}");
    let worst = changing["budget_received"]["worst_ppm"].as_u64().expect("a figure");
    assert!(worst.abs_diff(1_000_000) <= WORST_PPM, "{changing:#}");
}

#[test]
fn a_task_that_changes_its_nice_value_is_not_taken_for_asleep() {
    change_is_no_sleep("nice");
}

#[test]
fn a_task_that_changes_its_class_is_not_taken_for_asleep() {
    change_is_no_sleep("class");
}

/// A cgroup of its own with the CPU controller, removed at the end.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(name: &str) -> Cgroup {
        let root = Path::new("/sys/fs/cgroup");
        std::fs::write(root.join("cgroup.subtree_control"), "+cpu").expect("root may");
        let path = root.join(name);
        std::fs::create_dir(&path).expect("cgroup v2 is mounted");
        Cgroup(path)
    }

    fn take(&self, pid: u32) {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).expect("root may");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The timer callback on CPU 0 may look at a task while this CPU requeues it under the run queue's
/// lock.
#[test]
fn two_cpus_a_task_that_the_other_changes_is_not_taken_for_asleep() {
    const CHANGES: usize = 400;
    let Some(_machine) = Machine::with_two_cpus() else { return };
    let scratch = Scratch::new();
    let groups = ["punctual-test-a", "punctual-test-b"].map(Cgroup::new);
    let path = scratch.path("trace");
    let set = scratch.file("set.toml", &beside(&adversarial("spin")));
    let run = start(&set, &["--duration", "1500ms", "--trace", path.to_str().expect("plain")]);
    let tasks = run.tasks_after(2, 20_000_000);
    let policies = [libc::SCHED_BATCH, libc::SCHED_OTHER];
    let none = libc::sched_param { sched_priority: 0 };
    set_affinity(0, &[1]);
    for n in 0..CHANGES {
        for &pid in &tasks {
            match n % 4 {
                0 => {
                    let nice = (n / 4 % 2) as i32;
                    // SAFETY: a system call without memory.
                    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, pid, nice) }, 0);
                }
                1 => {
                    let policy = policies[n / 4 % 2];
                    // SAFETY: a valid parameter.
                    assert_eq!(unsafe { libc::sched_setscheduler(pid as i32, policy, &none) }, 0);
                }
                2 => set_affinity(pid, if n / 4 % 2 == 0 { &[0] } else { &[0, 1] }),
                _ => groups[n / 4 % 2].take(pid),
            }
        }
        std::thread::sleep(Duration::from_micros(700));
    }
    let output = run.output();
    set_affinity(0, &[0, 1]);
    // Two CPUs of one counted clock take turns: its deadlines say nothing.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", words_of(&output));
    let trace = trace(&path);
    let asleep = [0, 1].map(|task| sleeps(&trace, task));
    assert_eq!(asleep, [0, 0]);
}
