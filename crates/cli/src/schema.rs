//! docs/*.schema.json are what the types of the subcommands say.

use std::path::PathBuf;

use punctual_doctor::Document;
use punctual_measure::determinism::DeterminismResult;
use punctual_measure::latency::LatencyResult;
use punctual_measure::overhead::OverheadResult;
use punctual_profile::ProfileResult;
use punctual_report::why::WhyResult;
use punctual_report::{Envelope, RunResult, SCHEMA};
use punctual_session::results::Results;
use schemars::{schema_for, Schema};

use crate::check::CheckResult;
use crate::clean::CleanResult;
use crate::fifo::FifoResult;
use crate::lock::LockResult;
use crate::policy::PolicyResult;
use crate::reload::ReloadResult;
use crate::replay::ReplayResult;
use crate::report::ReportResult;
use crate::role::RoleResult;
use crate::serve::ServiceStatus;
use crate::trace::TraceResult;

/// The result of `punctual sim --json`.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum SimResult {
    /// With --replay.
    Replayed(Box<ReplayResult>),
    /// A set that was simulated.
    Simulated(Box<Results>),
}

fn is_published(command: &str, schema: Schema) {
    let file = format!("{}.schema.json", command.replace(' ', "-"));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    let mut schema = serde_json::to_value(schema).expect("a schema is JSON");
    schema["title"] = format!("punctual {command} --json").into();
    schema["properties"]["schema"]["const"] = SCHEMA.into();
    let want = format!("{schema:#}\n");
    if std::env::var_os("PUNCTUAL_WRITE_SCHEMA").is_some() {
        std::fs::write(&path, &want).expect("docs can be written");
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        published == want,
        "{command}: out of date: PUNCTUAL_WRITE_SCHEMA=1 cargo test -p punctual-cli schema"
    );
}

#[test]
fn the_published_schemas_are_those_of_the_types() {
    is_published("run", schema_for!(Envelope<RunResult>));
    is_published("sim", schema_for!(Envelope<SimResult>));
    is_published("check", schema_for!(Envelope<CheckResult>));
    is_published("trace", schema_for!(Envelope<TraceResult>));
    is_published("doctor", schema_for!(Envelope<Document>));
    is_published("measure determinism", schema_for!(Envelope<DeterminismResult>));
    is_published("trace why", schema_for!(Envelope<WhyResult>));
    is_published("measure latency", schema_for!(Envelope<LatencyResult>));
    is_published("measure overhead", schema_for!(Envelope<OverheadResult>));
    is_published("profile", schema_for!(Envelope<ProfileResult>));
    is_published("policy", schema_for!(Envelope<PolicyResult>));
    is_published("role", schema_for!(Envelope<RoleResult>));
    is_published("fifo", schema_for!(Envelope<FifoResult>));
    is_published("lock", schema_for!(Envelope<LockResult>));
    is_published("serve", schema_for!(Envelope<Option<ServiceStatus>>));
    is_published("clean", schema_for!(Envelope<CleanResult>));
    is_published("top", schema_for!(Envelope<Option<Results>>));
    is_published("reload", schema_for!(Envelope<ReloadResult>));
    is_published("report", schema_for!(Envelope<ReportResult>));
}
