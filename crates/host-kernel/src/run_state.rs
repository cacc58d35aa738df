//! The state of a run, by domain: from the records and the allocators' release events.

use std::collections::{BTreeMap, VecDeque};

use punctual_policies::ReleaseEvent;
use punctual_taskset::{TaskChange, TaskSpec};
use punctual_trace::{kind, Period, Record, RunEvent, TraceSink};

use crate::domain::{EventBatch, KeyedEvent};
use crate::lateness::Lateness;
use crate::periods::DomainPeriods;
use crate::reader::RecordBatch;

#[derive(Default)]
pub(crate) struct RunState {
    /// By index, those that were not reported as ended.
    tasks: BTreeMap<usize, Task>,
    periods: BTreeMap<u32, DomainPeriods>,
    /// RunEvent, and their records are still to come.
    waiting: BTreeMap<u32, VecDeque<EventBatch>>,
    traces: BTreeMap<u32, TraceSink>,
    events: u64,
    throttled: BTreeMap<u32, u64>,
    arm_failures: BTreeMap<u32, u64>,
    notes: Vec<String>,
}

struct Task {
    spec: TaskSpec,
    /// Nothing more will be known of it: all its records and events were read.
    left: bool,
    /// Records were lost, perhaps that of its end.
    doubtful: bool,
}

impl RunState {
    pub fn new(traces: BTreeMap<u32, TraceSink>) -> RunState {
        RunState { traces, ..RunState::default() }
    }

    /// A task that is to join its domain.
    pub fn add(&mut self, index: usize, spec: &TaskSpec) {
        self.tasks.insert(index, Task { spec: spec.clone(), left: false, doubtful: false });
    }

    /// It did not, or was reported as ended.
    pub fn remove(&mut self, index: usize) {
        self.tasks.remove(&index);
    }

    /// The notes so far.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds a line to the notes of the results.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// The next task that a domain's dispatcher adds is this one.
    pub fn joins(&mut self, domain: u32, index: usize) {
        if let Some(task) = self.tasks.get(&index) {
            self.periods.entry(domain).or_default().joins(index, &task.spec);
        }
    }

    /// It has this number; `None`: it was not added.
    pub fn joined(&mut self, domain: u32, index: usize, number: Option<u32>) {
        self.periods.entry(domain).or_default().joined(index, number);
    }

    /// A domain's groups have other policies, as these records say.
    pub fn swapped(&mut self, domain: u32, records: &[Record]) {
        self.traces.get(&domain).into_iter().for_each(|trace| trace.records(records));
    }

