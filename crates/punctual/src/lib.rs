//! Guaranteed CPU time for the threads of a Rust program
