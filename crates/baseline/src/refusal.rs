//! Why a baseline cannot run a set, and what would allow it.

use crate::run::Baseline;
use crate::shared::SetupStep;
use punctual_diagnostic::Diagnostic;
use punctual_sys::cgroup::Hierarchy;
use punctual_sys::process::{capabilities, CapabilitySet};
use punctual_taskset::TaskSet;
use std::io;
use std::path::Path;

/// Why a column stays empty. Nothing was left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// The cause, one sentence without a full stop.
    pub reason: String,
    /// What helps, one step or command per line.
    pub help: Vec<String>,
    /// Whether the set would probably run without pinning (`Options::unpinned`).
    pub unpinned_may_work: bool,
}

/// No thread, or no process.
pub fn not_started(what: &str, error: io::Error) -> Diagnostic {
    Diagnostic::refused(format_args!("cannot start {what}"), error, "see punctual doctor")
}

/// A CPU that is not there, or not permitted to this process.
fn no_cpu(cpu: u32) -> Diagnostic {
    let cause = format!(
        "CPU {cpu} cannot be used: it does not exist, is offline, or is not in this process's \
         cpuset"
    );
    Diagnostic::machine(cause, "choose an online CPU that this process may use (taskset -p $$)")
}

/// Set-up did not end within so many seconds.
pub fn slow(limit: u64) -> Diagnostic {
    let cause = format!("the tasks were not ready to run within {limit} s");
    Diagnostic::machine(cause, "compare when the machine has less to do")
}

/// A thread's failure, explained.
pub fn explain(
    set: &TaskSet,
    baseline: Baseline,
    unpinned: bool,
    failure: (SetupStep, u32, i32),
) -> Result<Unsupported, Diagnostic> {
    let (step, of, errno) = failure;
    match step {
        SetupStep::ObserverAffinity => Err(no_cpu(of)),
        SetupStep::TaskAffinity => Err(no_cpu(cpu_of(set, of)?)),
        SetupStep::ObserverPolicy => {
            Ok(no_privilege("the observer that measures needs SCHED_FIFO", errno))
        }
        SetupStep::TaskPolicy if baseline == Baseline::Deadline => {
            Ok(deadline(set, of, cpu_of(set, of)?, unpinned, errno))
        }
        SetupStep::TaskPolicy => Ok(no_privilege("a task may not have SCHED_FIFO", errno)),
    }
}

fn no_privilege(what: &str, errno: i32) -> Unsupported {
    let reason = format!("{what}, and the kernel refuses it ({})", name(errno));
    let help = if may_nice() && errno == libc::EPERM {
        let group = Hierarchy::V1("cpu").directory_of(std::process::id() as i32);
        let group = group.unwrap_or_else(|| "/sys/fs/cgroup/cpu".into());
        vec![
            "this control group has no real-time share (CONFIG_RT_GROUP_SCHED). Give it one, or \
             leave the group:"
                .into(),
            format!("echo 950000 > {}/cpu.rt_runtime_us", group.display()),
            "echo $$ > /sys/fs/cgroup/cpu/cgroup.procs".into(),
        ]
    } else {
        vec!["run it as root, or: sudo setcap cap_sys_nice,cap_ipc_lock+ep $(command -v punctual)"
            .into()]
    };
    Unsupported { reason, help, unpinned_may_work: false }
}

/// The CPU of a task.
fn cpu_of(set: &TaskSet, task: u32) -> Result<u32, Diagnostic> {
    let task = set.tasks.get(task as usize);
    task.map_or(Ok(0), |task| set.domain(task.domain).only_cpu())
}

