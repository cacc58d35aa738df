//! What a process needs before the kernel takes BPF programs from it.

use std::fmt;

use punctual_sys::process::{capabilities, CapabilitySet};

const NEEDED: [(CapabilitySet, &str); 2] =
    [(CapabilitySet::BPF, "CAP_BPF"), (CapabilitySet::PERFMON, "CAP_PERFMON")];

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
    /// What the calling thread lacks.
    pub fn here() -> Option<Missing> {
        Missing::of(capabilities())
    }

    fn of(effective: CapabilitySet) -> Option<Missing> {
        // CAP_SYS_ADMIN stands for both.
        if effective.contains(CapabilitySet::SYS_ADMIN) {
            return None;
        }
        let missing: Vec<_> = NEEDED
            .iter()
            .filter(|(one, _)| !effective.contains(*one))
            .map(|(_, name)| *name)
            .collect();
        (!missing.is_empty()).then_some(Missing(missing))
    }
}

#[cfg(test)]
mod tests {
    use super::{CapabilitySet as Set, Missing};

    #[test]
    fn names_what_is_missing() {
        let none = Missing::of(Set::empty()).expect("all are missing");
        assert!(none.to_string().contains("no CAP_BPF and no CAP_PERFMON"));
        let one = Missing::of(Set::BPF).expect("one is missing");
        assert!(!one.to_string().contains("no CAP_BPF"));
        assert_eq!(Missing::of(Set::all() - Set::BPF - Set::PERFMON), None);
        assert_eq!(Missing::of(Set::BPF | Set::PERFMON), None);
    }
}
