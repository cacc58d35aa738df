//! Threads of other processes, by their numbers.

/// The process of a thread; `None`: there is no such thread any more.
pub fn process_of(tid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
    // Of one that has ended its owner may not have waited yet.
    if value("State:")?.trim_start().starts_with(['Z', 'X']) {
        return None;
    }
    value("Tgid:")?.trim().parse().ok()
}
