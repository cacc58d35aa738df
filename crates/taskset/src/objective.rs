//! The expression by which the policy `objective` orders a group (RED-Linux IV-B, "an objective
//! function to integrate some of these attributes"), as a list of postfix operations.

mod parser;

use serde::{Serialize, Serializer};

use crate::duration::{fmt_ns, quote};
use crate::{GroupSpec, ServerSpec, TaskSpec};
use parser::{Parser, MOST_NESTED};
use punctual_diagnostic::Diagnostic;

/// The longest text of an expression, in characters.
pub const LONGEST_OBJECTIVE: usize = 1_000;

/// The most values that wait for an operator: each level of nesting has one for each of the two
/// precedences and one for the first argument of a function.
const MOST_VALUES: usize = 3 * (MOST_NESTED + 1);

/// Without a `duration`, releases are checked up to ten years after the start of the run, ns.
const LONGEST_RUN: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// So many first releases are checked, beside the last one.
const FIRST_RELEASES: u64 = 64;

/// An integer expression over the attributes of a release; the smaller its value, the more
/// important the release. docs/policies.md has its grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objective {
    text: Box<str>,
    operations: Box<[Operation]>,
}

/// The attributes of a release of a task or of a server. Times are ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseAttributes {
    /// When it is due, from the start of the run.
    pub release: u64,
    /// Time between releases.
    pub period: u64,
    /// Relative deadline: the attribute `finish` is `release + deadline`.
    pub deadline: u64,
    /// Execution time per release, as the set has it.
    pub budget: u64,
    /// As the set has it.
    pub priority: i64,
    /// The first release, from the start of the run.
    pub offset: u64,
}

/// Why an expression has no value for a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveError {
    /// The right side of `/` or `%` is 0.
    #[error("divides by zero")]
    DivisionByZero,
    /// Its value is not in -(2^63 - 1) to 2^63 - 1, or one on the way does not fit into 128 bits.
    #[error("does not fit into 64 bits")]
    Overflow,
}

/// A step of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Literal(i128),
    Release,
    Finish,
    Period,
    Deadline,
    Budget,
    Priority,
    Offset,
    Negate,
    Abs,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Min,
    Max,
}

impl Objective {
    /// Reads an expression of at most [`LONGEST_OBJECTIVE`] characters.
    ///
    /// # Errors
    /// A syntax error; a division by the literal 0; literals that together do not fit into 128
    /// bits.
    ///
    /// ```
    /// # use punctual_taskset::Objective;
    /// assert!(Objective::parse("finish - min(budget, 2ms)").is_ok());
    /// assert!(Objective::parse("finish -").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Objective, Diagnostic> {
        Objective::compile(text).map_err(|fault| {
            Diagnostic::usage(format!("order {}: {}", quote(text), fault.cause), fault.help)
        })
    }

    /// As [`Objective::parse`], with the place of the fault in the text.
    pub(crate) fn compile(text: &str) -> Result<Objective, parser::Fault> {
        let operations = Parser::new(text).whole()?.into_boxed_slice();
        Ok(Objective { text: text.into(), operations })
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it has `release` or `finish`; without them, its value is the same at each release.
    #[must_use]
    pub fn uses_release(&self) -> bool {
        self.operations.iter().any(|op| matches!(op, Operation::Release | Operation::Finish))
    }

    /// Whether it is `finish` alone: earliest deadline first.
    #[must_use]
    pub fn is_finish(&self) -> bool {
        *self.operations == [Operation::Finish]
    }

    /// Its value for a release, -(2^63 - 1) to 2^63 - 1. Allocates nothing; takes time in
    /// proportion to its length.
    ///
    /// # Errors
    /// It has none.
    pub fn value(&self, of: &ReleaseAttributes) -> Result<i64, ObjectiveError> {
        let (mut values, mut count) = ([0i128; MOST_VALUES], 0);
        for operation in &self.operations {
            if let Some(value) = operation.operand(of) {
                values[count] = value;
                count += 1;
                continue;
            }
            let right = values[count - 1];
            if !operation.is_unary() {
                count -= 1;
            }
            values[count - 1] = operation.apply(values[count - 1], right)?;
        }
        let value = i64::try_from(values[0]).ok().filter(|&value| value != i64::MIN);
        value.ok_or(ObjectiveError::Overflow)
    }

    /// The priority of a job, larger first: the negated value, or `i64::MIN`, which comes last,
    /// where there is none.
    #[must_use]
    pub fn priority(&self, of: &ReleaseAttributes) -> i64 {
        self.value(of).map_or(i64::MIN, |value| -value)
    }

    /// Checks that there is a value at each of `releases`; cause and help where there is none.
    pub(crate) fn check(
        &self,
        of: &ReleaseAttributes,
        releases: impl IntoIterator<Item = u64>,
    ) -> Result<(), (String, String)> {
        let most = if self.uses_release() { usize::MAX } else { 1 };
        for release in releases.into_iter().take(most) {
            let Err(error) = self.value(&ReleaseAttributes { release, ..*of }) else { continue };
            let at = match most {
                1 => String::new(),
                _ => format!(" at its release at {}", fmt_ns(release)),
            };
            let cause = format!("the order {} {error}{at}", quote(&self.text));
            let help = match error {
                ObjectiveError::DivisionByZero => {
                    "change its period, deadline, budget, priority \
                                                   or offset, or the order"
                }
                ObjectiveError::Overflow => "divide the order by a number, or use smaller factors",
            };
            return Err((cause, help.to_owned()));
        }
        Ok(())
    }
}

