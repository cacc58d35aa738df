//! Whether the machine is one, and how much of it its host takes.

use crate::finding::{Evidence, Finding, NO_HELP};
use crate::scene::Scene;

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![virtual_machine(scene), steal(scene)]
}

fn virtual_machine(scene: &Scene) -> Finding {
    let mut about = Finding::about("virtual-machine", "Virtual machine");
    let Some((guest, reading)) = scene.virtual_machine() else {
        return about.unknown(
            "/proc/cpuinfo cannot be read",
            "a host may take the CPU at any time",
            NO_HELP,
        );
    };
    about = about.saw(&reading);
    if !guest {
        return about.good("none: no hypervisor takes the CPU from the kernel");
    }
    for path in ["/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"] {
        if let Ok(r) = scene.probe.read(path) {
            about = about.saw(&r);
        }
    }
    about.note(
        "a hypervisor runs below this kernel",
        "its host may take a CPU from a job at any time, for milliseconds, and nothing here \
         prevents it; medians and shares hold, worst cases are the host's",
        ["# on the host: pin each virtual CPU to a CPU of its own, give its thread SCHED_FIFO, and \
          lock the guest's memory"],
    )
}

/// (all time, stolen) of all CPUs since boot, in ticks.
fn sample(scene: &Scene) -> Result<(u64, u64, Evidence), String> {
    let stat = scene.probe.read("/proc/stat").map_err(|e| e.to_string())?;
    let line = stat.read.lines().find(|l| l.starts_with("cpu ")).unwrap_or("");
    let reading =
        Evidence::new("/proc/stat", line.split_whitespace().collect::<Vec<_>>().join(" "));
    let fields: Option<Vec<u64>> =
        line.split_whitespace().skip(1).take(8).map(|w| w.parse().ok()).collect();
    match fields {
        Some(f) if f.len() == 8 => {
            Ok((f.iter().fold(0, |a: u64, b| a.saturating_add(*b)), f[7], reading))
        }
        _ => Err("/proc/stat: expected a line of times of all CPUs".into()),
    }
}

fn steal(scene: &Scene) -> Finding {
    let about = Finding::about("steal", "Stolen time");
    let stake =
        "the host runs something else on our CPUs: jobs stand still meanwhile, uncharged and late";
    let (before, after) = match sample(scene).and_then(|a| {
        std::thread::sleep(scene.probe.window());
        sample(scene).map(|b| (a, b))
    }) {
        Ok(both) => both,
        Err(why) => return about.unknown(why, stake, NO_HELP),
    };
    let (all, stolen, reading) = after;
    let now = stolen.saturating_sub(before.1);
    let window = scene.probe.window().as_millis();
    let about = about
        .saw(&reading)
        .saw(&Evidence::new("/proc/stat", format!("{now} ticks stolen in {window} ms")));
    let help =
        ["# on the host: leave these virtual CPUs alone on theirs; in a cloud: take an instance \
          with dedicated CPUs"];
    if now > 0 || stolen.saturating_mul(100) > all {
        let share = stolen.saturating_mul(100) / all.max(1);
        return about.warning(
            format!("{now} ticks were stolen while we looked, {share} % since boot"),
            stake,
            help,
        );
    }
    if stolen > 0 {
        return about.note(format!("{stolen} of {all} ticks were stolen since boot"), stake, help);
    }
    about.good("none since boot")
}
