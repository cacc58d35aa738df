//! Owner, guardian or both are killed at random instants: nothing stays behind.

mod common;
use common::*;
use punctual_process::*;
use std::sync::MutexGuard;
use std::time::Duration;

/// The share is 200 instants in all; these few show the promise at every test run.
fn rounds() -> u32 {
    std::env::var("PUNCTUAL_FAULT_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(30)
}

/// A role: nothing unless it was started for it.
#[test]
fn victim() {
    if is_role("victim") {
        be_victim();
    }
}

/// Likewise.
#[test]
fn owner() {
    if is_role("owner") {
        be_owner();
    }
}

/// A victim, and how it was before, for a test that has the machine to itself.
struct Stage {
    victim: Victim,
    before: Snapshot,
    _alone: MutexGuard<'static, ()>,
}

impl Stage {
    /// `None` where the promises cannot be tested.
    fn set(freezer: bool) -> Option<Stage> {
        let alone = alone();
        permitted(freezer).then(|| {
            let victim = Victim::start();
            let before = Snapshot::of(victim.pid());
            Stage { victim, before, _alone: alone }
        })
    }

    fn start_owner(&self, freezer: bool, more: &[(&str, &str)]) -> (Role, Lines) {
        let victim = self.victim.pid().to_string();
        let given = [("VICTIM", &*victim), ("FREEZER", if freezer { "1" } else { "0" })];
        role("owner", &[&given, more].concat())
    }

    /// An owner that has adopted the victim.
    fn adopted(&self, freezer: bool, more: &[(&str, &str)]) -> Owned {
        let (owner, mut out) = self.start_owner(freezer, more);
        let (guardian, child) = started_processes(&mut out);
        expect_line(&mut out, "ADOPTED");
        Owned { pid: owner.id() as i32, owner, out, guardian, child }
    }

    fn assert_restored(&self, owner: i32, children: &[i32]) {
        assert_restored(owner, self.victim.pid(), &self.before, children);
    }
}

/// An owner, its guardian and its command.
struct Owned {
    owner: Role,
    out: Lines,
    pid: i32,
    guardian: i32,
    child: i32,
}

impl Owned {
    fn kill(&mut self) {
        kill(self.pid, libc::SIGKILL);
        self.owner.end();
    }

    /// The guardian first, and the owner before it can notice.
    fn kill_with_guardian(&mut self) {
        kill(self.guardian, libc::SIGSTOP);
        kill(self.pid, libc::SIGKILL);
        kill(self.guardian, libc::SIGKILL);
        self.owner.end();
    }
}

/// `punctual clean`, which leaves no problem.
fn clean_all() -> Vec<RestoreReport> {
    let reports = clean().unwrap();
    assert!(reports.iter().all(RestoreReport::is_complete), "{reports:?}");
    reports
}

fn owner_killed(freezer: bool) {
    let Some(stage) = Stage::set(freezer) else { return };
    for round in 0..rounds() {
        let (mut owner, mut out) = stage.start_owner(freezer, &[]);
        let pid = owner.id() as i32;
        let mut children = Vec::new();
        if round % 3 == 0 {
            // At a random instant of the set-up: from before the journal's first line on.
            std::thread::sleep(Duration::from_micros(random(25_000)));
        } else {
            children.push(started_processes(&mut out).1);
            if round % 3 == 1 {
                expect_line(&mut out, "ADOPTED");
                std::thread::sleep(Duration::from_micros(random(30_000)));
            } else {
                std::thread::sleep(Duration::from_micros(random(5_000)));
            }
        }
        kill(pid, libc::SIGKILL);
        owner.end();
        drain(out);
        if !children.is_empty() {
            stage.assert_restored(pid, &children);
        } else {
            // Killed before it had a guardian it leaves at most a journal that says so, and nothing
            // else.
            std::thread::sleep(Duration::from_millis(60));
            clean().unwrap();
            stage.assert_restored(pid, &[]);
        }
    }
}

#[test]
fn by_freezer_an_owner_killed_at_any_instant_leaves_nothing() {
    owner_killed(true);
}

#[test]
fn by_stop_signals_an_owner_killed_at_any_instant_leaves_nothing() {
    owner_killed(false);
}

#[test]
fn an_owner_killed_while_it_restores_leaves_nothing() {
    let Some(stage) = Stage::set(true) else { return };
    for round in 0..rounds() {
        let mut owned = stage.adopted(round % 2 == 0, &[("ENDS", "3")]);
        std::thread::sleep(Duration::from_micros(2_000 + random(9_000)));
        owned.kill();
        stage.assert_restored(owned.pid, &[owned.child]);
    }
}

#[test]
fn a_guardian_killed_while_it_restores_leaves_what_clean_mends() {
    let Some(stage) = Stage::set(true) else { return };
    for round in 0..rounds() {
        let mut owned = stage.adopted(round % 2 == 0, &[]);
        owned.kill();
        std::thread::sleep(Duration::from_micros(random(4_000)));
        kill(owned.guardian, libc::SIGKILL);
        clean_all();
        stage.assert_restored(owned.pid, &[owned.child]);
    }
}

#[test]
fn a_dropped_guardian_restores_though_its_owner_lives() {
    let Some(stage) = Stage::set(true) else { return };
    let o = take_over(stage.victim.pid(), 1, true);
    let child = o.command.0.id().pid;
    drop(o.guardian);
    stage.assert_restored(std::process::id() as i32, &[child]);
}

fn guardian_killed(freezer: bool) {
    let Some(stage) = Stage::set(freezer) else { return };
    let mut owned = stage.adopted(freezer, &[]);
    for _ in 0..rounds() / 2 {
        std::thread::sleep(Duration::from_micros(random(10_000)));
        kill(owned.guardian, libc::SIGKILL);
        owned.guardian = expect_line(&mut owned.out, "GUARDIAN ").parse().unwrap();
        let text = std::fs::read_to_string(format!("/proc/{}/comm", owned.guardian)).unwrap();
        assert_eq!(text.trim(), "punctual-guard");
    }
    assert!(!owned.owner.has_ended());
    // The last one of them works as the first did.
    owned.kill();
    stage.assert_restored(owned.pid, &[owned.child]);
}

#[test]
fn by_freezer_a_killed_guardian_is_replaced_and_nothing_else_breaks() {
    guardian_killed(true);
}

#[test]
fn by_stop_signals_a_killed_guardian_is_replaced_and_nothing_else_breaks() {
    guardian_killed(false);
}

fn both_killed(freezer: bool) {
    let Some(stage) = Stage::set(freezer) else { return };
    for _ in 0..rounds() / 3 {
        let mut owned = stage.adopted(freezer, &[]);
        std::thread::sleep(Duration::from_micros(random(20_000)));
        owned.kill_with_guardian();
        let (pid, left) = (owned.pid, leftovers());
        assert!(left.iter().any(|l| l.owner == pid && l.help == "punctual clean"), "{left:?}");
        clean_all();
        stage.assert_restored(pid, &[owned.child]);
        assert!(leftovers().iter().all(|l| l.owner != pid));
    }
}

#[test]
fn by_freezer_clean_mends_what_owner_and_guardian_killed_together_left() {
    both_killed(true);
}

#[test]
fn by_stop_signals_clean_mends_what_owner_and_guardian_killed_together_left() {
    both_killed(false);
}

#[test]
fn clean_does_not_touch_what_a_living_owner_has() {
    let Some(stage) = Stage::set(true) else { return };
    let mut owned = stage.adopted(true, &[]);
    // Its guardian's death makes it no less alive.
    kill(owned.guardian, libc::SIGKILL);
    let pid = owned.pid;
    assert!(clean().unwrap().iter().all(|r| r.owner != pid));
    assert!(leftovers().iter().all(|l| l.owner != pid));
    assert!(state_of(owned.child).is_some());
    assert!(cgroup_of(stage.victim.pid()).contains(&format!("punctual-{pid}-")));
    expect_line(&mut owned.out, "GUARDIAN ");
    owned.kill();
    eventually("restored", || groups_of(pid).is_empty());
}

#[test]
fn a_cgroup_whose_journal_is_lost_is_cleaned_by_its_name() {
    let Some(stage) = Stage::set(true) else { return };
    let (mut owned, victim) = (stage.adopted(true, &[]), stage.victim.pid());
    owned.kill_with_guardian();
    let pid = owned.pid;
    for j in journals_of(pid) {
        std::fs::remove_file(j).unwrap();
    }
    assert!(leftovers().iter().any(|l| l.owner == pid));
    let reports = clean_all();
    assert!(reports.iter().any(|r| r.owner == pid), "{reports:?}");
    assert!(groups_of(pid).is_empty());
    assert_no_fifo(victim);
    assert!(matches!(state_of(owned.child), None | Some('Z')));
    let n = cpu_switches(victim);
    eventually("the victim runs", || cpu_switches(victim) > n);
}

#[test]
fn the_cpu_stays_taken_until_the_guardian_has_restored() {
    let Some(stage) = Stage::set(true) else { return };
    let mut owned = stage.adopted(true, &[]);
    let (pid, guardian) = (owned.pid, owned.guardian);
    kill(guardian, libc::SIGSTOP);
    owned.kill();
    let waiter = std::thread::spawn(move || {
        CpuLock::take(1, "next").map(|l| (groups_of(pid).len(), l.cpu()))
    });
    std::thread::sleep(Duration::from_millis(200));
    assert!(!waiter.is_finished(), "the lock was free before anything was given back");
    kill(guardian, libc::SIGCONT);
    // It got the CPU, and at that time nothing of the old owner was left.
    assert_eq!(waiter.join().unwrap().unwrap(), (0, 1));
}

#[test]
fn an_owner_that_dismisses_its_guardian_leaves_nothing_and_no_guardian() {
    let Some(stage) = Stage::set(true) else { return };
    let o = take_over(stage.victim.pid(), 1, true);
    let guardian = o.guardian.pid();
    let child = o.command.0.id().pid;
    assert!(o.guardian.is_real_time());
    let report = restore(&o.journal);
    assert!(report.is_complete() && report.killed >= 1 && report.given_back == 1, "{report:?}");
    assert_eq!(restore(&o.journal), RestoreReport::default());
    o.guardian.dismiss();
    assert_eq!(state_of(guardian), None);
    stage.assert_restored(std::process::id() as i32, &[child]);
    drop(o.lock);
    CpuLock::take(1, "next").unwrap();
}

#[test]
fn an_owner_that_executes_another_program_leaves_nothing() {
    let Some(stage) = Stage::set(true) else { return };
    let mut owned = stage.adopted(true, &[("EXECUTES", "sleep")]);
    let guardian = owned.guardian;
    eventually("the guardian has restored", || state_of(guardian).is_none_or(|s| s == 'Z'));
    assert!(!owned.owner.has_ended(), "the other program executes");
    stage.assert_restored(owned.pid, &[owned.child]);
}

#[test]
fn the_guardian_executes_nothing_while_its_owner_lives() {
    let _alone = alone();
    let journal = Journal::create().unwrap();
    let guardian = Guardian::start(&journal, &[]).unwrap();
    // Executed ns, waited ns, how often it was selected.
    let executed =
        || std::fs::read_to_string(format!("/proc/{}/schedstat", guardian.pid())).unwrap();
    // It has answered, and goes to sleep.
    eventually("the guardian sleeps", || state_of(guardian.pid()) == Some('S'));
    let before = executed();
    std::thread::sleep(Duration::from_millis(350));
    assert_eq!(executed(), before);
    restore(&journal);
    guardian.dismiss();
}

#[test]
fn no_signal_but_sigkill_ends_the_guardian() {
    let _alone = alone();
    let journal = Journal::create().unwrap();
    let guardian = Guardian::start(&journal, &[]).unwrap();
    for s in
        [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGPIPE]
    {
        kill(guardian.pid(), s);
    }
    std::thread::sleep(Duration::from_millis(20));
    assert!(guardian.is_alive() && !poll_in(&guardian.fd(), 0));
    restore(&journal);
    guardian.dismiss();
}

#[test]
fn runaways_above_every_ordinary_process_on_two_cpus_cannot_keep_the_guardian_from_ending_them() {
    let _alone = alone();
    if !permitted(true) || check_privileges(&[0, 1]).is_err() {
        return;
    }
    let journal = Journal::create().unwrap();
    let guardian = Guardian::start(&journal, &[]).unwrap();
    let base = CgroupBase::create(&journal).unwrap();
    // Bounded by itself as well, should this test fail.
    let spin = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let mut all = Vec::new();
    for cpu in [0, 1] {
        let park = Park::for_command(&journal, Some(&base), "runaway").unwrap();
        let mut spec = CommandSpec::new(["sh", "-c", spin]).on(cpu);
        spec.level = 50;
        all.push((spawn(&journal, spec, &park).unwrap(), park));
    }
    // At a dispatcher's level this thread is above them; in the ordinary class it is below.
    let own_level = |policy, sched_priority| {
        let param = libc::sched_param { sched_priority };
        // SAFETY: the kernel reads one sched_param, which lives here.
        assert_eq!(unsafe { libc::sched_setscheduler(0, policy, &param) }, 0);
    };
    own_level(libc::SCHED_FIFO, 99);
    for (child, park) in &all {
        child.release(park).unwrap();
    }
    drop(guardian);
    own_level(libc::SCHED_OTHER, 0);
    for (mut child, _) in all {
        assert!(poll_in(&child.pidfd(), 3000));
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(child.try_wait().unwrap().unwrap().signal(), Some(libc::SIGKILL));
    }
    eventually("its cgroups are gone", || groups_of(std::process::id() as i32).is_empty());
}
