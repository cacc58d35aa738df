//! What a trace has of each task: when it executed, and its periods.

use punctual_session::results::{Collector, HostKind, Results, Run, TaskInfo};
use punctual_taskset::TaskSet;
use punctual_trace::{Interval, Period, Record, Trace};

use crate::input::unknown_machine;

/// One dispatcher's trace, by tasks.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// The earliest time in it, ns on the recording's clock.
    pub origin: u64,
    /// How long it is, ns.
    pub length: u64,
    /// When its last record was made, ns on the recording's clock.
    pub ended: u64,
    /// Those of the set that are in the trace.
    pub tasks: Vec<Track>,
}

/// One task's intervals and periods, in the order of time.
#[derive(Debug)]
pub(crate) struct Track {
    pub name: String,
    pub intervals: Vec<Interval>,
    pub periods: Vec<Period>,
}

impl Recorded {
    pub fn of(trace: &Trace) -> Recorded {
        let mut tasks: Vec<Track> = Vec::new();
        let mut at = |place: u32| {
            let place = place as usize;
            while tasks.len() <= place {
                let name = trace.header.tasks.get(tasks.len()).cloned();
                let name = name.unwrap_or_else(|| format!("task {}", tasks.len()));
                tasks.push(Track { name, intervals: Vec::new(), periods: Vec::new() });
            }
            place
        };
        let mut places: Vec<usize> = Vec::new();
        let intervals = trace.intervals();
        places.extend(intervals.iter().map(|interval| at(interval.task)));
        let periods: Vec<Period> = trace.periods().collect();
        places.extend(periods.iter().map(|period| at(period.task)));
        let mut places = places.into_iter();
        for (interval, place) in intervals.iter().zip(&mut places) {
            tasks[place].add(interval);
        }
        let mut ended = trace.records.iter().filter_map(Record::at).max();
        // What is behind a part is known of the periods that began in it.
        if trace.header.cut.as_ref().is_some_and(|cut| cut.to != u64::MAX) {
            ended = ended.max(periods.iter().map(|period| period.deadline).max());
        }
        for (period, place) in periods.iter().zip(&mut places) {
            // Of one that the end of the run cut off, nothing is known.
            if period.miss || ended.is_none_or(|ended| period.deadline <= ended) {
                tasks[place].periods.push(*period);
            }
        }
        tasks.retain(|task| !task.intervals.is_empty() || !task.periods.is_empty());
        for task in &mut tasks {
            task.intervals.sort_by_key(|interval| interval.from);
            task.periods.sort_by_key(|period| period.release);
        }
        let origin = tasks.iter().filter_map(Track::first).min().unwrap_or(0);
        let end = tasks.iter().filter_map(Track::last).max().unwrap_or(0);
        let length = end.saturating_sub(origin).max(1);
        Recorded { origin, length, ended: ended.unwrap_or(end), tasks }
    }

    /// The results that the trace's periods make.
    pub fn results(&self, trace: &Trace, set: Option<&TaskSet>) -> Results {
        let header = &trace.header;
        let host = match header.host.as_str() {
            "kernel" => HostKind::Kernel,
            "sim" => HostKind::Sim,
            _ => HostKind::User,
        };
        let run = Run {
            machine: unknown_machine().into(),
            ..Run::new(host, &header.policy, &[header.cpu])
        };
        let unknown = |name: &String| TaskInfo::new(name, 0, 0, 0);
        let mut collector = match set {
            Some(set) => Collector::for_set(run, set),
            None => Collector::new(run, header.tasks.iter().map(unknown).collect()),
        };
        if host == HostKind::Sim {
            collector = collector.from_the_first();
        }
        trace.periods().for_each(|period| collector.record(&period));
        collector.finish(self.ended);
        let mut results = collector.snapshot();
        // A set of several CPUs has a trace for each: only its own tasks are in it.
        results.tasks.retain(|task| self.tasks.iter().any(|track| track.name == task.name));
        results
    }
}

impl Track {
    /// Joins it to the one before where nothing is between them.
    fn add(&mut self, interval: &Interval) {
        match self.intervals.last_mut() {
            Some(last) if last.to == interval.from && last.background == interval.background => {
                last.to = interval.to;
            }
            _ => self.intervals.push(*interval),
        }
    }

    fn first(&self) -> Option<u64> {
        let intervals = self.intervals.first().map(|interval| interval.from);
        intervals.into_iter().chain(self.periods.first().map(|period| period.release)).min()
    }

    fn last(&self) -> Option<u64> {
        let intervals = self.intervals.last().map(|interval| interval.to);
        intervals.into_iter().chain(self.periods.iter().map(|period| period.deadline).max()).max()
    }
}
