//! What the machine or the set lacks: one error, before anything runs.

use crate::budgets::TWO;
use crate::machine::{state, Machine};
use crate::punctual::{says, start, Scratch};

#[test]
fn a_kernel_without_sched_ext_is_named_with_the_other_hosts() {
    let _machine = Machine::any();
    if state().is_some() {
        return;
    }
    let scratch = Scratch::new();
    let output = start(&scratch.file("refused.toml", TWO), &[]).output();
    says(&output, 4, &["--host user", "--host sim"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("sched_ext") || said.contains("too old"), "{said}");
}
