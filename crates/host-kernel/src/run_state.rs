//! The state of a run, by domain: from the records and the allocators' release events.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use punctual_dispatcher::TaskId;
use punctual_policies::ReleaseEvent;
use punctual_taskset::TaskSet;
use punctual_trace::{kind, Period, Record, RunEvent, TraceSink};

use crate::domain::{EventBatch, KeyedEvent};
use crate::lateness::Lateness;
use crate::periods::DomainPeriods;
use crate::reader::RecordBatch;

pub(crate) struct RunState {
    set: Arc<TaskSet>,
    periods: BTreeMap<u32, DomainPeriods>,
    /// RunEvent, and their records are still to come.
    waiting: BTreeMap<u32, VecDeque<EventBatch>>,
    traces: BTreeMap<u32, TraceSink>,
    /// By place in the set: its dispatcher has removed it.
    gone: Vec<bool>,
    events: u64,
    throttled: BTreeMap<u32, u64>,
    arm_failures: BTreeMap<u32, u64>,
    notes: Vec<String>,
}

impl RunState {
    pub fn new(set: Arc<TaskSet>, traces: BTreeMap<u32, TraceSink>) -> RunState {
        RunState {
            periods: BTreeMap::new(),
            waiting: BTreeMap::new(),
            traces,
            gone: vec![false; set.tasks.len()],
            set,
            events: 0,
            throttled: BTreeMap::new(),
            arm_failures: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a line to the notes of the results.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// A domain's tasks have these numbers in its dispatcher.
    pub fn joined(&mut self, domain: u32, tasks: &[(usize, TaskId)]) {
        self.periods.insert(domain, DomainPeriods::new(&self.set, tasks));
        if let Some(trace) = self.traces.get(&domain) {
            let places =
                tasks.iter().map(|&(index, task)| Record::task_place(task.0, index as u32));
            trace.records(&places.collect::<Vec<_>>());
        }
    }

    /// A domain's groups have other policies, as these records say.
    pub fn swapped(&mut self, domain: u32, records: &[Record]) {
        self.traces.get(&domain).into_iter().for_each(|trace| trace.records(records));
    }

    /// A task's number in its dispatcher, which has not removed it.
    pub fn number(&self, index: usize) -> Option<TaskId> {
        let periods = self.periods.get(&self.set.tasks[index].domain.0)?;
        periods.number(index).filter(|_| !self.gone[index])
    }

    /// Whether the dispatcher has removed a task, all threads of which are gone.
    pub fn is_gone(&self, index: usize) -> bool {
        self.gone[index]
    }

    /// RunEvent of a domain; it is gone into when the records of that time are there.
    pub fn release_events(&mut self, domain: u32, batch: EventBatch) {
        self.events += batch.handled;
        self.waiting.entry(domain).or_default().push_back(batch);
    }

    /// A domain's next records: the tasks that are gone.
    pub fn records(
        &mut self,
        domain: u32,
        batch: &RecordBatch,
        sink: &mut dyn FnMut(RunEvent),
    ) -> Vec<TaskId> {
        let records = &batch.records;
        if let Some(trace) = self.traces.get(&domain) {
            trace.lost(records.lost);
            trace.records(&records.records);
        }
        self.throttled.insert(domain, batch.throttled);
        self.arm_failures.insert(domain, batch.arm_failures);
        let Some(periods) = self.periods.get_mut(&domain) else { return Vec::new() };
        if records.lost > 0 {
            periods.gap();
            // Ends of tasks may be among them: from here on the end of a first process counts.
            self.gone.fill(true);
            let lost = records.lost;
            self.notes.push(format!(
                "{lost} records were overwritten before they were read; periods of that time may \
                 be missing"
            ));
        }
        periods.records(&records.records);
        let waiting = self.waiting.entry(domain).or_default();
        while waiting.front().is_some_and(|t| t.at <= batch.looked) {
            for event in waiting.pop_front().into_iter().flat_map(|batch| batch.events) {
                if let ReleaseEvent::PolicyStopped(stop) = &event.event {
                    let trace = self.traces.get(&domain).into_iter();
                    trace.for_each(|trace| trace.records(&[Record::policy_stopped(stop)]));
                }
                handle(&self.set, periods, &event, sink);
            }
        }
        let gone =
            records.records.iter().filter(|r| r.kind == kind::TASK_GONE).map(|r| TaskId(r.small));
        let gone: Vec<TaskId> = gone.collect();
        for place in gone.iter().filter_map(|task| periods.place(task.0)) {
            self.gone[place] = true;
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

fn handle(
    set: &TaskSet,
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
        ReleaseEvent::DelayedSaturated { index, .. } => sink(RunEvent::Warning(format!(
            "{}: 30,000 waits are overdue; further ones are not counted",
            set.tasks[index as usize].name
        ))),
        ReleaseEvent::PolicyStopped(stop) => sink(RunEvent::PolicyStopped(stop)),
        _ => periods.event(keyed, &mut |period| sink(period.into())),
    }
}
