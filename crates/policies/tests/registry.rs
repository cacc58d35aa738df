//! The registry of names and the tables of implementations have the same policies.

use punctual_policies::{by_name, PolicyEntry, PolicyInfo, POLICIES, SERVERS};
use punctual_taskset::{registry, TaskSet};

fn implemented_once(all: &[&PolicyInfo], table: &[&PolicyEntry]) {
    for info in all {
        let of_it = table.iter().filter(|entry| std::ptr::eq(entry.info, *info));
        assert_eq!(of_it.count(), 1, "{}", info.name);
        assert_eq!(all.iter().filter(|other| other.name == info.name).count(), 1, "{}", info.name);
    }
    assert_eq!(all.len(), table.len());
}

#[test]
fn each_name_has_exactly_one_implementation() {
    implemented_once(&registry::POLICIES, POLICIES);
    implemented_once(&registry::SERVERS, SERVERS);
    assert!(by_name("rm").is_some_and(|entry| std::ptr::eq(entry.info, &registry::RM)));
    assert!(by_name("deferrable").is_none());
}

#[test]
fn files_take_each_kind_of_server_by_its_name() {
    for info in registry::SERVERS {
        let set = format!(
            "cpu = 0\npolicy = \"edf\"\n[[group]]\nname = \"g\"\npolicy = \"rm\"\n\
             period = \"10ms\"\nbudget = \"5ms\"\nserver = \"{}\"\n[[task]]\nname = \"t\"\n\
             group = \"g\"\nperiod = \"10ms\"\nbudget = \"1ms\"\nwork = {{ spin = \"1ms\" }}\n",
            info.name
        );
        assert!(TaskSet::parse(&set, "set.toml").is_ok(), "{}", info.name);
    }
}
