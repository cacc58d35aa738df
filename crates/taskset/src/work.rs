//! What a task executes: exactly one of `work`, `command` and `pid`.

use crate::checks;
use crate::duration::fmt_ns;
use crate::explain::{STEPS, UNIFORM};
use crate::format::{self, Bin, Distribution, Recorded, Tables, Task, Work, HISTOGRAM};
use crate::problems::Problems;
use crate::recording::Recordings;
use crate::value::{place, At, Positive, Span};
use crate::{Body, Spin, Step};

/// The most steps that one job has.
pub const MOST_STEPS: usize = 1024;

/// Checks the body of a task; `None` when it is absent or at fault.
pub(crate) fn check(
    task: &Task,
    recordings: &mut Recordings,
    problems: &mut Problems<'_>,
) -> Option<Body> {
    let forms =
        [("work", place(&task.work)), ("command", place(&task.command)), ("pid", place(&task.pid))];
    problems.one_of(
        &forms,
        "keep one of work, command and pid, and make the other a task of its own",
    )?;
    if let Some(work) = &task.work {
        return self::work(work, &work.span, recordings, problems);
    }
    if let Some(pid) = &task.pid {
        return Some(Body::Pid(pid.unsigned()));
    }
    let command = task.command.as_ref()?;
    let words: Vec<String> = command.iter().map(|word| word.value.clone()).collect();
    match checks::command(&words) {
        Ok(()) => Some(Body::Command(words)),
        Err(texts) => {
            problems.add(&command.span, || texts);
            None
        }
    }
}

fn work(
    work: &Work,
    at: &Span,
    recordings: &mut Recordings,
    problems: &mut Problems<'_>,
) -> Option<Body> {
    let Work { spin, steps, uniform, histogram, recorded, seed } = work;
    let drawn = [
        ("uniform", place(uniform)),
        ("histogram", place(histogram)),
        ("recorded", place(recorded)),
    ];
    let forms = [&[("spin", place(spin)), ("steps", place(steps))], &drawn[..]].concat();
    if forms.iter().all(|(_, at)| at.is_none()) && seed.is_none() {
        let help = "write work = { spin = \"200us\" } or work = { spin = \"forever\" }";
        problems.fault(at, "work does not say how much", help);
        return None;
    }
    if let (Some(seed), true) = (seed, drawn.iter().all(|(_, at)| at.is_none())) {
        let help = "put it beside the distribution: { uniform = [\"100us\", \"300us\"], seed = 7 }";
        problems.fault_of_key(&seed.span, "seed is given, but nothing is drawn", help);
    }
    problems.one_of(&forms, "keep one of spin, steps, uniform, histogram, recorded")?;
    match (spin, steps) {
        (Some(spin), _) => self::spin(spin, recordings, problems).map(Body::Spin),
        (None, Some(steps)) => self::steps(steps, recordings, problems).map(Body::Steps),
        (None, None) => {
            distribution(uniform, histogram, recorded, seed, recordings, problems).map(Body::Spin)
        }
    }
}

/// `steps = [{ spin = "1ms" }, { sleep = "2ms" }]`
fn steps(
    list: &Tables<format::Step>,
    recordings: &mut Recordings,
    problems: &mut Problems<'_>,
) -> Option<Vec<Step>> {
    if list.is_empty() {
        problems.fault(&list.span, "the list of steps is empty", STEPS);
    }
    if list.len() > MOST_STEPS {
        let cause = format!("there are {} steps, more than {MOST_STEPS}", list.len());
        problems.fault(&list.span, cause, "make several tasks of it, or a recording");
        return None;
    }
    let mut steps = Vec::with_capacity(list.len());
    for table in list.iter() {
        if let Some(Step::Spin(Spin::Forever)) = steps.last() {
            let help = "remove it, or let the step before it end";
            problems.fault(&table.span, "a step comes after one without end", help);
        }
        let format::Step { spin, sleep } = &table.value.0;
        problems
            .one_of(&[("spin", place(spin)), ("sleep", place(sleep))], "keep one of spin, sleep");
        match (spin, sleep) {
            (Some(spin), _) => steps.extend(self::spin(spin, recordings, problems).map(Step::Spin)),
            (None, Some(sleep)) if sleep.0 == 0 => {
                problems.fault(
                    &sleep.span,
                    "the sleep is 0",
                    "make it at least 1ns, or leave it out",
                );
            }
            (None, Some(sleep)) => steps.push(Step::Sleep(sleep.0)),
            (None, None) => {
                problems.fault(&table.span, "a step says neither spin nor sleep", STEPS)
            }
        }
    }
    Some(steps)
}

