//! What a program is to know that no result says.

use std::sync::Once;

use punctual::{Error, ErrorKind};

/// A reservation was refused. What the machine does not permit is said once.
pub fn refused(error: &Error) {
    static SOFT: Once = Once::new();
    match error.kind {
        ErrorKind::NotAdmitted | ErrorKind::Usage => {
            eprintln!("liblxrt: the reservation was refused: {error}");
        }
        _ => SOFT.call_once(|| {
            eprintln!("liblxrt: tasks are soft, without guarantees: {error}");
        }),
    }
}
