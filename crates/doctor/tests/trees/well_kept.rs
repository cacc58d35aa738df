//! A tree that looks like a machine on which nothing is in the way.

use std::fs;
use std::path::Path;
use std::time::Duration;

use punctual_doctor::{Calls, ClockDiscipline, FifoAttempt};

/// A well-kept bare machine of two CPUs under Debian with PREEMPT_RT, run by root.
pub const WELL_KEPT: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "6.18.15-rt-amd64\n"),
    ("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 6.18.15-1\n"),
    ("proc/cmdline", "root=/dev/sda1 isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1\n"),
    ("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu tsc\n"),
    ("proc/stat", "cpu  100 0 100 10000 0 0 0 0 0 0\ncpu0 1 2 3\n"),
    ("proc/swaps", "Filename Type Size Used Priority\n"),
    (
        "proc/self/status",
        "Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nNoNewPrivs:\t0\n\
         Seccomp:\t0\nCpus_allowed_list:\t0-1\n",
    ),
    (
        "proc/self/limits",
        "Limit Soft Limit Hard Limit Units\n\
         Max open files            20000                20000                files     \n\
         Max locked memory         8388608              8388608              bytes     \n\
         Max realtime priority     0                    0                    \n",
    ),
    ("proc/self/uid_map", "         0          0 4294967295\n"),
    ("proc/self/cgroup", "0::/user.slice\n"),
    ("proc/self/mountinfo", "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
    ("sys/fs/cgroup/user.slice/cgroup.freeze", "0\n"),
    ("sys/fs/cgroup/user.slice/cgroup.kill", ""),
    (
        "boot/config-6.18.15-rt-amd64",
        "CONFIG_CGROUPS=y\nCONFIG_HIGH_RES_TIMERS=y\n\
         CONFIG_SCHED_HRTICK=y\n# CONFIG_RT_GROUP_SCHED is not set\n\
         CONFIG_SCHED_CLASS_EXT=y\nCONFIG_NO_HZ_FULL=y\n\
         CONFIG_RCU_NOCB_CPU=y\n",
    ),
    ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
    ("proc/sys/kernel/sched_autogroup_enabled", "0\n"),
    ("proc/sys/kernel/nmi_watchdog", "0\n"),
    ("proc/sys/kernel/perf_event_paranoid", "3\n"),
    ("proc/sys/kernel/unprivileged_bpf_disabled", "2\n"),
    ("proc/irq/default_smp_affinity", "1\n"),
    ("proc/irq/24/smp_affinity_list", "0\n"),
    ("proc/50/comm", "irq/24-eth0\n"),
    (
        "proc/50/task/50/stat",
        "50 (irq/24-eth0) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 7 0 0 0 0 0 0 0 0 0 0 0 0 \
         0 0 0 17 0 50 1 0 0 0\n",
    ),
    ("sys/kernel/realtime", "1\n"),
    ("sys/kernel/sched_ext/state", "disabled\n"),
    ("sys/kernel/security/lockdown", "[none] integrity confidentiality\n"),
    ("sys/kernel/debug/sched/features", "PLACE_LAG HRTICK HRTICK_DL\n"),
    ("sys/kernel/debug/sched/fair_server/cpu0/runtime", "50000000\n"),
    ("sys/kernel/debug/sched/fair_server/cpu0/period", "1000000000\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/isolated", "1\n"),
    ("sys/devices/system/cpu/nohz_full", "1\n"),
    ("sys/devices/system/cpu/smt/active", "0\n"),
    ("sys/devices/system/cpu/smt/control", "off\n"),
    ("sys/devices/system/cpu/cpufreq/boost", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1\n"),
    ("etc/os-release", "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n"),
    ("etc/default/grub", "GRUB_CMDLINE_LINUX=\"\"\n"),
];

pub fn put(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

pub fn tree(changes: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in WELL_KEPT.iter().chain(changes) {
        put(dir.path(), path, content);
    }
    dir
}

pub fn answers() -> Calls {
    Calls {
        fifo_lowest: FifoAttempt::Granted,
        fifo_highest: FifoAttempt::Granted,
        resolution: Some(Duration::from_nanos(1)),
        clock_cost: Some(25),
        cpu_clock_cost: Some(200),
        timer_slack: Some(50_000),
        discipline: Some(ClockDiscipline { synchronised: true, frequency_ppb: 7, tick_us: 10_000 }),
    }
}

/// As [`answers`], but SCHED_FIFO is refused.
pub fn refused(errno: i32) -> Calls {
    Calls {
        fifo_lowest: FifoAttempt::Refused(errno),
        fifo_highest: FifoAttempt::Untried,
        ..answers()
    }
}
