//! Interrupts: where they may land, and which handlers have a higher priority than jobs.

use crate::finding::{Evidence, Finding, NO_HELP};
use crate::parse::{cpu_list, cpu_list_text, cpu_mask, cpu_mask_text};
use crate::scene::Scene;

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![irq_affinity(scene), irq_default(scene), irq_balance(scene), irq_threads(scene)]
}

/// How many echo lines are written out; the rest is one loop.
const LINES: usize = 12;

fn irq_affinity(scene: &Scene) -> Finding {
    let about = Finding::about("irq-affinity", "Interrupt affinity");
    let stake = "interrupts on the CPU of a job delay it by microseconds each";
    let irqs = match scene.probe.list("/proc/irq") {
        Ok(names) => names,
        Err(e) => return about.unknown(e.to_string(), stake, NO_HELP),
    };
    let mut allowed: Vec<(String, Vec<usize>)> = Vec::new();
    for irq in irqs.into_iter().filter(|n| n.bytes().all(|b| b.is_ascii_digit())) {
        let list = scene.probe.read(&format!("/proc/irq/{irq}/smp_affinity_list"));
        if let Some(cpus) = list.ok().and_then(|l| cpu_list(&l.read)) {
            allowed.push((irq, cpus));
        }
    }
    if allowed.is_empty() {
        return about.unknown("/proc/irq/*/smp_affinity_list: none can be read", stake, NO_HELP);
    }
    let online = scene.online_cpus().unwrap_or_default();
    let counts: Vec<String> = online
        .iter()
        .take(16)
        .map(|c| {
            format!("CPU {c}: {}", allowed.iter().filter(|(_, cpus)| cpus.contains(c)).count())
        })
        .collect();
    let about = about.saw(&Evidence::new(
        "/proc/irq/*/smp_affinity_list",
        format!("allowed on {}", counts.join(", ")),
    ));
    let (rt, others) = (scene.real_time_cpus(), scene.other_cpus());
    let meets = |cpus: &Vec<usize>| cpus.iter().any(|c| rt.contains(c));
    let there: Vec<&String> =
        allowed.iter().filter(|(_, c)| meets(c)).map(|(irq, _)| irq).collect();
    if there.is_empty() {
        return about.good(format!("no interrupt line may land on CPU {}", cpu_list_text(&rt)));
    }
    if others.is_empty() {
        return about.note("there is only one CPU for everything", stake, NO_HELP);
    }
    let to = cpu_list_text(&others);
    let mut help: Vec<String> = there
        .iter()
        .take(LINES)
        .map(|irq| format!("echo {to} > /proc/irq/{irq}/smp_affinity_list"))
        .collect();
    if there.len() > LINES {
        help =
            vec![format!("for f in /proc/irq/[0-9]*/smp_affinity_list; do echo {to} > $f; done")];
    }
    help.push(
        "# an interrupt that the kernel or its driver manages refuses this; \
         isolcpus=managed_irq,... moves those"
            .into(),
    );
    about.note(
        format!(
            "{} of {} interrupts may land on CPU {}",
            there.len(),
            allowed.len(),
            cpu_list_text(&rt)
        ),
        stake,
        help,
    )
}

fn irq_default(scene: &Scene) -> Finding {
    let about = Finding::about("irq-default-affinity", "Affinity of new interrupts");
    let stake = "the interrupts of a device that is plugged in later land on the CPU of a job";
    let reading = match scene.probe.read("/proc/irq/default_smp_affinity") {
        Ok(r) => r,
        Err(e) => return about.unknown(e.to_string(), stake, NO_HELP),
    };
    let about = about.saw(&reading);
    let Some(cpus) = cpu_mask(&reading.read) else {
        return about.unknown("expected a CPU mask", stake, NO_HELP);
    };
    let (rt, others) = (scene.real_time_cpus(), scene.other_cpus());
    if !cpus.iter().any(|c| rt.contains(c)) {
        return about.good("new interrupts stay away from the CPUs of jobs");
    }
    if others.is_empty() {
        return about.note("there is only one CPU for everything", stake, NO_HELP);
    }
    about.note(
        format!("new interrupts may land on CPU {}", cpu_list_text(&rt)),
        stake,
        [format!("echo {} > /proc/irq/default_smp_affinity", cpu_mask_text(&others))],
    )
}

fn irq_balance(scene: &Scene) -> Finding {
    let about = Finding::about("irq-balance", "irqbalance");
    let running = scene.probe.list("/proc").map(|names| {
        names.into_iter().filter(|n| n.bytes().all(|b| b.is_ascii_digit())).find(|pid| {
            scene.probe.read(&format!("/proc/{pid}/comm")).is_ok_and(|r| r.read == "irqbalance")
        })
    });
    match running {
        Err(e) => about.unknown(e.to_string(), "it moves interrupts", NO_HELP),
        Ok(None) => about
            .saw(&Evidence::new("/proc/*/comm", "no irqbalance"))
            .good("no daemon moves interrupts behind our back"),
        Ok(Some(pid)) => about.saw(&Evidence::new(format!("/proc/{pid}/comm"), "irqbalance")).note(
            "irqbalance runs",
            "it moves interrupts back to CPUs that were cleared of them",
            ["systemctl disable --now irqbalance"],
        ),
    }
}

/// A dispatcher has SCHED_FIFO 99 and its jobs 2 to 96; the kernel puts interrupt threads at 50.
fn irq_threads(scene: &Scene) -> Finding {
    let about = Finding::about("irq-threads", "Interrupt threads");
    let threads = match &scene.threads {
        Ok(threads) => threads,
        Err(e) => {
            return about.unknown(e.to_string(), "an interrupt thread may outrank a job", NO_HELP)
        }
    };
    let irq: Vec<_> = threads.iter().filter(|t| t.interrupt()).collect();
    let mut about = about;
    for t in irq.iter().filter(|t| t.priority > 50).take(5) {
        about = about.saw(&Evidence::new(format!("/proc/{}/stat", t.tid), t.describe()));
    }
    let raised = irq.iter().filter(|t| t.priority > 50).count();
    if raised > 0 {
        return about.note(
            format!(
                "{raised} interrupt threads are above SCHED_FIFO 50, where the kernel puts them"
            ),
            "they delay every job whose level (2 to 96) is below theirs",
            irq.iter()
                .filter(|t| t.priority > 50)
                .take(5)
                .map(|t| format!("chrt --fifo --pid 50 {}", t.tid)),
        );
    }
    let about = about.saw(&Evidence::new(
        "/proc/*/task/*/stat",
        format!("{} interrupt threads, none above SCHED_FIFO 50", irq.len()),
    ));
    let threaded =
        scene.booted_with("threadirqs").is_some() || scene.preempt_rt().is_some_and(|(rt, _)| rt);
    if threaded {
        return about.good(
            "interrupt handlers are threads, which never delay a dispatcher, and only jobs whose \
             level is below theirs",
        );
    }
    if scene.config.no("IRQ_FORCED_THREADING") {
        return about.saw(&scene.config.reading("IRQ_FORCED_THREADING")).note(
            "the kernel cannot run all interrupt handlers as threads",
            "most handlers interrupt dispatchers and jobs, whatever the priority",
            NO_HELP,
        );
    }
    about.note(
        "most interrupt handlers are not threads",
        "they interrupt dispatchers and jobs, whatever the priority",
        scene.boot_option("threadirqs"),
    )
}
