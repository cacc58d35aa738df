//! Running processes are parked, and restored as they were.

use crate::common::*;
use crate::{finish, setup};
use punctual_process::*;
use std::time::Duration;

fn adopted_process_comes_back(freezer: bool) {
    let _alone = alone();
    let Some((journal, base)) = setup(freezer) else { return };
    let victim = Victim::start();
    let before = Snapshot::of(victim.pid());
    let park = Park::for_process(&journal, base.as_ref(), victim.pid(), "victim").unwrap();
    let adopted = adopt(&journal, victim.pid(), &park).unwrap();
    let threads = Threads::new(&park, 64, 1);
    assert!(threads.rescan(&park.threads()).unwrap() >= 4);
    threads.set_level(30).unwrap();
    park.set_level(30);
    for _ in 0..5 {
        park.park().unwrap();
        eventually("it stands still", || park.is_parked().unwrap());
        let n = cpu_switches(victim.pid());
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(cpu_switches(victim.pid()), n, "it ran while parked");
        park.resume().unwrap();
        eventually("it continues", || cpu_switches(victim.pid()) > n);
        threads.rescan(&park.threads()).unwrap();
        assert_eq!(attributes(victim.pid()).map(|a| (a.0, a.1)), Some((policy(freezer), 30)));
    }
    park.park().unwrap();
    let report = Adopted::give_back(&[adopted], &park);
    assert!(report.is_complete() && report.given_back >= 1 && report.threads >= 4, "{report:?}");
    park.remove().unwrap();
    assert_eq!(Snapshot::of(victim.pid()), before);
    assert_no_fifo(victim.pid());
    let n = cpu_switches(victim.pid());
    eventually("it continues", || cpu_switches(victim.pid()) > n);
    assert_eq!(finish(&journal).given_back, 0);
}

#[test]
fn a_process_adopted_by_the_freezer_is_parked_and_restored() {
    adopted_process_comes_back(true);
}

#[test]
fn a_process_adopted_by_stop_signals_is_parked_and_restored() {
    adopted_process_comes_back(false);
}

#[test]
fn a_process_that_was_stopped_before_is_stopped_again_afterwards() {
    let _alone = alone();
    for freezer in [false, true] {
        let Some((journal, base)) = setup(freezer) else { return };
        let mut p = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let pid = p.id() as i32;
        kill(pid, libc::SIGSTOP);
        eventually("it is stopped", || state_of(pid) == Some('T'));
        let park = Park::for_process(&journal, base.as_ref(), pid, "sleep").unwrap();
        let _adopted = adopt(&journal, pid, &park).unwrap();
        park.resume().unwrap();
        finish(&journal);
        eventually("it is stopped", || state_of(pid) == Some('T'));
        p.kill().unwrap();
        await_end(&mut p);
    }
}

#[test]
fn a_journal_does_nothing_to_a_process_that_got_the_number_of_another() {
    let _alone = alone();
    let Some((journal, _)) = setup(false) else { return };
    let mut bystander = std::process::Command::new("sleep").arg("30").spawn().unwrap();
    let id = Identity::of(bystander.id() as i32).unwrap();
    // What an earlier process of that number would have left: its child, its stopped process, its
    // records.
    let lines = format!(
        "{{\"what\":\"child\",\"id\":{{\"pid\":{0},\"start\":{1}}}}}\n\
         {{\"what\":\"stopping\",\"id\":{{\"pid\":{0},\"start\":{1}}}}}\n",
        id.pid,
        id.start - 1
    );
    use std::io::Write;
    std::fs::OpenOptions::new()
        .append(true)
        .open(journal.path())
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    kill(id.pid, libc::SIGSTOP);
    eventually("it is stopped", || state_of(id.pid) == Some('T'));
    let report = finish(&journal);
    assert_eq!((report.killed, report.continued), (0, 0));
    assert_eq!(state_of(id.pid), Some('T'));
    bystander.kill().unwrap();
    await_end(&mut bystander);
}
