//! Enforcement error: carried, and settled by later releases (docs/model.md, "Enforcement error").

use punctual_dispatcher::{
    error_settled, Dispatcher, For, Limits, Reservation, ReservationId, TaskId,
};

const PERIOD: u64 = 10_000_000;
const BUDGET: u64 = 2_000_000;
/// Settled at once beyond this.
const TENTH: u64 = BUDGET / 10;
/// Of up to a tenth, a release settles at most this.
const STEP: u64 = BUDGET / 25;

fn reservation(serves: For, budget: u64) -> Reservation {
    Reservation::new(serves, PERIOD, budget)
}

/// A reservation each of whose jobs is charged once.
struct Reserved {
    d: Dispatcher,
    r: ReservationId,
    release: u64,
}

impl Reserved {
    fn new(serves: For, budget: u64) -> Reserved {
        let limits = Limits { groups: 2, budget_groups: 1, windows: 4, ..Limits::for_tasks(1) };
        let mut d = Dispatcher::new(limits).expect("valid limits");
        assert_eq!(d.add_task(0), Ok(TaskId(0)));
        let r = d.add_reservation(&reservation(serves, budget), 0).expect("it is valid");
        Reserved { d, r, release: 0 }
    }

    fn of_task(budget: u64) -> Reserved {
        Reserved::new(For::Task(TaskId(0)), budget)
    }

    /// The next release's budget.
    fn release(&mut self) -> u64 {
        self.d.advance(self.release);
        self.release += PERIOD;
        self.d.job_of(self.r).map_or(0, |job| self.d.remaining(job))
    }

    /// Its job is stopped after `ran`.
    fn stop_after(&mut self, ran: u64) {
        let job = self.d.job_of(self.r).expect("it has one");
        let now = self.release - 1;
        self.d.charge_job(job, ran, now).expect("it is there");
        self.d.advance(now);
    }

    /// A release that is stopped so much late (+) or early (-): its budget.
    fn off_by(&mut self, error: i64) -> u64 {
        let budget = self.release();
        self.stop_after(budget.checked_add_signed(error).expect("not below 0"));
        budget
    }

    /// A release that is stopped in time: its budget.
    fn exact(&mut self) -> u64 {
        self.off_by(0)
    }

    fn error(&self) -> i64 {
        self.d.enforcement_error(self.r)
    }

    fn change(&mut self, budget: u64) {
        let to = reservation(For::Task(TaskId(0)), budget);
        self.d.change_reservation(self.r, &to, self.release - 1).expect("it is valid");
    }
}

#[test]
fn a_small_overrun_is_settled_by_halves() {
    let mut t = Reserved::of_task(BUDGET);
    // 3 % late.
    assert_eq!(t.off_by(60_000), BUDGET);
    let mut before = 60_000;
    for left in [30_000, 15_000, 7_500, 3_750, 1_875, 937, 468, 234, 117, 58, 29, 14, 7, 3, 1, 0] {
        assert_eq!(t.exact(), BUDGET - (before - left));
        assert_eq!(t.error(), left as i64);
        before = left;
    }
    assert_eq!(t.exact(), BUDGET);
}

#[test]
fn a_release_settles_four_percent_of_a_small_error_at_most() {
    let mut t = Reserved::of_task(BUDGET);
    t.off_by(190_000);
    assert_eq!(
        [t.exact(), t.exact(), t.exact()],
        [BUDGET - STEP, BUDGET - 55_000, BUDGET - 27_500]
    );
}

/// A host's granularity stops a job early.
#[test]
fn what_was_stopped_early_comes_back_by_halves() {
    let mut t = Reserved::of_task(BUDGET);
    t.d.set_granularity(25_000).expect("in range");
    assert_eq!(t.off_by(-25_000), BUDGET);
    assert_eq!(t.error(), -25_000);
    assert_eq!(
        [t.exact(), t.exact(), t.exact()],
        [BUDGET + 12_500, BUDGET + 6_250, BUDGET + 3_125]
    );
    assert_eq!(t.error(), -3_125);
}

#[test]
fn what_exceeds_a_tenth_is_settled_at_once() {
    let mut t = Reserved::of_task(BUDGET);
    t.off_by(300_000);
    assert_eq!(t.exact(), BUDGET - 100_000 - STEP);
    assert_eq!(t.error(), (TENTH - STEP) as i64);
    // Exactly a tenth is none of that: half of what was left, and this.
    t.off_by(140_000);
    assert_eq!(t.error(), TENTH as i64);
    assert_eq!(t.exact(), BUDGET - STEP);
}

#[test]
fn no_more_than_one_budget_is_carried_and_what_a_release_gets_is_never_negative() {
    let mut t = Reserved::of_task(BUDGET);
    t.off_by(7 * BUDGET as i64);
    assert_eq!(t.error(), BUDGET as i64);
    assert_eq!(t.exact(), TENTH - STEP);
    assert_eq!(t.error(), (TENTH - STEP) as i64);
}

/// What it executes between two jobs, too.
#[test]
fn what_a_task_executes_without_a_job_is_settled_likewise() {
    let mut t = Reserved::of_task(BUDGET);
    t.exact();
    t.d.charge_task(TaskId(0), 15_000, t.release - 1).expect("it is there");
    assert_eq!([t.exact(), t.exact()], [BUDGET - 7_500, BUDGET - 3_750]);
    t.d.charge_task(TaskId(0), u64::MAX, t.release - 1).expect("it is there");
    assert_eq!(t.error(), BUDGET as i64);
}

