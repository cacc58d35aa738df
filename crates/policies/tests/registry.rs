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
fn files_take_each_kind_of_server_in_its_tables_only() {
    let accepted = |server: &str, table: &str| {
        let key = |of: &str| match of == table {
            true => format!("server = \"{server}\"\n"),
            false => String::new(),
        };
        ["edf", "rm"].iter().any(|top| {
            let set = format!(
                "cpu = 0\npolicy = \"{top}\"\n[[group]]\nname = \"g\"\npolicy = \"rm\"\n\
                 period = \"10ms\"\nbudget = \"5ms\"\n{}[[task]]\nname = \"t\"\n\
                 period = \"10ms\"\nbudget = \"1ms\"\nwork = {{ spin = \"1ms\" }}\n{}",
                key("group"),
                key("task")
            );
            TaskSet::parse(&set, "set.toml").is_ok()
        })
    };
    for info in registry::SERVERS {
        for table in ["group", "task"] {
            let (name, listed) = (info.name, info.tables.contains(&table));
            assert_eq!(accepted(name, table), listed, "{name} in a [[{table}]]");
        }
    }
}
