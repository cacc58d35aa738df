//! A kernel that is locked down, which it stays until it ends: these are the last tests of a boot
//! that has no others after them (vm/tests).

use crate::budgets::TWO;
use crate::machine::{scheduler_becomes, Machine};
use crate::punctual::{results, says, start, Scratch};

const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

fn lock(how: &str) {
    std::fs::write(LOCKDOWN, how).unwrap_or_else(|e| panic!("{LOCKDOWN}: {e}"));
}

/// One after the other, for there is no way back.
#[test]
fn for_integrity_it_works_and_for_confidentiality_it_is_refused() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    if std::env::var("PUNCTUAL_SCHED_EXT").is_err() {
        eprintln!("not run: this machine would stay locked down");
        return;
    }
    let scratch = Scratch::new();
    let set = scratch.file("set.toml", TWO);
    lock("integrity");
    assert_eq!(
        results(&start(&set, &["--duration", "200ms"]).output())["tasks"].as_array().map(Vec::len),
        Some(2)
    );
    scheduler_becomes("disabled");
    lock("confidentiality");
    says(
        &start(&set, &[]).output(),
        4,
        &["locked down (confidentiality)", "--host user", "--host sim"],
    );
}
