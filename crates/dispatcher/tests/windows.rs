//! Reservations with windows: the time-driven table.

use punctual_dispatcher::{
    Attribute, Dispatcher, End, Event, For, Limits, OverrunPolicy, Refusal, Reservation,
    ReservationId, TaskId, Wait,
};

const TASK: TaskId = TaskId(0);

fn reservation(period: u64, budget: u64) -> Reservation {
    Reservation::new(For::Task(TASK), period, budget)
}

/// One task, and what is selected at each ns.
struct Cpu {
    d: Dispatcher,
    now: u64,
    events: Vec<Event>,
}

impl Cpu {
    fn new() -> Cpu {
        let mut d =
            Dispatcher::new(Limits { windows: 8, ..Limits::for_tasks(2) }).expect("valid limits");
        d.set_order(0, &[Attribute::Start]).expect("a valid order");
        assert_eq!(d.add_task(0), Ok(TASK));
        Cpu { d, now: 0, events: Vec::new() }
    }

    fn draft(&mut self, rows: &[&[(u64, u64)]]) {
        for row in rows {
            for (place, &(start, length)) in row.iter().enumerate() {
                self.d.draft_window(start, length, place == 0, self.now).expect("it is valid");
            }
        }
    }

    fn reserve(&mut self, r: &Reservation, rows: &[&[(u64, u64)]]) -> ReservationId {
        self.draft(rows);
        self.d.add_reservation(r, self.now).expect("it is valid")
    }

    /// The task executes whenever it is selected. When it did, in stretches.
    fn run(&mut self, until: u64) -> Vec<(u64, u64)> {
        let mut ran: Vec<(u64, u64)> = Vec::new();
        while self.now < until {
            self.instant();
            if let Some(job) = self.d.select(0, self.now) {
                assert_eq!(self.d.task_of(job), Some(TASK));
                match ran.last_mut() {
                    Some(last) if last.1 == self.now => last.1 += 1,
                    _ => ran.push((self.now, self.now + 1)),
                }
                self.d.charge_job(job, 1, self.now + 1).expect("it is there");
            }
            self.now += 1;
        }
        self.instant();
        ran
    }

    fn instant(&mut self) {
        self.d.advance(self.now);
        while let Some(event) = self.d.next_event() {
            self.events.push(event);
        }
    }

    /// Number of the release, its budget, its end, and what it used in all.
    fn releases(&self) -> Vec<(u64, u64, End, u64)> {
        let (mut all, mut used_before, mut granted) = (Vec::new(), 0, 0);
        for event in &self.events {
            match *event {
                Event::Released { budget, .. } => (used_before, granted) = (0, budget),
                Event::WindowEnded { used, .. } => used_before += used,
                Event::JobEnded { end, cookie, used, .. } => {
                    all.push((cookie, granted, end, used_before + used))
                }
                _ => {}
            }
        }
        all
    }
}

#[test]
fn a_release_executes_in_one_window_after_the_other() {
    let mut cpu = Cpu::new();
    cpu.reserve(&reservation(10, 4), &[&[(1, 1), (4, 3)]]);
    assert_eq!(cpu.run(20), [(1, 2), (4, 7), (11, 12), (14, 17)]);
    assert_eq!(cpu.releases(), [(0, 4, End::Exhausted, 4), (1, 4, End::Exhausted, 4)]);
}

#[test]
fn what_is_left_of_the_budget_is_all_that_a_later_window_gives() {
    let mut cpu = Cpu::new();
    cpu.reserve(&reservation(10, 3), &[&[(0, 2), (4, 4)]]);
    assert_eq!(cpu.run(10), [(0, 2), (4, 5)]);
}

