//! Reservations: what becomes of a task that overruns, what is carried and what is not.
//! The figure of the RTAI paper (Fig. 2(a)) is among them.

use punctual_dispatcher::{
    Attribute, Dispatcher, End, Event, For, Limits, OverrunPolicy, Reservation, ReservationId,
    TaskId, Wait,
};

/// A dispatcher with one reserved task, and its clock.
struct One {
    d: Dispatcher,
    task: TaskId,
    r: ReservationId,
    now: u64,
    events: Vec<Event>,
}

const MS: u64 = 1_000_000;

impl One {
    fn new(period: u64, budget: u64, overrun: OverrunPolicy) -> One {
        One::with(Reservation { overrun, ..Reservation::new(For::Task(TaskId(0)), period, budget) })
    }

    /// Its first release is over and waited for, as in a task that knows us.
    fn with(reservation: Reservation) -> One {
        let mut d = Dispatcher::new(Limits::for_tasks(4)).expect("valid limits");
        d.set_order(0, &[Attribute::Finish]).expect("it is empty");
        let task = d.add_task(0).expect("room");
        let r = d
            .add_reservation(&Reservation { serves: For::Task(task), ..reservation }, 0)
            .expect("it is valid");
        One { d, task, r, now: 0, events: Vec::new() }
    }

    /// Time passes to `now`, in which the task executed `ran`.
    fn pass(&mut self, now: u64, ran: u64) {
        if ran > 0 {
            self.d.charge_task(self.task, ran, now).expect("it is there");
        }
        self.now = now;
        self.d.advance(now);
        self.events.clear();
        while let Some(e) = self.d.next_event() {
            self.events.push(e);
        }
        self.d.select(0, now);
    }

    fn wait(&mut self) -> Wait {
        let wait = self.d.task_done(self.task, self.now).expect("it is there");
        while self.d.next_event().is_some() {}
        self.d.select(0, self.now);
        wait
    }

    fn runs(&mut self) -> bool {
        self.d.select(0, self.now).is_some()
    }

    fn budget(&self) -> u64 {
        self.d.job_of(self.r).map_or(0, |j| self.d.remaining(j))
    }

    fn ended(&self) -> Option<End> {
        self.events.iter().find_map(|e| match e {
            Event::JobEnded { end, .. } => Some(*end),
            _ => None,
        })
    }
}

/// RTAI paper, Fig. 2(a): W = 2, P = 5; the executions take 3, 1 and 1. The figure is a caption
/// only, so this is its description: one unit of the first runs over into the next period, where
/// the wait that was due before is ignored.
#[test]
fn rtai_figure_2a() {
    let mut t = One::new(5, 2, OverrunPolicy::Carry);
    // It waits for its first period, as an RTAI task does; so it is known to wait.
    t.pass(0, 0);
    assert_eq!(t.wait(), Wait::UntilRelease);
    t.pass(5, 0);
    assert!(t.runs());
    // Two of three units, then suspended.
    t.pass(7, 2);
    assert_eq!(t.ended(), Some(End::Exhausted));
    assert!(!t.runs());
    assert_eq!(t.d.delayed(t.r), 1);
    // The third, and the wait that is ignored; then the second execution, and its own wait.
    t.pass(10, 0);
    assert!(t.runs());
    t.pass(11, 1);
    assert_eq!(t.wait(), Wait::Ignored);
    assert!(t.runs(), "it continues at once");
    // Its budget is used up by 1 + 1 units, at the very instant at which it waits.
    t.d.charge_task(t.task, 1, 12).expect("it is there");
    t.now = 12;
    assert_eq!(t.wait(), Wait::UntilRelease);
    assert!(!t.runs());
    // The third execution is in its own period: it has caught up.
    t.pass(15, 0);
    t.pass(16, 1);
    assert_eq!(t.d.delayed(t.r), 0);
    assert_eq!(t.wait(), Wait::UntilRelease);
    assert_eq!(t.d.take_lost(t.r), 0);
}

