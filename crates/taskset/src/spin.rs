//! How long synthetic work executes per job: a duration, or a distribution.

use toml::de::{DeArray, DeValue};

use crate::duration::{fmt_ns, quote};
use crate::keys::Scope;
use crate::reader::{kind, Found, Problems, Table};
use crate::recording::Recordings;
use crate::Spin;

/// The forms of a distribution; `work` takes them too, without `spin` around them.
pub(crate) const DISTRIBUTIONS: [&str; 3] = ["uniform", "histogram", "recorded"];

/// The largest weight in a histogram: so many bins as a file can hold add up to less than 2^64.
const LARGEST_WEIGHT: u32 = u32::MAX;

/// Reads the value of `spin`, in `work` or in a step.
pub(crate) fn read(
    table: &Table<'_, '_>,
    spin: &Found<'_, '_>,
    recordings: &mut Recordings,
    problems: &mut Problems<'_>,
) -> Option<Spin> {
    match spin.value {
        DeValue::String(word) if word == "forever" => Some(Spin::Forever),
        DeValue::Table(entries) => {
            let spin = Table { entries, at: spin.at.clone(), scope: Scope::Spin, whose: table.whose.clone() };
            let before = problems.count();
            spin.check_keys(problems);
            one_form(&spin, &DISTRIBUTIONS, problems)?;
            let read = distribution(&spin, recordings, problems);
            if read.is_none() && problems.count() == before {
                let help =
                    "write it as uniform = [\"100us\", \"300us\"], histogram = [[\"100us\", 3]] or recorded = \"FILE\"";
                spin.fault(problems, &spin.at, "spin lacks its distribution", help);
            }
            read
        }
        _ => {
            let ns = table.duration_of(problems, "spin", spin)?;
            nonzero(table, spin, ns, problems).map(Spin::For)
        }
    }
}

/// Refuses a second one of several forms.
pub(crate) fn one_form(table: &Table<'_, '_>, forms: &[&str], problems: &mut Problems<'_>) -> Option<()> {
    let mut given: Vec<_> = forms.iter().filter_map(|key| Some((*key, table.get(key)?))).collect();
    given.sort_by_key(|(_, found)| found.key.start);
    if let [(first, _), (second, at), ..] = given.as_slice() {
        let cause = format!("{second} is given, and {first} as well");
        table.fault(problems, &at.key, cause, format!("keep one of {}", forms.join(", ")));
        return None;
    }
    Some(())
}

/// Reads the distribution that a table has; `None` when it has none, or it is at fault.
pub(crate) fn distribution(
    table: &Table<'_, '_>,
    recordings: &mut Recordings,
    problems: &mut Problems<'_>,
) -> Option<Spin> {
    let seed = table.seed(problems);
    if let Some(found) = table.get("uniform") {
        return uniform(table, &found, seed?, problems);
    }
    if let Some(found) = table.get("histogram") {
        return histogram(table, &found, seed?, problems);
    }
    table.get("recorded")?;
    if let Some(found) = table.get("seed") {
        let help = "remove it: a recording is repeated as it is";
        table.fault(problems, &found.key, "seed is given, but nothing is drawn", help);
    }
    let (at, name) = table.string(problems, "recorded", "times.txt")?;
    match recordings.get(name) {
        Ok(times) => Some(Spin::Recorded(times)),
        Err((cause, help)) => {
            table.fault(problems, &at, cause, help);
            None
        }
    }
}

/// `uniform = ["100us", "300us"]`
fn uniform(spin: &Table<'_, '_>, found: &Found<'_, '_>, seed: u64, problems: &mut Problems<'_>) -> Option<Spin> {
    let example = "write it as uniform = [\"100us\", \"300us\"]";
    let DeValue::Array(list) = found.value else {
        spin.wrong_type(problems, "uniform", found, "a list of two durations", example);
        return None;
    };
    if list.len() != 2 {
        let cause = format!("uniform has {} durations, not two", list.len());
        spin.fault(problems, &found.at, cause, example);
        return None;
    }
    let mut ends = [0; 2];
    for (end, element) in ends.iter_mut().zip(list) {
        let found = Found { key: found.key.clone(), at: element.span(), value: element.get_ref() };
        let ns = spin.duration_of(problems, "uniform", &found)?;
        *end = nonzero(spin, &found, ns, problems)?;
    }
    let [min, max] = ends;
    if min > max {
        let cause = format!("uniform begins with {}, more than {}", fmt_ns(min), fmt_ns(max));
        spin.fault(problems, &found.at, cause, "put the shorter duration first");
        return None;
    }
    Some(Spin::Uniform { min, max, seed })
}

/// `histogram = [["100us", 3], ["1ms", 1]]`
fn histogram(spin: &Table<'_, '_>, found: &Found<'_, '_>, seed: u64, problems: &mut Problems<'_>) -> Option<Spin> {
    let example = "write it as histogram = [[\"100us\", 3], [\"1ms\", 1]]: execution times and their weights";
    let DeValue::Array(list) = found.value else {
        spin.wrong_type(problems, "histogram", found, "a list of pairs", example);
        return None;
    };
    if list.is_empty() {
        spin.fault(problems, &found.at, "the histogram is empty", example);
        return None;
    }
    let mut bins = Vec::with_capacity(list.len());
    for element in list {
        let pair = match element.get_ref() {
            DeValue::Array(pair) if pair.len() == 2 => pair,
            DeValue::Array(pair) => {
                let cause = format!("a bin of the histogram has {} values, not two", pair.len());
                spin.fault(problems, &element.span(), cause, example);
                return None;
            }
            other => {
                let cause = format!("a bin of the histogram is {}, not a pair", kind(other));
                spin.fault(problems, &element.span(), cause, example);
                return None;
            }
        };
        let (time, weight) = bin(spin, found, pair, problems)?;
        bins.push((time, weight, element.span()));
    }
    bins.sort_by_key(|(time, _, _)| *time);
    if let Some(twice) = bins.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let cause = format!("the histogram has {} twice", fmt_ns(twice[1].0));
        spin.fault(problems, &twice[1].2, cause, "add the two weights up in one bin");
        return None;
    }
    let bins = bins.into_iter().map(|(time, weight, _)| (time, weight)).collect();
    Some(Spin::Histogram { bins, seed })
}

fn bin(
    spin: &Table<'_, '_>,
    found: &Found<'_, '_>,
    pair: &DeArray<'_>,
    problems: &mut Problems<'_>,
) -> Option<(u64, u64)> {
    let part = |n: usize| Found { key: found.key.clone(), at: pair[n].span(), value: pair[n].get_ref() };
    let time = spin.duration_of(problems, "histogram", &part(0))?;
    let time = nonzero(spin, &part(0), time, problems)?;
    let weight = spin.integer_of(problems, "the weight", &part(1), 1..=LARGEST_WEIGHT)?;
    Some((time, u64::from(weight)))
}

fn nonzero(table: &Table<'_, '_>, found: &Found<'_, '_>, ns: u64, problems: &mut Problems<'_>) -> Option<u64> {
    if ns == 0 {
        table.fault(problems, &found.at, "the execution time is 0", "make it at least 1ns");
        return None;
    }
    Some(ns)
}

/// The value of `spin` for a string that was written instead of the table, as it should have been.
pub(crate) fn instead(word: &str) -> String {
    format!("{{ spin = {} }}", quote(word))
}