fn deadline(set: &TaskSet, task: u32, cpu: u32, unpinned: bool, errno: i32) -> Unsupported {
    let task = set.tasks.get(task as usize).map_or("?", |task| task.name.as_str());
    match errno {
        libc::EPERM if !may_nice() => no_privilege("a task may not have SCHED_DEADLINE", errno),
        libc::EPERM if !unpinned => Unsupported {
            reason: format!(
                "a SCHED_DEADLINE task cannot be pinned to CPU {cpu} (EPERM): the kernel demands \
                 an affinity to all CPUs of its root domain, so that one CPU needs an exclusive \
                 cpuset"
            ),
            help: exclusive_cpuset(cpu),
            unpinned_may_work: true,
        },
        libc::EBUSY => Unsupported {
            reason: format!(
                "the kernel does not admit task \"{task}\" (EBUSY): SCHED_DEADLINE bandwidth is \
                 limited to {}, by /proc/sys/kernel/sched_rt_runtime_us, together with what other \
                 programs and the kernel's fair server (5 %) have reserved",
                limit()
            ),
            help: vec!["lower the budgets, or raise the limit: echo 1000000 > \
                        /proc/sys/kernel/sched_rt_runtime_us"
                .into()],
            unpinned_may_work: !unpinned,
        },
        libc::EINVAL => Unsupported {
            reason: format!(
                "the kernel does not take the parameters of task \"{task}\" (EINVAL): a budget is \
                 at least 1,024 ns and a deadline or period between {} and {} us",
                proc("sched_deadline_period_min_us").unwrap_or(100),
                proc("sched_deadline_period_max_us").unwrap_or(4_194_304)
            ),
            help: vec!["change the task, or the limits: \
                        /proc/sys/kernel/sched_deadline_period_min_us and _max_us"
                .into()],
            unpinned_may_work: false,
        },
        _ => no_privilege("a task may not have SCHED_DEADLINE", errno),
    }
}

/// The commands that make an exclusive cpuset of one CPU on this machine. Named and not done: in
/// version 1 they change the balancing of the whole machine, and what no process can promise to
/// give back is not taken.
fn exclusive_cpuset(cpu: u32) -> Vec<String> {
    let lines: &[&str] = if Path::new("/sys/fs/cgroup/cpuset/cpuset.cpus").exists() {
        &[
            "cd /sys/fs/cgroup/cpuset && mkdir -p punctual",
            "echo CPU > punctual/cpuset.cpus && cat cpuset.mems > punctual/cpuset.mems",
            "echo 1 > punctual/cpuset.cpu_exclusive && echo 0 > cpuset.sched_load_balance   # for \
             the whole machine",
            "echo $$ > punctual/cgroup.procs   # this shell: run punctual from it",
            "afterwards: cd /sys/fs/cgroup/cpuset && echo $$ > cgroup.procs && echo 1 > \
             cpuset.sched_load_balance && rmdir punctual",
        ]
    } else {
        &[
            "cd /sys/fs/cgroup && echo +cpuset > cgroup.subtree_control && mkdir -p punctual",
            "echo CPU > punctual/cpuset.cpus && echo root > punctual/cpuset.cpus.partition",
            "echo $$ > punctual/cgroup.procs   # this shell: run punctual from it",
            "afterwards: cd /sys/fs/cgroup && echo $$ > cgroup.procs && rmdir punctual",
        ]
    };
    lines.iter().map(|line| line.replace("CPU", &cpu.to_string())).collect()
}

/// CAP_SYS_NICE is in force.
fn may_nice() -> bool {
    capabilities().contains(CapabilitySet::SYS_NICE)
}

fn proc(name: &str) -> Option<i64> {
    std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
}

fn limit() -> String {
    match (proc("sched_rt_runtime_us"), proc("sched_rt_period_us")) {
        (Some(runtime), Some(period)) if runtime >= 0 && period > 0 => {
            format!("{} % of each CPU", runtime * 100 / period)
        }
        _ => "a part of each CPU".to_owned(),
    }
}

fn name(errno: i32) -> String {
    match errno {
        libc::EPERM => "EPERM".to_owned(),
        libc::EBUSY => "EBUSY".to_owned(),
        libc::EINVAL => "EINVAL".to_owned(),
        _ => std::io::Error::from_raw_os_error(errno).to_string(),
    }
}
