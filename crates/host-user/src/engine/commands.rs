//! The control side's commands: tasks are added, changed and removed between two instants.

use punctual_policies::LocalDispatcher;
use punctual_program_jobs::JobOrder;
use punctual_taskset::TaskChange;
use punctual_trace::Record;

use super::Engine;
use crate::member::{Member, MemberKind};
use crate::policy_swap::EngineSwap;
use crate::reports::Notice;

/// A request of the control side. [`Doorbell::request_stop`] ends an engine.
pub enum Command {
    /// The set's groups begin, at this origin (CLOCK_MONOTONIC ns); comes before the first task.
    Begin(u64),
    /// A new member, parked; its task is the dispatcher's to give.
    Add(Box<Member>),
    /// The processes of the task with this index are gone.
    Gone(u32),
    /// Groups have other policies from now on.
    Swap(Box<EngineSwap>),
    /// The task with this index has other parameters from its next release on.
    Change(u32, TaskChange),
    /// The group of this number, whose jobs the program adds, has another order.
    OrderJobs(u32, JobOrder),
}

impl Engine {
    /// Takes the control side's commands.
    pub(super) fn process_commands(&mut self, now: u64) {
        while let Some(command) = self.commands.take() {
            match command {
                Command::Begin(origin) => {
                    let Engine { dispatcher, allocators, notices, .. } = self;
                    if let Err(why) =
                        allocators.begin(&mut LocalDispatcher::new(dispatcher, now), origin)
                    {
                        notices.send(Notice::NotBegun(why));
                    }
                }
                Command::Add(member) => self.add(member, now),
                Command::Gone(index) => {
                    if let Some(i) = self.slot_of(index) {
                        self.remove(i as u32, now, false);
                    }
                }
                Command::Swap(mut swap) => {
                    self.swap(&mut swap, now);
                    self.notices.send(Notice::Swapped(swap));
                }
                Command::Change(index, change) => {
                    if let Some(i) = self.slot_of(index) {
                        self.change(i, &change, now);
                    }
                }
                Command::OrderJobs(group, order) => {
                    let Engine { dispatcher, allocators, .. } = self;
                    let mut gsi = LocalDispatcher::new(dispatcher, now);
                    // The control side has checked the group and the order.
                    let _ = allocators.set_order(&mut gsi, group, order.attributes());
                }
            }
        }
        // An abandoned ring: start_engine() has given up waiting for this thread.
        self.stop |= self.doorbell.stop_requested() || self.commands.is_abandoned();
    }

    /// Where the task with this index is.
    pub(super) fn slot_of(&self, index: u32) -> Option<usize> {
        self.members
            .iter()
            .position(|m| m.as_deref().is_some_and(|m| m.periods.params().task == index))
    }

    fn change(&mut self, i: usize, change: &TaskChange, now: u64) {
        let Engine { dispatcher, allocators, members, .. } = self;
        let Some(m) = members[i].as_deref_mut() else { return };
        // The control side has checked the parameters and the policy, so that nothing refuses them.
        let mut gsi = LocalDispatcher::new(dispatcher, now);
        if allocators.change(&mut gsi, m.task, change).is_ok() {
            m.periods.change(change);
            m.follow_own_ceiling(allocators);
            let budget = m.periods.next_params().budget;
            m.grain = if m.confined { m.grain.min(budget) } else { budget };
        }
    }

    fn add(&mut self, mut member: Box<Member>, now: u64) {
        // A task number is used again at once: events of a task that has just left come first.
        self.follow_events(now, 0);
        let task = match self.dispatcher.add_task(now) {
            Ok(task) => task,
            Err(why) => {
                self.notices.send(Notice::Refused(member, why));
                return;
            }
        };
        let index = member.periods.params().task;
        let mut gsi = LocalDispatcher::new(&mut self.dispatcher, now);
        let added = match &member.other {
            None => self.allocators.add(&mut gsi, index as usize, task),
            // Indices grow as long as a program adds tasks; task numbers are used again.
            Some(spec) => {
                self.allocators.add_other(&mut gsi, self.of_the_set + task.0 as usize, task, spec)
            }
        };
        if let Err(why) = added {
            let _ = self.dispatcher.task_gone(task, now);
            self.notices.send(Notice::Refused(member, why));
            return;
        }
        member.task = task;
        if let Some(trace) = &mut self.trace {
            // Charges of the task that had this number before come first.
            trace.send_new(&self.dispatcher);
            trace.send(Record::task_place(task.0, index));
        }
        member.by_policy(&self.allocators);
        if let MemberKind::Thread(control) = &member.kind {
            control.set_slot(task.0);
        }
        member.charged = member.clock(now);
        member.moving = true;
        self.moving.push(task.0);
        if member.page.is_some() {
            self.pages.add(task.0);
        }
        self.members[task.0 as usize] = Some(member);
        self.follow_suspension(task.0, now);
    }

    pub(super) fn remove(&mut self, i: u32, now: u64, returned: bool) {
        self.end_locks(i, now);
        let Some(mut member) = self.members.get_mut(i as usize).and_then(Option::take) else {
            return;
        };
        if let MemberKind::AdoptedThread(_) = &member.kind {
            // Nothing bounds it until it is restored.
            member.park();
        }
        self.end_added_jobs(&mut member, now);
        let _ = self.dispatcher.task_gone(member.task, now);
        self.allocators.remove(&mut LocalDispatcher::new(&mut self.dispatcher, now), member.task);
        self.moving.retain(|&m| m != i);
        self.pages.remove(i);
        self.cpu.ranked.retain(|&m| m != i);
        if member.jobs.is_some() {
            // The end of the job in flight, before another task has this number.
            self.follow_events(now, 0);
        }
        self.notices.send(Notice::Removed { member, returned });
    }
}
