//! Where two traces differ.

use std::fmt;

use punctual_trace::Record;

/// A record and its number in the trace.
pub type Numbered = (usize, Record);

/// The first difference: what differs, and the record of each side, if there is one.
#[derive(Debug)]
pub struct Difference {
    pub what: String,
    pub old: Option<Numbered>,
    pub new: Option<Numbered>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        for (side, record) in [("old", &self.old), ("new", &self.new)] {
            match record {
                // A message leaves fields out, and the difference may be in one of those.
                Some((number, r)) => write!(
                    f,
                    "\n  {side}: record {number}: {r}\n       \
                     (kind {}, small {}, time {}, a {:#x}, b {:#x})",
                    r.kind, r.small as i32, r.time, r.a, r.b
                )?,
                None => write!(f, "\n  {side}: no record")?,
            }
        }
        Ok(())
    }
}
