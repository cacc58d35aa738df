//! What several findings need to know, read once at the beginning of an examination.

use crate::calls::Calls;
use crate::finding::Evidence;
use crate::kconfig::Config;
use crate::parse::{boot_value, chosen, cpu_list};
use crate::probe::{Probe, Unread};
use crate::threads::{self, RealTimeThread};

/// Linux capabilities that matter here, by bit.
#[derive(Clone, Copy)]
pub enum Cap {
    Kill = 5,
    IpcLock = 14,
    SysAdmin = 21,
    SysNice = 23,
    SysResource = 24,
    Perfmon = 38,
    Bpf = 39,
}

/// Lockdown is switched on by Secure Boot, by the command line or by the build, and off only there.
pub const UNLOCK: &str = "# kernel lockdown forbids it, to root too. It ends without Secure Boot \
                          (mokutil --disable-validation), without lockdown= on the kernel command \
                          line, and in a kernel that is not built to force it";

/// The machine as one examination sees it.
pub struct Scene<'a> {
    pub probe: &'a Probe,
    pub calls: Option<Calls>,
    pub config: Config,
    pub release: Result<Evidence, Unread>,
    pub version: Result<Evidence, Unread>,
    pub cmdline: Result<Evidence, Unread>,
    status: Result<Evidence, Unread>,
    limits: Result<Evidence, Unread>,
    pub threads: Result<Vec<RealTimeThread>, Unread>,
}

impl<'a> Scene<'a> {
    pub fn observe(probe: &'a Probe) -> Self {
        let release = probe.read("/proc/sys/kernel/osrelease");
        let config = Config::read(probe, release.as_ref().ok().map(|r| r.read.as_str()));
        Scene {
            calls: probe.calls(),
            config,
            version: probe.read("/proc/sys/kernel/version"),
            cmdline: probe.read("/proc/cmdline"),
            status: probe.read("/proc/self/status"),
            limits: probe.read("/proc/self/limits"),
            threads: threads::real_time(probe),
            release,
            probe,
        }
    }

