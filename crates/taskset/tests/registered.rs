//! Policies that a program registers: sets name them as those of Punctual, and no two have a name.

use std::sync::Once;

use punctual_taskset::registry::{self, policies, register};
use punctual_taskset::{json_schema, PolicyInfo, TaskSet};

static SHORTEST: PolicyInfo =
    PolicyInfo { name: "shortest-first", aliases: "sjf", ..PolicyInfo::POLICY };

fn registered() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| register(&[&SHORTEST]).expect("the name is unused"));
}

fn set(policy: &str) -> String {
    format!(
        "cpu = 0\npolicy = \"{policy}\"\n[[task]]\nname = \"t\"\nperiod = \"10ms\"\n\
         budget = \"1ms\"\nwork = {{ spin = \"1ms\" }}\n"
    )
}

fn refused(name: &'static str, takes_order: bool) -> String {
    let info = Box::leak(Box::new(PolicyInfo { name, takes_order, ..PolicyInfo::POLICY }));
    register(&[info]).expect_err("it is refused").to_string()
}

#[test]
fn a_set_names_a_registered_policy() {
    registered();
    let parsed = TaskSet::parse(&set("shortest-first"), "set.toml").expect("it is a policy");
    assert_eq!(parsed.policy.name, "shortest-first");
    let again = TaskSet::parse(&parsed.to_toml(), "set.toml").expect("it is a set");
    assert_eq!(again.policy, parsed.policy);
}

#[test]
fn errors_and_the_schema_list_a_registered_policy() {
    registered();
    let error = |policy| TaskSet::parse(&set(policy), "set.toml").unwrap_err().to_string();
    assert!(error("no such policy at all").contains("\"shortest-first\""));
    assert!(error("shortest_frist").contains("did you mean \"shortest-first\"?"));
    assert!(error("sjf").contains("did you mean \"shortest-first\"?"));
    assert!(json_schema().to_string().contains("\"shortest-first\""));
}

#[test]
fn a_program_that_loads_no_plugins_refuses_their_files() {
    let by_file = set("edf").replace("\"edf\"", "{ plugin = \"./mine.so\" }");
    let error = TaskSet::parse(&by_file, "set.toml").unwrap_err().to_string();
    assert!(error.contains("this program loads no plugins"), "{error}");
}

#[test]
fn names_of_two_meanings_are_refused_and_nothing_is_registered() {
    registered();
    let before = policies().len();
    for name in registry::names(&registry::POLICIES) {
        assert!(refused(name, false).contains("Punctual has a policy of this name"), "{name}");
    }
    for name in registry::names(&registry::SERVERS) {
        assert!(refused(name, false).contains("a kind of server of this name"), "{name}");
    }
    assert!(refused("shortest-first", false).contains("two policies of this name"));
    static FIRST: PolicyInfo = PolicyInfo { name: "first", ..PolicyInfo::POLICY };
    assert!(register(&[&FIRST, &FIRST]).is_err());
    assert!(register(&[&FIRST, &registry::EDF]).is_err());
    assert_eq!(policies().len(), before);
}

#[test]
fn what_cannot_be_a_name_in_a_set_is_refused() {
    for name in ["", "My", "two words", "1st", "-x", "na\u{ef}ve", "x\n"] {
        assert!(refused(name, false).contains("not a name for a policy"), "{name:?}");
    }
    assert!(refused("a234567890123456789012345678901234", false).contains("not a name"));
    assert!(refused("ordered", true).contains("takes an order"));
}
