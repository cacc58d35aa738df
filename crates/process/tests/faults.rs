//! Owner, guardian or both are killed at random instants: nothing stays behind.

mod common;
use common::*;
use punctual_process::*;
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

fn start_owner(victim: i32, freezer: bool) -> (Role, Lines) {
    role("owner", &[("VICTIM", &victim.to_string()), ("FREEZER", if freezer { "1" } else { "0" })])
}

fn owner_killed(freezer: bool) {
    let _alone = alone();
    if !permitted(freezer) {
        return;
    }
    let victim = Victim::start();
    let before = Snapshot::of(victim.pid());
    for round in 0..rounds() {
        let (mut owner, mut out) = start_owner(victim.pid(), freezer);
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
            assert_restored(pid, victim.pid(), &before, &children);
        } else {
            // Killed before it had a guardian it leaves at most a journal that says so, and nothing
            // else.
            std::thread::sleep(Duration::from_millis(60));
            clean().unwrap();
            assert_restored(pid, victim.pid(), &before, &[]);
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
    let _alone = alone();
    if !permitted(true) {
        return;
    }
    let victim = Victim::start();
    let before = Snapshot::of(victim.pid());
    for round in 0..rounds() {
        let freezer = if round % 2 == 0 { "1" } else { "0" };
        let (mut owner, mut out) = role(
            "owner",
            &[("VICTIM", &victim.pid().to_string()), ("FREEZER", freezer), ("ENDS", "3")],
        );
        let (_, child) = started_processes(&mut out);
        expect_line(&mut out, "ADOPTED");
        std::thread::sleep(Duration::from_micros(2_000 + random(9_000)));
        let pid = owner.id() as i32;
        kill(pid, libc::SIGKILL);
        owner.end();
        assert_restored(pid, victim.pid(), &before, &[child]);
    }
}

#[test]
fn a_guardian_killed_while_it_restores_leaves_what_clean_mends() {
    let _alone = alone();
    if !permitted(true) {
        return;
    }
    let victim = Victim::start();
    let before = Snapshot::of(victim.pid());
    for round in 0..rounds() {
        let (mut owner, mut out) = start_owner(victim.pid(), round % 2 == 0);
        let (guardian, child) = started_processes(&mut out);
        expect_line(&mut out, "ADOPTED");
        let pid = owner.id() as i32;
        kill(pid, libc::SIGKILL);
        owner.end();
        std::thread::sleep(Duration::from_micros(random(4_000)));
        kill(guardian, libc::SIGKILL);
        let reports = clean().unwrap();
        assert!(reports.iter().all(RestoreReport::is_complete), "{reports:?}");
        assert_restored(pid, victim.pid(), &before, &[child]);
    }
}

#[test]
fn a_dropped_guardian_restores_though_its_owner_lives() {
    let _alone = alone();
    if !permitted(true) {
        return;
    }
    let victim = Victim::start();
    let before = Snapshot::of(victim.pid());
    let o = take_over(victim.pid(), 1, true);
    let child = o.command.0.id().pid;
    drop(o.guardian);
    assert_restored(std::process::id() as i32, victim.pid(), &before, &[child]);
}

fn guardian_killed(freezer: bool) {
    let _alone = alone();
    if !permitted(freezer) {
        return;
    }
    let victim = Victim::start();
    let before = Snapshot::of(victim.pid());
    let (mut owner, mut out) = start_owner(victim.pid(), freezer);
    let (mut guardian, child) = started_processes(&mut out);
    expect_line(&mut out, "ADOPTED");
    for _ in 0..rounds() / 2 {
        std::thread::sleep(Duration::from_micros(random(10_000)));
        kill(guardian, libc::SIGKILL);
        guardian = expect_line(&mut out, "GUARDIAN ").parse().unwrap();
        let text = std::fs::read_to_string(format!("/proc/{guardian}/comm")).unwrap();
        assert_eq!(text.trim(), "punctual-guard");
    }
    assert!(!owner.has_ended());
    // The last one of them works as the first did.
    kill(owner.id() as i32, libc::SIGKILL);
    let pid = owner.id() as i32;
    owner.end();
    assert_restored(pid, victim.pid(), &before, &[child]);
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
    let _alone = alone();
    if !permitted(freezer) {
        return;
    }
    let victim = Victim::start();
    let before = Snapshot::of(victim.pid());
    for _ in 0..rounds() / 3 {
        let (mut owner, mut out) = start_owner(victim.pid(), freezer);
        let (guardian, child) = started_processes(&mut out);
        expect_line(&mut out, "ADOPTED");
        std::thread::sleep(Duration::from_micros(random(20_000)));
        let pid = owner.id() as i32;
        // Guardian first, and the owner before it can notice.
        kill(guardian, libc::SIGSTOP);
        kill(pid, libc::SIGKILL);
        kill(guardian, libc::SIGKILL);
        owner.end();
        let left = leftovers();
        assert!(left.iter().any(|l| l.owner == pid && l.help == "punctual clean"), "{left:?}");
        let reports = clean().unwrap();
        assert!(reports.iter().all(RestoreReport::is_complete), "{reports:?}");
        assert_restored(pid, victim.pid(), &before, &[child]);
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
    let _alone = alone();
    if !permitted(true) {
        return;
    }
    let victim = Victim::start();
    let (mut owner, mut out) = start_owner(victim.pid(), true);
    let (guardian, child) = started_processes(&mut out);
    expect_line(&mut out, "ADOPTED");
    // Its guardian's death makes it no less alive.
    kill(guardian, libc::SIGKILL);
    let pid = owner.id() as i32;
    assert!(clean().unwrap().iter().all(|r| r.owner != pid));
    assert!(leftovers().iter().all(|l| l.owner != pid));
    assert!(state_of(child).is_some());
    assert!(cgroup_of(victim.pid()).contains(&format!("punctual-{pid}-")));
    expect_line(&mut out, "GUARDIAN ");
    kill(pid, libc::SIGKILL);
    owner.end();
    eventually("restored", || groups_of(pid).is_empty());
}

#[test]
fn a_cgroup_whose_journal_is_lost_is_cleaned_by_its_name() {
    let _alone = alone();
    if !permitted(true) {
        return;
    }
    let victim = Victim::start();
    let (mut owner, mut out) = start_owner(victim.pid(), true);
    let (guardian, child) = started_processes(&mut out);
    expect_line(&mut out, "ADOPTED");
    let pid = owner.id() as i32;
    kill(guardian, libc::SIGSTOP);
    kill(pid, libc::SIGKILL);
    kill(guardian, libc::SIGKILL);
    owner.end();
    for j in journals_of(pid) {
        std::fs::remove_file(j).unwrap();
    }
    assert!(leftovers().iter().any(|l| l.owner == pid));
    let reports = clean().unwrap();
    assert!(
        reports.iter().any(|r| r.owner == pid) && reports.iter().all(RestoreReport::is_complete),
        "{reports:?}"
    );
    assert!(groups_of(pid).is_empty());
    assert_no_fifo(victim.pid());
    assert!(matches!(state_of(child), None | Some('Z')));
    let n = cpu_switches(victim.pid());
    eventually("the victim runs", || cpu_switches(victim.pid()) > n);
}

#[test]
fn the_cpu_stays_taken_until_the_guardian_has_restored() {
    let _alone = alone();
    if !permitted(true) {
        return;
    }
    let victim = Victim::start();
    let (mut owner, mut out) = start_owner(victim.pid(), true);
    let (guardian, _) = started_processes(&mut out);
    expect_line(&mut out, "ADOPTED");
    let pid = owner.id() as i32;
    kill(guardian, libc::SIGSTOP);
    kill(pid, libc::SIGKILL);
    owner.end();
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
    let _alone = alone();
    if !permitted(true) {
        return;
    }
    let victim = Victim::start();
    let before = Snapshot::of(victim.pid());
    let o = take_over(victim.pid(), 1, true);
    let guardian = o.guardian.pid();
    let child = o.command.0.id().pid;
    assert!(o.guardian.is_real_time());
    let report = restore(&o.journal);
    assert!(report.is_complete() && report.killed >= 1 && report.given_back == 1, "{report:?}");
    assert_eq!(restore(&o.journal), RestoreReport::default());
    o.guardian.dismiss();
    assert_eq!(state_of(guardian), None);
    assert_restored(std::process::id() as i32, victim.pid(), &before, &[child]);
    drop(o.lock);
    CpuLock::take(1, "next").unwrap();
}

#[test]
fn an_owner_that_executes_another_program_leaves_nothing() {
    let _alone = alone();
    if !permitted(true) {
        return;
    }
    let victim = Victim::start();
    let before = Snapshot::of(victim.pid());
    let (mut owner, mut out) = role(
        "owner",
        &[("VICTIM", &victim.pid().to_string()), ("FREEZER", "1"), ("EXECUTES", "sleep")],
    );
    let (guardian, child) = started_processes(&mut out);
    let pid = owner.id() as i32;
    eventually("the guardian has restored", || state_of(guardian).is_none_or(|s| s == 'Z'));
    assert!(!owner.has_ended(), "the other program executes");
    assert_restored(pid, victim.pid(), &before, &[child]);
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
