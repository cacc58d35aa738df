//! The processor: siblings and sleep.

use crate::finding::{Evidence, Finding, NO_HELP};
use crate::scene::Scene;

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![smt(scene), core_scheduling(scene), idle_states(scene)]
}

const CPUS: &str = "/sys/devices/system/cpu";

/// `cpu0`, `cpu1`, ...
pub fn cpu_dirs(scene: &Scene) -> Vec<String> {
    let names = scene.probe.list(CPUS).unwrap_or_default();
    names
        .into_iter()
        .filter(|n| {
            n.strip_prefix("cpu")
                .is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
        })
        .map(|n| format!("{CPUS}/{n}"))
        .collect()
}

fn smt(scene: &Scene) -> Finding {
    let about = Finding::about("smt", "Hardware threads");
    let effect = "what runs on the other hardware thread of a core slows a job by up to a half: \
                  execution times vary, though budgets of CPU time hold";
    let help = || {
        let mut help =
            vec![format!("echo off > {CPUS}/smt/control"), "# and for good:".to_string()];
        help.extend(scene.boot_option("nosmt"));
        help
    };
    let guest = scene.virtual_machine().is_some_and(|(vm, _)| vm);
    let hidden = if guest { ", as far as a guest can see" } else { "" };
    match (
        scene.probe.number(&format!("{CPUS}/smt/active")),
        scene.probe.read(&format!("{CPUS}/smt/control")),
    ) {
        (Ok((1, r)), control) => about.saw(&r).saw_any(&control).warning(
            "cores run two or more hardware threads",
            effect,
            help(),
        ),
        (Ok((_, r)), control) => about
            .saw(&r)
            .saw_any(&control)
            .good(format!("each core runs one hardware thread{hidden}")),
        (Err(_), _) => siblings(scene, about, effect),
    }
}

/// Any process may enable core scheduling (prctl PR_SCHED_CORE), for all cores with several
/// hardware threads.
fn core_scheduling(scene: &Scene) -> Finding {
    let about = Finding::about("core-scheduling", "Core scheduling");
    let effect =
        "once a process enables core scheduling (prctl PR_SCHED_CORE), the kernel keeps a hardware \
         thread idle while its sibling runs a task of another group: budgets are not kept, and the \
         kernel host ends with exit code 5";
    let active = scene.probe.number(&format!("{CPUS}/smt/active"));
    match active {
        Ok((0, r)) => {
            return about
                .saw(&r)
                .good("cores run one hardware thread each, so the kernel does not need it")
        }
        _ if scene.config.no("SCHED_CORE") => {
            return about
                .saw(&scene.config.reading("SCHED_CORE"))
                .good("the kernel is built without it")
        }
        _ => {}
    }
    let about = active.iter().fold(about, |a, (_, r)| a.saw(r));
    let help = [format!("echo off > {CPUS}/smt/control")];
    match scene.config.yes("SCHED_CORE") {
        true => {
            about.saw(&scene.config.reading("SCHED_CORE")).note("the kernel has it", effect, help)
        }
        false => {
            about.note("the kernel may have it: its configuration cannot be read", effect, help)
        }
    }
}

/// Where the kernel has no smt directory, the topology shows it.
fn siblings(scene: &Scene, about: crate::finding::Draft, effect: &str) -> Finding {
    let lists: Vec<Evidence> = cpu_dirs(scene)
        .iter()
        .filter_map(|d| scene.probe.read(&format!("{d}/topology/thread_siblings_list")).ok())
        .collect();
    match lists.iter().find(|r| r.read.contains([',', '-'])) {
        Some(r) => about.saw(r).warning(
            "cores run two or more hardware threads",
            effect,
            scene.boot_option("nosmt"),
        ),
        None if lists.is_empty() => about.unknown("the topology cannot be read", effect, NO_HELP),
        None => about.saw(&lists[0]).good("each core runs one hardware thread"),
    }
}

/// A wake-up from a state this deep, in microseconds, is felt.
const DEEP_US: i64 = 20;

fn idle_states(scene: &Scene) -> Finding {
    let about = Finding::about("idle-states", "Idle states");
    let guest = scene.virtual_machine().is_some_and(|(vm, _)| vm);
    let mut deepest: Option<(i64, Evidence, Evidence)> = None;
    for cpu in cpu_dirs(scene) {
        let dir = format!("{cpu}/cpuidle");
        for state in scene.probe.list(&dir).unwrap_or_default() {
            let path = format!("{dir}/{state}");
            if scene.probe.number(&format!("{path}/disable")).is_ok_and(|(n, _)| n != 0) {
                continue;
            }
            let Ok((us, reading)) = scene.probe.number(&format!("{path}/latency")) else {
                continue;
            };
            if deepest.as_ref().is_none_or(|d| us > d.0) {
                let name = scene.probe.read(&format!("{path}/name"));
                deepest = Some((us, reading, name.unwrap_or_else(|_| Evidence::new(path, state))));
            }
        }
    }
    let hlt =
        "the first wake-up on an idle CPU is late by the host's exit and entry, some tens of \
         microseconds";
    let poll = || {
        let mut help =
            vec!["# idle CPUs that spin (they use power, and take time from other guests):"
                .to_string()];
        help.extend(scene.boot_option("idle=poll"));
        help
    };
    let Some((us, reading, name)) = deepest else {
        let unseen = "the idle states cannot be read";
        return match guest {
            true => about.note(
                format!("{unseen}; an idle CPU of a guest halts to its host"),
                hlt,
                poll(),
            ),
            false => about.unknown(unseen, "a sleeping CPU wakes late", NO_HELP),
        };
    };
    let about = about.saw(&reading).saw(&name);
    if us > DEEP_US {
        return about.note(
            format!("idle CPUs may sleep as deep as {}", name.read),
            format!("the first wake-up after idling is up to {us} us late"),
            [
                "# for as long as the shell lives that does this:".to_string(),
                "exec 3> /dev/cpu_dma_latency && printf '\\0\\0\\0\\0' >&3".to_string(),
            ],
        );
    }
    if guest && scene.booted_with("idle") != Some("poll") {
        return about.note(
            "an idle CPU of a guest halts to its host, whatever latency it states",
            hlt,
            poll(),
        );
    }
    about.good("idle CPUs wake at once")
}
