//! CPUs that are kept for jobs.

use crate::finding::{Evidence, Finding, NO_HELP};
use crate::parse::{cpu_list, cpu_list_text};
use crate::probe::Unread;
use crate::scene::Scene;

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![cpus_allowed(scene), isolated_cpus(scene)]
}

fn cpus_allowed(scene: &Scene) -> Finding {
    let about = Finding::about("cpus-allowed", "CPUs that we may use");
    let stake = "a task set that names another CPU is refused";
    let reading = match scene.allowed_reading() {
        Ok(r) => r,
        Err(e) => return about.unknown(e.to_string(), stake, NO_HELP),
    };
    let about = about.saw(&reading);
    match (scene.allowed_cpus(), scene.online_cpus()) {
        (Some(allowed), Some(online)) => {
            let missing: Vec<usize> =
                online.iter().copied().filter(|c| !allowed.contains(c)).collect();
            if missing.is_empty() {
                return about.good("all that are online");
            }
            about.note(
                format!("our affinity, or our cpuset, leaves out CPU {}", cpu_list_text(&missing)),
                stake,
                [format!("taskset --all-tasks --pid --cpu-list {} $$", cpu_list_text(&online))],
            )
        }
        (Some(_), None) => about.good("which CPUs are online is not to be read"),
        (None, _) => about.unknown("expected a list of CPUs", stake, NO_HELP),
    }
}

fn isolated_cpus(scene: &Scene) -> Finding {
    const PATH: &str = "/sys/devices/system/cpu/isolated";
    let mut about = Finding::about("isolated-cpus", "Isolated CPUs");
    let effect = "other programs, kernel threads and the tick share the CPU with jobs: each costs \
                  them microseconds";
    let isolated = scene.probe.read(PATH).and_then(|r| match cpu_list(&r.read) {
        Some(cpus) => Ok((cpus, r)),
        None => Err(Unread::garbled(&r, "a list of CPUs")),
    });
    let (cpus, reading) = match isolated {
        Ok(found) => found,
        Err(e) => return about.unknown(e.to_string(), effect, NO_HELP),
    };
    about = about.saw(&reading);
    let tickless = scene
        .probe
        .read("/sys/devices/system/cpu/nohz_full")
        .ok()
        .filter(|r| r.read.starts_with(|c: char| c.is_ascii_digit()));
    if let Some(r) = &tickless {
        about = about.saw(r);
    }
    if let Some(value) = scene.booted_with("rcu_nocbs") {
        about = about.saw(&Evidence::new("/proc/cmdline", format!("rcu_nocbs={value}")));
    }
    let online = scene.online_cpus().unwrap_or_default();
    if cpus.is_empty() {
        let Some(&last) = online.last().filter(|_| online.len() > 1) else {
            return about.note("there is only one CPU", effect, NO_HELP);
        };
        return about.note(
            "no CPU is kept for jobs",
            effect,
            scene.boot_option(&boot(scene, &last.to_string())),
        );
    }
    let list = cpu_list_text(&cpus);
    let can_be_tickless = scene.config.yes("NO_HZ_FULL");
    if (can_be_tickless && tickless.is_none()) || scene.booted_with("rcu_nocbs").is_none() {
        return about.note(
            format!("CPU {list} is isolated, but the tick or RCU's callbacks still run there"),
            "each costs a job microseconds",
            scene.boot_option(&boot(scene, &list)),
        );
    }
    about.good(format!("CPU {list} runs what is put there, and little else"))
}

fn boot(scene: &Scene, cpus: &str) -> String {
    let mut option = format!("isolcpus=managed_irq,domain,{cpus}");
    if !scene.config.no("NO_HZ_FULL") {
        option.push_str(&format!(" nohz_full={cpus}"));
    }
    if !scene.config.no("RCU_NOCB_CPU") {
        option.push_str(&format!(" rcu_nocbs={cpus}"));
    }
    option
}
