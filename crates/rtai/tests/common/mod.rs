//! liblxrt, as programs in C have it.

use std::sync::OnceLock;

use punctual_test_support::c_library::CLibrary;
// Has cargo build the archive.
use punctual_rtai as _;

pub static LIBRARY: CLibrary = CLibrary {
    folder: env!("CARGO_MANIFEST_DIR"),
    name: "lxrt",
    headers: "include/rtai",
    warnings: &["-Wall", "-Wextra", "-pedantic", "-Werror"],
    // A thread's function is passed as a void *, as RTAI has it.
    flags: &["-Wno-pedantic", "-D_GNU_SOURCE"],
    linked: OnceLock::new(),
};
