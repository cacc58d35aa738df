//! The command line of Punctual with the policy `shortest`: the smaller budget first.

use std::process::ExitCode;

use punctual_cli::policies::{per_release, AdmissionTest, JobParams, MemberParams};
use punctual_cli::policies::{PolicyEntry, PolicyInfo, Release, ReleasePolicy};

static INFO: PolicyInfo = PolicyInfo {
    name: "shortest",
    title: "the smaller budget first",
    admission: AdmissionTest::ByPriority(&|release| -(release.budget as i64)),
    ..PolicyInfo::POLICY
};

static POLICY: PolicyEntry = PolicyEntry::new(&INFO, |entry, _| Ok(per_release(entry, Smallest)));

struct Smallest;

impl ReleasePolicy for Smallest {
    fn first(&mut self, task: &MemberParams, release: &Release) -> JobParams {
        JobParams {
            start: release.at,
            finish: release.deadline,
            budget: release.left,
            priority: -(task.budget as i64), // the larger priority first
        }
    }
}

fn main() -> ExitCode {
    punctual_cli::run_with(&[&POLICY])
}
