//! The published JSON Schema is the generated one and agrees with the checks: it takes every good
//! file, and refuses every bad one except for what no schema can see.

use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

/// What the schema lets pass: values that are wrong only beside other values, names of groups, the
/// contents of other files, and durations that only arithmetic can judge.
const BEYOND_A_SCHEMA: [&str; 104] = [
    "adaptive-min-budget-above-budget",
    "adaptive-under-td",
    "arrival-list-out-of-order",
    "arrival-sporadic-below-period",
    "budget-group-budget-above-period",
    "budget-group-cycle",
    "budget-group-of-group-unknown",
    "budget-group-of-task-unknown",
    "budget-group-parent-is-a-group",
    "budget-group-parent-unknown",
    "budget-group-too-deep",
    "cpus-budget-group-and-group-differ",
    "cpus-budget-group-and-task-differ",
    "cpus-group-and-parent-differ",
    "cpus-group-and-task-differ",
    "cpus-group-names-another",
    "cpus-task-names-another",
    "encoding-crlf-and-bad-value",
    "group-below-wfq",
    "group-budget-above-deadline",
    "group-budget-above-period",
    "group-cycle-long",
    "group-cycle-of-three-below-others",
    "group-cycle-of-two",
    "group-deadline-above-period",
    "group-name-twice",
    "group-of-fp-task-without-priority",
    "group-of-task-misspelt",
    "group-of-task-unknown",
    "group-parent-itself",
    "group-parent-unknown",
    "group-period-below-100-us",
    "group-server-sporadic-under-edf",
    "group-server-sporadic-with-deadline",
    "group-too-deep",
    "group-windows-leave-the-cycle",
    "group-windows-overlap",
    "name-thrice",
    "name-twice",
    "name-twice-unicode",
    "objective-closed-late",
    "objective-closes-nothing",
    "objective-comma",
    "objective-comparison",
    "objective-decimals",
    "objective-divides-by-literal-zero",
    "objective-divides-by-zero",
    "objective-divides-by-zero-at-release",
    "objective-empty",
    "objective-ends-early",
    "objective-escaped",
    "objective-function-misspelt",
    "objective-function-one-argument",
    "objective-function-three-arguments",
    "objective-function-unknown",
    "objective-function-without-arguments",
    "objective-in-group",
    "objective-literals-overflow",
    "objective-name-misspelt",
    "objective-name-unknown",
    "objective-nested-deep",
    "objective-number-too-large",
    "objective-operator-missing",
    "objective-overflow",
    "objective-overflow-within-the-duration",
    "objective-server-divides-by-zero",
    "objective-server-of-finish",
    "objective-signs-deep",
    "objective-task-of-group",
    "objective-unclosed",
    "objective-unit-unknown",
    "objective-value-missing",
    "pid-twice",
    "policy-quantum-long",
    "policy-quantum-short",
    "policy-reclaim-in-group",
    "range-budget-1-ns-above-period",
    "range-budget-above-deadline",
    "range-budget-above-period",
    "range-deadline-above-period",
    "range-jitter-is-period",
    "range-mandatory-above-budget",
    "range-period-below-100-us",
    "range-period-huge-number",
    "range-period-too-long",
    "range-promotion-at-deadline",
    "range-promotion-beyond-deadline",
    "range-uniform-reversed",
    "task-server-of-edf",
    "task-server-sporadic-under-edf",
    "task-server-sporadic-under-release-order",
    "task-server-with-deadline",
    "unit-finer-than-1-ns-in-min",
    "weight-and-sporadic-arrival",
    "window-leaves-the-period",
    "window-overlaps",
    "work-histogram-twice",
    "work-recorded-absent",
    "work-recorded-bad-line",
    "work-recorded-empty",
    "work-recorded-folder",
    "work-recorded-not-text",
    "work-recorded-zero",
    "work-step-after-forever",
];

fn path(within: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(within)
}

fn schema() -> Validator {
    let text = fs::read_to_string(path("../../docs/task-set.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    jsonschema::draft7::meta::validate(&schema).unwrap();
    jsonschema::draft7::new(&schema).unwrap()
}

/// Name and content of each file in a folder that is TOML at all.
fn instances(folder: &str) -> Vec<(String, Value)> {
    let mut instances = Vec::new();
    for entry in fs::read_dir(path(folder)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ext| ext != "toml") {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let text = text.trim_start_matches('\u{feff}');
        if let Ok(table) = DeTable::parse(text) {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            instances.push((name, object(table.get_ref())));
        }
    }
    instances.sort_by(|a, b| a.0.cmp(&b.0));
    instances
}

fn object(table: &DeTable<'_>) -> Value {
    let members =
        table.iter().map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref())));
    Value::Object(members.collect::<Map<_, _>>())
}

fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Value::from(number),
                // JSON has no such integer here; the nearest that is as far out of range.
                Err(_) => Value::from(1e300),
            }
        }
        // 1.0 is an integer to JSON Schema and none to TOML; the program refuses it, so keep it
        // apart.
        DeValue::Float(number) => Value::from(number.as_str().parse::<f64>().unwrap() + 0.5),
        DeValue::Boolean(truth) => Value::from(*truth),
        DeValue::Datetime(time) => {
            Value::Object(Map::from_iter([("datetime".to_owned(), Value::from(time.to_string()))]))
        }
        DeValue::Array(list) => list.iter().map(|value| json(value.get_ref())).collect(),
        DeValue::Table(table) => object(table),
    }
}

#[test]
fn the_published_schema_is_the_types_own() {
    let generated = serde_json::to_string_pretty(&punctual_taskset::json_schema()).unwrap() + "\n";
    let path = path("../../docs/task-set.schema.json");
    if std::env::var_os("PUNCTUAL_WRITE_SCHEMA").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let published = fs::read_to_string(path).unwrap_or_default();
    assert!(
        published == generated,
        "out of date: PUNCTUAL_WRITE_SCHEMA=1 cargo test -p punctual-taskset schema"
    );
}

#[test]
fn the_schema_takes_every_good_file_and_example() {
    let schema = schema();
    for folder in ["tests/good", "../../examples"] {
        for (name, instance) in instances(folder) {
            let said: Vec<String> =
                schema.iter_errors(&instance).map(|error| error.to_string()).collect();
            assert!(said.is_empty(), "{name}: {}", said.join("; "));
        }
    }
}

#[test]
fn the_schema_refuses_every_bad_file_that_a_schema_can() {
    let schema = schema();
    let instances = instances("tests/bad");
    assert!(instances.len() >= 60);
    let taken: Vec<String> = instances
        .into_iter()
        .filter(|(_, instance)| schema.is_valid(instance))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(taken, BEYOND_A_SCHEMA);
}
