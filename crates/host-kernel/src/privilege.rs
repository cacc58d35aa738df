//! What a process needs before the kernel takes BPF programs from it.

use std::fmt;

/// Capabilities by their number (`linux/capability.h`).
const NEEDED: [(u32, &str); 2] = [(39, "CAP_BPF"), (38, "CAP_PERFMON")];

/// Capabilities that this process has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(Vec<&'static str>);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this process has no {}: run it as root, or give the file the capabilities with \
             `setcap cap_bpf,cap_perfmon+ep FILE`",
            self.0.join(" and no ")
        )
    }
}

impl Missing {
    /// What the capability set of `/proc/self/status` lacks.
    pub fn here() -> Option<Missing> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        Missing::from_status(&status)
    }

    fn from_status(status: &str) -> Option<Missing> {
        let effective = status
            .lines()
            .find_map(|l| l.strip_prefix("CapEff:"))
            .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
            .unwrap_or(0);
        // CAP_SYS_ADMIN stands for both.
        if effective & 1 << 21 != 0 {
            return None;
        }
        let missing: Vec<_> =
            NEEDED.iter().filter(|(bit, _)| effective & 1 << bit == 0).map(|(_, name)| *name).collect();
        (!missing.is_empty()).then_some(Missing(missing))
    }
}

#[cfg(test)]
mod tests {
    use super::Missing;

    #[test]
    fn names_what_is_missing() {
        let none = Missing::from_status("CapEff:\t0000000000000000\n").expect("all are missing");
        assert!(none.to_string().contains("no CAP_BPF and no CAP_PERFMON"));
        let one = Missing::from_status("CapEff:\t0000008000000000\n").expect("one is missing");
        assert!(!one.to_string().contains("no CAP_BPF"));
        assert_eq!(Missing::from_status("CapEff:\t000001fffeffffff\n"), None);
        assert_eq!(Missing::from_status("CapEff:\t000000c000000000\n"), None);
    }
}
