//! The examples that users run: their policies take them, and carry them out.

use std::path::Path;

use punctual_dispatcher::Dispatcher;
use punctual_policies::{Allocators, LocalDispatcher, ReleaseEvent};
use punctual_taskset::{DomainId, TaskSet};

#[test]
fn every_example_is_carried_out_by_its_policies() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let set = TaskSet::load(&path).unwrap_or_else(|e| panic!("{}: {e:?}", path.display()));
        for domain in set.domain_ids() {
            releases_come(&set, domain, &path);
        }
        names.extend(set.groups.iter().map(|g| g.policy.name.clone()));
        names.push(set.policy.name);
    }
    for policy in punctual_policies::POLICIES.iter().filter(|p| p.info.name != "dm") {
        assert!(
            names.iter().any(|n| n == policy.info.name),
            "no example of \"{}\"",
            policy.info.name
        );
    }
}

/// Checks that each task is released repeatedly within a second, while none executes.
fn releases_come(set: &TaskSet, domain: DomainId, path: &Path) {
    let what = path.display();
    let mut a = Allocators::new(set, domain).unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut d = Dispatcher::new(a.limits()).unwrap();
    a.begin(&mut LocalDispatcher::new(&mut d, 0), 0).unwrap();
    for (index, _) in set.tasks.iter().enumerate().filter(|(_, t)| t.domain == domain) {
        let task = d.add_task(0).unwrap();
        a.add(&mut LocalDispatcher::new(&mut d, 0), index, task)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    let mut released = vec![0; set.tasks.len()];
    let mut now = 0;
    while now < 1_000_000_000 {
        d.advance(now);
        while let Some(event) = d.next_event() {
            a.handle(&mut LocalDispatcher::new(&mut d, now), &event, &mut |report| match report {
                ReleaseEvent::Released { index, .. } => released[index as usize] += 1,
                ReleaseEvent::Lost { .. } | ReleaseEvent::EventsLost { .. } => {
                    panic!("{what}: {report:?}")
                }
                _ => {}
            });
        }
        d.advance(now);
        let selected = d.select(0, now);
        let until = d.timer(0, 1, now).max(now + 1);
        if let Some(job) = selected {
            d.charge_job(job, until - now, until).unwrap();
        }
        now = until;
    }
    for (index, spec) in set.tasks.iter().enumerate().filter(|(_, t)| t.domain == domain) {
        assert!(
            released[index] > 1,
            "{what}: task {} is released {} times",
            spec.name,
            released[index]
        );
    }
}