#[test]
fn rows_come_in_turn_and_a_lost_release_takes_its_own() {
    let rows: &[&[(u64, u64)]] = &[&[(0, 1)], &[(1, 1)], &[(2, 1), (5, 1)]];
    let mut cpu = Cpu::new();
    cpu.reserve(&reservation(10, 2), rows);
    assert_eq!(cpu.run(40), [(0, 1), (11, 12), (22, 23), (25, 26), (30, 31)]);
    // No call from 40 to 65: release 5 is lost, and release 6 has the first row.
    cpu.now = 65;
    assert_eq!(
        cpu.run(80),
        [(71, 72)],
        "release 6 was looked at after its window, 7 has the second row"
    );
    let lost = cpu.events.iter().find(|e| matches!(e, Event::ReleasesLost { .. }));
    assert!(matches!(lost, Some(Event::ReleasesLost { first: 5, count: 1, .. })), "{lost:?}");
    assert_eq!(cpu.run(90), [(82, 83), (85, 86)]);
}

#[test]
fn windows_that_have_gone_by_are_passed_over_at_one_instant() {
    let mut cpu = Cpu::new();
    cpu.reserve(&reservation(20, 6), &[&[(0, 2), (3, 2), (6, 2), (12, 2)]]);
    cpu.instant();
    cpu.now = 9;
    assert_eq!(cpu.run(20), [(12, 14)]);
    assert_eq!(cpu.releases(), [(0, 6, End::Exhausted, 2)], "its end comes with its last window's");
    let ended = |e: &&Event| matches!(e, Event::WindowEnded { end: End::Expired, at: 9, .. });
    assert_eq!(cpu.events.iter().filter(ended).count(), 3);
}

#[test]
fn a_task_that_is_done_leaves_its_later_windows_empty() {
    let mut cpu = Cpu::new();
    cpu.reserve(&reservation(10, 4), &[&[(0, 2), (4, 2)]]);
    assert_eq!(cpu.run(1), [(0, 1)]);
    assert_eq!(cpu.d.task_done(TASK, 1), Ok(Wait::UntilRelease));
    assert_eq!(cpu.run(12), [(10, 12)]);
    assert_eq!(cpu.releases()[0], (0, 4, End::Completed, 1));
}

#[test]
fn only_the_end_of_a_release_is_an_overrun() {
    let mut cpu = Cpu::new();
    cpu.reserve(
        &Reservation { overrun: OverrunPolicy::Signal, ..reservation(10, 4) },
        &[&[(0, 2), (4, 2)]],
    );
    cpu.run(4);
    assert!(!cpu.events.iter().any(|e| matches!(e, Event::Overrun { .. })));
    cpu.run(6);
    assert!(cpu.events.contains(&Event::Overrun { at: 6, task: TASK, number: 0 }));
}

#[test]
fn what_a_window_overran_is_taken_from_the_release_and_then_from_the_next() {
    let mut cpu = Cpu::new();
    let r = cpu.reserve(&reservation(10, 4), &[&[(0, 2), (4, 2), (7, 2)]]);
    cpu.instant();
    let job = cpu.d.job_of(r).expect("it is released");
    // It was stopped 1 late, at 3.
    cpu.d.charge_job(job, 3, 3).expect("it is there");
    cpu.now = 3;
    assert_eq!(cpu.run(10), [(4, 5)]);
    assert_eq!(cpu.d.enforcement_error(r), 0, "4 were executed");
    cpu.instant();
    let job = cpu.d.job_of(r).expect("it is released");
    cpu.d.charge_job(job, 7, 17).expect("it is there");
    cpu.now = 17;
    cpu.instant();
    assert_eq!(cpu.d.enforcement_error(r), 3);
    assert_eq!(cpu.run(30), [(20, 21)]);
}

#[test]
fn a_job_that_the_granularity_ends_continues_with_the_rest_in_the_next_window() {
    let mut cpu = Cpu::new();
    cpu.d.set_granularity(2).expect("in range");
    let r = cpu.reserve(&reservation(40, 16), &[&[(0, 8), (20, 8)]]);
    assert_eq!(cpu.run(28), [(0, 6), (20, 26)]);
    assert_eq!(cpu.d.enforcement_error(r), -4, "12 of 16 were executed");
}

