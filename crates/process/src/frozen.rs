//! Processes that stand still by request, although their host parks nothing.

use crate::adopt::{adopt_with_children, Adopted};
use crate::cgroup::CgroupBase;
use crate::journal::Journal;
use crate::park::Park;
use punctual_diagnostic::Diagnostic;

/// A process and its children in a frozen cgroup. Dropping it changes nothing: the journal has its
/// record, and the end of the run restores it.
#[derive(Debug)]
pub struct FrozenProcess {
    park: Park,
    adopted: Vec<Adopted>,
}

impl FrozenProcess {
    /// Moves the process and its children into a cgroup that their user cannot take them out of,
    /// and freezes it. Each thread stops at its next way out of the kernel, for which it needs the
    /// CPU. A child that cannot be moved stays as it is. Not real-time safe, as all of this.
    ///
    /// # Errors
    /// As of [`adopt`](crate::adopt); no cgroup can be made. Nothing is changed then.
    pub(crate) fn new(
        journal: &Journal,
        base: &CgroupBase,
        pid: i32,
        name: &str,
    ) -> Result<FrozenProcess, Diagnostic> {
        let park = Park::confining(base, name)?;
        let adopted = match adopt_with_children(journal, pid, &park) {
            Ok((adopted, _)) => adopted,
            Err(refusal) => {
                // The end of the run tries again.
                let _ = park.remove();
                return Err(refusal);
            }
        };
        let frozen = FrozenProcess { park, adopted };
        match frozen.park.park() {
            Ok(()) => Ok(frozen),
            Err(e) => {
                let cause = format!("process {pid} cannot be frozen");
                frozen.restore();
                Err(Diagnostic::refused(cause, e, "see punctual doctor"))
            }
        }
    }

    /// Moves all of it back and lets it continue; what could not be restored, in words for people,
    /// which the end of the run tries again.
    pub fn restore(self) -> Vec<String> {
        let mut problems = Adopted::give_back(&self.adopted, &self.park).problems;
        if problems.is_empty() {
            problems.extend(self.park.remove().err().map(|e| e.cause));
        }
        problems
    }
}
