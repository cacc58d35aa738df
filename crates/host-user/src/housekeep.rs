//! Work that is not urgent: forwarding the engines' reports, exits of programs, the guardian.
//!
//! It runs in an ordinary thread, with unbounded latency; `reports.rs` says what is dropped when it
//! is late.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use punctual_taskset::fmt_ns;
use punctual_trace::{RunEvent, TaskEnd};

use crate::children::Child;
use crate::host::Host;
use crate::member::Member;
use crate::reports::Notice;
use crate::signal;
use crate::trace::RecordReceiver;

/// Programs that one call looks at: a thousand of them are looked at within half a second.
const AT_ONCE: usize = 64;
/// Programs are looked at so often at most: requests of the program, which housekeep too, do not
/// wait for that.
const LOOK_PERIOD: Duration = Duration::from_millis(10);

impl Host {
    /// Forwards the engines' reports to `sink`, handles exits of programs and restarts a killed
    /// guardian. Call it some ten times a second, from an ordinary thread.
    pub fn housekeep(&mut self, sink: &mut dyn FnMut(RunEvent)) {
        self.forward_reports(sink);
        if Instant::now() >= self.next_look {
            self.next_look = Instant::now() + LOOK_PERIOD;
            self.look_at_programs(sink);
        }
        self.restore_leaving(sink);
        if let Some(c) = &mut self.supervision {
            c.guardian
                .replace_if_dead()
                .into_iter()
                .for_each(|outcome| sink(RunEvent::Warning(outcome)));
        }
    }

    /// Takes in new processes and threads, and handles exits.
    fn look_at_programs(&mut self, sink: &mut dyn FnMut(RunEvent)) {
        let mut gone = Vec::new();
        // With many programs, not all of them each time: reading a cgroup takes some 20 us.
        let count = self.children.len();
        let some = count.min(AT_ONCE);
        self.children.rotate_left(some % count.max(1));
        for child in self.children.iter_mut().rev().take(some).filter(|child| !child.leaves()) {
            if let Some(how) = child.look() {
                gone.push((child.index, how));
            }
        }
        for (index, how) in gone {
            self.end_of_processes(index);
            if let Some(i) = self.children.iter().position(|c| c.index == index) {
                let child = self.children.remove(i);
                // Of a thread that has ended, its process and what it created may remain.
                if child.program().is_none() {
                    restore(child, sink);
                }
            }
            sink(RunEvent::Ended { task: index, how });
        }
    }

    /// Restores adopted processes that no engine has any more.
    fn restore_leaving(&mut self, sink: &mut dyn FnMut(RunEvent)) {
        let gone = |c: &Child| c.leaves() && !self.tasks.contains_key(&c.index);
        while let Some(i) = self.children.iter().position(gone) {
            let child = self.children.remove(i);
            let task = child.index;
            restore(child, sink);
            sink(RunEvent::Ended { task, how: TaskEnd::Stopped });
        }
    }

    /// Forwards what the engines have sent, their records to the trace. Notices are popped first
    /// and forwarded last: a task's reports were sent before its last notice, so all of them
    /// precede it.
    pub(crate) fn forward_reports(&mut self, sink: &mut dyn FnMut(RunEvent)) {
        let mut notices = Vec::new();
        for (e, engine) in self.engines.iter_mut().enumerate() {
            notices
                .extend(std::iter::from_fn(|| engine.notices.pop().ok()).map(|notice| (e, notice)));
            while let Ok(report) = engine.reports.pop() {
                report.periods().for_each(|period| sink(period.into()));
            }
            engine.trace.iter_mut().for_each(RecordReceiver::forward);
            match engine.stats.take_stopped() {
                0 => {}
                ns => sink(RunEvent::Warning(format!(
                    "the dispatcher of CPU {} was stopped for {}: it enforced no budget and \
                     released no task",
                    engine.cpu,
                    fmt_ns(ns.next_multiple_of(1_000_000))
                ))),
            }
            let lost = engine.stats.take_events_lost();
            if lost > 0 {
                sink(RunEvent::Warning(format!(
                    "the dispatcher's ring was full and {lost} events were dropped; periods of \
                     that time may be reported wrongly"
                )));
            }
        }
        for (&task, entry) in &self.tasks {
            match entry.unreported.swap(0, Relaxed) {
                0 => {}
                count => sink(RunEvent::Unreported { task, count }),
            }
        }
        for (engine, notice) in notices {
            self.handle_notice(engine, notice, sink);
        }
    }

    fn handle_notice(&mut self, engine: usize, notice: Notice, sink: &mut dyn FnMut(RunEvent)) {
        match notice {
            Notice::Removed { mut member, returned } => {
                self.drop_requests(&mut member);
                self.remove_task(engine, &member);
                if returned {
                    sink(RunEvent::Ended {
                        task: member.periods.params().task,
                        how: TaskEnd::Returned,
                    });
                }
            }
            Notice::Refused(member, why) => {
                let index = member.periods.params().task;
                self.remove_task(engine, &member);
                member.dismiss();
                // A program stays parked until everything is restored.
                self.children.retain(|c| c.index != index);
                sink(RunEvent::Warning(format!("task {index}: the dispatcher refused it: {why}")));
                sink(RunEvent::Ended { task: index, how: TaskEnd::Refused });
            }
            Notice::Unresponsive(index) if self.children.iter().any(|c| c.index == index) => {
                sink(RunEvent::Warning(format!(
                    "task {index} continues inside the kernel while it is parked: when that takes \
                     longer than 1 ms it is put into the ordinary class until its next budget"
                )));
            }
            Notice::Unresponsive(index) => sink(RunEvent::Warning(format!(
                "task {index} blocks the gate signal ({}) and could not be parked: beyond its \
                 budgets it continues in the ordinary class",
                signal::gate()
            ))),
            Notice::Saturated(index) => sink(RunEvent::Warning(format!(
                "task {index}: 30,000 wait_period calls are overdue; further ones are not counted"
            ))),
            Notice::Swapped(swap) => {
                self.engines[engine].swapping = false;
                if let Some(why) = swap.refused {
                    let cpu = self.engines[engine].cpu;
                    sink(RunEvent::Warning(format!(
                        "the dispatcher of CPU {cpu} refused the priority of a group: {why}"
                    )));
                }
            }
            Notice::PolicyStopped(stop) => sink(RunEvent::PolicyStopped(stop)),
            Notice::NotBegun(why) => {
                sink(RunEvent::Warning(format!(
                    "the dispatcher refused the set's groups: {why}; they get no time"
                )));
            }
        }
    }

    /// The last notice of a member was popped.
    fn remove_task(&mut self, engine: usize, member: &Member) {
        self.engines[engine].commands.member_has_left();
        self.tasks.remove(&member.periods.params().task);
        member.suspension.end();
    }
}

fn restore(child: Child, sink: &mut dyn FnMut(RunEvent)) {
    let task = child.index;
    for problem in child.give_back() {
        sink(RunEvent::Warning(format!("task {task}: not restored: {problem}")));
    }
}
