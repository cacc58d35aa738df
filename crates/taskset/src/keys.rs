//! The keys of a task-set file: those of this version, those of later ones, and what a stranger meant.

use crate::duration::quote;

/// A kind of table in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Top,
    Task,
    Group,
    BudgetGroup,
    Policy,
    Arrival,
    Window,
    Work,
    Step,
    Spin,
}

impl Scope {
    /// The keys of this version, as they are listed to the user.
    pub(crate) fn keys(self) -> &'static [&'static str] {
        match self {
            Scope::Top => &["cpu", "cpus", "domain", "policy", "duration", "task", "group", "budget_group"],
            Scope::Task => &[
                "name",
                "period",
                "budget",
                "deadline",
                "start",
                "priority",
                "arrival",
                "cpu",
                "overrun",
                "group",
                "budget_group",
                "windows",
                "mandatory",
                "promotion",
                "jitter",
                "blocking",
                "work",
                "command",
                "pid",
            ],
            Scope::Group => &[
                "name",
                "parent",
                "policy",
                "period",
                "budget",
                "deadline",
                "start",
                "server",
                "windows",
                "cycle",
                "priority",
                "budget_group",
                "cpu",
            ],
            Scope::BudgetGroup => &["name", "parent", "period", "budget", "cpu"],
            Scope::Policy => &["name"],
            Scope::Arrival => &["sporadic", "aperiodic", "seed"],
            Scope::Window => &["start", "length"],
            Scope::Work => &["spin", "steps", "uniform", "histogram", "recorded", "seed"],
            Scope::Step => &["spin", "sleep"],
            Scope::Spin => &["uniform", "histogram", "recorded", "seed"],
        }
    }

    /// Keys of later versions, each with what to use instead.
    fn later(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Scope::Task | Scope::Group => &[("weight", "remove it, and choose the budgets in the proportion you want")],
            _ => &[],
        }
    }

    /// How the table is called in a message.
    fn called(self) -> &'static str {
        match self {
            Scope::Top => "the top of a file",
            Scope::Task => "a task",
            Scope::Group => "a group",
            Scope::BudgetGroup => "a budget group",
            Scope::Policy => "a policy",
            Scope::Arrival => "arrival",
            Scope::Window => "a window",
            Scope::Work => "work",
            Scope::Step => "a step",
            Scope::Spin => "a spin",
        }
    }
}

/// Words of other systems (SCHED_DEADLINE, rt-app, textbooks) for our keys.
const ALIASES: [(Scope, &str, &str); 44] = [
    (Scope::Top, "tasks", "task"),
    (Scope::Top, "cores", "cpus"),
    (Scope::Top, "core", "cpu"),
    (Scope::Top, "scheduler", "policy"),
    (Scope::Top, "algorithm", "policy"),
    (Scope::Task, "runtime", "budget"),
    (Scope::Task, "wcet", "budget"),
    (Scope::Task, "capacity", "budget"),
    (Scope::Task, "dl-runtime", "budget"),
    (Scope::Task, "dl-period", "period"),
    (Scope::Task, "dl-deadline", "deadline"),
    (Scope::Task, "interval", "period"),
    (Scope::Task, "offset", "start"),
    (Scope::Task, "phase", "start"),
    (Scope::Task, "prio", "priority"),
    (Scope::Task, "core", "cpu"),
    (Scope::Task, "affinity", "cpu"),
    (Scope::Task, "cpus", "cpu"),
    (Scope::Task, "exec", "command"),
    (Scope::Task, "cmd", "command"),
    (Scope::Task, "program", "command"),
    (Scope::Task, "args", "command"),
    (Scope::Task, "spin", "work"),
    (Scope::Task, "parent", "group"),
    (Scope::Task, "table", "windows"),
    (Scope::Top, "groups", "group"),
    (Scope::Top, "budget_groups", "budget_group"),
    (Scope::Top, "budget-group", "budget_group"),
    (Scope::Task, "budget-group", "budget_group"),
    (Scope::Group, "budget-group", "budget_group"),
    (Scope::Group, "group", "parent"),
    (Scope::Group, "scheduler", "policy"),
    (Scope::Group, "algorithm", "policy"),
    (Scope::Group, "kind", "server"),
    (Scope::Group, "offset", "start"),
    (Scope::BudgetGroup, "group", "parent"),
    (Scope::BudgetGroup, "budget_group", "parent"),
    (Scope::Window, "offset", "start"),
    (Scope::Window, "duration", "length"),
    (Scope::Work, "sleep", "steps"),
    (Scope::Work, "file", "recorded"),
    (Scope::Arrival, "longest", "sporadic"),
    (Scope::Arrival, "mean", "aperiodic"),
    (Scope::Step, "run", "spin"),
];

/// The cause and help for a key that this version does not take; `None` for one that it does.
pub(crate) fn refuse(scope: Scope, key: &str) -> Option<(String, String)> {
    if scope.keys().contains(&key) {
        return None;
    }
    if let Some((_, instead)) = scope.later().iter().find(|(name, _)| *name == key) {
        let cause = format!("this version of Punctual does not have {} yet", quote(key));
        return Some((cause, (*instead).to_owned()));
    }
    let cause = format!("unknown key {}", quote(key));
    Some((cause, help(scope, key)))
}

fn help(scope: Scope, key: &str) -> String {
    let lower = key.to_lowercase();
    let alias = ALIASES.iter().find(|(within, alias, _)| *within == scope && *alias == lower);
    if let Some((_, _, meant)) = alias {
        return format!("did you mean {}?", quote(meant));
    }
    if scope == Scope::Top && Scope::Task.keys().contains(&key) {
        return "it belongs to a task: move it below a [[task]] line".to_owned();
    }
    if scope == Scope::Task && key == "task" {
        return "begin each task with [[task]], not inside another".to_owned();
    }
    if scope == Scope::Task && Scope::Top.keys().contains(&key) {
        return "it belongs to the whole set: move it above the first [[task]]".to_owned();
    }
    if let Some(near) = nearest(&lower, scope.keys()) {
        return format!("did you mean {}?", quote(near));
    }
    let keys = scope.keys().join(", ");
    format!("remove it; {} has {keys}", scope.called())
}

/// The known word nearest to a misspelt one, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // Long words are no misspelling of ours, and the distance is quadratic in the length.
    let length = word.chars().count();
    if length > 24 {
        return None;
    }
    known
        .iter()
        .map(|known| (strsim::osa_distance(word, known), *known))
        .filter(|(distance, known)| *distance <= (length.max(known.len()) / 3).max(1))
        .filter(|(distance, known)| *distance < known.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}
