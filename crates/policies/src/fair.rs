//! Fair queueing: tasks share their group in proportion to their weights, by quanta.
//!
//! The quanta of a task follow each other. One has the start tag S, which is the finish tag of the
//! one before, or the virtual time V if that is later and the task was not ready; and the finish
//! tag S + execution / weight. Start-time fair queueing (Goyal, Vin and Cheng 1996) orders by S,
//! and V is the start tag of the quantum in execution. Weighted fair queueing (Demers, Keshav and
//! Shenker 1989; Parekh and Gallager 1993) orders by S + quantum / weight, and V advances as in a
//! fluid system, by the execution of the group over the weights of its active tasks.
//!
//! A quantum ends when it is exhausted, and when its task sleeps or completes its job; tags count
//! what was executed. The deadline of a quantum is the time until which the delay bound of the
//! policy promises its end (docs/policies.md): it orders nothing.

mod tags;

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::{Attribute, End, Standing, INFINITE};
use punctual_taskset::{registry, FairShare, GroupSpec, PolicySpec};

use crate::entry::{PolicyEntry, Setup};
use crate::error::{place, refused};
use crate::policy::{number, MemberParams, PolicyEvent, SchedulingPolicy};
use crate::{Context, JobParams};
use tags::{execution, priority, Flow, VirtualTime};

pub(crate) static WFQ: PolicyEntry = PolicyEntry {
    info: &registry::WFQ,
    order: &[Attribute::Priority],
    // No servers compete.
    priority: |_| i64::MIN,
    wakeup_rule: false,
    timers: false,
    make,
};

pub(crate) static SFQ: PolicyEntry = PolicyEntry { info: &registry::SFQ, ..WFQ };

struct Fair {
    /// By finish tags; else by start tags.
    by_finish: bool,
    share: FairShare,
    flows: Vec<Flow>,
    /// The index of each flow's task.
    members: Vec<u32>,
    /// By index of a task: the place of its flow.
    places: Vec<Option<usize>>,
    time: VirtualTime,
    /// When the virtual time was computed, ns.
    at: u64,
    /// What the tasks had executed by then, ns; `None` after a swap.
    executed: Option<u64>,
}

fn make(
    entry: &'static PolicyEntry,
    setup: &Setup<'_>,
) -> Result<Box<dyn SchedulingPolicy>, Diagnostic> {
    let competes = |g: &&GroupSpec| g.domain == setup.domain && number(g.parent) == setup.group;
    if let Some(g) = setup.set.groups.iter().find(competes) {
        let cause = format!("the policy \"{}\" above it schedules tasks only", entry.info.name);
        let help = "give the group another parent, or \"edf\" to the one above";
        return Err(refused(place("group", &g.name, g.line), cause, help));
    }
    let group = setup.group.checked_sub(1).map(|group| group as usize);
    let mut places = vec![None; setup.members as usize];
    let (mut flows, mut members) = (Vec::new(), Vec::new());
    for (index, task) in setup.tasks() {
        let Some(weight) = task.weight.filter(|&weight| weight > 0) else {
            let cause = format!("the policy \"{}\" needs its weight", entry.info.name);
            return Err(refused(place("task", &task.name, task.line), cause, "give it weight = 1"));
        };
        places[index] = Some(flows.len());
        flows.push(Flow::new(weight));
        members.push(index as u32);
    }
    Ok(Box::new(Fair {
        by_finish: std::ptr::eq(entry.info, &registry::WFQ),
        share: FairShare::of(setup.set, setup.domain, group),
        flows,
        members,
        places,
        time: VirtualTime::default(),
        at: 0,
        executed: Some(0),
    }))
}

impl Fair {
    /// Brings the virtual time to the present. At one instant a task may end its job and begin the
    /// next one: nothing else was in execution between them.
    fn advance(&mut self, context: &Context<'_>) {
        let now = context.now();
        if now <= self.at {
            return;
        }
        self.at = now;
        if !self.by_finish {
            return self.time.follow_starts(&self.flows);
        }
        let executed = self.members.iter().map(|&member| context.executed(member)).sum();
        let before = self.executed.replace(executed).unwrap_or(executed);
        self.time.serve(&self.flows, executed.saturating_sub(before));
    }

    /// Begins a quantum of a flow; `false` when the dispatcher has no room for its job.
    fn begin(&self, context: &mut Context<'_>, flow: &Flow) -> bool {
        let quantum = context.member().budget;
        // By how much the flow is ahead, and what is executed for other tasks beside their parts
        // (Goyal, Vin and Cheng 1996, theorem 4; Parekh and Gallager 1993, theorem 1).
        let (tag, beside) = match self.by_finish {
            true => (flow.finish(quantum), 1),
            false => (flow.start(), self.share.tasks),
        };
        let ahead = execution(tag.saturating_sub(self.time.now), self.share.weights);
        let most = ahead.saturating_add(u128::from(quantum) * u128::from(beside));
        let now = context.now();
        let deadline = now.saturating_add(self.share.time_for(most));
        if context.begin_release(now, deadline, quantum).is_err() {
            return false;
        }
        let (budget, priority) = (context.release().left, priority(tag));
        context.add_job(&JobParams { start: now, finish: INFINITE, budget, priority }).is_ok()
    }
}

impl SchedulingPolicy for Fair {
    fn admits(&self, member: &MemberParams) -> bool {
        self.places.get(member.index as usize).is_some_and(Option::is_some)
    }

    fn paces(&self, _: &MemberParams) -> bool {
        true
    }

    /// The tags mean the same under both policies: a task keeps its own.
    fn becomes(&mut self, to: &PolicySpec) -> bool {
        if !to.takes_weights() {
            return false;
        }
        self.by_finish = to.name == registry::WFQ.name;
        self.executed = None;
        true
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        let Some(place) = self.places[context.member().index as usize] else { return };
        self.advance(context);
        let mut flow = self.flows[place];
        match event {
            PolicyEvent::Released => flow.activate(self.time.now),
            PolicyEvent::JobEnded { end, used, .. } => {
                flow.end_quantum(used);
                if end == End::Exhausted && !flow.active {
                    // It fell asleep at the end of its quantum: the one in which it wakes up.
                    self.begin(context, &flow);
                }
                flow.active &= end == End::Exhausted;
            }
            PolicyEvent::Ready if !flow.active && context.standing().is_some() => {
                flow.activate(self.time.now);
            }
            PolicyEvent::Blocked if flow.active => flow.sleep(context.used()),
            PolicyEvent::Lost => match (context.standing(), flow.active) {
                (Some(Standing::Blocked), true) => flow.sleep(context.used()),
                (Some(Standing::Ready), false) => flow.activate(self.time.now),
                _ => return,
            },
            _ => return,
        }
        if flow.active {
            self.begin(context, &flow);
            // A thread that waits for its release may be asleep: it becomes active on waking up.
            flow.active =
                event != PolicyEvent::Released || context.standing() != Some(Standing::Blocked);
        }
        self.flows[place] = flow;
    }
}
