//! Trees of files that look like machines: what is found there, and that no content upsets it.

mod any_content;
mod well_kept;

use std::fs;

use punctual_doctor::{examine, exit_code, obstacles, Document, Finding, Probe, Severity};
use well_kept::{answers, refused, tree};

fn find(findings: &[Finding], id: &str) -> Finding {
    findings.iter().find(|f| f.id == id).unwrap_or_else(|| panic!("no finding {id}")).clone()
}

fn one(changes: &[(&str, &str)], id: &str) -> Finding {
    let dir = tree(changes);
    find(&examine(&Probe::tree(dir.path(), Some(answers()))), id)
}

#[test]
fn a_well_kept_machine_is_good_throughout() {
    let dir = tree(&[]);
    let findings = examine(&Probe::tree(dir.path(), Some(answers())));
    for f in &findings {
        assert_eq!(f.verdict, Severity::Good, "{f:#?}");
    }
    assert_eq!(exit_code(&findings), 0);
}

#[test]
fn each_thing_in_the_way_is_seen() {
    let cases: &[(&str, &str, &str, Severity, &str)] = &[
        (
            "rt-throttling",
            "proc/sys/kernel/sched_rt_runtime_us",
            "500000",
            Severity::Warning,
            "sched_rt_runtime_us=950000",
        ),
        (
            "rt-throttling",
            "proc/sys/kernel/sched_rt_runtime_us",
            "0",
            Severity::Obstacle,
            "sched_rt_runtime_us=950000",
        ),
        (
            "fair-server",
            "sys/kernel/debug/sched/fair_server/cpu0/runtime",
            "200000000",
            Severity::Warning,
            "echo 50000000",
        ),
        (
            "fair-server",
            "sys/kernel/debug/sched/fair_server/cpu0/runtime",
            "0",
            Severity::Info,
            "echo 50000000",
        ),
        (
            "hrtick-deadline",
            "sys/kernel/debug/sched/features",
            "NO_HRTICK NO_HRTICK_DL",
            Severity::Info,
            "echo HRTICK_DL",
        ),
        (
            "lockdown",
            "sys/kernel/security/lockdown",
            "none integrity [confidentiality]",
            Severity::Warning,
            "Secure Boot",
        ),
        ("sched-ext", "sys/kernel/sched_ext/state", "enabled", Severity::Info, "systemctl stop"),
        (
            "clock-source",
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "hpet",
            Severity::Warning,
            "echo tsc >",
        ),
        (
            "frequency-scaling",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "powersave",
            Severity::Warning,
            "echo performance",
        ),
        (
            "frequency-boost",
            "sys/devices/system/cpu/cpufreq/boost",
            "1",
            Severity::Info,
            "echo 0 >",
        ),
        ("smt", "sys/devices/system/cpu/smt/active", "1", Severity::Warning, "smt/control"),
        (
            "idle-states",
            "sys/devices/system/cpu/cpu0/cpuidle/state1/latency",
            "133",
            Severity::Info,
            "cpu_dma_latency",
        ),
        (
            "isolated-cpus",
            "sys/devices/system/cpu/isolated",
            "",
            Severity::Info,
            "isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1",
        ),
        (
            "irq-affinity",
            "proc/irq/24/smp_affinity_list",
            "0-1",
            Severity::Info,
            "echo 0 > /proc/irq/24/smp_affinity_list",
        ),
        (
            "irq-default-affinity",
            "proc/irq/default_smp_affinity",
            "3",
            Severity::Info,
            "echo 1 > /proc/irq/default_smp_affinity",
        ),
        (
            "irq-balance",
            "proc/50/comm",
            "irqbalance",
            Severity::Info,
            "systemctl disable --now irqbalance",
        ),
        ("watchdog", "proc/sys/kernel/nmi_watchdog", "1", Severity::Info, "nmi_watchdog=0"),
        ("swap", "proc/swaps", "Filename\n/dev/sda2 partition 1 0 -2", Severity::Info, "swapoff"),
        (
            "transparent-hugepages",
            "sys/kernel/mm/transparent_hugepage/enabled",
            "[always] madvise never",
            Severity::Info,
            "echo madvise",
        ),
        (
            "steal",
            "proc/stat",
            "cpu  100 0 100 10000 0 0 0 500 0 0",
            Severity::Warning,
            "on the host",
        ),
        (
            "virtual-machine",
            "proc/cpuinfo",
            "flags\t: tsc hypervisor",
            Severity::Info,
            "on the host",
        ),
        ("preempt-rt", "sys/kernel/realtime", "0", Severity::Info, ""),
        (
            "cgroup-version",
            "proc/self/mountinfo",
            "1 0 0:1 / /x rw - tmpfs tmpfs rw",
            Severity::Warning,
            "mount -t cgroup2",
        ),
    ];
    for (id, path, content, verdict, help) in cases {
        let f = one(&[(path, content)], id);
        assert_eq!(f.verdict, *verdict, "{f:#?}");
        assert!(f.help.join("\n").contains(help), "{f:#?}");
        assert!(!f.cause.is_empty() && !f.effect.is_empty(), "{f:#?}");
        assert!(!f.value.is_empty(), "{f:#?}");
    }
}

