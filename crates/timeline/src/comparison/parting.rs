//! Where two schedules part: at the same time, another task executes.
//!
//! Times are compared and not the order of switches, since the order of two near events decides
//! whether there is a short execution between them.

use std::collections::BTreeMap;

use super::Side;

/// A time at which two schedules are different for longer than the tolerance. Times are ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parting {
    /// When it begins, from the first release that both traces have.
    pub at: u64,
    /// When that is on the clock of each recording.
    pub clocks: [u64; 2],
    /// The task that each executes then; `None`: no task.
    pub tasks: [Option<String>; 2],
    /// How long they stay apart.
    pub length: u64,
}

/// All partings.
#[derive(Debug, Default)]
pub(super) struct Partings {
    pub first: Option<Parting>,
    /// Their length in all, ns.
    pub apart: u64,
}

/// The task that executes from a time on, ns, by a number of both sides.
type Change = (u64, Option<u32>);

/// The changes of one side in `from..to`, ns of its own clock, with times from `from` on.
fn changes(side: &Side, numbers: &[u32], (from, to): (u64, u64)) -> Vec<Change> {
    let mut executions = side.executions.clone();
    executions.sort_by_key(|&(from, ..)| from);
    let mut changes: Vec<Change> = vec![(0, None)];
    let mut until = from;
    for (begins, ends, task) in executions {
        let (begins, ends) = (begins.max(until), ends.min(to));
        if begins >= ends {
            continue;
        }
        let number = numbers.get(task as usize).copied();
        if begins > until {
            changes.push((until - from, None));
        }
        changes.push((begins - from, number));
        until = ends;
    }
    changes.push((until - from, None));
    changes
}

/// Compares what executes in `span`, ns on the first one's clock.
pub(super) fn sweep(a: &Side, b: &Side, ahead: i64, span: (u64, u64), tolerance: u64) -> Partings {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    for name in a.names.iter().chain(&b.names) {
        let next = numbers.len() as u32;
        numbers.entry(name).or_insert(next);
    }
    let of = |side: &Side| -> Vec<u32> {
        side.names.iter().map(|name| numbers[name.as_str()]).collect()
    };
    let named = |number: Option<u32>| {
        let number = number?;
        numbers.iter().find(|(_, &n)| n == number).map(|(name, _)| (*name).to_owned())
    };
    let on_b = |at: u64| at.wrapping_add(ahead as u64);
    let all = [changes(a, &of(a), span), changes(b, &of(b), (on_b(span.0), on_b(span.1)))];
    let mut merged: Vec<(u64, usize, Option<u32>)> = Vec::new();
    for (side, changes) in all.iter().enumerate() {
        merged.extend(changes.iter().map(|&(at, task)| (at, side, task)));
    }
    merged.sort_by_key(|&(at, ..)| at);
    merged.push((span.1 - span.0, 2, None));
    let (mut now, mut since) = ([None, None], None::<(u64, [Option<u32>; 2])>);
    let mut found = Partings::default();
    let mut changes = merged.into_iter().peekable();
    while let Some((at, side, task)) = changes.next() {
        if let Some(now) = now.get_mut(side) {
            *now = task;
        }
        // All changes of one instant are one change.
        if changes.peek().is_some_and(|next| next.0 == at) {
            continue;
        }
        let over = changes.peek().is_none();
        match since {
            None if now[0] != now[1] => since = Some((at, now)),
            Some((begun, tasks)) if now[0] == now[1] || over => {
                since = None;
                let length = at - begun;
                if length > tolerance {
                    found.apart += length;
                    found.first.get_or_insert_with(|| Parting {
                        at: begun,
                        clocks: [span.0 + begun, on_b(span.0) + begun],
                        tasks: tasks.map(&named),
                        length,
                    });
                }
            }
            _ => {}
        }
    }
    found
}
