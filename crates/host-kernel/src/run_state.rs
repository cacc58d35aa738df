//! What is known of a run: from the records and from what the allocators told, by domain.

use std::collections::{BTreeMap, VecDeque};

use punctual_dispatcher::TaskId;
use punctual_policies::Told as Policy;
use punctual_taskset::TaskSet;
use punctual_trace::{kind, Period, Told};

use crate::domain::{Tale, Tales};
use crate::lateness::Lateness;
use crate::reader::Batch;
use crate::story::Story;
use crate::trace_file::Traces;
use punctual_diagnostic::Diagnostic;

pub(crate) struct RunState<'a> {
    set: &'a TaskSet,
    stories: BTreeMap<u32, Story<'a>>,
    /// Told, and their records are still to come.
    waiting: BTreeMap<u32, VecDeque<Tales>>,
    traces: Traces,
    /// By place in the set: the dispatcher has heard that it is gone.
    gone: Vec<bool>,
    events: u64,
    throttled: BTreeMap<u32, u64>,
    arm_failures: BTreeMap<u32, u64>,
    notes: Vec<String>,
}

impl<'a> RunState<'a> {
    pub fn new(set: &'a TaskSet, traces: Traces) -> RunState<'a> {
        RunState {
            set,
            stories: BTreeMap::new(),
            waiting: BTreeMap::new(),
            traces,
            gone: vec![false; set.tasks.len()],
            events: 0,
            throttled: BTreeMap::new(),
            arm_failures: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Something people should know.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// A domain's tasks have these numbers in its dispatcher.
    pub fn joined(&mut self, domain: u32, tasks: &[(usize, TaskId)]) {
        self.stories.insert(domain, Story::new(self.set, tasks));
    }

    /// Whether the dispatcher has heard that all threads of a task are gone.
    pub fn is_gone(&self, index: usize) -> bool {
        self.gone[index]
    }

    /// Told of a domain; it is gone into when the records of that time are there.
    pub fn tales(&mut self, domain: u32, tales: Tales) {
        self.events += tales.events;
        self.waiting.entry(domain).or_default().push_back(tales);
    }

    /// A domain's next records: the tasks that are gone.
    ///
    /// # Errors
    /// The trace file's.
    pub fn records(
        &mut self,
        domain: u32,
        batch: &Batch,
        sink: &mut dyn FnMut(Told),
    ) -> Result<Vec<TaskId>, Diagnostic> {
        let records = &batch.records;
        self.traces.records(domain, records)?;
        self.throttled.insert(domain, batch.throttled);
        self.arm_failures.insert(domain, batch.arm_failures);
        let Some(story) = self.stories.get_mut(&domain) else { return Ok(Vec::new()) };
        if records.lost > 0 {
            story.gap();
            // Who is gone may be among them: then the end of a first process has to do.
            self.gone.fill(true);
            let lost = records.lost;
            self.notes
                .push(format!("{lost} records were overwritten before they were read: the trace has a gap there"));
        }
        story.records(&records.records);
        let waiting = self.waiting.entry(domain).or_default();
        while waiting.front().is_some_and(|t| t.at <= batch.looked) {
            for tale in waiting.pop_front().into_iter().flat_map(|t| t.tales) {
                tell(self.set, story, &tale, sink);
            }
        }
        let gone = records.records.iter().filter(|r| r.kind == kind::TASK_GONE).map(|r| TaskId(r.small));
        let gone: Vec<TaskId> = gone.collect();
        for place in gone.iter().filter_map(|task| story.place(task.0)) {
            self.gone[place] = true;
        }
        Ok(gone)
    }

    /// The end: events, from due to running, notes.
    ///
    /// # Errors
    /// The trace file's.
    pub fn finish(mut self, sink: &mut dyn FnMut(Told)) -> Result<(u64, Option<Lateness>, Vec<String>), Diagnostic> {
        let mut lateness = None;
        for story in self.stories.values_mut() {
            story.finish(&mut |period: Period| sink(Told::Period(period)));
            lateness = Lateness::worse(lateness, story.lateness());
        }
        self.notes.extend(self.traces.finish()?);
        let throttled: u64 = self.throttled.values().sum();
        if throttled > 0 {
            self.notes.push(format!("jobs were held back {throttled} times to leave others 5 % of the CPU"));
        }
        let failures: u64 = self.arm_failures.values().sum();
        if failures > 0 {
            self.notes.push(format!("the kernel refused {failures} times to arm a timer; the timer was armed again"));
        }
        Ok((self.events, lateness, self.notes))
    }
}

fn tell(set: &TaskSet, story: &mut Story<'_>, tale: &Tale, sink: &mut dyn FnMut(Told)) {
    match tale.told {
        Policy::EventsLost { count, .. } => {
            story.untold();
            sink(Told::Warning(format!(
                "{count} events had no room in the dispatcher's ring; the table leaves out periods of that time"
            )));
        }
        Policy::DelayedSaturated { index, .. } => sink(Told::Warning(format!(
            "{}: 30,000 waits are overdue; further ones are not counted",
            set.tasks[index as usize].name
        ))),
        _ => story.tale(tale, &mut |period| sink(Told::Period(period))),
    }
}
