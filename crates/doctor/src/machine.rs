//! What a result ran on. What cannot be read is left out: describing a machine never fails.

use crate::kconfig::{Built, Config};
use crate::parse::{boot_value, chosen, cpu_list};
use crate::probe::Probe;
use serde::{Deserialize, Serialize};

/// A machine as far as it matters to real time; null where it could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Kernel release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// Kernel version, as `uname -v` prints it.
    pub build: Option<String>,
    /// Whether the kernel is PREEMPT_RT.
    pub preempt_rt: bool,
    /// The kernel's preemption model: `none`, `voluntary`, `lazy`, `full` or `rt`.
    pub preemption: Option<String>,
    /// Ticks per second.
    pub hz: Option<u32>,
    /// PRETTY_NAME of os-release.
    pub distribution: Option<String>,
    /// Processor architecture, as `uname -m` prints it.
    pub arch: String,
    /// The processor's own name, if it has one.
    pub cpu_model: Option<String>,
    /// Frequency of the time-stamp counter or, without one, of the processor, kHz: how many cycles
    /// a time is.
    pub cpu_khz: Option<u64>,
    /// CPUs that are online.
    pub cpus: Vec<usize>,
    /// CPUs that the examining process may use.
    pub allowed_cpus: Vec<usize>,
    /// CPUs that the kernel keeps free of other programs (isolcpus).
    pub isolated_cpus: Vec<usize>,
    /// Current clock source.
    pub clock_source: Option<String>,
    /// Time that real-time classes may execute in each `rt_period_us`, us; -1: without a limit.
    pub rt_runtime_us: Option<i64>,
    /// The period of that limit, us.
    pub rt_period_us: Option<i64>,
    /// Whether the kernel is a guest, as far as it shows.
    pub virtual_machine: Option<bool>,
}

impl Machine {
    /// Describes what `probe` examines. Reads a dozen files, the kernel's configuration among them:
    /// some milliseconds.
    #[must_use]
    pub fn describe(probe: &Probe) -> Machine {
        let line =
            |path: &str| probe.read(path).ok().map(|r| r.read).filter(|text| !text.is_empty());
        let number = |path: &str| probe.number(path).ok().map(|(n, _)| n);
        let cpus = |path: &str| line(path).and_then(|list| cpu_list(&list)).unwrap_or_default();
        let kernel = line("/proc/sys/kernel/osrelease");
        let build = line("/proc/sys/kernel/version");
        let config = Config::read(probe, kernel.as_deref());
        let cpuinfo = line("/proc/cpuinfo").unwrap_or_default();
        let preempt_rt = line("/sys/kernel/realtime").as_deref() == Some("1")
            || build
                .as_deref()
                .is_some_and(|b| b.split_whitespace().any(|word| word == "PREEMPT_RT"));
        let allowed = line("/proc/self/status")
            .and_then(|status| cpu_list(field(&status, "Cpus_allowed_list")?))
            .unwrap_or_default();
        let distribution = line("/etc/os-release").and_then(|os| {
            let name = os.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="))?;
            Some(name.trim_matches('"').to_owned())
        });
        Machine {
            preemption: if preempt_rt { Some("rt".to_owned()) } else { preemption(probe, &config) },
            preempt_rt,
            hz: match config.option("HZ") {
                Built::Set(hz) => hz.parse().ok(),
                _ => None,
            },
            distribution,
            arch: std::env::consts::ARCH.to_owned(),
            cpu_model: field(&cpuinfo, "model name").map(str::to_owned),
            cpu_khz: khz(probe, &cpuinfo),
            cpus: cpus("/sys/devices/system/cpu/online"),
            allowed_cpus: allowed,
            isolated_cpus: cpus("/sys/devices/system/cpu/isolated"),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            rt_runtime_us: number("/proc/sys/kernel/sched_rt_runtime_us"),
            rt_period_us: number("/proc/sys/kernel/sched_rt_period_us"),
            virtual_machine: virtual_machine(probe, &cpuinfo),
            kernel,
            build,
        }
    }

