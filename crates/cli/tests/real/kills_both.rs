//! The one case that no process can mend: Punctual and its guardian killed at one instant.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_test_support::judge_timing;
use serde_json::Value;

use crate::kills::{programs, set, NEEDS};
use crate::machine::{one_cpu, permitted, wait_for_cpu, Cpu, Random};
use crate::process::{eventually, groups_of, journals_of, kill, marked, name_of, state_of};
use crate::punctual::{assert_nothing_left, run, run_on, Running, Scratch};
use crate::victim::Victim;

/// `punctual clean` is for all that dead owners left: one test at a time may leave something, or
/// clean.
pub static CLEANING: Mutex<()> = Mutex::new(());

/// What each test begins with; `None` where it is not permitted.
fn begin(salt: u64) -> Option<(MutexGuard<'static, ()>, Cpu, Random)> {
    permitted(&NEEDS).then(|| {
        let one = CLEANING.lock().unwrap_or_else(PoisonError::into_inner);
        (one, one_cpu(), Random::seeded(salt))
    })
}

/// A run whose owner and guardian are dead, with what they left.
struct Orphan {
    pid: i32,
    mark: String,
    punctual: Running,
}

impl Drop for Orphan {
    /// Of a test that failed, its tasks would keep the CPU.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = run(&["clean"]);
        }
    }
}

/// Kills both; again, where the second kill came so late that another guardian was there already.
fn kill_both(
    cpu: u32,
    set: &str,
    victim: &Victim,
    random: &mut Random,
    stop_first: bool,
) -> Orphan {
    for _ in 0..10 {
        let mut orphan = kill_both_once(cpu, set, victim, random, stop_first);
        // A guardian just forked still has our name. The dead one's child may still be in its exit.
        let guards = |p: &i32| {
            let name = name_of(*p);
            *p != orphan.pid && name.starts_with("punctual") && name != "punctual-watch"
        };
        if !marked(&orphan.mark).iter().any(guards) && !journals_of(orphan.pid).is_empty() {
            return orphan;
        }
        println!("another guardian was quicker: once more");
        assert_nothing_left(orphan.pid, &orphan.mark, &[cpu]);
        orphan.punctual.reap();
    }
    panic!("in ten runs the two were never killed at one instant");
}

fn kill_both_once(
    cpu: u32,
    set: &str,
    victim: &Victim,
    random: &mut Random,
    stop_first: bool,
) -> Orphan {
    let scratch = Scratch::new();
    wait_for_cpu(cpu);
    let file = scratch.file("set.toml", set);
    let mut punctual = Running::start(&["run", &file, "--quiet"]);
    // All is adopted by now.
    punctual.wait_for("the adopted program", |_| !victim.is_as_before());
    std::thread::sleep(Duration::from_micros(20_000 + random.below(100_000)));
    let guardian = punctual.guardian().unwrap();
    let (pid, mark) = (punctual.pid(), punctual.mark.clone());
    if stop_first {
        // A stopped one is not missed, and cannot act.
        kill(guardian, libc::SIGSTOP);
        kill(pid, libc::SIGKILL);
        kill(guardian, libc::SIGKILL);
    } else {
        kill(guardian, libc::SIGKILL);
        kill(pid, libc::SIGKILL);
    }
    // `pid` is not reaped: its threads cannot exit below a runaway until `punctual clean`. After
    // the guardian's death a live guardian is its replacement.
    eventually("both have died", || state_of(pid).is_none() && state_of(guardian).is_none());
    Orphan { pid, mark, punctual }
}

/// What `punctual clean` did. It is for all that dead owners left on this machine, and says so by
/// its exit code: what others left for good is theirs.
pub fn clean() -> Value {
    let cleaned = run(&["clean", "--json"]);
    crate::behaviour::assert_conforms(
        &cleaned.json(),
        include_str!("../../../../docs/clean.schema.json"),
    );
    let reports = cleaned.result();
    let whole = |r: &Value| r["problems"].as_array().is_some_and(Vec::is_empty);
    let all = reports["restored"].as_array().is_some_and(|all| all.iter().all(whole));
    cleaned.assert_code(if all { 0 } else { 4 });
    reports
}

fn leftovers(document: &Value) -> &Value {
    let findings =
        document["findings"].as_array().unwrap_or_else(|| panic!("no findings in {document:#}"));
    findings
        .iter()
        .find(|f| f["id"] == "leftovers")
        .expect("doctor tells of leftovers, or that there are none")
}

