//! When a task is released: the key `arrival`.

use crate::checks::LEAST_PERIOD;
use crate::duration::fmt_ns;
use crate::format::{self, Random, Task, ARRIVALS};
use crate::problems::Problems;
use crate::value::{ns, place, Span};
use crate::Arrival;

/// Checks the arrival of a task; periodic when it is at fault.
pub(crate) fn check(task: &Task, problems: &mut Problems<'_>) -> Arrival {
    let Some(found) = &task.arrival else { return Arrival::Periodic };
    match &found.value {
        format::Arrival::Word(_) => Arrival::Periodic,
        format::Arrival::Random(table) => {
            random(table, &found.span, ns(&task.period), problems).unwrap_or(Arrival::Periodic)
        }
        format::Arrival::List(times) => {
            if times.is_empty() {
                let help = "give at least one time, such as [\"0ms\"]";
                problems.fault(&found.span, "the list of arrivals is empty", help);
            }
            if let Some(offset) = place(&task.offset) {
                let cause = "offset is given, and a list of arrivals as well";
                let help = "remove offset: the times of the list count from the start of the run";
                problems.fault_of_key(offset, cause, help);
            }
            if let Some([last, at]) = times.windows(2).find(|pair| pair[1].0 < pair[0].0) {
                let cause = format!(
                    "the arrival at {} stands after the one at {}",
                    fmt_ns(at.0),
                    fmt_ns(last.0)
                );
                problems.fault(&at.span, cause, "put the times in order");
            }
            Arrival::List(times.iter().map(|time| time.0).collect())
        }
    }
}

/// `{ sporadic = "30ms", seed = 1 }` and `{ aperiodic = "30ms", seed = 1 }`
fn random(
    table: &Random,
    at: &Span,
    period: Option<u64>,
    problems: &mut Problems<'_>,
) -> Option<Arrival> {
    let seed = table.seed.as_ref().map_or(0, |seed| seed.unsigned());
    match (&table.sporadic, &table.aperiodic) {
        (Some(sporadic), Some(aperiodic)) => {
            let later = if sporadic.span.start > aperiodic.span.start {
                &sporadic.span
            } else {
                &aperiodic.span
            };
            let help = "keep sporadic where two never come sooner than the period, else aperiodic";
            problems.fault_of_key(later, "sporadic and aperiodic are both given", help);
        }
        (Some(longest), None) => {
            if let Some(period) = period.filter(|&period| longest.0 < period) {
                let (longest_ns, period) = (fmt_ns(longest.0), fmt_ns(period));
                let cause = format!(
                    "the longest time between two arrivals, {longest_ns}, is less than the \
                     shortest, the period {period}"
                );
                problems.fault(&longest.span, cause, "make it at least the period");
            }
            return Some(Arrival::Sporadic { longest: longest.0, seed });
        }
        (None, Some(mean)) => {
            if mean.0 < LEAST_PERIOD {
                let (mean_ns, least) = (fmt_ns(mean.0), fmt_ns(LEAST_PERIOD));
                let cause = format!(
                    "the mean time between two arrivals, {mean_ns}, is less than {least}, the \
                     shortest that can be served"
                );
                problems.fault(&mean.span, cause, format!("make it at least {least}"));
            }
            return Some(Arrival::Aperiodic { mean: mean.0, seed });
        }
        (None, None) => problems.fault(at, "arrival does not say which", ARRIVALS),
    }
    None
}
