//! The command `punctual`.
fn main() {}