fn spin(
    spin: &At<format::Spin>,
    recordings: &mut Recordings,
    problems: &mut Problems<'_>,
) -> Option<Spin> {
    match &spin.value {
        format::Spin::Word(_) => Some(Spin::Forever),
        format::Spin::For(time) => nonzero(*time, &spin.span, problems).map(Spin::For),
        format::Spin::Drawn(Distribution { uniform, histogram, recorded, seed }) => {
            let forms = [
                ("uniform", place(uniform)),
                ("histogram", place(histogram)),
                ("recorded", place(recorded)),
            ];
            if forms.iter().all(|(_, at)| at.is_none()) {
                let help =
                    "write it as uniform = [\"100us\", \"300us\"], histogram = [[\"100us\", 3]] or \
                     recorded = \"FILE\"";
                problems.fault(&spin.span, "spin lacks its distribution", help);
            }
            problems.one_of(&forms, "keep one of uniform, histogram, recorded")?;
            distribution(uniform, histogram, recorded, seed, recordings, problems)
        }
    }
}

/// Checks the one distribution that is given.
fn distribution(
    uniform: &Option<At<Vec<At<Positive>>>>,
    histogram: &Option<At<Vec<At<Bin>>>>,
    recorded: &Option<At<Recorded>>,
    seed: &Option<At<format::Seed>>,
    recordings: &mut Recordings,
    problems: &mut Problems<'_>,
) -> Option<Spin> {
    let drawn = seed.as_ref().map_or(0, |seed| seed.unsigned());
    if let Some(ends) = uniform {
        return self::uniform(ends, drawn, problems);
    }
    if let Some(bins) = histogram {
        return self::histogram(bins, drawn, problems);
    }
    let recorded = recorded.as_ref()?;
    if let Some(seed) = seed {
        let help = "remove it: a recording is repeated as it is";
        problems.fault_of_key(&seed.span, "seed is given, but nothing is drawn", help);
    }
    let times = match &recorded.value {
        Recorded::File(name) => recordings.read(name),
        Recorded::Times(times) => {
            let times: Option<Vec<u64>> =
                times.iter().map(|time| nonzero(time.value, &time.span, problems)).collect();
            recordings.count(times?)
        }
    };
    times.map(Spin::Recorded).map_err(|texts| problems.add(&recorded.span, || texts)).ok()
}

/// `uniform = ["100us", "300us"]`
fn uniform(ends: &At<Vec<At<Positive>>>, seed: u64, problems: &mut Problems<'_>) -> Option<Spin> {
    let [first, last] = &ends.value[..] else {
        problems.fault(
            &ends.span,
            format!("uniform has {} durations, not two", ends.len()),
            UNIFORM,
        );
        return None;
    };
    let min = nonzero(first.value, &first.span, problems)?;
    let max = nonzero(last.value, &last.span, problems)?;
    if min > max {
        let cause = format!("uniform begins with {}, more than {}", fmt_ns(min), fmt_ns(max));
        problems.fault(&ends.span, cause, "put the shorter duration first");
        return None;
    }
    Some(Spin::Uniform { min, max, seed })
}

/// `histogram = [["100us", 3], ["1ms", 1]]`
fn histogram(list: &At<Vec<At<Bin>>>, seed: u64, problems: &mut Problems<'_>) -> Option<Spin> {
    if list.is_empty() {
        problems.fault(&list.span, "the histogram is empty", HISTOGRAM);
        return None;
    }
    let mut bins = Vec::with_capacity(list.len());
    for bin in list.iter() {
        bins.push((nonzero(bin.0.value, &bin.0.span, problems)?, bin.1.unsigned(), &bin.span));
    }
    bins.sort_by_key(|(time, _, _)| *time);
    if let Some(twice) = bins.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let cause = format!("the histogram has {} twice", fmt_ns(twice[1].0));
        problems.fault(twice[1].2, cause, "add the two weights up in one bin");
        return None;
    }
    let bins = bins.into_iter().map(|(time, weight, _)| (time, weight)).collect();
    Some(Spin::Histogram { bins, seed })
}

fn nonzero(time: Positive, at: &Span, problems: &mut Problems<'_>) -> Option<u64> {
    if time.0 == 0 {
        problems.fault(at, "the execution time is 0", "make it at least 1ns");
    }
    Some(time.0).filter(|&ns| ns > 0)
}
