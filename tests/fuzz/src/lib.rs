//! What the fuzzers in `c` call: the service, for one client that sends what the fuzzer chooses.
//! libpunctual comes into the archive with it.

mod client;
mod service;
mod stream;

// The calls of libpunctual are what the other fuzzers are for.
pub use punctual_capi as capi;
pub use service::punctual_fuzz_service;
