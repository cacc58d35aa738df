//! What must hold of a task, wherever it came from: a file or the command line.
//!
//! Each check reports the value that is at fault, so that a file can point at it.

use crate::duration::{fmt_ns, quote, DURATION_LIMIT};
use crate::format::Name;
use crate::problems::Problems;
use crate::value::{ns, place, At, Positive, Span};
use punctual_diagnostic::is_printable;

/// The shortest period, ns. A dispatcher needs some 10 us per event, and 90 % of a CPU is the most
/// that is ever promised: below 100 us there is nothing left to promise.
pub const LEAST_PERIOD: u64 = 100_000;

/// The most levels of scheduling groups, group 0 among them, and of budget groups.
pub const MOST_LEVELS: usize = 16;

/// The most scheduling groups of a set, beside group 0.
pub const MOST_GROUPS: usize = 1023;

/// The most budget groups of a set.
pub const MOST_BUDGET_GROUPS: usize = 1024;

/// The longest name of a task or a group, in characters.
pub const LONGEST_NAME: usize = 64;

/// The largest CPU number there is: Linux is built for 8192 at most.
pub const LARGEST_CPU: u32 = 8191;

/// The largest process id that Linux gives (`PID_MAX_LIMIT`).
pub const LARGEST_PID: i32 = 4_194_304;

/// The values of a task that a check can find at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Period,
    Budget,
    Deadline,
}

/// What a check found: the value at fault, the cause and the help.
pub(crate) type Fault = (Field, String, String);

/// Checks the times of one task against each other. `None` is a time that was not given (the
/// deadline), or that is at fault already; nothing is said about it twice.
pub(crate) fn times(period: Option<u64>, budget: Option<u64>, deadline: Option<u64>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let period = period.filter(|&ns| {
        let fits = (LEAST_PERIOD..DURATION_LIMIT).contains(&ns);
        if ns < LEAST_PERIOD {
            faults.push((
                Field::Period,
                format!(
                    "period {} is less than {}, the shortest that can be served",
                    fmt_ns(ns),
                    fmt_ns(LEAST_PERIOD)
                ),
                format!(
                    "make it at least {}, and the budget longer in proportion",
                    fmt_ns(LEAST_PERIOD)
                ),
            ));
        } else if !fits {
            faults.push((
                Field::Period,
                "the period is too long".to_owned(),
                "make it less than 2^62 ns, some 146 years".to_owned(),
            ));
        }
        fits
    });
    let deadline = deadline.filter(|&ns| {
        let more = period.filter(|&period| ns > period);
        if ns == 0 {
            faults.push((
                Field::Deadline,
                "the deadline is 0".to_owned(),
                "make it at least the budget, or leave it out: it is then the period".to_owned(),
            ));
        } else if let Some(period) = more {
            faults.push((
                Field::Deadline,
                format!("deadline {} is more than its period {}", fmt_ns(ns), fmt_ns(period)),
                "make the deadline at most the period, or leave it out".to_owned(),
            ));
        }
        ns > 0 && more.is_none()
    });
    let Some(budget) = budget else {
        return faults;
    };
    let above = |limit: Option<u64>, name: &str| {
        let limit = limit.filter(|&limit| budget > limit)?;
        Some((
            Field::Budget,
            format!("budget {} is more than its {name} {}", fmt_ns(budget), fmt_ns(limit)),
            format!("make the budget at most the {name}"),
        ))
    };
    if budget == 0 {
        faults.push((
            Field::Budget,
            "the budget is 0".to_owned(),
            "give it the execution time that it needs in each period".to_owned(),
        ));
    } else {
        faults.extend(above(period, "period").or_else(|| above(deadline, "deadline")));
    }
    faults
}

/// Checks period, budget and deadline of the table that begins at `head`.
pub(crate) fn times_at(
    head: &Span,
    period: &Option<At<Positive>>,
    budget: &Option<At<Positive>>,
    deadline: &Option<At<Positive>>,
    problems: &mut Problems<'_>,
) {
    for (field, cause, help) in times(ns(period), ns(budget), ns(deadline)) {
        let at = match field {
            Field::Period => place(period),
            Field::Budget => place(budget),
            Field::Deadline => place(deadline),
        };
        problems.fault(at.unwrap_or(head), cause, help);
    }
}

/// Checks the name of `what` (task, group) where it is given; `None` when it is absent or at fault.
pub(crate) fn name_at(
    what: &str,
    name: &Option<At<Name>>,
    problems: &mut Problems<'_>,
) -> Option<At<String>> {
    let found = name.as_ref()?;
    match self::name(what, &found.0) {
        Ok(()) => Some(At { span: found.span.clone(), value: found.0.clone() }),
        Err(texts) => {
            problems.add(&found.span, || texts);
            None
        }
    }
}

/// Checks the name of `what` (task, group) by itself.
pub(crate) fn name(what: &str, name: &str) -> Result<(), (String, String)> {
    if name.trim().is_empty() {
        let cause = format!("the name of a {what} is empty");
        return Err((cause, "give it a name, such as \"servo\"".to_owned()));
    }
    let length = name.chars().count();
    if length > LONGEST_NAME {
        return Err((
            format!("name {} has {length} characters, more than {LONGEST_NAME}", quote(name)),
            format!("shorten it to {LONGEST_NAME} characters or fewer"),
        ));
    }
    if let Some(bad) = name.chars().find(|&c| !is_printable(c)) {
        return Err((
            format!("name {} has the unprintable character U+{:04X}", quote(name), u32::from(bad)),
            "use letters, digits and signs that can be shown".to_owned(),
        ));
    }
    Ok(())
}

/// Checks a command and its arguments.
pub(crate) fn command(words: &[String]) -> Result<(), (String, String)> {
    if words.is_empty() {
        return Err((
            "the command is empty".to_owned(),
            "give the program and its arguments, such as command = [\"xz\", \"-T4\", \"file\"]"
                .to_owned(),
        ));
    }
    if words[0].trim().is_empty() {
        return Err((
            "the command names no program: its first string is empty".to_owned(),
            "put the program first, then its arguments".to_owned(),
        ));
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err((
            "the command contains a NUL character, which no argument can".to_owned(),
            "remove \\u0000 from it".to_owned(),
        ));
    }
    Ok(())
}