#[test]
fn servers_and_segments_carry_it_as_tasks_do() {
    for serves in [For::Group(1), For::Budget(1)] {
        let mut t = Reserved::new(serves, BUDGET);
        t.off_by(25_000);
        assert_eq!([t.exact(), t.exact()], [BUDGET - 12_500, BUDGET - 6_250], "{serves:?}");
        t.off_by(300_000);
        // And half of the half that was left.
        assert_eq!(t.exact(), BUDGET - 103_125 - STEP, "{serves:?}");
    }
}

/// A release in windows carries what all its jobs together executed beyond its budget.
#[test]
fn a_release_in_windows_carries_one_error() {
    let mut t = Reserved::of_task(BUDGET);
    for start in [0, 4_000_000] {
        t.d.draft_window(start, 2_500_000, start == 0, 0).expect("it is valid");
    }
    let windows = reservation(For::Task(TaskId(0)), BUDGET);
    t.d.change_reservation(t.r, &windows, 0).expect("it is valid");
    let release = |t: &mut Reserved, first: u64, second: u64| {
        let (start, budget) = (t.release, t.release());
        let job = t.d.job_of(t.r).expect("the first window's");
        t.d.charge_job(job, first, start + 2_500_000).expect("it is there");
        t.d.advance(start + 2_500_000);
        let job = t.d.job_of(t.r).expect("the second window's");
        t.d.charge_job(job, second, start + 5_000_000).expect("it is there");
        t.d.advance(start + 5_000_000);
        budget
    };
    assert_eq!(release(&mut t, 1_000_000, 1_025_000), BUDGET);
    assert_eq!(t.error(), 25_000);
    assert_eq!(release(&mut t, 1_000_000, 987_500), BUDGET - 12_500);
    assert_eq!(t.error(), 12_500);
    assert_eq!(release(&mut t, 1_980_000, 13_750), BUDGET - 6_250);
    assert_eq!(t.error(), 6_250);
}

#[test]
fn a_change_cuts_the_error_to_the_new_budget_and_settles_it_by_that_one() {
    let mut t = Reserved::of_task(BUDGET);
    t.off_by(150_000);
    t.change(1_000_000);
    assert_eq!(t.exact(), 1_000_000 - 50_000 - 40_000, "a tenth is 100,000 now, 4 % are 40,000");
    assert_eq!(t.error(), 60_000);
    t.change(40_000);
    assert_eq!(t.exact(), 40_000 - 36_000 - 1_600, "40,000 of it are left, 4,000 are a tenth");
    assert_eq!(t.error(), 2_400);
    t.change(BUDGET);
    assert_eq!([t.exact(), t.exact()], [BUDGET - 1_200, BUDGET - 600]);
}

/// A tenth, or the step, of a tiny budget is nothing.
#[test]
fn an_error_of_a_tiny_budget_is_settled_too() {
    let mut t = Reserved::of_task(9);
    t.off_by(9);
    assert_eq!(t.release(), 0, "all is beyond a tenth, and its job ends at once");
    assert_eq!(t.exact(), 9);
    let mut t = Reserved::of_task(30);
    t.off_by(5);
    assert_eq!([t.exact(), t.exact(), t.exact(), t.exact()], [27, 29, 29, 30]);
}

#[test]
fn unmade_releases_settle_nothing() {
    let mut t = Reserved::of_task(BUDGET);
    t.off_by(60_000);
    // The dispatcher is not called for five periods.
    t.release += 5 * PERIOD;
    assert_eq!(t.exact(), BUDGET - 30_000);
    assert_eq!(t.error(), 30_000);
}

/// Exhaustive for small budgets: an error shrinks by each release, keeps its sign and is settled in
/// the end; never more is settled than there is.
#[test]
fn every_error_of_every_small_budget_is_settled_in_the_end() {
    for budget in 1..=450 {
        for error in -(budget as i64)..=budget as i64 {
            let mut left = error;
            let mut releases = 0;
            while left != 0 {
                let settled = error_settled(budget, left);
                assert_eq!(settled.signum(), left.signum(), "{left} of {budget}");
                assert!(settled.abs() <= left.abs(), "{left} of {budget}");
                left -= settled;
                assert!(
                    left.unsigned_abs() <= budget / 10,
                    "a tenth at most stays, {left} of {budget}"
                );
                releases += 1;
            }
            // One that brings it to less than twice the step, and then one for each bit that is
            // left.
            let bits = u64::BITS - (budget / 10).leading_zeros();
            assert!(releases <= 1 + bits, "{releases} releases for {error} of {budget}");
        }
    }
    let most = i64::MAX as u64 / 2;
    assert_eq!(error_settled(most, most as i64), (most - most / 10 + most / 25) as i64);
    assert_eq!(error_settled(most, -(most as i64)), -((most - most / 10 + most / 25) as i64));
}

fn next(random: &mut u64) -> u64 {
    let product = random.wrapping_mul(6_364_136_223_846_793_005);
    *random = product.wrapping_add(1_442_695_040_888_963_407);
    *random >> 33
}

/// Stopped late or early at random: no period is off by more than the largest error, and the long
/// run is exact to what is still to be settled.
#[test]
fn the_long_run_is_exact() {
    let mut t = Reserved::of_task(BUDGET);
    t.d.set_granularity(100_000).expect("in range");
    let (mut random, mut executed) = (12_345, 0);
    for k in 1..=10_000 {
        let late = match next(&mut random) % 100 {
            0 => (next(&mut random) % 400_000) as i64,
            1..=9 => -((next(&mut random) % 100_000) as i64),
            _ => (next(&mut random) % 4_000) as i64 - 2_000,
        };
        let budget = t.off_by(late);
        assert!(
            BUDGET - 400_000 < budget && budget < BUDGET + 100_000,
            "release {k} gets {budget}"
        );
        executed += budget.checked_add_signed(late).expect("not below 0");
        assert_eq!(executed as i64 - (k * BUDGET) as i64, t.error(), "release {k}");
    }
}
