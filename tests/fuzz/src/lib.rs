//! What the fuzzers in `c` call: the service, for one client that sends what the fuzzer chooses.
//! libpunctual and liblxrt come into the archive with it.

mod client;
mod service;
mod stream;

// Their calls are what the other fuzzers are for.
pub use service::punctual_fuzz_service;
pub use {punctual_capi as capi, punctual_rtai as rtai};
