//! What a program is to know that no result says.

use std::sync::Once;

use punctual::{Error, ErrorKind};

use crate::InterfaceNames;

/// Reports on standard error why a task has no reservation. What the machine does not permit is
/// reported once.
pub fn report_refusal(names: &InterfaceNames, error: &Error) {
    static ORDINARY: Once = Once::new();
    let library = names.library;
    match error.kind {
        ErrorKind::NotAdmitted | ErrorKind::Usage => {
            eprintln!("{library}: the reservation was refused: {error}");
        }
        _ => ORDINARY.call_once(|| {
            eprintln!("{library}: tasks are soft, without guarantees: {error}");
        }),
    }
}
