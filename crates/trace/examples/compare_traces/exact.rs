//! The rule for virtual time: nothing may differ but the set in the header.

use punctual_trace::{Header, Trace};

use crate::difference::Difference;

/// The number of records that both have, or the first difference in header or records.
pub fn compare(old: &Trace, new: &Trace) -> Result<String, Difference> {
    // A version may not write the set yet. The set is what both were given, not a decision.
    let header = |trace: &Trace| Header { set: String::new(), ..trace.header.clone() };
    if header(old) != header(new) {
        let what = format!("headers differ:\n  old: {:?}\n  new: {:?}", old.header, new.header);
        return Err(Difference { what, old: None, new: None });
    }
    for number in 0..old.records.len().max(new.records.len()) {
        let at = |trace: &Trace| trace.records.get(number).map(|r| (number, *r));
        if at(old) != at(new) {
            let what = format!("records differ after {number} that are the same");
            return Err(Difference { what, old: at(old), new: at(new) });
        }
    }
    Ok(format!("{} records, byte for byte", old.records.len()))
}