    /// Major and minor number of the kernel.
    pub fn kernel(&self) -> Option<(u32, u32)> {
        let text = &self.release.as_ref().ok()?.read;
        let mut parts = text.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// At least this kernel; None if that is not known.
    pub fn since(&self, major: u32, minor: u32) -> Option<bool> {
        self.kernel().map(|k| k >= (major, minor))
    }

    /// PREEMPT_RT, by the kernel's own word.
    pub fn preempt_rt(&self) -> Option<(bool, Evidence)> {
        if let Ok(r) = self.probe.read("/sys/kernel/realtime") {
            return Some((r.read == "1", r));
        }
        if let Ok(v) = &self.version {
            return Some((v.read.split_whitespace().any(|w| w == "PREEMPT_RT"), v.clone()));
        }
        None
    }

    /// The value of a kernel command line parameter.
    pub fn booted_with(&self, key: &str) -> Option<&str> {
        boot_value(&self.cmdline.as_ref().ok()?.read, key)
    }

    /// A command that puts `option` on the kernel command line, or the option alone where there is
    /// no GRUB.
    pub fn boot_option(&self, option: &str) -> Vec<String> {
        if self.probe.exists("/etc/default/grub") {
            vec![
                "mkdir -p /etc/default/grub.d".into(),
                format!(
                    "echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {option}\"' >> \
                     /etc/default/grub.d/punctual.cfg"
                ),
                "update-grub && reboot".into(),
            ]
        } else {
            vec![format!("# add to the kernel command line and reboot: {option}")]
        }
    }

    /// The kernel's lockdown mode, where it is known: by itself, by how it was built, by how it was
    /// booted.
    pub fn lockdown(&self) -> Option<(String, Evidence)> {
        if let Ok(r) = self.probe.read("/sys/kernel/security/lockdown") {
            return Some((chosen(&r.read)?.to_string(), r));
        }
        for (option, mode) in [
            ("LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY", "confidentiality"),
            ("LOCK_DOWN_KERNEL_FORCE_INTEGRITY", "integrity"),
        ] {
            if self.config.yes(option) {
                return Some((mode.into(), self.config.reading(option)));
            }
        }
        let mode = self.booted_with("lockdown")?;
        Some((mode.into(), Evidence::new("/proc/cmdline", format!("lockdown={mode}"))))
    }

    /// Why debugfs cannot be had, though root may: then no help goes through it.
    pub fn debugfs_locked(&self) -> bool {
        self.lockdown().is_some_and(|(mode, _)| mode != "none")
    }

    /// Commands that use debugfs, with its mount before them where it is not mounted.
    pub fn through_debugfs(&self, commands: &[String]) -> Vec<String> {
        if self.debugfs_locked() {
            return vec![UNLOCK.into()];
        }
        let mut all = Vec::new();
        if self.probe.read("/sys/kernel/debug/sched/features").is_err_and(|e| e.absent()) {
            all.push("mount -t debugfs none /sys/kernel/debug".to_string());
        }
        all.extend_from_slice(commands);
        all
    }

    fn status_field(&self, key: &str) -> Result<Evidence, Unread> {
        let status = self.status.clone()?;
        let value = status.read.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
        match value {
            Some(v) => Ok(Evidence::new("/proc/self/status", format!("{key}: {}", v.trim()))),
            None => Err(Unread::garbled(&Evidence::new("/proc/self/status", ""), key)),
        }
    }

    fn status_value(&self, key: &str) -> Option<String> {
        let field = self.status_field(key).ok()?.read;
        Some(field.split_once(": ")?.1.to_string())
    }

    /// The effective capabilities.
    pub fn capabilities(&self) -> Result<(u64, Evidence), Unread> {
        let reading = self.status_field("CapEff")?;
        let bits =
            reading.read.split_once(": ").and_then(|(_, hex)| u64::from_str_radix(hex, 16).ok());
        match bits {
            Some(bits) => Ok((bits, reading)),
            None => Err(Unread::garbled(&reading, "a capability mask")),
        }
    }

    /// Whether a capability is effective; false if that is not known.
    pub fn can(&self, cap: Cap) -> bool {
        self.capabilities().is_ok_and(|(bits, _)| bits >> cap as u32 & 1 == 1)
    }

    /// The effective user.
    pub fn uid(&self) -> Option<u32> {
        self.status_value("Uid")?.split_whitespace().nth(1)?.parse().ok()
    }

    /// The effective user by name, as limits.d wants it.
    pub fn user(&self) -> String {
        let Some(uid) = self.uid() else {
            return "*".into();
        };
        let name = self.probe.read("/etc/passwd").ok().and_then(|passwd| {
            passwd.read.lines().find_map(|l| {
                let mut fields = l.split(':');
                let name = fields.next()?;
                (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_string())
            })
        });
        name.unwrap_or_else(|| format!("#{uid}"))
    }

    /// A program that may never gain privileges, not even by file capabilities.
    pub fn no_new_privs(&self) -> bool {
        self.status_value("NoNewPrivs").as_deref() == Some("1")
    }

    /// Under a system call filter.
    pub fn seccomp(&self) -> bool {
        self.status_value("Seccomp").is_some_and(|v| v != "0")
    }

    /// In a user namespace of its own, where capabilities do not reach the scheduler.
    pub fn user_namespace(&self) -> bool {
        self.probe.read("/proc/self/uid_map").is_ok_and(|m| {
            let fields: Vec<&str> = m.read.split_whitespace().collect();
            fields != ["0", "0", "4294967295"]
        })
    }

    /// Bytes that this process has mapped; 0 if that is not known.
    pub fn mapped(&self) -> u64 {
        let kib =
            self.status_value("VmSize").and_then(|v| v.strip_suffix(" kB")?.parse::<u64>().ok());
        kib.unwrap_or(0).saturating_mul(1024)
    }

    /// The process that started us: mostly a shell.
    pub fn parent(&self) -> Option<u32> {
        self.status_value("PPid")?.parse().ok().filter(|pid| *pid > 1)
    }

    /// CPUs this process may use.
    pub fn allowed_cpus(&self) -> Option<Vec<usize>> {
        cpu_list(&self.status_value("Cpus_allowed_list")?).filter(|c| !c.is_empty())
    }

    /// The field of /proc/self/status about them.
    pub fn allowed_reading(&self) -> Result<Evidence, Unread> {
        self.status_field("Cpus_allowed_list")
    }

    /// CPUs that are up.
    pub fn online_cpus(&self) -> Option<Vec<usize>> {
        cpu_list(&self.probe.read("/sys/devices/system/cpu/online").ok()?.read)
            .filter(|c| !c.is_empty())
    }

    /// The CPUs that are kept for real time; without any, the last one that is allowed: the CPU
    /// that the help clears.
    pub fn real_time_cpus(&self) -> Vec<usize> {
        let isolated = self
            .probe
            .read("/sys/devices/system/cpu/isolated")
            .ok()
            .and_then(|r| cpu_list(&r.read))
            .filter(|c| !c.is_empty());
        isolated.or_else(|| Some(vec![*self.allowed_cpus()?.last()?])).unwrap_or_default()
    }

    /// The CPUs that are left for everything else; empty if there is only one.
    pub fn other_cpus(&self) -> Vec<usize> {
        let rt = self.real_time_cpus();
        let online = self.online_cpus().unwrap_or_default();
        online.into_iter().filter(|c| !rt.contains(c)).collect()
    }

    /// A soft resource limit (`u64::MAX`: unlimited) by its name in /proc/self/limits.
    pub fn limit(&self, name: &str) -> Result<(u64, Evidence), Unread> {
        let limits = self.limits.clone()?;
        let line = limits.read.lines().find(|l| l.starts_with(name)).unwrap_or("");
        let reading = Evidence::new(
            "/proc/self/limits",
            line.split_whitespace().collect::<Vec<_>>().join(" "),
        );
        let soft = line.get(name.len()..).and_then(|rest| rest.split_whitespace().next());
        match soft {
            Some("unlimited") => Ok((u64::MAX, reading)),
            Some(n) => {
                n.parse().map(|n| (n, reading.clone())).map_err(|_| Unread::garbled(&reading, name))
            }
            None => Err(Unread::garbled(&reading, name)),
        }
    }

    /// A guest of a hypervisor.
    pub fn virtual_machine(&self) -> Option<(bool, Evidence)> {
        let info = self.probe.read("/proc/cpuinfo").ok()?;
        let flags = info.read.lines().find(|l| l.starts_with("flags"));
        if flags.is_some_and(|l| l.split_whitespace().any(|w| w == "hypervisor")) {
            return Some((true, Evidence::new("/proc/cpuinfo", "flags: hypervisor")));
        }
        for path in ["/sys/hypervisor/type", "/proc/device-tree/hypervisor/compatible"] {
            if let Ok(r) = self.probe.read(path) {
                return Some((true, r));
            }
        }
        let seen = flags.map_or("(no flags line)", |_| "flags: no hypervisor");
        Some((false, Evidence::new("/proc/cpuinfo", seen)))
    }
}
