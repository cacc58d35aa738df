//! What stands in the way of real time on this machine, each thing with its cause, its effect and
//! the exact command that helps.
//!
//! ```text
//! Probe ─observe─> Scene ─one small function per finding─> Vec<Finding> ─> table, JSON, exit code
//! ```
//!
//! Nothing on the machine is changed, and nothing is remembered: every examination reads again. The
//! one thing it *does* is to ask for SCHED_FIFO in a thread of its own that returns to its own
//! policy at once, since no file shows reliably whether the kernel would grant it.
//!
//! Findings of others (what a killed dispatcher left behind, say) are plain [`Finding`]s too:
//! append them to the vector before it is rendered.

mod calls;
mod cgroup;
mod clock;
mod cpu;
mod document;
mod finding;
mod freezer;
mod frequency;
mod irq;
mod isolation;
mod kconfig;
mod kernel;
mod limits;
mod machine;
mod memory;
mod own_cgroup;
mod parse;
mod privilege;
mod probe;
mod render;
mod scene;
mod sched;
mod threads;
mod vm;

pub use calls::{Calls, ClockDiscipline, FifoAttempt};
pub use document::Document;
pub use finding::{Draft, Evidence, Finding, Severity};
pub use machine::Machine;
pub use probe::Probe;
pub use render::{headline, render, FindingsView};

use scene::Scene;

type Room = fn(&Scene) -> Vec<Finding>;

/// In the order in which a reader meets them within one verdict.
const ROOMS: &[Room] = &[
    privilege::findings,
    cgroup::findings,
    freezer::findings,
    limits::findings,
    kernel::findings,
    sched::findings,
    threads::findings,
    irq::findings,
    isolation::findings,
    cpu::findings,
    frequency::findings,
    vm::findings,
    clock::findings,
    memory::findings,
];

/// Rooms whose findings can be an [`Severity::Obstacle`]; all are quick.
const GATES: &[Room] =
    &[privilege::findings, cgroup::findings, limits::findings, sched::findings, clock::findings];

/// Reads everything, in about a quarter of a second (stolen time needs a window).
pub fn examine(root: &Probe) -> Vec<Finding> {
    let scene = Scene::observe(root);
    ROOMS.iter().flat_map(|room| room(&scene)).collect()
}

/// Only what keeps the user host from working at all: for a refusal before anything starts.
pub fn obstacles(root: &Probe) -> Vec<Finding> {
    let scene = Scene::observe(root);
    GATES.iter().flat_map(|room| room(&scene)).filter(|f| f.verdict == Severity::Obstacle).collect()
}

/// The exit code of `punctual doctor`: 0, or 4 if the machine does not permit the user host.
pub fn exit_code(findings: &[Finding]) -> i32 {
    if findings.iter().any(|f| f.verdict == Severity::Obstacle) {
        4
    } else {
        0
    }
}
