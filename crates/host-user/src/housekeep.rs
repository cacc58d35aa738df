//! What is not urgent: passing on what the engines report, exits of programs, new threads, the guardian.
//!
//! Nothing here may be relied on to happen in time. How long the housekeeper can be held up without loss is told
//! in `reports.rs`.

use std::sync::atomic::Ordering::Relaxed;

use punctual_trace::Told;

use crate::engine::Command;
use crate::gate;
use crate::host::Host;
use crate::member::Member;
use crate::reports::Notice;

impl Host {
    /// Looks after everything that is not urgent: what the engines tell, exits, new threads, the
    /// guardian. To be called some ten times a second, from an ordinary thread.
    pub fn housekeep(&mut self, sink: &mut dyn FnMut(Told)) {
        self.pass_on(sink);
        let mut gone = Vec::new();
        for child in &mut self.children {
            if let Some(how) = child.look() {
                gone.push((child.index, how));
            }
        }
        for (index, how) in gone {
            self.children.retain(|c| c.index != index);
            let pending = self.pending.len();
            self.pending.retain(|p| p.member.track.index != index);
            if self.pending.len() < pending {
                // No engine has it yet.
                self.tasks.remove(&index);
            } else if let Some(task) = self.tasks.get(&index) {
                let engine = &mut self.engines[task.engine];
                engine.send(Command::Gone(index));
                engine.bell.ring();
            }
            sink(Told::Ended(index, how));
        }
        if let Some(c) = &mut self.custody {
            if !c.guardian.is_alive() {
                let told = match c.guardian.restart() {
                    Ok(()) => "the guardian was killed; another one watches now".to_owned(),
                    Err(e) => format!("the guardian was killed, and no other can be started: {}", e.cause),
                };
                sink(Told::Warning(told));
            }
        }
    }

    /// Passes on what the engines have sent. Notices are popped first and passed on last: a task's reports were sent
    /// before its last notice, so all of them precede it.
    pub(crate) fn pass_on(&mut self, sink: &mut dyn FnMut(Told)) {
        let mut notices = Vec::new();
        for (e, engine) in self.engines.iter_mut().enumerate() {
            notices.extend(std::iter::from_fn(|| engine.notices.pop().ok()).map(|notice| (e, notice)));
            while let Ok(report) = engine.reports.pop() {
                report.periods().for_each(|period| sink(Told::Period(period)));
            }
            let lost = engine.stats.take_events_lost();
            if lost > 0 {
                sink(Told::Warning(format!(
                    "{lost} events had no room in the dispatcher's ring; periods at that time may be told wrongly"
                )));
            }
        }
        for (&task, entry) in &self.tasks {
            match entry.unreported.swap(0, Relaxed) {
                0 => {}
                count => sink(Told::Unreported { task, count }),
            }
        }
        for (engine, notice) in notices {
            self.noticed(engine, notice, sink);
        }
    }

    fn noticed(&mut self, engine: usize, notice: Notice, sink: &mut dyn FnMut(Told)) {
        match notice {
            Notice::Removed { member, returned } => {
                self.is_out(engine, &member);
                if returned {
                    sink(Told::Ended(member.track.index, "returned".to_owned()));
                }
            }
            Notice::Refused(member, why) => {
                let index = member.track.index;
                self.is_out(engine, &member);
                member.dismiss();
                // A program stays parked until everything is given back.
                self.children.retain(|c| c.index != index);
                sink(Told::Warning(format!("task {index}: the dispatcher refused it: {why}")));
                sink(Told::Ended(index, "was refused".to_owned()));
            }
            Notice::Unresponsive(index) if self.children.iter().any(|c| c.index == index) => {
                sink(Told::Warning(format!(
                    "task {index} goes on inside the kernel while it is parked: when that takes longer than 1 ms it is \
                     put into the ordinary class until its next budget"
                )));
            }
            Notice::Unresponsive(index) => sink(Told::Warning(format!(
                "task {index} blocks the gate signal ({}) and could not be parked: beyond its budgets it goes on in \
                 the ordinary class",
                gate::signal()
            ))),
            Notice::Saturated(index) => sink(Told::Warning(format!(
                "task {index}: 30,000 wait_period calls are overdue; further ones are not counted"
            ))),
            Notice::NotBegun(why) => {
                sink(Told::Warning(format!("the dispatcher refused the set's groups: {why}; they get no time")));
            }
        }
    }

    /// The last notice of a member was popped.
    fn is_out(&mut self, engine: usize, member: &Member) {
        self.engines[engine].in_flight -= 1;
        self.tasks.remove(&member.track.index);
    }
}
