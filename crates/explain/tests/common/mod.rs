//! Traces of constructed runs, and what must hold of each explanation.

#![allow(dead_code)]

use punctual_explain::{Activity, CauseKind, Explainer, Explanation};
use punctual_host_sim::{Options, Simulation, Watcher};
use punctual_taskset::{Costs, DomainId, TaskSet};
use punctual_trace::{Header, Limits, Period, Trace, TraceBuffer, TraceSink};

/// Puts the periods into the trace, as a session does.
struct Periods(TraceSink, u64);

impl Watcher for Periods {
    fn period(&mut self, period: &Period) {
        if period.deadline <= self.1 {
            self.0.period(period);
        }
    }
}

/// The header of a trace of this set.
pub fn header(host: &str, set: &TaskSet) -> Header {
    let names = set.tasks.iter().map(|t| t.name.clone()).collect();
    let header = Header::new(host, 0, &set.policy.name, names, Limits::default());
    Header { set: set.to_toml(), ..header }
}

/// The trace of a set that is simulated for so many milliseconds.
pub fn simulate(set: &str, until_ms: u64, costs: Costs) -> Trace {
    let set = TaskSet::parse(set, "set.toml")
        .unwrap_or_else(|e| panic!("{}: {}\n{set}", e.cause, e.help));
    let buffer = TraceBuffer::default();
    let sink = TraceSink::new(buffer.clone(), header("sim", &set));
    let options =
        Options { costs, traces: vec![(DomainId(0), sink.clone())], ..Options::default() };
    let end = until_ms * 1_000_000;
    let simulation =
        Simulation::new(&set, options).unwrap_or_else(|e| panic!("{}: {}", e.cause, e.help));
    simulation.run(end, &mut Periods(sink.clone(), end)).expect("it runs");
    assert_eq!(sink.finish().expect("memory takes it"), 0);
    Trace::read(&mut buffer.bytes().as_slice()).expect("it is whole")
}

/// Explains a miss, whose shares must add up.
pub fn explain(trace: &Trace, task: &str, number: u64) -> Explanation {
    let explainer = Explainer::new(trace).expect("it has a set");
    let place =
        explainer.set().tasks.iter().position(|t| t.name == task).expect("it is in the set");
    let period = explainer.periods(place as u32).iter().find(|p| p.number == number);
    let period = *period.unwrap_or_else(|| panic!("{task} has no period {number}"));
    assert!(period.miss, "{task} met deadline {number}: {period:?}");
    let explanation = explainer.explain(&period);
    adds_up(&explanation);
    explanation
}

/// The spans are the window without a hole, and the shares all of it, to the nanosecond.
fn adds_up(explanation: &Explanation) {
    let (period, spans) = (&explanation.period, &explanation.spans);
    let mut at = period.release;
    for span in spans {
        assert_eq!(span.from_ns, at, "{spans:?}");
        assert!(span.to_ns > span.from_ns, "{spans:?}");
        at = span.to_ns;
    }
    assert_eq!(at, period.deadline, "{spans:?}");
    let sum: u64 = explanation.shares.iter().map(|share| share.ns).sum();
    assert_eq!(sum, period.deadline - period.release);
}

/// The main cause of a miss, and the tasks or the group that it names, must be these.
pub fn check(what: &str, trace: &Trace, task: &str, number: u64, kind: CauseKind, names: &[&str]) {
    let explanation = explain(trace, task, number);
    let set = Explainer::new(trace).expect("it has a set").set().clone();
    let cause = &explanation.cause;
    assert_eq!(cause.kind, kind, "{what}: {explanation:#?}");
    let named: Vec<&str> = match (kind, cause.group) {
        (CauseKind::SegmentExhausted, Some(node)) => vec![&set.budget_groups[node as usize].name],
        (_, Some(group)) => vec![&set.groups[group as usize].name],
        _ => cause.tasks.iter().map(|t| set.tasks[t.0 as usize].name.as_str()).collect(),
    };
    assert_eq!(named, names, "{what}: {explanation:#?}");
    assert!(cause.ns > 0 && cause.lacking_ns > 0, "{what}: {cause:?}");
    let whole = explanation.period.deadline - explanation.period.release;
    assert!(cause.ns <= whole, "{what}: {cause:?}");
    let executed = explanation.shares.iter().any(|s| s.what == Activity::Executed && s.ns == whole);
    assert!(!executed, "{what}: a job that executes throughout has no cause outside it");
}
