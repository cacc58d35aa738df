//! One sentence for a cause, one for what helps, and a phrase for each activity.

use punctual_explain::{Activity, CauseKind, Explanation, Reason};
use punctual_taskset::TaskSet;

use crate::units::time;

/// Tasks that are named in a sentence.
const MOST_NAMED: usize = 4;

/// The main cause in one sentence.
pub fn cause(set: &TaskSet, e: &Explanation) -> String {
    let c = &e.cause;
    let (took, tasks) = (time(c.ns), tasks(set, &c.tasks));
    let group =
        || name_of(c.group.and_then(|g| set.groups.get(g as usize)).map(|g| g.name.as_str()));
    let node = || {
        name_of(c.group.and_then(|g| set.budget_groups.get(g as usize)).map(|g| g.name.as_str()))
    };
    let demand = c.demand_ns.map_or_else(|| "more".to_owned(), time);
    let given = time(c.given_ns);
    match c.kind {
        CauseKind::HigherPriority => format!("{tasks} of higher priority executed instead."),
        CauseKind::EarlierDeadline => format!("{tasks} with an earlier deadline executed instead."),
        CauseKind::EqualPriority => format!("{tasks} of equal priority came first."),
        CauseKind::PolicyOrder => format!("{tasks} came first in the policy's table or bands."),
        CauseKind::SeveralTasks => {
            format!("{tasks} came first; no single one of them took enough.")
        }
        CauseKind::LowerPriority => {
            format!("{tasks} of lower priority executed although it was ready.")
        }
        CauseKind::OtherOverrun => {
            format!("{tasks} came first and overran, or was still at earlier work.")
        }
        CauseKind::Overload => match tasks.is_empty() {
            true => "the tasks are promised more than a CPU: it was late before.".to_owned(),
            false => format!("the tasks are promised more than a CPU: {tasks} came first."),
        },
        CauseKind::DemandBeyondBudget => {
            format!("its job needed {demand}, more than its budget of {given}.")
        }
        CauseKind::BudgetExhausted => {
            format!("its budget of {given} was used up before it was done.")
        }
        CauseKind::BudgetSettled => {
            format!(
                "its budget was {given} only, which settled what it executed too much before; it \
                 needed {demand}."
            )
        }
        CauseKind::BudgetAdapted => {
            format!(
                "its adaptive budget was {given}, as its earlier use predicted; it needed {demand}."
            )
        }
        CauseKind::BudgetCut => {
            format!(
                "it slept or was blocked for {took}, and the wake-up rule cut what was left of its \
                 budget."
            )
        }
        CauseKind::ServerExhausted => {
            format!("the server of group {} had no budget for {took}.", group())
        }
        CauseKind::ServerNotReplenished => {
            format!(
                "the server of group {} was not replenished, or outside its windows, for {took}.",
                group()
            )
        }
        CauseKind::SegmentExhausted => {
            format!("the budget of budget group {} was used up for {took}.", node())
        }
        CauseKind::Suspended => format!("it slept or was blocked for {took}."),
        CauseKind::OutsideWindow => format!("none of its windows was open for {took}."),
        CauseKind::ReleasedLate => {
            format!("it was released {took} late: the dispatcher was woken late.")
        }
        CauseKind::DispatcherStalled => {
            format!("the dispatcher did not execute in time: {took} were lost.")
        }
        CauseKind::CarriedOver => {
            format!("it was late before: {took} went to work of earlier releases.")
        }
        CauseKind::Unaccounted => {
            format!("nothing in the trace used {took}: interrupts, steal, other classes.")
        }
        CauseKind::RecordsLost => {
            format!("not known: records of {took} of its window are missing.")
        }
        CauseKind::JobEnded => {
            format!("its job had ended {took} before its deadline, without being done.")
        }
    }
}

