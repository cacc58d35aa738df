//! What the tests of the papers share: a dispatcher, and a CPU in virtual time that does what the
//! dispatcher says. Each file in `tests/` is one table or figure.

use punctual_dispatcher::{Dispatcher, Event, For, Job, JobId, Limits, TaskId, INFINITE};

/// One stretch of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The task.
    pub task: TaskId,
    /// From when.
    pub from: u64,
    /// Until when.
    pub to: u64,
}

/// A dispatcher with a CPU of its own.
pub struct Machine {
    /// The dispatcher, to be commanded at [`Machine::now`].
    pub dispatcher: Dispatcher,
    /// Virtual time.
    pub now: u64,
    /// What was executed, in order; neighbours of one task are one stretch.
    pub executed: Vec<Stretch>,
    /// What the dispatcher reported.
    pub events: Vec<Event>,
    /// How much each task still executes before it says that it is done, by number; missing: for
    /// ever.
    wants: Vec<u64>,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::new()
    }
}

impl Machine {
    /// Room for what the papers' examples need.
    pub fn new() -> Machine {
        let limits = Limits {
            jobs: 64,
            groups: 8,
            budget_groups: 8,
            timers: 16,
            reservations: 16,
            ..Limits::for_tasks(32)
        };
        Machine {
            dispatcher: Dispatcher::new(limits).expect("the limits are in range"),
            now: 0,
            executed: Vec::new(),
            events: Vec::new(),
            wants: Vec::new(),
        }
    }

    /// A task that executes for ever.
    pub fn task(&mut self) -> TaskId {
        self.dispatcher.add_task(self.now).expect("there is room")
    }

    /// The task says that it is done after so much more execution.
    pub fn wants(&mut self, task: TaskId, execution: u64) {
        let i = task.0 as usize;
        if self.wants.len() <= i {
            self.wants.resize(i + 1, INFINITE);
        }
        self.wants[i] = execution;
    }

    /// Adds a job.
    pub fn add(&mut self, job: Job) -> JobId {
        self.dispatcher.add_job(&job, self.now).unwrap_or_else(|e| panic!("{job:?}: {e}"))
    }

    /// Adds a job of a new task that executes for ever.
    pub fn add_new(&mut self, job: impl FnOnce(For) -> Job) -> (TaskId, JobId) {
        let task = self.task();
        (task, self.add(job(For::Task(task))))
    }

    /// Handles the current instant, and returns the selected task.
    pub fn select(&mut self) -> Option<JobId> {
        self.select_with(&mut |_, _| ())
    }

    /// Likewise, with an allocator that is given each event and may add jobs.
    fn select_with(&mut self, allocator: &mut dyn FnMut(&mut Dispatcher, &Event)) -> Option<JobId> {
        self.dispatcher.advance(self.now);
        while let Some(event) = self.dispatcher.next_event() {
            self.events.push(event);
            allocator(&mut self.dispatcher, &event);
        }
        self.dispatcher.select(0, self.now)
    }

    /// Carries out what the dispatcher says until `end`.
    pub fn run_until(&mut self, end: u64) {
        self.run_until_with(end, &mut |_, _| ());
    }

    /// Likewise, with an allocator that is given each event and may add jobs.
    pub fn run_until_with(&mut self, end: u64, allocator: &mut dyn FnMut(&mut Dispatcher, &Event)) {
        while self.now < end {
            let job = self.select_with(allocator);
            let next = self.dispatcher.timer(0, 1, self.now).min(end);
            let Some(job) = job else {
                assert!(next > self.now, "time advances at {}", self.now);
                self.now = next;
                continue;
            };
            let task = self.dispatcher.task_of(job).expect("a real job is selected");
            let wanted = self.wants.get(task.0 as usize).copied().unwrap_or(INFINITE);
            let ran = (next - self.now).min(wanted);
            assert!(ran > 0, "time advances at {}", self.now);
            self.execute(task, job, ran);
            if ran == wanted {
                self.wants[task.0 as usize] = INFINITE;
                self.dispatcher.task_done(task, self.now).expect("the task is there");
            } else if wanted != INFINITE {
                self.wants[task.0 as usize] -= ran;
            }
        }
        self.select_with(allocator);
    }

    fn execute(&mut self, task: TaskId, job: JobId, ran: u64) {
        let from = self.now;
        self.now += ran;
        self.dispatcher.charge_job(job, ran, self.now).expect("the job is there");
        match self.executed.last_mut() {
            Some(last) if last.task == task && last.to == from => last.to = self.now,
            _ => self.executed.push(Stretch { task, from, to: self.now }),
        }
    }

    /// How long a task executed within `from..to`.
    pub fn received(&self, task: TaskId, from: u64, to: u64) -> u64 {
        let part = |s: &Stretch| s.to.min(to).saturating_sub(s.from.max(from));
        self.executed.iter().filter(|s| s.task == task).map(part).sum()
    }
}
