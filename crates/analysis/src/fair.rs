//! Tasks that share a group by weight: the delay bounds of fair queueing, on what the group is sure
//! to receive.
//!
//! A quantum of `q` ns of a task of weight `w` ends when the group has executed, since the time at
//! which the quantum was due, at most
//!
//! ```text
//! sfq: q * W / w + (N - 1) * q     (Goyal, Vin and Cheng 1996, theorem 4)
//! wfq: q * W / w + q               (Parekh and Gallager 1993, theorem 1)
//! ```
//!
//! where N tasks have the weights W together: q * W / w is the fluid share, and the rest is what
//! quanta of other tasks are executed early. The published bounds are for a server of a constant
//! rate; one whose rate fluctuates executes that much within the inverse of its supply-bound
//! function.

use punctual_taskset::{registry, FairShare, PolicySpec, TaskSpec};

use crate::hierarchy::Hierarchy;
use crate::interference::Interference;
use crate::record::task_result;
use crate::results::{Fit, TaskAnalysis, Test};
use crate::supply::Supply;

impl Hierarchy<'_> {
    /// Records the tasks of a group. None of them makes a set fail: a weight asks for no deadline.
    pub(crate) fn test_fair(
        &mut self,
        group: Option<usize>,
        policy: &PolicySpec,
        supply: &Supply,
        host: &Interference,
    ) {
        let (set, domain) = (self.set, self.domain);
        let share = FairShare::of(set, domain, group);
        let by_start = policy.name == registry::SFQ.name;
        let of_group = |t: &TaskSpec| t.domain == domain && t.group == group;
        for (index, task) in set.tasks.iter().enumerate().filter(|(_, t)| of_group(t)) {
            let work = work(by_start, &share, task);
            let (deadline, response) = (share.time_for(work), host.time_for(work, supply));
            let limited = self.budget_groups.supply(task.budget_group).is_some();
            let fits = !limited && response <= deadline;
            let mut result = TaskAnalysis { deadline, ..task_result(set, index, Test::FairShare) };
            if fits {
                result.fit = Fit::Fits;
                // Under wfq a task may receive quanta long before they are due: from its release,
                // the next one has no such bound.
                result.response = Some(response).filter(|_| by_start);
                result.slack = Some(deadline - response);
            } else {
                result.fit = Fit::BestEffort;
                let why = if limited { LIMITED } else { FEWER };
                result.why = Some(why.to_owned());
            }
            self.put_task(result);
        }
    }
}

const LIMITED: &str = "it receives its share of the group only while its budget group is not \
                       exhausted, so that nothing is promised to it";

const FEWER: &str = "its group may receive its budget later than by its period, so that it gets \
                     its share and no bound of the delay";

/// The most that the group executes from the time at which a quantum is due to its end, ns.
fn work(by_start: bool, share: &FairShare, task: &TaskSpec) -> u128 {
    let (quantum, weight) = (u128::from(task.budget), u128::from(task.weight.unwrap_or(1).max(1)));
    let fluid = (quantum * u128::from(share.weights)).div_ceil(weight);
    let early = if by_start { share.tasks.saturating_sub(1) } else { 1 };
    fluid + quantum * u128::from(early)
}
