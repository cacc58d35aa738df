//! docs/rtlinux.md lists what the headers declare, each name with what it does and its test.
//!
//! `PUNCTUAL_WRITE_RTLINUX=1 cargo test -p punctual-rtlinux --test docs` writes it again.

mod common;

use common::LIBRARY;
use punctual_test_support::header_page::HeaderPage;

static PAGE: HeaderPage = HeaderPage {
    library: &LIBRARY,
    headers: &[
        "rtlinux.h",
        "rtl_sched.h",
        "rtl_time.h",
        "rtl_fifo.h",
        "mbuff.h",
        "rtl_printf.h",
        "rtl_sync.h",
        "rtl_module.h",
    ],
    attribute: "RTL_PRINTF_LIKE",
};

#[test]
fn the_page_is_what_the_headers_say() {
    PAGE.is_current();
}

#[test]
fn every_function_is_described_and_used_in_its_test() {
    PAGE.is_complete();
}