    /// The tasks of which nothing more will be known.
    pub fn left(&self) -> impl Iterator<Item = usize> + '_ {
        self.tasks.iter().filter(|(_, task)| task.left).map(|(&index, _)| index)
    }

    /// Those whose end may have been lost: that of their first process counts.
    pub fn take_doubtful(&mut self, mut has_ended: impl FnMut(usize) -> bool) -> Vec<usize> {
        let doubtful = self.tasks.iter_mut().filter(|(_, task)| task.doubtful);
        let ended = doubtful.filter(|(&index, _)| has_ended(index));
        ended.map(|(&index, task)| (task.doubtful = false, index).1).collect()
    }

    /// Its description, while it has not ended.
    pub fn spec(&self, index: usize) -> Option<&TaskSpec> {
        self.tasks.get(&index).map(|task| &task.spec)
    }

    /// Other parameters from its next release on.
    pub fn change(&mut self, index: usize, change: &TaskChange) {
        let Some(task) = self.tasks.get_mut(&index) else { return };
        change.apply(&mut task.spec);
        let periods = self.periods.get_mut(&task.spec.domain.0);
        periods.into_iter().for_each(|periods| periods.change(index, change));
    }

    /// A task in messages.
    pub fn name_of(&self, index: usize) -> String {
        self.tasks
            .get(&index)
            .map_or("the task".to_owned(), |task| format!("task \"{}\"", task.spec.name))
    }

    /// Its domain, while it has not ended.
    pub fn domain_of(&self, index: usize) -> Option<u32> {
        Some(self.spec(index)?.domain.0)
    }

    /// RunEvent of a domain; it is gone into when the records of that time are there.
    pub fn release_events(&mut self, domain: u32, batch: EventBatch) {
        self.events += batch.handled;
        self.waiting.entry(domain).or_default().push_back(batch);
    }

    /// A domain's next records: the tasks whose last threads are gone.
    pub fn records(
        &mut self,
        domain: u32,
        batch: &RecordBatch,
        sink: &mut dyn FnMut(RunEvent),
    ) -> Vec<usize> {
        let records = &batch.records;
        self.throttled.insert(domain, batch.throttled);
        self.arm_failures.insert(domain, batch.arm_failures);
        let periods = self.periods.entry(domain).or_default();
        if records.lost > 0 {
            periods.gap();
            self.tasks.values_mut().for_each(|task| task.doubtful = true);
            let lost = records.lost;
            self.notes.push(format!(
                "{lost} records were overwritten before they were read; periods of that time may \
                 be missing"
            ));
        }
        let trace = self.traces.get(&domain);
        trace.into_iter().for_each(|trace| trace.lost(records.lost));
        let mut gone = Vec::new();
        for part in records.records.split_inclusive(|r| of_a_task(r.kind)) {
            trace.into_iter().for_each(|trace| trace.records(part));
            let Some(last) = part.last() else { break };
            if let Some(index) = periods.records(part) {
                let place = Record::task_place(last.small, index as u32);
                trace.into_iter().for_each(|trace| trace.records(&[place]));
            }
            if last.kind == kind::TASK_GONE {
                gone.extend(periods.index(last.small));
            }
        }
        let waiting = self.waiting.entry(domain).or_default();
        while waiting.front().is_some_and(|waiting| waiting.at <= batch.looked) {
            let Some(EventBatch { events, left, .. }) = waiting.pop_front() else { break };
            for event in &events {
                if let ReleaseEvent::PolicyStopped(stop) = &event.event {
                    let record = Record::policy_stopped(stop);
                    trace.into_iter().for_each(|trace| trace.records(&[record]));
                }
                handle(&self.tasks, periods, event, sink);
            }
            for index in left {
                periods.left(index, &mut |period| sink(period.into()));
                self.tasks.entry(index).and_modify(|task| task.left = true);
            }
        }
        gone
    }

    /// The end: events, from due to running, notes.
    pub fn finish(
        &mut self,
        sink: &mut dyn FnMut(RunEvent),
    ) -> (u64, Option<Lateness>, Vec<String>) {
        let mut lateness = None;
        for periods in self.periods.values_mut() {
            periods.finish(&mut |period: Period| sink(period.into()));
            lateness = Lateness::worse(lateness, periods.lateness());
        }
        let throttled: u64 = self.throttled.values().sum();
        if throttled > 0 {
            self.notes.push(format!(
                "jobs were held back {throttled} times to leave others 5 % of the CPU"
            ));
        }
        let failures: u64 = self.arm_failures.values().sum();
        if failures > 0 {
            self.notes.push(format!(
                "the kernel refused {failures} times to arm a timer; the timer was armed again"
            ));
        }
        (self.events, lateness, std::mem::take(&mut self.notes))
    }
}

/// A task is added or removed: its number has another meaning from here on.
fn of_a_task(kind: u32) -> bool {
    matches!(kind, kind::TASK_ADD | kind::TASK_GONE)
}

fn handle(
    tasks: &BTreeMap<usize, Task>,
    periods: &mut DomainPeriods,
    keyed: &KeyedEvent,
    sink: &mut dyn FnMut(RunEvent),
) {
    match keyed.event {
        ReleaseEvent::EventsLost { count, .. } => {
            periods.events_lost();
            sink(RunEvent::Warning(format!(
                "{count} events had no room in the dispatcher's ring; the table leaves out \
                 periods of that time"
            )));
        }
        ReleaseEvent::DelayedSaturated { .. } => sink(RunEvent::Warning(format!(
            "{}: 30,000 waits are overdue; further ones are not counted",
            tasks.get(&keyed.index).map_or("a task that has ended", |task| &task.spec.name)
        ))),
        ReleaseEvent::PolicyStopped(stop) => sink(RunEvent::PolicyStopped(stop)),
        _ => periods.event(keyed, &mut |period| sink(period.into())),
    }
}
