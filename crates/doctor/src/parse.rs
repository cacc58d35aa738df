//! The kernel's small notations.

/// A CPU list such as `0-3,8`; None if it is none. At most 64 Ki CPUs: a garbled range stays small.
pub fn cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (first, last) = match part.split_once('-') {
            Some((a, b)) => (a.trim().parse().ok()?, b.trim().parse().ok()?),
            None => {
                let one: usize = part.trim().parse().ok()?;
                (one, one)
            }
        };
        if first > last || last >= 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// The other way round.
pub fn cpu_list_text(cpus: &[usize]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut i = 0;
    while i < cpus.len() {
        let first = i;
        while i + 1 < cpus.len() && cpus[i + 1] == cpus[i] + 1 {
            i += 1;
        }
        parts.push(if first == i {
            cpus[i].to_string()
        } else {
            format!("{}-{}", cpus[first], cpus[i])
        });
        i += 1;
    }
    parts.join(",")
}

/// A hexadecimal mask such as `ff,ffffffff` as CPUs.
pub fn cpu_mask(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for (word, part) in text.trim().split(',').rev().enumerate() {
        let bits = u32::from_str_radix(part, 16).ok()?;
        cpus.extend((0..32).filter(|b| bits >> b & 1 == 1).map(|b| word * 32 + b));
    }
    Some(cpus)
}

/// CPUs as a mask, in the notation that /proc/irq takes.
pub fn cpu_mask_text(cpus: &[usize]) -> String {
    let words = cpus.iter().max().map_or(1, |m| m / 32 + 1);
    let mut mask = vec![0u32; words];
    for cpu in cpus {
        mask[cpu / 32] |= 1 << (cpu % 32);
    }
    let mut text = format!("{:x}", mask[words - 1]);
    for word in mask[..words - 1].iter().rev() {
        text.push_str(&format!(",{word:08x}"));
    }
    text
}

/// `none voluntary (full)` or `none [integrity]`: the chosen one.
pub fn chosen(text: &str) -> Option<&str> {
    let word = text.split_whitespace().find(|w| w.starts_with(['(', '[']))?;
    let word = word.trim_matches(|c| "()[]".contains(c));
    (!word.is_empty()).then_some(word)
}

/// The last value of `key=value` on a kernel command line, or "" for a bare `key`.
pub fn boot_value<'a>(cmdline: &'a str, key: &str) -> Option<&'a str> {
    cmdline
        .split_whitespace()
        .filter_map(|word| match word.split_once('=') {
            Some((k, v)) => (k == key).then_some(v),
            None => (word == key).then_some(""),
        })
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(cpu_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpu_list(""), Some(vec![]));
        for bad in ["x", "3-1", "1-", "0-99999999999", "-"] {
            assert_eq!(cpu_list(bad), None, "{bad}");
        }
        assert_eq!(cpu_list_text(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(cpu_list_text(&[]), "");
    }

    #[test]
    fn cpu_masks() {
        assert_eq!(cpu_mask("3"), Some(vec![0, 1]));
        assert_eq!(cpu_mask("1,00000002"), Some(vec![1, 32]));
        assert_eq!(cpu_mask("zz"), None);
        assert_eq!(cpu_mask_text(&[1, 32]), "1,00000002");
        assert_eq!(cpu_mask_text(&[0]), "1");
    }

    #[test]
    fn choices_and_boot_values() {
        assert_eq!(chosen("none voluntary (full) lazy"), Some("full"));
        assert_eq!(chosen("none [integrity] confidentiality"), Some("integrity"));
        assert_eq!(chosen("()"), None);
        assert_eq!(chosen("nothing"), None);
        assert_eq!(boot_value("quiet preempt=full threadirqs", "preempt"), Some("full"));
        assert_eq!(boot_value("quiet threadirqs", "threadirqs"), Some(""));
        assert_eq!(boot_value("quiet", "preempt"), None);
    }
}
