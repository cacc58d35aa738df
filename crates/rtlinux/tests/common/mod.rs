//! librtlinux, as programs in C have it.

use std::sync::OnceLock;

use punctual_test_support::c_library::CLibrary;
// Has cargo build the archive.
use punctual_rtlinux as _;

pub static LIBRARY: CLibrary = CLibrary {
    folder: env!("CARGO_MANIFEST_DIR"),
    name: "rtlinux",
    headers: "include/rtlinux",
    warnings: &["-Wall", "-Wextra", "-pedantic", "-Werror"],
    flags: &["-D_GNU_SOURCE"],
    linked: OnceLock::new(),
};
