//! What kind of kernel this is.

use crate::finding::{Evidence, Finding, NO_HELP};
use crate::parse::chosen;
use crate::scene::{Cap, Scene, UNLOCK};

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![
        preempt_rt(scene),
        preemption_model(scene),
        lockdown(scene),
        sched_ext(scene),
        debugfs(scene),
        watchdog(scene),
        perf_events(scene),
        bpf(scene),
    ]
}

/// Debian's name of this architecture, where it builds kernel flavours for it.
fn debian_arch() -> Option<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Some("amd64"),
        "aarch64" => Some("arm64"),
        _ => None,
    }
}

fn preempt_rt(scene: &Scene) -> Finding {
    let about = Finding::about("preempt-rt", "PREEMPT_RT");
    match scene.preempt_rt() {
        None => about.unknown(
            "the version cannot be read",
            "how long the kernel can delay a job",
            NO_HELP,
        ),
        Some((true, reading)) => about.saw(&reading).good(
            "interrupt handlers and most of the kernel can be preempted: the worst case is tens of \
             microseconds",
        ),
        Some((false, reading)) => about.saw(&reading).note(
            "the kernel is built without PREEMPT_RT",
            "interrupts, softirqs and spin-locked sections of the kernel delay a job: mostly by \
             microseconds, with no bound in the worst case. Budgets hold; release latency has a \
             longer tail",
            match debian_arch() {
                Some(arch) => vec![format!(
                    "apt-get update && apt-get install linux-image-rt-{arch} && reboot"
                )],
                None => vec!["# build the kernel with CONFIG_PREEMPT_RT".into()],
            },
        ),
    }
}

fn preemption_model(scene: &Scene) -> Finding {
    let about = Finding::about("preemption-model", "Preemption of the kernel");
    if let Some((true, reading)) = scene.preempt_rt() {
        return about.saw(&reading).good("the kernel can be preempted nearly everywhere");
    }
    let live = scene.probe.read("/sys/kernel/debug/sched/preempt").ok();
    let (model, reading) =
        if let Some(found) = live.and_then(|r| Some((chosen(&r.read)?.to_string(), r))) {
            found
        } else if let Some(model) = scene.booted_with("preempt") {
            (model.to_string(), Evidence::new("/proc/cmdline", format!("preempt={model}")))
        } else if let Some((option, model)) = [
            ("PREEMPT_NONE", "none"),
            ("PREEMPT_VOLUNTARY", "voluntary"),
            ("PREEMPT_LAZY", "lazy"),
            ("PREEMPT", "full"),
        ]
        .into_iter()
        .find(|(option, _)| scene.config.yes(option))
        {
            (model.to_string(), scene.config.reading(option))
        } else {
            return about.unknown(
                "neither debugfs nor the kernel's configuration shows it",
                "a kernel without full preemption delays a job by the length of another program's \
                 system call",
                scene.through_debugfs(&["cat /sys/kernel/debug/sched/preempt".into()]),
            );
        };
    let about = about.saw(&reading);
    let dynamic = scene.version.as_ref().is_ok_and(|v| v.read.contains("PREEMPT_DYNAMIC"))
        || scene.config.yes("PREEMPT_DYNAMIC");
    let mut help = Vec::new();
    if dynamic {
        if !scene.debugfs_locked() {
            help = scene.through_debugfs(&["echo full > /sys/kernel/debug/sched/preempt".into()]);
            help.push("# and for good:".into());
        }
        help.extend(scene.boot_option("preempt=full"));
    }
    let effect =
        "a system call of any program on the same CPU delays a job until it ends or sleeps: at \
         times for milliseconds";
    match model.as_str() {
        "full" => about.good("a job that becomes ready preempts system calls of others at once"),
        "lazy" => {
            about.good("a real-time job preempts at once; ordinary programs at the next tick")
        }
        "voluntary" => about.note("the kernel is preempted at chosen points only", effect, help),
        "none" => about.warning("the kernel is not preempted inside system calls", effect, help),
        other => about.unknown(format!("a model unknown to us: {other}"), effect, help),
    }
}

fn lockdown(scene: &Scene) -> Finding {
    let about = Finding::about("lockdown", "Kernel lockdown");
    let stake = "under confidentiality, BPF programs may not read kernel memory: the kernel host \
                 does not load";
    if let Some((mode, r)) = scene.lockdown() {
        let about = about.saw(&r);
        return match mode.as_str() {
            "none" => about.good("off"),
            "integrity" => about.note(
                "integrity: user space may not change the running kernel",
                "both hosts work; the scheduler's debug files are closed to root too, so HRTICK \
                 and the fair server stay as the kernel has them, and the preemption model can \
                 only be chosen at boot",
                [UNLOCK],
            ),
            "confidentiality" => about.warning(
                "confidentiality: user space may not read the kernel either",
                format!("the user host works; {stake}"),
                [UNLOCK],
            ),
            other => {
                about.unknown(format!("{other}: not one of the modes known to us"), stake, NO_HELP)
            }
        };
    }
    if scene.config.no("SECURITY_LOCKDOWN_LSM") {
        return about.saw(&scene.config.reading("SECURITY_LOCKDOWN_LSM")).good("not built in");
    }
    let mount = ["mount -t securityfs none /sys/kernel/security"];
    match scene.probe.read("/sys/kernel/security/lockdown") {
        Err(e) if e.absent() => about.unknown(
            format!(
                "{e}: securityfs is not mounted, or lockdown is not among the kernel's security \
                 modules"
            ),
            stake,
            mount,
        ),
        Err(e) => about.unknown(e.to_string(), stake, NO_HELP),
        Ok(r) => about.saw(&r).unknown("not one of the modes known to us", stake, NO_HELP),
    }
}