/// What helps, in one sentence.
pub fn help(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::HigherPriority | CauseKind::EqualPriority => {
            "give it a higher priority, or try policy edf; `punctual check` has the worst response \
             times"
        }
        CauseKind::EarlierDeadline | CauseKind::SeveralTasks => {
            "make its deadline longer or the budgets smaller; `punctual check` names the smallest \
             change"
        }
        CauseKind::PolicyOrder => "move its windows, or change its mandatory part or promotion",
        CauseKind::LowerPriority => "look at the dispatcher's latency with `punctual doctor`",
        CauseKind::OtherOverrun => {
            "make the budget of the task that overran smaller; it limits what others lose"
        }
        CauseKind::Overload => {
            "make budgets smaller or periods longer; `punctual check` names the smallest change"
        }
        CauseKind::DemandBeyondBudget | CauseKind::BudgetExhausted => {
            "make its budget larger, or its work shorter"
        }
        CauseKind::BudgetAdapted => {
            "make its min_budget larger, or remove its server: a release then has the whole budget"
        }
        CauseKind::BudgetSettled => {
            "make its budget larger; short budgets are exceeded by the host's latency"
        }
        CauseKind::BudgetCut | CauseKind::Suspended => {
            "find out what it waited for (a sleep, a lock, a file), and make its deadline longer \
             by that"
        }
        CauseKind::ServerExhausted => {
            "make the server's budget larger, or move a member out of the group"
        }
        CauseKind::ServerNotReplenished => "give server and task the same offset, or other windows",
        CauseKind::SegmentExhausted => {
            "make the budget group's budget larger, or move a member out of it"
        }
        CauseKind::OutsideWindow => "move its windows nearer to its release, or make them longer",
        CauseKind::ReleasedLate => {
            "run `punctual doctor`; `run --no-idle` keeps the CPU from sleeping"
        }
        CauseKind::DispatcherStalled => {
            "keep the process from being stopped; `punctual doctor` names other obstacles"
        }
        CauseKind::CarriedOver => "look at its first miss before this one",
        CauseKind::Unaccounted => {
            "run `punctual doctor`: interrupts, steal and the kernel's throttling show there"
        }
        CauseKind::RecordsLost => "record again with a larger --trace-records",
        CauseKind::JobEnded => "look at how the task ended",
    }
}

/// What a share of the window was, as a phrase.
pub fn activity(set: &TaskSet, what: Activity) -> String {
    let group = |g: u32| name_of(set.groups.get(g as usize).map(|g| g.name.as_str()));
    match what {
        Activity::Executed => "executed".to_owned(),
        Activity::CarriedOver => "executed work of earlier releases".to_owned(),
        Activity::Task { task, reason, group: of, overrun } => {
            let name = set.tasks.get(task as usize).map_or("?", |t| t.name.as_str());
            let via = of.map_or_else(String::new, |g| format!(" by group {}", group(g)));
            let overran = if overrun { ", overran" } else { "" };
            format!("{name} ({}{via}{overran})", reason_of(reason))
        }
        Activity::Suspended => "slept or was blocked".to_owned(),
        Activity::BudgetExhausted => "its budget was used up".to_owned(),
        Activity::JobEnded => "its job had ended".to_owned(),
        Activity::ServerExhausted(g) => format!("no budget in group {}", group(g)),
        Activity::ServerNotReplenished(g) => format!("group {} not replenished", group(g)),
        Activity::SegmentExhausted(n) => {
            let node = set.budget_groups.get(n as usize).map(|n| n.name.as_str());
            format!("no budget in budget group {}", name_of(node))
        }
        Activity::OutsideWindow => "outside its windows".to_owned(),
        Activity::ReleasedLate => "released late".to_owned(),
        Activity::NeverReleased => "never released".to_owned(),
        Activity::Unaccounted => "not accounted for".to_owned(),
        Activity::RecordsLost => "records missing".to_owned(),
    }
}

fn reason_of(reason: Reason) -> &'static str {
    match reason {
        Reason::HigherPriority => "higher priority",
        Reason::ShorterPeriod => "shorter period",
        Reason::ShorterDeadline => "shorter deadline",
        Reason::EarlierDeadline => "earlier deadline",
        Reason::ArrivedFirst => "equal, came first",
        Reason::Table => "table",
        Reason::Band => "band",
        Reason::Objective => "objective",
        Reason::Program => "order of the program",
        Reason::FairShare => "fair share",
        Reason::Later => "lower in order",
    }
}

/// `high 4 ms, other 1 ms and 2 more`.
fn tasks(set: &TaskSet, tasks: &[(u32, u64)]) -> String {
    let named = tasks.iter().take(MOST_NAMED).map(|&(task, ns)| {
        let name = set.tasks.get(task as usize).map_or("?", |t| t.name.as_str());
        format!("{name} ({})", time(ns))
    });
    let list = named.collect::<Vec<_>>().join(", ");
    match tasks.len().saturating_sub(MOST_NAMED) {
        0 => list,
        n => format!("{list} and {n} more"),
    }
}

fn name_of(name: Option<&str>) -> &str {
    name.unwrap_or("?")
}
