//! Random time-driven sets: windows in group 0, and within them any policy, with servers that begin
//! where they like; or tasks of group 0 itself, with windows of their own and without.

use punctual_taskset::{
    Body, DomainId, GroupSpec, PolicySpec, ServerKind, ServerSpec, Spin, TaskSet, TaskSpec, Window,
};

use crate::random::{set, sleeper};
use crate::Random;

/// One to three groups on windows of one cycle; servers within some of them.
pub fn timed(random: &mut Random) -> TaskSet {
    let mut tree = set("td", Vec::new());
    let cycle = random.of(&[10, 12, 20, 24]);
    let count = random.within(1, 3) as usize;
    let mut windows: Vec<Vec<Window>> = vec![Vec::new(); count];
    let mut at = random.within(0, 3);
    while at < cycle {
        let length = random.within(2, 8).min(cycle - at);
        let owner = &mut windows[random.within(0, count as u64 - 1) as usize];
        owner.push(Window { start: at, length });
        at += length + random.within(0, 2);
    }
    for (n, windows) in windows.into_iter().enumerate().filter(|(_, w)| !w.is_empty()) {
        let place = tree.groups.len();
        let whole: u64 = windows.iter().map(|w| w.length).sum();
        let first = windows[0];
        let policy = random.of(&["rm", "edf", "edf", "fp"]);
        let server = ServerSpec::Windows { cycle, windows };
        tree.groups.push(group(format!("w{n}"), None, policy, server, random));
        if random.once_in(2) {
            for k in 0..random.within(1, 2) {
                let period = cycle * random.within(1, 2);
                let budget = random.within(1, (first.length / 2).max(1));
                let deadline = if random.once_in(2) {
                    first.length.max(budget)
                } else {
                    random.within(budget, period)
                };
                let kind = random.of(&[ServerKind::Deferrable, ServerKind::Polling]);
                let start = if random.once_in(3) { random.within(0, cycle) } else { first.start };
                let server = ServerSpec::Periodic { period, budget, deadline, offset: start, kind };
                let child = tree.groups.len();
                tree.groups.push(group(
                    format!("s{n}{k}"),
                    Some(place),
                    random.of(&["rm", "edf"]),
                    server,
                    random,
                ));
                let task = task(tree.tasks.len(), child, cycle, budget * cycle, period, random);
                tree.tasks.push(task);
            }
        }
        for _ in 0..random.within(0, 2) {
            let task = task(tree.tasks.len(), place, cycle, whole, cycle, random);
            tree.tasks.push(task);
        }
    }
    tree
}

/// Tasks with windows of one or two cycles, tasks for which a table is synthesised, and now and
/// then a group on windows beside them.
pub fn table(random: &mut Random) -> TaskSet {
    let mut set = set("td", Vec::new());
    let cycle = random.of(&[20, 24, 40]);
    let mut at = random.within(0, 5);
    while at < cycle && set.tasks.len() < 4 {
        let length = random.within(3, 8).min(cycle - at);
        if random.once_in(4) && set.groups.is_empty() {
            let server = ServerSpec::Windows { cycle, windows: vec![Window { start: at, length }] };
            let policy = random.of(&["rm", "td"]);
            set.groups.push(group("w".to_owned(), None, policy, server, random));
            let member = if policy == "td" {
                let period = cycle * random.within(1, 2);
                let budget = random.within(1, (length / 2).max(1));
                TaskSpec { group: Some(0), ..bare(set.tasks.len(), period, budget, random) }
            } else {
                task(set.tasks.len(), 0, cycle, length, cycle, random)
            };
            set.tasks.push(member);
        } else {
            let period = cycle * random.of(&[1, 1, 2]);
            let budget = random.within(1, length);
            let mut windowed = bare(set.tasks.len(), period, budget, random);
            // Its first window begins at the release or after it, in one piece or two.
            windowed.offset = at - random.within(0, at.min(4));
            let start = at - windowed.offset;
            let half = length / 2;
            windowed.windows = match random.once_in(2) {
                true => vec![Window { start, length }],
                false => vec![
                    Window { start, length: half },
                    Window { start: start + half, length: length - half },
                ],
            };
            windowed.deadline = random.within((start + length).min(period), period);
            set.tasks.push(windowed);
        }
        at += length + random.within(0, 6);
    }
    for _ in 0..random.within(0, 3) {
        let period = random.of(&[cycle, 2 * cycle, cycle / 2, 30]);
        let budget = random.within(1, (period / 6).max(1));
        let mut free = bare(set.tasks.len(), period, budget, random);
        free.offset = random.within(0, period);
        free.deadline = random.within(budget, period);
        set.tasks.push(free);
    }
    set
}

/// A task of group 0 that may use all of its budget.
fn bare(n: usize, period: u64, budget: u64, random: &mut Random) -> TaskSpec {
    let body = match random.once_in(2) {
        true => Body::Spin(Spin::For(budget)),
        false => Body::Spin(Spin::Uniform { min: 1, max: budget, seed: random.within(0, 1 << 40) }),
    };
    TaskSpec::new(format!("t{n}"), period, budget, body)
}

fn group(
    name: String,
    parent: Option<usize>,
    policy: &str,
    server: ServerSpec,
    random: &mut Random,
) -> GroupSpec {
    GroupSpec {
        name,
        parent,
        policy: PolicySpec::named(policy),
        server,
        priority: random.within(0, 4) as i64,
        budget_group: None,
        domain: DomainId(0),
        line: None,
    }
}

/// Some part of `whole` in every `per`.
fn task(n: usize, group: usize, cycle: u64, whole: u64, per: u64, random: &mut Random) -> TaskSpec {
    let period = if random.once_in(4) { random.within(5, 50) } else { cycle * random.within(1, 5) };
    let budget = random.within(1, (period * whole / per / 2).clamp(1, period));
    let body = if random.once_in(4) {
        sleeper(budget, 5, random)
    } else if random.once_in(2) {
        Body::Spin(Spin::For(budget))
    } else {
        Body::Spin(Spin::Uniform { min: 1, max: budget, seed: random.within(0, 1 << 40) })
    };
    TaskSpec {
        offset: random.within(0, period),
        priority: random.within(0, 4) as i64,
        group: Some(group),
        deadline: if random.once_in(2) { period } else { random.within(budget, period) },
        ..TaskSpec::new(format!("t{n}"), period, budget, body)
    }
}
