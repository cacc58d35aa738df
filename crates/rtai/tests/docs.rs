//! docs/rtai.md lists what the headers declare, each name with what it does and its test.
//!
//! `PUNCTUAL_WRITE_RTAI=1 cargo test -p punctual-rtai --test docs` writes it again.

mod common;

use common::LIBRARY;
use punctual_test_support::header_page::HeaderPage;

static PAGE: HeaderPage = HeaderPage {
    library: &LIBRARY,
    headers: &[
        "rtai_nam2num.h",
        "rtai_lxrt.h",
        "rtai_wd.h",
        "rtai_sem.h",
        "rtai_msg.h",
        "rtai_mbx.h",
        "rtai_bits.h",
        "rtai_tbx.h",
        "rtai_fifos.h",
        "rtai_shm.h",
    ],
    attribute: "RTAI_PRINTF",
};

#[test]
fn the_page_is_what_the_headers_say() {
    PAGE.is_current();
}

#[test]
fn every_function_is_described_and_used_in_its_test() {
    PAGE.is_complete();
}
