//! A program whose policies have faults.

use punctual_cli::policies::{per_release, Context, JobParams, MemberParams, PolicyEntry};
use punctual_cli::policies::{PolicyEvent, PolicyInfo, Release, ReleasePolicy};
use punctual_cli::policies::{ReservationParams, SchedulingPolicy};

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

fn main() -> std::process::ExitCode {
    punctual_cli::run_with(&[&LATE, &UNMADE, &ASKED])
}
