//! Plugins of the tests, in the program: a virtual machine has no other files.

/// Two jobs of each release.
pub const HALVES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/halves.so"));

/// A set for it.
pub const SET: &str = r#"cpu = 0
policy = { plugin = "./halves.so" }
duration = "1s"

[[task]]
name = "control"
period = "20ms"
budget = "4ms"
work = { spin = "3ms" }

[[task]]
name = "log"
period = "50ms"
budget = "2ms"
work = { spin = "1500us" }
"#;

/// Writes both into the folder.
pub fn write(scratch: &punctual_test_support::Scratch) {
    scratch.file("set.toml", SET);
    std::fs::write(scratch.folder().join("halves.so"), HALVES).expect("room for a file");
}
