//! How fast the processor runs, and whether that changes.

use crate::cpu::cpu_dirs;
use crate::finding::{Finding, NO_HELP};
use crate::scene::Scene;

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![frequency_scaling(scene), frequency_boost(scene)]
}

fn frequency_scaling(scene: &Scene) -> Finding {
    let about = Finding::about("frequency-scaling", "Frequency scaling");
    let effect = "execution times vary with the load before: a job's budget, measured at full \
                  speed, is short after an idle phase";
    let governors: Vec<_> = cpu_dirs(scene)
        .iter()
        .filter_map(|d| scene.probe.read(&format!("{d}/cpufreq/scaling_governor")).ok())
        .collect();
    if governors.is_empty() {
        let guest = scene.virtual_machine().is_some_and(|(vm, _)| vm);
        let why = if guest {
            "no frequency driver: the host decides, and a guest cannot see it"
        } else {
            "no frequency driver: the firmware decides"
        };
        return about.unknown(why, effect, NO_HELP);
    }
    match governors.iter().find(|g| g.read != "performance") {
        None => about.saw(&governors[0]).good("every CPU is asked to run at full speed"),
        Some(g) => about.saw(g).warning(
            format!("the governor {} follows the load", g.read),
            effect,
            ["for g in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do echo performance \
              > $g; done"],
        ),
    }
}

fn frequency_boost(scene: &Scene) -> Finding {
    let about = Finding::about("frequency-boost", "Frequency boost");
    let effect =
        "speed depends on temperature and on the load of other cores; execution times vary by some \
         tens of percent";
    // intel_pstate counts the other way round.
    let switches = [
        ("/sys/devices/system/cpu/cpufreq/boost", 1, 0),
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", 0, 1),
    ];
    for (path, boosting, off) in switches {
        match scene.probe.number(path) {
            Ok((n, r)) if n == boosting => {
                return about.saw(&r).note("boost is on", effect, [format!("echo {off} > {path}")]);
            }
            Ok((_, r)) => return about.saw(&r).good("off: full speed is always the same"),
            Err(e) if e.absent() => {}
            Err(e) => return about.unknown(e.to_string(), effect, NO_HELP),
        }
    }
    about.unknown("the kernel has no switch for it here", effect, NO_HELP)
}