#[test]
fn the_preemption_model_from_the_best_source_to_be_had() {
    let stock =
        [("sys/kernel/realtime", "0"), ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC")];
    let with = |more: &[(&str, &str)]| one(&[&stock[..], more].concat(), "preemption-model");
    assert_eq!(
        with(&[("sys/kernel/debug/sched/preempt", "none voluntary (full)")]).verdict,
        Severity::Good
    );
    let none = with(&[("sys/kernel/debug/sched/preempt", "(none) voluntary full")]);
    assert_eq!(none.verdict, Severity::Warning);
    assert_eq!(none.help[0], "echo full > /sys/kernel/debug/sched/preempt");
    assert!(none
        .help
        .iter()
        .any(|c| c.contains("preempt=full") && c.contains("/etc/default/grub.d/")));
    assert_eq!(with(&[("proc/cmdline", "preempt=voluntary")]).verdict, Severity::Info);
    assert_eq!(with(&[]).verdict, Severity::Unknown);
}

#[test]
fn core_scheduling_matters_only_with_hardware_threads_and_a_kernel_that_has_it() {
    let seen = |active, config| {
        let changes = [
            ("sys/devices/system/cpu/smt/active", active),
            ("boot/config-6.18.15-rt-amd64", config),
        ];
        one(&changes, "core-scheduling")
    };
    assert_eq!(seen("0", "CONFIG_SCHED_CORE=y\n").verdict, Severity::Good);
    assert_eq!(seen("1", "# CONFIG_SCHED_CORE is not set\n").verdict, Severity::Good);
    let present = seen("1", "CONFIG_SCHED_CORE=y\n");
    assert_eq!(present.verdict, Severity::Info);
    assert!(
        present.help[0].contains("smt/control") && present.effect.contains("exit code 5"),
        "{present:#?}"
    );
    let unread = seen("1", "no configuration\n");
    assert_eq!(unread.verdict, Severity::Info);
    assert!(unread.cause.contains("cannot be read"), "{unread:#?}");
}

#[test]
fn forced_lockdown_is_seen_without_securityfs_and_no_help_goes_through_debugfs() {
    let dir = tree(&[(
        "boot/config-6.18.15-rt-amd64",
        "CONFIG_SCHED_HRTICK=y\nCONFIG_SECURITY_LOCKDOWN_LSM=y\n\
         CONFIG_LOCK_DOWN_KERNEL_FORCE_INTEGRITY=y\n",
    )]);
    fs::remove_dir_all(dir.path().join("sys/kernel/security")).unwrap();
    fs::remove_dir_all(dir.path().join("sys/kernel/debug")).unwrap();
    let findings = examine(&Probe::tree(dir.path(), Some(answers())));
    assert_eq!(find(&findings, "lockdown").verdict, Severity::Info);
    for id in ["hrtick", "hrtick-deadline", "fair-server", "debugfs"] {
        let f = find(&findings, id);
        assert!(f.help[0].starts_with("# kernel lockdown forbids it"), "{f:#?}");
    }
}

#[test]
fn threads_of_ours_need_no_help() {
    let stat = |name: &str, priority: u32| {
        format!(
            "7 ({name}) S 1 0 0 0 -1 64 0 0 0 0 0 0 0 0 -51 0 1 0 7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
             17 0 {priority} 1 0 0 0"
        )
    };
    let seen =
        |name, priority| one(&[("proc/7/task/7/stat", &stat(name, priority))], "realtime-threads");
    for (name, priority) in [("dispatch/1", 99), ("freezer/1", 98), ("punctual-guard", 99)] {
        let ours = seen(name, priority);
        assert_eq!((ours.verdict, ours.help.len()), (Severity::Info, 0), "{ours:#?}");
        assert!(ours.cause.contains("a Punctual dispatcher runs"), "{ours:#?}");
    }
    let top = seen("jackd", 99);
    assert_eq!(
        (top.verdict, top.help),
        (Severity::Warning, vec!["chrt --fifo --pid 90 7".to_string()])
    );
    let lower = seen("jackd", 70);
    assert_eq!(
        (lower.verdict, lower.value[0].read.as_str()),
        (Severity::Info, "jackd (7), SCHED_FIFO 70")
    );
}

#[test]
fn a_program_with_real_time_threads_is_to_get_a_role_with_a_budget() {
    let stat = |tid: u32| {
        format!(
            "{tid} (data-loop.0) S 1 0 0 0 -1 64 0 0 0 0 0 0 0 0 -51 0 1 0 7 0 0 0 0 0 0 0 0 0 0 \
             0 0 0 0 0 17 0 70 1 0 0 0"
        )
    };
    for (comm, role) in [("pipewire", "pipewire"), ("a b; rm", "program-7")] {
        let threads = [8, 9].map(|tid| (format!("proc/7/task/{tid}/stat"), stat(tid)));
        let [one_thread, another] = &threads;
        let tree =
            [("proc/7/comm", comm), (&one_thread.0, &one_thread.1), (&another.0, &another.1)];
        let found = one(&tree, "realtime-threads");
        let help = format!("punctual profile --duration 30s --write-role {role} --pid 7");
        assert_eq!((found.verdict, found.help), (Severity::Info, vec![help]));
    }
}

#[test]
fn a_refusal_of_sched_fifo_is_traced_to_its_reason() {
    let status = |caps: &str, seccomp: u32| {
        format!(
            "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t{caps}\nNoNewPrivs:\t0\n\
             Seccomp:\t{seccomp}\nCpus_allowed_list:\t0-1\n"
        )
    };
    let all = "000001ffffffffff";
    let (poor, rich, filtered) = (status("0000000000000000", 0), status(all, 0), status(all, 2));
    let v1 = "1 0 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct";
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
    let cases: &[Case] = &[
        (
            &[("proc/self/status", &poor)],
            "CAP_SYS_NICE is missing, and the limit RTPRIO is 0",
            "setcap cap_sys_nice",
        ),
        (
            &[
                ("proc/self/status", &rich),
                ("proc/self/mountinfo", v1),
                ("proc/self/cgroup", "3:cpu,cpuacct:/a/b"),
                ("sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000"),
                ("sys/fs/cgroup/cpu/other/cpu.rt_runtime_us", "50000"),
                ("sys/fs/cgroup/cpu/a/cpu.rt_runtime_us", "0"),
                ("sys/fs/cgroup/cpu/a/b/cpu.rt_runtime_us", "0"),
            ],
            "RT_GROUP_SCHED",
            "echo $$ > /sys/fs/cgroup/cpu/cgroup.procs\n\
             # or give this cgroup the remaining runtime of its parent:\n\
             echo 900000 > /sys/fs/cgroup/cpu/a/cpu.rt_runtime_us\n\
             echo 900000 > /sys/fs/cgroup/cpu/a/b/cpu.rt_runtime_us",
        ),
        (
            &[("proc/self/status", &rich), ("proc/self/uid_map", "0 1000 1")],
            "user namespace",
            "--cap-add=SYS_NICE",
        ),
        (&[("proc/self/status", &filtered)], "seccomp", "--cap-add=SYS_NICE"),
        (&[("proc/self/status", &rich)], "all the same", "dmesg"),
    ];
    for (changes, cause, help) in cases {
        let dir = tree(changes);
        let probe = Probe::tree(dir.path(), Some(refused(libc::EPERM)));
        let findings = examine(&probe);
        let f = find(&findings, "realtime-permitted");
        assert_eq!(f.verdict, Severity::Obstacle);
        assert!(f.cause.contains(cause), "{f:#?}");
        assert!(f.help.join("\n").contains(help), "{f:#?}");
        assert_eq!(exit_code(&findings), 4);
        let quick: Vec<_> = obstacles(&probe).into_iter().map(|f| f.id).collect();
        let mut whole: Vec<_> = findings
            .into_iter()
            .filter(|f| f.verdict == Severity::Obstacle)
            .map(|f| f.id)
            .collect();
        assert_eq!(
            {
                whole.sort();
                whole
            },
            {
                let mut q = quick;
                q.sort();
                q
            }
        );
    }
}

#[test]
fn every_finding_is_documented_and_fits_the_schema() {
    let dir = tree(&[]);
    let probe = Probe::tree(dir.path(), Some(answers()));
    let findings = examine(&probe);
    let docs = include_str!("../../../../docs/doctor.md");
    let mut ids: Vec<_> = findings.iter().map(|f| f.id.as_str()).collect();
    for id in &ids {
        assert!(id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{id}");
        assert!(docs.contains(&format!("### {id}\n")), "docs/doctor.md does not explain {id}");
    }
    for line in docs.lines().filter_map(|l| l.strip_prefix("### ")) {
        assert!(ids.contains(&line), "docs/doctor.md explains {line}, which is not found");
    }
    let n = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), n);

    let document = Document::new(&probe, findings);
    assert_eq!(document.machine.distribution.as_deref(), Some("Debian GNU/Linux 13 (trixie)"));
}