#[test]
fn other_windows_are_taken_from_the_next_release_on() {
    let mut cpu = Cpu::new();
    let r = cpu.reserve(&reservation(10, 2), &[&[(0, 1), (6, 1)]]);
    assert_eq!(cpu.run(5), [(0, 1)]);
    // By the number of the release: number 1 has the second row.
    cpu.draft(&[&[(8, 2)], &[(3, 2)]]);
    cpu.d.change_reservation(r, &reservation(10, 2), 5).expect("it is valid");
    assert_eq!(cpu.run(30), [(6, 7), (13, 15), (28, 30)]);
    // Without any: the whole period, once release 3 is over.
    cpu.d.change_reservation(r, &reservation(10, 2), 30).expect("it is valid");
    assert_eq!(cpu.run(50), [(33, 35), (40, 42)]);
}

#[test]
fn windows_are_freed_by_every_owner() {
    let mut cpu = Cpu::new();
    let eight: &[&[(u64, u64)]] =
        &[&[(0, 1), (2, 1), (4, 1), (6, 1)], &[(1, 1), (3, 1), (5, 1), (7, 1)]];
    for round in 0..4 {
        let r = cpu.reserve(&reservation(10, 1), eight);
        assert_eq!(cpu.d.draft_window(0, 1, true, cpu.now), Err(Refusal::Full), "round {round}");
        if round % 2 == 0 {
            cpu.d.remove_reservation(r, cpu.now).expect("it is there");
        } else {
            cpu.d.task_gone(TASK, cpu.now).expect("it is there");
            assert_eq!(cpu.d.add_task(cpu.now), Ok(TASK));
        }
        // Drafted and dropped; drafted for changes of which only the last counts.
        cpu.draft(eight);
        cpu.d.drop_windows(cpu.now);
        let r = cpu.reserve(&reservation(10, 1), &eight[..1]);
        for _ in 0..3 {
            cpu.draft(&[&[(0, 1), (2, 1)]]);
            cpu.d.change_reservation(r, &reservation(10, 1), cpu.now).expect("it is valid");
        }
        cpu.draft(&[&[(0, 1), (2, 1)]]);
        assert_eq!(cpu.d.draft_window(4, 1, false, cpu.now), Err(Refusal::Full), "4 + 2 + 2");
        cpu.d.drop_windows(cpu.now);
        cpu.d.remove_reservation(r, cpu.now).expect("it is there");
    }
}

#[test]
fn windows_that_cannot_be_are_refused_and_stay_drafted_until_they_are_dropped() {
    let mut cpu = Cpu::new();
    assert_eq!(cpu.d.draft_window(0, 0, true, 0), Err(Refusal::Invalid), "of no length");
    assert_eq!(
        cpu.d.draft_window(1 << 62, 1, true, 0),
        Err(Refusal::Invalid),
        "beyond all periods"
    );
    assert_eq!(
        cpu.d.draft_window(0, 1 << 62, true, 0),
        Err(Refusal::Invalid),
        "beyond all periods"
    );
    cpu.draft(&[&[(2, 3)]]);
    assert_eq!(
        cpu.d.draft_window(4, 3, false, 0),
        Err(Refusal::Invalid),
        "it overlaps the one before it"
    );
    cpu.draft(&[&[(0, 11)]]);
    let r = reservation(10, 4);
    assert_eq!(cpu.d.add_reservation(&r, 0), Err(Refusal::Invalid), "it ends after the deadline");
    cpu.d.drop_windows(0);
    cpu.draft(&[&[(0, 10)]]);
    let server = Reservation { serves: For::Budget(1), ..r };
    assert_eq!(cpu.d.add_reservation(&server, 0), Err(Refusal::Invalid), "windows are for tasks");
    let ruled = Reservation { wakeup_rule: true, ..r };
    assert_eq!(
        cpu.d.add_reservation(&ruled, 0),
        Err(Refusal::Invalid),
        "two rules for one bandwidth"
    );
    let id = cpu.d.add_reservation(&r, 0).expect("the draft is still there");
    assert_eq!(cpu.run(10), [(0, 4)]);
    cpu.draft(&[&[(0, 10)]]);
    assert_eq!(cpu.d.change_reservation(id, &ruled, 10), Err(Refusal::Invalid));
    assert_eq!(cpu.d.change_reservation(ReservationId(1), &r, 10), Err(Refusal::Nothing));
    cpu.d.change_reservation(id, &r, 10).expect("the draft is still there");
}
