//! docs/results.schema.json is what the types say, and real output conforms to it.

use super::*;
use punctual_taskset::{CostBasis, Costs};
use std::path::PathBuf;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/results.schema.json")
}

fn generated() -> serde_json::Value {
    let mut schema = serde_json::to_value(schemars::schema_for!(Results)).unwrap();
    schema["title"] = "Results of punctual run --json, version 1".into();
    schema["properties"]["version"]["const"] = VERSION.into();
    schema
}

#[test]
fn the_published_schema_is_the_types_own() {
    let want = serde_json::to_string_pretty(&generated()).unwrap() + "\n";
    if std::env::var_os("PUNCTUAL_WRITE_SCHEMA").is_some() {
        std::fs::write(path(), &want).unwrap();
    }
    let published = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(published == want, "out of date: PUNCTUAL_WRITE_SCHEMA=1 cargo test -p punctual-report schema");
}

#[test]
fn real_output_conforms_and_nonsense_does_not() {
    let validator = jsonschema::validator_for(&generated()).unwrap();
    let mut full = rich(Host::User, 0);
    full.dispatcher = Some(DispatcherStats {
        events: 1,
        handler_mean_ns: 2,
        handler_max_ns: 3,
        wakeup_latency_p50_ns: 4,
        wakeup_latency_p99_ns: 5,
        wakeup_latency_max_ns: 6,
        freezer_waits: 1,
        freezer_wait_max_ns: 60_000,
        cpu_ns: 7,
    });
    full.costs = HostCosts::of(&Costs { basis: CostBasis::Counted, ..Costs::NONE });
    full.kernel_dispatcher = Some(KernelDispatcherStats {
        events: 1,
        releases: 2,
        release_latency_p50_ns: 3,
        release_latency_p99_ns: 4,
        release_latency_max_ns: 5,
    });
    full.load = Some(LoadResult { share_ppm: 1 });
    let refused = collector().not_possible("no", &["do this".to_owned()]);
    for results in [full, collector().snapshot(), refused] {
        let text = results.to_json();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results, "and it reads back");
        let mut wrong = value.clone();
        wrong["version"] = 2.into();
        assert!(!validator.is_valid(&wrong));
        wrong = value;
        wrong["tasks"] = serde_json::json!([{ "name": "half" }]);
        assert!(!validator.is_valid(&wrong));
    }
}