#[test]
fn doctor_tells_what_owner_and_guardian_left_and_clean_mends_it() {
    let Some((_one, cpu, mut random)) = begin(4) else { return };
    for round in 0..6 {
        let victim = Victim::start();
        let set = set(cpu.0, round, victim.pid());
        let mut orphan = kill_both(cpu.0, &set, &victim, &mut random, round % 2 == 0);
        assert!(!journals_of(orphan.pid).is_empty(), "a journal of what was changed is left");
        assert!(!groups_of(orphan.pid).is_empty(), "cgroups are left");
        assert!(!victim.is_as_before(), "the adopted program still has what Punctual gave it");

        let reported = run(&["doctor", "--json"]).result();
        let finding = leftovers(&reported);
        assert_eq!(finding["verdict"], "warning", "{finding:#}");
        assert!(finding.to_string().contains(&format!("process {} ", orphan.pid)), "{finding:#}");
        assert!(finding["help"].to_string().contains("punctual clean"), "{finding:#}");

        let reports = clean();
        let ours = |all: &Value| {
            all["restored"].as_array().unwrap().iter().find(|r| r["owner"] == orphan.pid).cloned()
        };
        let report =
            ours(&reports).unwrap_or_else(|| panic!("nothing about {} in {reports:#}", orphan.pid));
        assert_eq!(report["restored"], 1, "{report:#}");
        assert!(report["problems"].as_array().unwrap().is_empty(), "{report:#}");
        victim.assert_as_before();
        assert_nothing_left(orphan.pid, &orphan.mark, &[cpu.0]);
        orphan.punctual.reap();

        let reports = clean();
        assert!(ours(&reports).is_none(), "a second time there is nothing to do: {reports:#}");
        let reported = run(&["doctor", "--json"]).result();
        assert!(!leftovers(&reported).to_string().contains(&format!("process {} ", orphan.pid)));
    }
}

#[test]
fn with_its_journal_lost_too_clean_goes_by_the_cgroups() {
    let Some((_one, cpu, mut random)) = begin(5) else { return };
    let victim = Victim::start();
    let set = set(cpu.0, 0, victim.pid());
    let mut orphan = kill_both(cpu.0, &set, &victim, &mut random, true);
    for journal in journals_of(orphan.pid) {
        std::fs::remove_file(journal).unwrap();
    }
    let reported = run(&["doctor", "--json"]).result();
    assert!(
        leftovers(&reported)
            .to_string()
            .contains(&format!("process {}, which is gone", orphan.pid)),
        "{reported:#}"
    );
    clean();
    victim.assert_runs();
    for tid in crate::process::threads_of(victim.pid()) {
        let a = crate::process::attributes(tid).unwrap();
        assert_eq!(
            a.priority, 0,
            "real-time priority is taken away where it is not known what it was"
        );
    }
    assert_nothing_left(orphan.pid, &orphan.mark, &[cpu.0]);
    orphan.punctual.reap();
}

#[test]
fn a_new_run_on_the_same_cpu_is_not_disturbed_by_cleaning() {
    let Some((_one, cpu, mut random)) = begin(6) else { return };
    let victim = Victim::start();
    // A task that is a thread of Punctual's may not be able to end below the others: the CPU would
    // not be free before the cleaning.
    let set = programs(cpu.0, 0, victim.pid());
    let mut orphan = kill_both(cpu.0, &set, &victim, &mut random, false);
    let mut words = run_on(cpu.0, "--period 10ms --budget 2ms --duration 120s --json -- sh -c");
    words.push("while :; do :; done".to_owned());
    let mut living = Running::start(&words);
    living.wait_for("its command", |p| marked(&p.mark).len() > 2);
    clean();
    victim.assert_as_before();
    assert_nothing_left(orphan.pid, &orphan.mark, &[]);
    orphan.punctual.reap();
    std::thread::sleep(Duration::from_millis(600));
    kill(living.pid(), libc::SIGINT);
    let ended = living.end();
    ended.assert_code(130).assert_nothing_left(&[cpu.0]);
    let periods = ended.result()["tasks"][0]["periods"].as_u64().unwrap();
    judge_timing(|| assert!(periods > 40, "{periods}"));
}