#[test]
fn carry_ignores_one_wait_for_each_overrun() {
    let mut t = One::new(10, 4, OverrunPolicy::Carry);
    t.pass(0, 0);
    t.wait();
    for k in 1..=3 {
        t.pass(10 * k, 0);
        t.pass(10 * k + 4, 4);
        assert_eq!(t.d.delayed(t.r), k as u32);
    }
    t.pass(40, 0);
    assert_eq!([t.wait(), t.wait(), t.wait()], [Wait::Ignored; 3]);
    assert!(t.runs(), "the job of the fourth release is still there");
    assert_eq!(t.wait(), Wait::UntilRelease);
    assert!(!t.runs());
}

#[test]
fn skip_returns_at_the_next_release_and_tells_how_many_it_lost() {
    let mut t = One::new(10, 4, OverrunPolicy::Skip);
    t.pass(0, 0);
    t.wait();
    t.pass(10, 0);
    t.pass(14, 4);
    t.pass(20, 0);
    assert!(t.runs(), "it continues with the new budget");
    t.pass(24, 4);
    t.pass(30, 0);
    t.pass(31, 1);
    assert_eq!(t.wait(), Wait::UntilRelease);
    assert!(!t.runs());
    assert_eq!(t.d.delayed(t.r), 0);
    assert_eq!(t.d.take_lost(t.r), 2);
    assert_eq!(t.d.take_lost(t.r), 0, "reported once");
    t.pass(40, 0);
    assert!(t.runs());
}

#[test]
fn background_and_signal_are_reported_once_for_each_overrun() {
    for overrun in [OverrunPolicy::Background, OverrunPolicy::Signal] {
        let mut t = One::new(10, 4, overrun);
        for k in 0..3 {
            t.pass(10 * k, 0);
            assert!(!t
                .events
                .iter()
                .any(|e| matches!(e, Event::Overrun { .. } | Event::Background { .. })));
            t.pass(10 * k + 4, 4);
            let reported = match overrun {
                OverrunPolicy::Signal => Event::Overrun { at: t.now, task: t.task, number: k },
                _ => Event::Background { at: t.now, task: t.task, number: k },
            };
            assert_eq!(t.events.iter().filter(|e| **e == reported).count(), 1, "{:?}", t.events);
        }
    }
}

/// Reaching the finish is an overrun too, and what was left is not carried.
#[test]
fn unused_budget_is_never_carried() {
    let mut t = One::new(10, 4, OverrunPolicy::Carry);
    t.pass(0, 0);
    t.pass(9, 1);
    t.pass(10, 0);
    assert_eq!(t.ended(), Some(End::Expired));
    assert_eq!(t.budget(), 4);
    assert_eq!(t.d.enforcement_error(t.r), 0);
    t.pass(12, 1);
    t.wait();
    t.pass(20, 0);
    assert_eq!(t.budget(), 4);
}

#[test]
fn programs_that_never_wait_owe_no_waits() {
    let mut t = One::new(10, 4, OverrunPolicy::Carry);
    for k in 0..100 {
        t.pass(10 * k, 0);
        t.pass(10 * k + 4, 4);
        assert_eq!(t.d.delayed(t.r), 0);
    }
}

#[test]
fn never_more_than_one_budget_is_carried() {
    let mut t = One::new(10, 4, OverrunPolicy::Carry);
    t.pass(0, 0);
    t.pass(9, 4 + 100);
    assert_eq!(t.d.enforcement_error(t.r), 4);
    // The next release has nothing left to give, and the one after it is whole again.
    t.pass(10, 0);
    assert!(!t.runs());
    assert_eq!(t.d.enforcement_error(t.r), 0);
    t.pass(20, 0);
    assert_eq!(t.budget(), 4);
    // What it executes between two jobs counts as well, and however much is claimed.
    t.wait();
    t.pass(25, u64::MAX);
    assert_eq!(t.d.enforcement_error(t.r), 4);
}