    /// Describes the machine at hand.
    #[must_use]
    pub fn detect() -> Machine {
        Machine::describe(&Probe::machine())
    }
}

/// What runs now (debugfs), else what was booted with, else what was built.
fn preemption(probe: &Probe, config: &Config) -> Option<String> {
    let live = probe
        .read("/sys/kernel/debug/sched/preempt")
        .ok()
        .and_then(|r| chosen(&r.read).map(str::to_owned));
    let booted = || {
        let cmdline = probe.read("/proc/cmdline").ok()?;
        boot_value(&cmdline.read, "preempt").map(str::to_owned)
    };
    let built = || {
        [
            ("PREEMPT_NONE", "none"),
            ("PREEMPT_VOLUNTARY", "voluntary"),
            ("PREEMPT_LAZY", "lazy"),
            ("PREEMPT", "full"),
        ]
        .into_iter()
        .find(|(option, _)| config.yes(option))
        .map(|(_, model)| model.to_owned())
    };
    live.or_else(booted).or_else(built)
}

/// The time-stamp counter's rate where the kernel shows it, else the processor's.
fn khz(probe: &Probe, cpuinfo: &str) -> Option<u64> {
    let base = probe.number("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency").ok();
    if let Some(khz) = base.and_then(|(khz, _)| u64::try_from(khz).ok()) {
        return Some(khz);
    }
    // "2649.998": MHz, with three digits behind the point.
    let (mhz, khz) = field(cpuinfo, "cpu MHz")?.split_once('.')?;
    Some(mhz.parse::<u64>().ok()? * 1000 + khz.get(..3)?.parse::<u64>().ok()?)
}

/// A hypervisor shows itself as a CPU flag on x86, and in sysfs or the device tree elsewhere.
fn virtual_machine(probe: &Probe, cpuinfo: &str) -> Option<bool> {
    if field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
    {
        return Some(true);
    }
    let shown = ["/sys/hypervisor/type", "/proc/device-tree/hypervisor/compatible"];
    if shown.iter().any(|path| probe.exists(path)) {
        return Some(true);
    }
    (!cpuinfo.is_empty()).then_some(false)
}

fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_files_is_described() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/sys/kernel/osrelease", "6.18.15\n");
        put("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian\n");
        put("boot/config-6.18.15", "CONFIG_HZ=250\nCONFIG_PREEMPT_LAZY=y\n");
        put(
            "proc/cpuinfo",
            "model name\t: A processor\ncpu MHz\t\t: 2649.998\nflags\t\t: fpu nohypervisor\n",
        );
        put("sys/devices/system/cpu/online", "0-3,8\n");
        put("proc/sys/kernel/sched_rt_runtime_us", "-1\n");
        let machine = Machine::describe(&Probe::tree(tree.path(), None));
        assert_eq!(machine.kernel.as_deref(), Some("6.18.15"));
        assert_eq!((machine.preempt_rt, machine.preemption.as_deref()), (false, Some("lazy")));
        assert_eq!((machine.hz, machine.cpu_khz), (Some(250), Some(2_649_998)));
        assert_eq!(machine.cpu_model.as_deref(), Some("A processor"));
        assert_eq!(machine.cpus, [0, 1, 2, 3, 8]);
        assert_eq!((machine.rt_runtime_us, machine.rt_period_us), (Some(-1), None));
        assert_eq!(machine.virtual_machine, Some(false));

        put("proc/cpuinfo", "flags\t\t: fpu hypervisor lm\n");
        put("sys/kernel/realtime", "1\n");
        let machine = Machine::describe(&Probe::tree(tree.path(), None));
        assert_eq!((machine.preempt_rt, machine.preemption.as_deref()), (true, Some("rt")));
        assert_eq!((machine.virtual_machine, machine.cpu_khz), (Some(true), None));
    }

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::detect();
        assert!(machine.kernel.is_some() && !machine.cpus.is_empty());
    }
}
