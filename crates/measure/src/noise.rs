//! What disturbs a measurement from outside: time that a hypervisor took, system-management
//! interrupts, changes of frequency, and other programs on the CPU.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Counters of one CPU at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoiseReading {
    /// All of its time, ticks.
    total: u64,
    idle: u64,
    stolen: u64,
    /// System-management interrupts since boot.
    smis: Option<u64>,
    /// Its frequency now, kHz.
    khz: Option<u64>,
}

/// What disturbed one CPU between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Noise {
    /// Share of the CPU's time that a hypervisor gave to others (steal of /proc/stat), parts per
    /// million.
    pub steal_ppm: u64,
    /// System-management interrupts (MSR 0x34); `null` where they cannot be counted.
    pub smis: Option<u64>,
    /// The lowest frequency that was seen, kHz; `null` where the kernel does not show it.
    pub least_khz: Option<u64>,
    /// The highest frequency that was seen, kHz.
    pub most_khz: Option<u64>,
    /// Share of the CPU's time in which it was not idle, parts per million.
    pub busy_ppm: u64,
}

/// Of these shares of a CPU on, a measurement is hard to believe.
const MUCH_STEAL_PPM: u64 = 1_000;
const MUCH_BUSY_PPM: u64 = 50_000;

impl NoiseReading {
    /// Reads the counters of a CPU. What cannot be read counts as nothing.
    #[must_use]
    pub fn of(cpu: u32) -> NoiseReading {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let frequency = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        NoiseReading {
            smis: smis(cpu),
            khz: fs::read_to_string(frequency).ok().and_then(|khz| khz.trim().parse().ok()),
            ..NoiseReading::parse(&stat, cpu)
        }
    }

    /// The line of a CPU in /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(stat: &str, cpu: u32) -> NoiseReading {
        let name = format!("cpu{cpu}");
        let line =
            stat.lines().find_map(|l| l.strip_prefix(&name)?.strip_prefix(' ')).unwrap_or("");
        let ticks: Vec<u64> =
            line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        let at = |place: usize| ticks.get(place).copied().unwrap_or(0);
        NoiseReading {
            total: ticks.iter().sum(),
            idle: at(3) + at(4),
            stolen: at(7),
            smis: None,
            khz: None,
        }
    }

    /// What disturbed the CPU since this reading.
    #[must_use]
    pub fn until(&self, later: &NoiseReading) -> Noise {
        let total = later.total.saturating_sub(self.total);
        let share = |before: u64, after: u64| {
            let part = u128::from(after.saturating_sub(before));
            u64::try_from(part * 1_000_000 / u128::from(total.max(1))).unwrap_or(u64::MAX)
        };
        let idle = share(self.idle, later.idle);
        let frequencies = || [self.khz, later.khz].into_iter().flatten();
        Noise {
            steal_ppm: share(self.stolen, later.stolen),
            smis: self.smis.zip(later.smis).map(|(before, after)| after.saturating_sub(before)),
            least_khz: frequencies().min(),
            most_khz: frequencies().max(),
            busy_ppm: if total == 0 { 0 } else { 1_000_000u64.saturating_sub(idle) },
        }
    }
}

/// IA32_SMI_COUNT, where the msr module is loaded and we may read it.
fn smis(cpu: u32) -> Option<u64> {
    const SMI_COUNT: u64 = 0x34;
    let mut value = [0u8; 8];
    File::open(format!("/dev/cpu/{cpu}/msr")).ok()?.read_exact_at(&mut value, SMI_COUNT).ok()?;
    Some(u64::from_le_bytes(value))
}

impl Noise {
    /// Reasons not to believe a measurement that ran meanwhile.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.steal_ppm >= MUCH_STEAL_PPM {
            doubts.push(format!("a hypervisor took {} % of the CPU", percent(self.steal_ppm)));
        }
        if let Some(smis) = self.smis.filter(|&smis| smis > 0) {
            doubts.push(format!("{smis} system-management interrupts stopped the CPU"));
        }
        if let (Some(least), Some(most)) = (self.least_khz, self.most_khz) {
            // 5 % is more than the clock's own spread.
            if least * 100 < most * 95 {
                doubts.push(format!("the CPU's frequency went from {least} to {most} kHz"));
            }
        }
        doubts
    }

    /// A reason not to believe a measurement that begins after this: other programs had the CPU.
    #[must_use]
    pub fn neighbours(&self) -> Option<String> {
        (self.busy_ppm >= MUCH_BUSY_PPM).then(|| {
            format!(
                "other programs had {} % of the CPU before the measurement began",
                percent(self.busy_ppm)
            )
        })
    }

    /// Both of two times: shares are the larger ones, interrupts add up.
    #[must_use]
    pub fn join(&self, other: &Noise) -> Noise {
        Noise {
            steal_ppm: self.steal_ppm.max(other.steal_ppm),
            smis: self.smis.zip(other.smis).map(|(a, b)| a + b),
            least_khz: self.least_khz.into_iter().chain(other.least_khz).min(),
            most_khz: self.most_khz.max(other.most_khz),
            busy_ppm: self.busy_ppm.max(other.busy_ppm),
        }
    }
}

/// Parts per million as a percentage with two digits.
fn percent(ppm: u64) -> String {
    format!("{}.{:02}", ppm / 10_000, ppm / 100 % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str =
        "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 100 0 50 800 50 0 0 0 0 0\ncpu11 7 7 7 7 7 7 7 7 7 7\n";
    const AFTER: &str =
        "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 150 0 70 1600 150 0 0 30 0 0\ncpu11 7 7 7 7 7 7 7 7 7 7\n";

    #[test]
    fn stolen_and_busy_time_are_those_of_the_one_cpu() {
        let [before, after] = [BEFORE, AFTER].map(|stat| NoiseReading::parse(stat, 1));
        let noise = before.until(&after);
        assert_eq!((noise.steal_ppm, noise.busy_ppm), (30_000, 100_000));
        assert_eq!(noise.doubts(), ["a hypervisor took 3.00 % of the CPU"]);
        assert!(noise.neighbours().is_some_and(|doubt| doubt.contains("10.00 %")));
        assert_eq!(NoiseReading::parse(BEFORE, 2), NoiseReading::default(), "there is no CPU 2");
    }

    #[test]
    fn interrupts_and_frequency_changes_are_doubts_and_silence_is_none() {
        let quiet = NoiseReading {
            total: 100,
            idle: 100,
            smis: Some(5),
            khz: Some(2_000_000),
            ..Default::default()
        };
        let later = NoiseReading { total: 200, idle: 200, ..quiet };
        assert_eq!(quiet.until(&later).doubts(), Vec::<String>::new());
        assert_eq!(quiet.until(&later).neighbours(), None);
        let later = NoiseReading { smis: Some(7), khz: Some(1_000_000), ..later };
        let doubts = quiet.until(&later).doubts();
        assert!(
            doubts[0].starts_with("2 system-management") && doubts[1].contains("1000000"),
            "{doubts:?}"
        );
    }

    #[test]
    fn two_windows_are_as_noisy_as_the_noisier() {
        let a = Noise {
            steal_ppm: 10,
            smis: Some(1),
            least_khz: Some(5),
            most_khz: Some(6),
            busy_ppm: 2,
        };
        let b = Noise {
            steal_ppm: 4,
            smis: Some(2),
            least_khz: Some(4),
            most_khz: Some(5),
            busy_ppm: 3,
        };
        let want = Noise {
            steal_ppm: 10,
            smis: Some(3),
            least_khz: Some(4),
            most_khz: Some(6),
            busy_ppm: 3,
        };
        assert_eq!(a.join(&b), want);
    }
}
