//! Why the dispatcher says no.

/// Why the dispatcher refused; nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A limit set at creation is reached.
    Full,
    /// No such job, task, group, node, CPU or reservation, or it is gone.
    Nothing,
    /// A value outside its range.
    Invalid,
    /// Groups would form a cycle, have another parent than before, or be too deep; or tasks would
    /// lend in a cycle.
    Tree,
    /// It is in use.
    Busy,
}

impl Refusal {
    /// From a negative error number of the dispatcher; one that it does not return is `Invalid`.
    pub fn from_raw(code: i64) -> Refusal {
        match i32::try_from(-code) {
            Ok(libc::ENOSPC) => Refusal::Full,
            Ok(libc::ENOENT) => Refusal::Nothing,
            Ok(libc::ELOOP) => Refusal::Tree,
            Ok(libc::EBUSY) => Refusal::Busy,
            _ => Refusal::Invalid,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refusal::Full => "a limit of the dispatcher, set at its creation, is reached",
            Refusal::Nothing => "no such job, task, group or reservation (any more)",
            Refusal::Invalid => "a value is outside its range",
            Refusal::Tree => {
                "groups would form a cycle, have two parents, or be nested too deeply, or tasks \
                 would lend in a cycle"
            }
            Refusal::Busy => "it is in use",
        })
    }
}

impl std::error::Error for Refusal {}
