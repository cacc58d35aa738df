//! Tasks that lend their jobs to others.

use punctual_dispatcher::Refusal;

use super::{Model, ModelEvent};

impl Model {
    /// The task that the jobs of `task` execute.
    pub fn executed(&self, task: u32) -> u32 {
        match self.task(task).expect("it is there").lends_to {
            Some(to) => self.executed(to),
            None => task,
        }
    }

    /// `task` and all that lend to it, directly or through others.
    pub fn tree(&self, task: u32) -> Vec<u32> {
        let Ok(top) = self.task(task) else { return Vec::new() };
        let below = top.lenders.iter().flat_map(|lender| self.tree(*lender));
        [task].into_iter().chain(below).collect()
    }

    /// Reports the tree below `top` as ready or blocked, if that is another one now.
    pub(super) fn follow(&mut self, top: u32, now: u64) {
        let blocked = self.task(self.executed(top)).expect("it is there").sleeps;
        if self.task(top).expect("it is there").blocked == blocked {
            return;
        }
        for task in self.tree(top) {
            self.task_mut(task).blocked = blocked;
            if blocked {
                self.report(ModelEvent::Blocked { at: now, task });
                continue;
            }
            self.report(ModelEvent::Ready { at: now, task });
            if let Some(r) = self.reservation_of(task) {
                self.reservation_woke(r, now);
            }
        }
    }

    fn unlend(&mut self, task: u32) {
        if let Some(to) = self.task_mut(task).lends_to.take() {
            self.task_mut(to).lenders.retain(|lender| *lender != task);
        }
    }

    pub fn lend(&mut self, task: u32, to: Option<u32>, now: u64) -> Result<(), Refusal> {
        self.task(task)?;
        to.map(|to| self.task(to)).transpose()?;
        if self.task(task)?.lends_to == to {
            return Ok(());
        }
        if to.is_some_and(|to| self.tree(task).contains(&to)) {
            return Err(Refusal::Tree);
        }
        self.unlend(task);
        if let Some(to) = to {
            self.task_mut(task).lends_to = Some(to);
            self.task_mut(to).lenders.insert(0, task);
        }
        self.follow(task, now);
        self.settle(now);
        Ok(())
    }

    /// Before a task goes: what is lent to it, each by a call of its own, and what it lends.
    pub(super) fn end_lending(&mut self, task: u32, now: u64) {
        for lender in self.task(task).expect("it is there").lenders.clone() {
            self.lend(lender, None, now).expect("it ends");
        }
        self.unlend(task);
    }
}
