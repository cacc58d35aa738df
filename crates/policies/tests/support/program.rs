//! A program that adds the jobs of its tasks.

use punctual_dispatcher::{Attribute, End, For, TaskId};
use punctual_policies::{
    AddedJob, AllocatorOptions, Allocators, GroupJob, Gsi, JobParams, JobPlace, JobRefusal,
    LocalDispatcher, PolicyEntry, ProgramGroups, ReleaseEvent, JOBS,
};

use super::{options, set, task, Cpu};

static TABLE: [&PolicyEntry; 1] = [&JOBS];

/// A job that has ended: when, cookie, end, used, remaining.
pub type Ended = (u64, u64, End, u64, u64);

/// A CPU whose program adds jobs.
pub struct Program {
    pub cpu: Cpu,
    /// Reports of the allocators that it has read.
    read: usize,
    next: u64,
}

impl Program {
    /// Tasks of these periods and budgets, and what they execute in their jobs.
    pub fn new(tasks: &[(u64, u64)], demand: &[&[u64]]) -> Program {
        Program::with_groups(tasks, demand, ProgramGroups::default())
    }

    /// The same with groups that the program replenishes.
    pub fn with_groups(
        tasks: &[(u64, u64)],
        demand: &[&[u64]],
        program_groups: ProgramGroups,
    ) -> Program {
        let tasks = tasks.iter().enumerate();
        let tasks = tasks.map(|(n, &(period, budget))| task(&format!("t{n}"), period, budget));
        let options = AllocatorOptions { program_groups, ..options(&TABLE) };
        let cpu = Cpu::with(&set("jobs", tasks.collect()), demand, options);
        Program { cpu, read: 0, next: 1 }
    }

    pub fn id(&self, of: usize) -> TaskId {
        self.cpu.tasks[of].id
    }

    pub fn add(&mut self, of: usize, cookie: u64, params: JobParams) -> Result<u64, JobRefusal> {
        self.add_in(of, None, cookie, params)
    }

    /// Adds a job in a group.
    pub fn add_in(
        &mut self,
        of: usize,
        place: Option<JobPlace>,
        cookie: u64,
        params: JobParams,
    ) -> Result<u64, JobRefusal> {
        let (job, id) = (AddedJob { params, place, id: self.next, cookie }, self.id(of));
        self.next += 1;
        self.reported(|a, gsi, report| a.add_job(gsi, id, &job, report))?;
        Ok(job.id)
    }

    /// Adds a job of a group.
    pub fn serve(
        &mut self,
        serves: For,
        place: JobPlace,
        cookie: u64,
        params: JobParams,
    ) -> Result<(), JobRefusal> {
        let job = GroupJob { serves, place, params, id: self.next, cookie };
        self.next += 1;
        self.reported(|a, gsi, report| a.add_group_job(gsi, &job, report))
    }

    /// Orders a group.
    pub fn order(&mut self, group: u32, by: &[Attribute]) {
        self.reported(|a, gsi, _| a.set_order(gsi, group, by)).expect("it is the program's");
    }

    pub fn cancel(&mut self, of: usize, job: u64) -> Result<(), JobRefusal> {
        let id = self.id(of);
        self.reported(|a, gsi, report| a.cancel_job(gsi, id, job, report))
    }

    pub fn reported<T>(
        &mut self,
        call: impl FnOnce(&mut Allocators, &mut dyn Gsi, &mut dyn FnMut(ReleaseEvent)) -> T,
    ) -> T {
        let (Cpu { a, d, now, .. }, mut reports) = (&mut self.cpu, Vec::new());
        let result = call(a, &mut LocalDispatcher::new(d, *now), &mut |e| reports.push(e));
        reports.into_iter().for_each(|event| self.cpu.record(event));
        result
    }

    pub fn events(&mut self) -> Vec<Ended> {
        let new = self.cpu.reported[self.read..].iter();
        let ended = new.filter_map(|event| match *event {
            ReleaseEvent::JobEnded { at, cookie, end, used, remaining, .. } => {
                Some((at, cookie, end, used, remaining))
            }
            _ => None,
        });
        let ended = ended.collect();
        self.read = self.cpu.reported.len();
        ended
    }

    /// Runs until `end`; the program handles each event at the instant at which it comes.
    pub fn run(&mut self, end: u64, mut handler: impl FnMut(&mut Program, Ended)) -> Vec<Ended> {
        let mut all = Vec::new();
        while self.cpu.now < end {
            self.cpu.run(self.cpu.now);
            loop {
                let events = self.events();
                if events.is_empty() {
                    break;
                }
                for event in events {
                    all.push(event);
                    handler(self, event);
                }
                self.cpu.settle();
            }
            self.cpu.run_to_charge(self.cpu.now + 1);
        }
        all
    }
}
