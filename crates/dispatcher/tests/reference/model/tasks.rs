//! Tasks: they sleep, wake, say that they are done, and go.

use punctual_dispatcher::{End, For, Refusal, TaskId, Wait};

use super::{Model, ModelTask};

impl Model {
    pub(super) fn task(&self, task: u32) -> Result<&ModelTask, Refusal> {
        self.tasks.get(task as usize).and_then(Option::as_ref).ok_or(Refusal::Nothing)
    }

    pub(super) fn task_mut(&mut self, task: u32) -> &mut ModelTask {
        self.tasks[task as usize].as_mut().expect("it is there")
    }

    /// `number` is what the real dispatcher chose.
    pub fn add_task(&mut self, number: Option<u32>) -> Result<u32, Refusal> {
        if self.tasks.iter().all(Option::is_some) {
            return Err(Refusal::Full);
        }
        let number = number.expect("there is room");
        assert!(self.tasks[number as usize].is_none(), "task {number} is there already");
        self.tasks[number as usize] = Some(ModelTask {
            sleeps: false,
            blocked: false,
            lends_to: None,
            lenders: Vec::new(),
            ceiling: None,
        });
        Ok(number)
    }

    pub fn task_blocked(&mut self, task: u32, now: u64) -> Result<(), Refusal> {
        self.set_sleeps(task, true, now)
    }

    pub fn task_ready(&mut self, task: u32, now: u64) -> Result<(), Refusal> {
        self.set_sleeps(task, false, now)
    }

    fn set_sleeps(&mut self, task: u32, sleeps: bool, now: u64) -> Result<(), Refusal> {
        if self.task(task)?.sleeps != sleeps {
            self.task_mut(task).sleeps = sleeps;
            self.follow(task, now);
            self.settle(now);
        }
        Ok(())
    }

    pub fn task_gone(&mut self, task: u32, now: u64) -> Result<(), Refusal> {
        self.task(task)?;
        self.end_lending(task, now);
        if let Some(r) = self.reservation_of(task) {
            self.drop_reservation(r);
        }
        let serves = For::Task(TaskId(task));
        while let Some(id) = self.jobs.iter().rev().find(|j| j.attr.serves == serves).map(|j| j.id)
        {
            self.end(id, End::TaskGone, now);
        }
        self.tasks[task as usize] = None;
        self.settle(now);
        Ok(())
    }

    pub fn task_done(&mut self, task: u32, now: u64) -> Result<Wait, Refusal> {
        self.task(task)?;
        let mut wait = Wait::UntilRelease;
        if let Some(r) = self.reservation_of(task) {
            wait = self.wait_period(r, now);
        } else if let Some(id) = self.job_of_tasks(&[task]) {
            self.end(id, End::Completed, now);
        }
        self.settle(now);
        Ok(wait)
    }
}
