//! Policies that answer late, or never, on a host where tasks run: what the results must say.

use serde_json::Value;

/// The policy answered late and another one took its place.
pub fn were_late(document: &Value) {
    let change = &document["result"]["policy_changes"][0];
    assert_eq!([&change["from"], &change["to"]], ["slow", "edf"], "{document:#}");
    let cause = change["cause"].as_str().expect("it is known");
    let (took, rest) = cause.split_once(" for an answer: ").expect(cause);
    assert!(took.starts_with("took "), "{cause}");
    assert_eq!(rest, "the second one that took more than 10 ms");
    assert_eq!((&document["ok"], &document["exit_code"]), (&false.into(), &1.into()));
}

/// The run was ended because the policy did not return, and has results until then.
pub fn never_came(document: &Value) {
    let error = &document["error"];
    let cause = "the policy \"loops\" has not returned from a call for 2 s: the run was ended";
    assert_eq!(error["cause"], cause, "{document:#}");
    assert_eq!((&document["ok"], &document["exit_code"]), (&false.into(), &2.into()));
    let control = &document["result"]["tasks"][0];
    assert_eq!(control["name"], "control");
    assert!(control["periods"].as_u64() > Some(20), "{control:#}");
}
