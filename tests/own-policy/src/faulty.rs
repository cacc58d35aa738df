//! A program whose policies have faults.

use punctual_cli::policies::{per_release, Context, JobParams, MemberParams, PolicyEntry};
use punctual_cli::policies::{PolicyEvent, PolicyInfo, Release, ReleasePolicy};
use punctual_cli::policies::{ReservationParams, SchedulingPolicy};
use punctual_sys::clock::thread_cpu_ns;

/// Panics at its twentieth release, of all tasks together.
static LATE: PolicyEntry =
    PolicyEntry::new(&LATE_INFO, |entry, _| Ok(per_release(entry, Late { releases: 0 })));
static LATE_INFO: PolicyInfo =
    PolicyInfo { name: "late", title: "panics in the run", ..PolicyInfo::POLICY };

struct Late {
    releases: u32,
}

impl ReleasePolicy for Late {
    fn first(&mut self, task: &MemberParams, release: &Release) -> JobParams {
        self.releases += 1;
        assert!(self.releases != 20, "20 releases are enough");
        let (start, finish, budget) = (release.at, release.deadline, release.left);
        JobParams { start, finish, budget, priority: -(task.budget as i64) }
    }
}

/// Is never made.
static UNMADE: PolicyEntry = PolicyEntry::new(&UNMADE_INFO, |_, _| panic!("no memory for it"));
static UNMADE_INFO: PolicyInfo =
    PolicyInfo { name: "unmade", title: "panics when it is made", ..PolicyInfo::POLICY };

/// Panics when it is asked for a reservation.
static ASKED: PolicyEntry = PolicyEntry::new(&ASKED_INFO, |_, _| Ok(Box::new(Asked)));
static ASKED_INFO: PolicyInfo =
    PolicyInfo { name: "asked", title: "panics before the run", ..PolicyInfo::POLICY };

struct Asked;

impl SchedulingPolicy for Asked {
    fn reservation(&self, task: &MemberParams) -> Option<ReservationParams> {
        assert!(task.period < 1_000, "a table of reservations");
        None
    }

    fn handle(&mut self, _: &mut Context<'_>, _: PolicyEvent) {}
}

/// Answers late: its releases from the twentieth on take 20 ms each.
static SLOW: PolicyEntry =
    PolicyEntry::new(&SLOW_INFO, |entry, _| Ok(per_release(entry, Slow { releases: 0 })));
static SLOW_INFO: PolicyInfo =
    PolicyInfo { name: "slow", title: "answers late in the run", ..PolicyInfo::POLICY };

struct Slow {
    releases: u32,
}

impl ReleasePolicy for Slow {
    fn first(&mut self, _: &MemberParams, release: &Release) -> JobParams {
        self.releases += 1;
        let began = thread_cpu_ns();
        while self.releases >= 20 && thread_cpu_ns() - began < 20_000_000 {}
        job_of(release)
    }
}

/// Never answers for its twentieth release: it executes for ever.
static LOOPS: PolicyEntry = PolicyEntry::new(&LOOPS_INFO, |entry, _| {
    Ok(per_release(entry, Endless { releases: 0, loops: true }))
});
static LOOPS_INFO: PolicyInfo =
    PolicyInfo { name: "loops", title: "does not return in the run", ..PolicyInfo::POLICY };

/// Likewise, but it sleeps.
static SLEEPS: PolicyEntry = PolicyEntry::new(&SLEEPS_INFO, |entry, _| {
    Ok(per_release(entry, Endless { releases: 0, loops: false }))
});
static SLEEPS_INFO: PolicyInfo =
    PolicyInfo { name: "sleeps", title: "sleeps in the run", ..PolicyInfo::POLICY };

struct Endless {
    releases: u32,
    loops: bool,
}

impl ReleasePolicy for Endless {
    fn first(&mut self, _: &MemberParams, release: &Release) -> JobParams {
        self.releases += 1;
        match (self.releases, self.loops) {
            (20, true) => loop {
                std::hint::spin_loop();
            },
            (20, false) => loop {
                std::thread::park();
            },
            _ => job_of(release),
        }
    }
}

fn job_of(release: &Release) -> JobParams {
    let (start, finish, budget) = (release.at, release.deadline, release.left);
    JobParams { start, finish, budget, priority: 0 }
}

fn main() -> std::process::ExitCode {
    punctual_cli::run_with(&[&LATE, &UNMADE, &ASKED, &SLOW, &LOOPS, &SLEEPS])
}