fn sched_ext(scene: &Scene) -> Finding {
    let about = Finding::about("sched-ext", "sched_ext, for the kernel host");
    let user = "the user host does not need it";
    match scene.probe.read("/sys/kernel/sched_ext/state") {
        Ok(r) if r.read == "disabled" => {
            let about = about.saw(&r).saw_any(&scene.release);
            match scene.since(6, 18) {
                Some(true) => about.good("the kernel host can be loaded"),
                _ => about.note(
                    "sched_ext is there, but the kernel host is made for Linux 6.18 and later",
                    user,
                    NO_HELP,
                ),
            }
        }
        Ok(r) => {
            let ops = scene.probe.read("/sys/kernel/sched_ext/root/ops");
            let who = ops.map_or("another scheduler".to_string(), |o| o.read);
            about.saw(&r).note(
                format!("{who} is loaded"),
                format!("only one can be: the kernel host has to wait until it has gone. {user}"),
                ["systemctl stop scx.service scx_loader.service"],
            )
        }
        Err(e) => {
            let about = about.saw(&scene.config.reading("SCHED_CLASS_EXT")).saw_any(&scene.release);
            let cause = if scene.config.no("SCHED_CLASS_EXT") {
                "the kernel is built without CONFIG_SCHED_CLASS_EXT".to_string()
            } else {
                e.to_string()
            };
            let help = match debian_arch() {
                Some(arch) => {
                    vec![
                    // From the mirror that this machine already uses.
                    concat!(
                        r#"echo "deb $(apt-get indextargets --format '$(REPO_URI)' | head -1) "#,
                        r#"trixie-backports main" > /etc/apt/sources.list.d/trixie-backports.list"#
                    )
                    .into(),
                    format!("apt-get update && apt-get install -t trixie-backports \
                             linux-image-{arch} && reboot"),
                ]
                }
                None => {
                    vec!["# build a kernel from 6.18 on with CONFIG_SCHED_CLASS_EXT".to_string()]
                }
            };
            about.note(cause, format!("the kernel host cannot be used; {user}"), help)
        }
    }
}

fn debugfs(scene: &Scene) -> Finding {
    let about = Finding::about("debugfs", "The scheduler's debug files");
    let stake = "HRTICK, the fair server and the preemption model cannot be read here";
    match scene.probe.read("/sys/kernel/debug/sched/features") {
        Ok(_) => about.saw(&Evidence::new("/sys/kernel/debug/sched", "readable")).good("readable"),
        Err(e) if scene.debugfs_locked() => about.note(e.to_string(), stake, [UNLOCK]),
        Err(e) if e.absent() => about.note(
            format!("{e}: debugfs is not mounted, or the kernel has no scheduler debug files"),
            stake,
            ["mount -t debugfs none /sys/kernel/debug"],
        ),
        Err(e) if scene.uid() == Some(0) => about.note(format!("{e}, to root"), stake, [UNLOCK]),
        Err(e) => about.note(e.to_string(), stake, ["sudo punctual doctor"]),
    }
}

fn watchdog(scene: &Scene) -> Finding {
    let about = Finding::about("watchdog", "Watchdogs");
    match scene.probe.number("/proc/sys/kernel/nmi_watchdog") {
        Ok((0, r)) => about.saw(&r).good("no interrupt that cannot be masked comes by the clock"),
        Ok((_, r)) => about.saw(&r).note(
            "the hard lockup detector is on",
            "it interrupts each CPU every few seconds for some microseconds, and takes a \
             performance counter",
            ["sysctl -w kernel.nmi_watchdog=0"],
        ),
        Err(e) if e.absent() => about.good("not built in"),
        Err(e) => about.unknown(
            e.to_string(),
            "a watchdog interrupts each CPU every few seconds",
            NO_HELP,
        ),
    }
}

fn perf_events(scene: &Scene) -> Finding {
    let about = Finding::about("perf-events", "Performance events");
    let stake = "perf cannot show what delays a task; no host needs it";
    match scene.probe.number("/proc/sys/kernel/perf_event_paranoid") {
        Err(e) => about.unknown(e.to_string(), stake, NO_HELP),
        Ok((_, r)) if scene.can(Cap::Perfmon) || scene.can(Cap::SysAdmin) => {
            about.saw(&r).good("our capabilities lift the restriction")
        }
        Ok((n, r)) if n <= -1 => about.saw(&r).good("not restricted"),
        Ok((_, r)) => about.saw(&r).note(
            "they are restricted for users without CAP_PERFMON",
            stake,
            ["# run perf as root: sudo perf ..."],
        ),
    }
}

fn bpf(scene: &Scene) -> Finding {
    let about = Finding::about("bpf", "BPF for this user");
    match scene.probe.number("/proc/sys/kernel/unprivileged_bpf_disabled") {
        Err(e) => about.unknown(e.to_string(), "the kernel host is a BPF program", NO_HELP),
        Ok((_, r))
            if scene.can(Cap::SysAdmin) || (scene.can(Cap::Bpf) && scene.can(Cap::Perfmon)) =>
        {
            about.saw(&r).good("programs of the kernel host may be loaded")
        }
        Ok((_, r)) => about.saw(&r).note(
            "CAP_BPF and CAP_PERFMON are missing",
            "the kernel host cannot be loaded by this user, whatever this setting; the user host \
             does not need it",
            ["# run the kernel host as root: sudo punctual ..."],
        ),
    }
}