#[test]
fn delayed_waits_saturate_and_say_so() {
    let mut t = One::new(10, 4, OverrunPolicy::Carry);
    t.pass(0, 0);
    t.wait();
    let mut reported = 0;
    for k in 1..=30_010 {
        t.pass(10 * k, 0);
        t.pass(10 * k + 4, 4);
        reported += t.events.iter().filter(|e| matches!(e, Event::DelayedSaturated { .. })).count();
        if k == 29_999 {
            assert_eq!(reported, 0);
        }
    }
    assert_eq!(reported, 1);
    assert_eq!(t.d.delayed(t.r), 30_000);
}

#[test]
fn releases_that_were_not_made_in_time_are_reported_and_counted() {
    let mut t = One::new(10, 4, OverrunPolicy::Carry);
    t.pass(0, 0);
    t.wait();
    t.pass(10 + 10 * 40_000 + 3, 0);
    let lost = Event::ReleasesLost { at: t.now, task: t.task, first: 1, count: 40_000 };
    assert!(t.events.contains(&lost), "{:?}", t.events);
    assert_eq!(t.d.take_lost(t.r), 40_000);
    // The latest release is made, with what is left of its period.
    assert!(t.runs());
    assert_eq!(t.d.timer(0, 1, t.now), t.now + 4);
}

/// Budget / deadline of what is left until the finish, if it has more.
#[test]
fn the_wakeup_rule_cuts_to_the_bandwidth() {
    let reservation = Reservation {
        deadline: 8 * MS,
        wakeup_rule: true,
        ..Reservation::new(For::Task(TaskId(0)), 10 * MS, 4 * MS)
    };
    for (wakes, expected) in [(2 * MS, 3 * MS), (6 * MS, MS), (7 * MS + 1, MS / 2 - 1)] {
        let mut t = One::with(reservation);
        t.pass(0, 0);
        t.d.charge_task(t.task, 500_000, 500_000).expect("it is there");
        t.d.task_blocked(t.task, 500_000).expect("it is there");
        assert!(!t.runs());
        t.d.task_ready(t.task, wakes).expect("it is there");
        assert_eq!(t.budget(), expected.min(4 * MS - 500_000), "woken at {wakes}");
        assert_eq!(t.d.timer(0, 1, wakes).min(8 * MS), t.d.timer(0, 1, wakes), "the finish stays");
    }
    // Without the rule, and where it has less left than that, nothing changes.
    let mut t = One::with(Reservation { wakeup_rule: false, ..reservation });
    t.pass(0, 0);
    t.d.task_blocked(t.task, 1).expect("it is there");
    t.d.task_ready(t.task, 7 * MS).expect("it is there");
    assert_eq!(t.budget(), 4 * MS);
    let mut t = One::with(reservation);
    t.pass(0, 0);
    t.d.charge_task(t.task, 3_900_000, 3_900_000).expect("it is there");
    let job = t.d.job_of(t.r);
    t.d.task_blocked(t.task, 3_900_000).expect("it is there");
    t.d.task_ready(t.task, 4 * MS).expect("it is there");
    assert_eq!((t.d.job_of(t.r), t.budget()), (job, 100_000));
}

/// Deadlines of more than 32 bits are computed a little smaller, never larger.
#[test]
fn the_wakeup_rule_never_grants_more() {
    let mut random = 1u64;
    for _ in 0..2000 {
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            random >> 11
        };
        let deadline = 2 + next() % 100_000_000_000_000;
        let budget = 1 + next() % deadline;
        let wakes = next() % deadline;
        let mut t = One::with(Reservation {
            wakeup_rule: true,
            ..Reservation::new(For::Task(TaskId(0)), deadline, budget)
        });
        t.pass(0, 0);
        t.d.task_blocked(t.task, 0).expect("it is there");
        t.d.task_ready(t.task, wakes).expect("it is there");
        let exact =
            (u128::from(deadline - wakes) * u128::from(budget) / u128::from(deadline)) as u64;
        let granted = t.budget();
        assert!(granted <= exact, "{granted} > {exact} for {budget} in {deadline} at {wakes}");
        let coarse = (deadline >> 30) + (exact >> 28);
        assert!(
            granted + coarse >= exact,
            "{granted} for {exact}: {budget} in {deadline}, {wakes}"
        );
    }
}