/// The first releases of a member, and the last one within `duration` ns.
pub(crate) fn checked_releases(
    offset: u64,
    period: u64,
    duration: Option<u64>,
) -> impl Iterator<Item = u64> {
    let last = duration.unwrap_or(LONGEST_RUN).saturating_sub(offset) / period.max(1);
    let all = (0..FIRST_RELEASES.min(last + 1)).chain([last]);
    all.map(move |number| offset.saturating_add(number.saturating_mul(period)))
}

impl ReleaseAttributes {
    /// Of a task's release.
    #[must_use]
    pub fn of_task(task: &TaskSpec, release: u64) -> ReleaseAttributes {
        let TaskSpec { period, deadline, budget, priority, offset, .. } = *task;
        ReleaseAttributes { release, period, deadline, budget, priority, offset }
    }

    /// Of the server of a group, or of each of its windows, when it is first released.
    pub(crate) fn of_servers(group: &GroupSpec) -> Vec<ReleaseAttributes> {
        let of = |offset, period, deadline, budget| {
            let priority = group.priority;
            ReleaseAttributes { release: offset, period, deadline, budget, priority, offset }
        };
        match &group.server {
            ServerSpec::Periodic { period, budget, deadline, offset, .. } => {
                vec![of(*offset, *period, *deadline, *budget)]
            }
            ServerSpec::Windows { cycle, windows } => {
                windows.iter().map(|w| of(w.start, *cycle, w.length, w.length)).collect()
            }
        }
    }
}

impl Operation {
    /// The value of an operand; `None` for an operator.
    fn operand(self, of: &ReleaseAttributes) -> Option<i128> {
        Some(match self {
            Operation::Literal(value) => value,
            Operation::Release => of.release.into(),
            Operation::Finish => i128::from(of.release) + i128::from(of.deadline),
            Operation::Period => of.period.into(),
            Operation::Deadline => of.deadline.into(),
            Operation::Budget => of.budget.into(),
            Operation::Priority => of.priority.into(),
            Operation::Offset => of.offset.into(),
            _ => return None,
        })
    }

    fn is_unary(self) -> bool {
        matches!(self, Operation::Negate | Operation::Abs)
    }

    fn divides(self) -> bool {
        matches!(self, Operation::Divide | Operation::Remainder)
    }

    /// An operator's value; the unary ones use `left` only. Quotients are rounded towards 0.
    fn apply(self, left: i128, right: i128) -> Result<i128, ObjectiveError> {
        if self.divides() && right == 0 {
            return Err(ObjectiveError::DivisionByZero);
        }
        let value = match self {
            Operation::Negate => left.checked_neg(),
            Operation::Abs => left.checked_abs(),
            Operation::Add => left.checked_add(right),
            Operation::Subtract => left.checked_sub(right),
            Operation::Multiply => left.checked_mul(right),
            Operation::Divide => left.checked_div(right),
            Operation::Remainder => left.checked_rem(right),
            Operation::Min => Some(left.min(right)),
            Operation::Max => Some(left.max(right)),
            _ => None,
        };
        value.ok_or(ObjectiveError::Overflow)
    }
}

impl Serialize for Objective {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}
