//! What a result ran on, read from the machine. What cannot be read is left out: this never fails.

use super::Machine;
use std::fs::read_to_string;

impl Machine {
    /// Describes the machine at hand.
    #[must_use]
    pub fn detect() -> Machine {
        let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let version = line("/proc/sys/kernel/version").unwrap_or_default();
        Machine {
            kernel: line("/proc/sys/kernel/osrelease").unwrap_or_default(),
            arch: std::env::consts::ARCH.to_owned(),
            cpus: line("/sys/devices/system/cpu/online").map_or(1, |list| count_cpus(&list)),
            cpu_model: field(&cpuinfo, "model name"),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            preempt_rt: version.contains("PREEMPT_RT") || line("/sys/kernel/realtime").as_deref() == Some("1"),
            virtualised: virtualised(&cpuinfo),
        }
    }
}

/// A hypervisor shows itself as a CPU flag on x86 and in the device tree elsewhere.
fn virtualised(cpuinfo: &str) -> Option<bool> {
    if let Some(flags) = field(cpuinfo, "flags") {
        return Some(flags.split(' ').any(|flag| flag == "hypervisor"));
    }
    if std::path::Path::new("/proc/device-tree/hypervisor").exists() {
        return Some(true);
    }
    None
}

fn line(path: &str) -> Option<String> {
    read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn field(text: &str, key: &str) -> Option<String> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
}

/// CPUs in a kernel list like `0-3,8`.
fn count_cpus(list: &str) -> u32 {
    list.split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_counted() {
        assert_eq!(count_cpus("0-3,8"), 5);
        assert_eq!(count_cpus("0"), 1);
        assert_eq!(count_cpus(""), 0);
        assert_eq!(count_cpus("3-1,x"), 0);
    }

    #[test]
    fn a_hypervisor_is_a_flag_and_no_part_of_one() {
        assert_eq!(virtualised("processor\t: 0\nflags\t\t: fpu hypervisor lm\n"), Some(true));
        assert_eq!(virtualised("flags\t\t: fpu nohypervisor\n"), Some(false));
    }

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::detect();
        assert!(!machine.kernel.is_empty() && machine.cpus >= 1);
    }
}
