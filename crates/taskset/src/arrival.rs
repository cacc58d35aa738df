//! When a task is released: the key `arrival`.

use toml::de::{DeArray, DeValue};

use crate::checks::LEAST_PERIOD;
use crate::duration::{fmt_ns, quote};
use crate::keys::{nearest, Scope};
use crate::reader::{Found, Problems, Table};
use crate::Arrival;

const FORMS: &str = "write \"periodic\", { sporadic = \"LONGEST\" }, { aperiodic = \"MEAN\" } or a list of times";

/// Reads the arrival of a task whose period is `period`, ns (`None` when it is at fault already).
pub(crate) fn read(task: &Table<'_, '_>, period: Option<u64>, problems: &mut Problems<'_>) -> Arrival {
    let Some(found) = task.get("arrival") else {
        return Arrival::Periodic;
    };
    let arrival = match found.value {
        DeValue::String(word) => word_only(task, &found, word, problems),
        DeValue::Array(times) => list(task, &found, times, problems),
        DeValue::Table(entries) => {
            let table = Table { entries, at: found.at.clone(), scope: Scope::Arrival, whose: task.whose.clone() };
            random(&table, period, problems)
        }
        _ => {
            task.wrong_type(problems, "arrival", &found, "a word, a table or a list", FORMS);
            None
        }
    };
    arrival.unwrap_or_default()
}

fn word_only(task: &Table<'_, '_>, found: &Found<'_, '_>, word: &str, problems: &mut Problems<'_>) -> Option<Arrival> {
    let (cause, help) = match word {
        "periodic" => return Some(Arrival::Periodic),
        "sporadic" => (
            "sporadic arrival needs the longest time between two".to_owned(),
            "write arrival = { sporadic = \"LONGEST\" }; the period is the shortest".to_owned(),
        ),
        "aperiodic" => (
            "aperiodic arrival needs the mean time between two".to_owned(),
            "write arrival = { aperiodic = \"MEAN\" }".to_owned(),
        ),
        _ => {
            let near = nearest(&word.to_lowercase(), &["periodic", "sporadic", "aperiodic"]);
            let help = near.map_or(FORMS.to_owned(), |near| format!("did you mean {}?", quote(near)));
            (format!("unknown arrival {}", quote(word)), help)
        }
    };
    task.fault(problems, &found.at, cause, help);
    None
}

/// `{ sporadic = "30ms", seed = 1 }` and `{ aperiodic = "30ms", seed = 1 }`
fn random(table: &Table<'_, '_>, period: Option<u64>, problems: &mut Problems<'_>) -> Option<Arrival> {
    let before = problems.count();
    table.check_keys(problems);
    let seed = table.seed(problems);
    let (sporadic, aperiodic) = (table.get("sporadic"), table.get("aperiodic"));
    if let (Some(sporadic), Some(aperiodic)) = (&sporadic, &aperiodic) {
        let later = if sporadic.key.start > aperiodic.key.start { sporadic } else { aperiodic };
        let help = "keep sporadic where two never come sooner than the period, else aperiodic";
        table.fault(problems, &later.key, "sporadic and aperiodic are both given", help);
        return None;
    }
    if let Some(found) = sporadic {
        let longest = table.duration_of(problems, "sporadic", &found)?;
        if let Some(period) = period.filter(|&period| longest < period) {
            let cause = format!(
                "the longest time between two arrivals, {}, is less than the shortest, the period {}",
                fmt_ns(longest),
                fmt_ns(period)
            );
            table.fault(problems, &found.at, cause, "make it at least the period");
            return None;
        }
        return Some(Arrival::Sporadic { longest, seed: seed? });
    }
    if let Some(found) = aperiodic {
        let mean = table.duration_of(problems, "aperiodic", &found)?;
        if mean < LEAST_PERIOD {
            let cause = format!(
                "the mean time between two arrivals, {}, is less than {}, the shortest that can be served",
                fmt_ns(mean),
                fmt_ns(LEAST_PERIOD)
            );
            let help = format!("make it at least {}", fmt_ns(LEAST_PERIOD));
            table.fault(problems, &found.at, cause, help);
            return None;
        }
        return Some(Arrival::Aperiodic { mean, seed: seed? });
    }
    if problems.count() == before {
        table.fault(problems, &table.at, "arrival does not say which", FORMS);
    }
    None
}

/// `["0ms", "3ms"]`: from the start of the run, so that `start` has no place beside it.
fn list(
    task: &Table<'_, '_>,
    found: &Found<'_, '_>,
    list: &DeArray<'_>,
    problems: &mut Problems<'_>,
) -> Option<Arrival> {
    if list.is_empty() {
        let help = "give at least one time, such as [\"0ms\"]";
        task.fault(problems, &found.at, "the list of arrivals is empty", help);
        return None;
    }
    if let Some(start) = task.get("start") {
        let cause = "start is given, and a list of arrivals as well";
        let help = "remove start: the times of the list count from the start of the run";
        task.fault(problems, &start.key, cause, help);
    }
    let mut times = Vec::with_capacity(list.len());
    let mut last = 0;
    for element in list {
        let found = Found { key: found.key.clone(), at: element.span(), value: element.get_ref() };
        let at = task.duration_of(problems, "arrival", &found)?;
        if at < last {
            let cause = format!("the arrival at {} stands after the one at {}", fmt_ns(at), fmt_ns(last));
            task.fault(problems, &found.at, cause, "put the times in order");
            return None;
        }
        last = at;
        times.push(at);
    }
    Some(Arrival::List(times))
}
