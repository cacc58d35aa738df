//! Other policies for groups of a domain, made before the instant of the swap.

use punctual_diagnostic::Diagnostic;
use punctual_taskset::{fmt_ns, DomainId, PolicySpec, ServerSpec, TaskSet};

use crate::allocators::{find, AllocatorOptions};
use crate::at_work::AtWork;
use crate::entry::Setup;
use crate::error::{place, refused};
use crate::policy::number;
use crate::{servers, JOBS};

/// New policies for groups of one domain, for [`Allocators::swap`](crate::Allocators::swap).
///
/// What allocates and what can be refused is done when this is made. After the swap it has the
/// policies that are not used any more: drop it where freeing memory delays no task.
pub struct PolicySwap {
    pub(crate) groups: Vec<GroupSwap>,
}

/// The new policy of one group.
pub(crate) struct GroupSwap {
    pub(crate) group: u32,
    pub(crate) spec: PolicySpec,
    pub(crate) at_work: Option<AtWork>,
}

impl PolicySwap {
    /// Makes the policies of `domain` that are not the same in `to` as in `from`, which has the
    /// same tasks and groups. `options` are those of the allocators.
    ///
    /// # Errors
    /// A policy does not support the tasks of its group, or a server in it cannot compete under it.
    pub fn prepare(
        from: &TaskSet,
        to: &TaskSet,
        domain: DomainId,
        options: AllocatorOptions,
    ) -> Result<PolicySwap, Diagnostic> {
        let mut groups = Vec::new();
        for group in 0..=to.groups.len() as u32 {
            let index = group.checked_sub(1).map(|g| g as usize);
            let (before, policy) = (from.policy_of(index), to.policy_of(index));
            if before == policy || index.is_some_and(|g| to.groups[g].domain != domain) {
                continue;
            }
            unsuited(to, domain, index)?;
            let place = match index {
                None => "policy".to_owned(),
                Some(g) => place("group", &to.groups[g].name, to.groups[g].line),
            };
            if [before, policy].iter().any(|of| of.name == JOBS.info.name) {
                let cause = format!("the policy \"{}\" is not swapped", JOBS.info.name);
                return Err(refused(place, cause, "stop the set, and start it with the other"));
            }
            keeps_weights(before, policy).map_err(|(cause, help)| refused(&*place, cause, help))?;
            let entry = find(options.table(), policy, place)?;
            let members = (to.tasks.len() + servers::members(to, domain).len()) as u32;
            let (set, costs, members) = (to, options.costs, members + options.room);
            let setup = Setup { set, domain, group, policy, costs, members };
            let at_work = Some(AtWork::make(entry, &setup, options.longest_answer)?);
            groups.push(GroupSwap { group, spec: policy.clone(), at_work });
        }
        Ok(PolicySwap { groups })
    }

    /// No group of the domain gets another policy.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The groups, by their numbers in the dispatcher, and the names of their new policies; before
    /// the swap.
    pub fn changes(&self) -> impl Iterator<Item = (u32, &'static str)> + '_ {
        let of =
            |change: &GroupSwap| Some((change.group, change.at_work.as_ref()?.entry.info.name));
        self.groups.iter().filter_map(of)
    }
}

/// Refuses a member of a group with a server that the group's policy does not suit.
fn unsuited(set: &TaskSet, domain: DomainId, group: Option<usize>) -> Result<(), Diagnostic> {
    let policy = set.policy_of(group);
    let competes = |parent, of| number(parent) == number(group) && of == domain;
    let tasks = set.tasks.iter().filter(|t| competes(t.group, t.domain));
    let tasks = tasks.filter_map(|t| Some((place("task", &t.name, t.line), t.server?)));
    let groups = set.groups.iter().filter(|g| competes(g.parent, g.domain));
    let groups = groups.filter_map(|g| match g.server {
        ServerSpec::Periodic { kind, .. } => Some((place("group", &g.name, g.line), kind)),
        ServerSpec::Windows { .. } => None,
    });
    match tasks.chain(groups).find(|(_, kind)| !kind.suits(policy)) {
        None => Ok(()),
        Some((place, _)) => {
            let cause = format!("its server cannot compete under \"{}\"", policy.name);
            let help = "swap to a policy that the server suits (docs/policies.md)";
            Err(refused(place, cause, help))
        }
    }
}

/// Refuses what a swap does not change: tasks with weights have no period and budget for other
/// policies, and the reverse; and their quantum stays. With the help.
fn keeps_weights(from: &PolicySpec, to: &PolicySpec) -> Result<(), (String, &'static str)> {
    if from.takes_weights() != to.takes_weights() {
        let (have, help) = match from.takes_weights() {
            true => ("have weights", "swap to \"wfq\" or \"sfq\""),
            false => ("have no weights", "swap to a policy that takes periods and budgets"),
        };
        return Err((format!("its tasks {have}, which does not suit \"{}\"", to.name), help));
    }
    let (now, then) = (from.quantum_ns(), to.quantum_ns());
    if to.takes_weights() && now != then {
        let (now, then) = (fmt_ns(now), fmt_ns(then));
        let cause = format!("its quantum is {now}, and a swap to {then} does not change it");
        return Err((cause, "leave the quantum as it is"));
    }
    Ok(())
}
