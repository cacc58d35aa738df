//! Another policy for a group, while its tasks run.

use punctual_dispatcher::{Refusal, TaskId};
use punctual_taskset::{fmt_ns, PolicySpec, ServerSpec};

use crate::allocators::AtWork;
use crate::entry::Setup;
use crate::error::refused;
use crate::policy::number;
use crate::reserve::{in_windows, standing};
use crate::slot::{Phase, Slot};
use crate::Allocators;
use crate::Gsi;
use punctual_diagnostic::Diagnostic;

impl Allocators {
    /// Gives a group another policy. Its ordering changes at once; each task's jobs are the new
    /// policy's from that task's next release on, on the same grid; a release in flight ends under
    /// the old one. Allocates (the new policy's own data).
    ///
    /// # Errors
    /// What the new policy cannot do with the group's tasks; everything is as before then.
    pub fn swap(
        &mut self,
        gsi: &mut dyn Gsi,
        group: u32,
        to: &PolicySpec,
    ) -> Result<(), Diagnostic> {
        let place = || format!("group {group}");
        if group as usize >= self.groups.len() {
            return Err(refused(place(), "there is no such group", "name one of the set"));
        }
        if let Some(name) = self.unsuited(group, to) {
            let cause = format!("the server of \"{name}\" cannot compete under \"{}\"", to.name);
            let help = "swap to a policy that the server suits (docs/policies.md)";
            return Err(refused(place(), cause, help));
        }
        let entry = self.find(&to.name, place())?;
        let refused_order = |e| {
            refused(
                place(),
                format!("the dispatcher refuses the change: {e}"),
                "report it with the task set",
            )
        };
        if let Some(fault) = self.weights_fault(group, to) {
            return Err(fault);
        }
        let at = self.groups[group as usize] as usize;
        if self.at_work[at].policy.becomes(to) {
            self.at_work[at].entry = entry;
            self.spec_of(group).name.clone_from(&to.name);
            return gsi.set_order(group, entry.order).map_err(refused_order);
        }
        let policy = (entry.make)(
            entry,
            &Setup {
                set: &self.set,
                domain: self.domain,
                group,
                policy: to,
                costs: self.options.costs,
                members: self.slots.len() as u32,
            },
        )?;
        gsi.set_order(group, entry.order).map_err(refused_order)?;
        let at = self.place_for(AtWork { entry, policy });
        self.groups[group as usize] = at;
        *self.spec_of(group) = to.clone();
        let tasks = &mut self.slots[..self.servers];
        let of_group = |s: &&mut Slot| s.member.group == group && s.server.is_none();
        for slot in tasks.iter_mut().filter(of_group) {
            slot.next_by = at;
            slot.no_room = false;
            if let Phase::Reserved(r) = slot.phase {
                // A task without a reservation under the new policy leaves this one at its next
                // release.
                let policy = self.at_work[at as usize].policy.as_ref();
                if let Some(to) = standing(slot, policy) {
                    let changed =
                        in_windows(gsi, slot, policy, |gsi| gsi.change_reservation(r, &to));
                    match changed.map_err(refused_order)? {
                        Some(()) => slot.by = at,
                        None => slot.no_room = true,
                    }
                }
            }
        }
        self.rank_servers(gsi, group).map_err(refused_order)
    }

    /// The policy of a group.
    fn spec_of(&mut self, group: u32) -> &mut PolicySpec {
        match group.checked_sub(1) {
            None => &mut self.set.policy,
            Some(g) => &mut self.set.groups[g as usize].policy,
        }
    }

    /// Tasks with weights have no period and budget for other policies, and the reverse; and their
    /// quantum stays.
    fn weights_fault(&mut self, group: u32, to: &PolicySpec) -> Option<Diagnostic> {
        let from = self.spec_of(group).clone();
        let place = format!("group {group}");
        if from.takes_weights() != to.takes_weights() {
            let (have, help) = match from.takes_weights() {
                true => ("have weights", "swap to \"wfq\" or \"sfq\""),
                false => ("have no weights", "swap to a policy that takes periods and budgets"),
            };
            let cause = format!("its tasks {have}, which does not suit \"{}\"", to.name);
            return Some(refused(place, cause, help));
        }
        let quantum = to.quantum.filter(|&ns| ns != from.quantum_ns() && to.takes_weights())?;
        let (now, then) = (fmt_ns(from.quantum_ns()), fmt_ns(quantum));
        let cause = format!("its quantum is {now}, and a swap to {then} does not change it");
        Some(refused(place, cause, "leave the quantum out of the swap"))
    }

    /// A member of a group with a server that another policy does not suit.
    fn unsuited(&self, group: u32, to: &PolicySpec) -> Option<&str> {
        let of_group = |parent, domain| number(parent) == group && domain == self.domain;
        let tasks = self.set.tasks.iter().filter(|t| of_group(t.group, t.domain));
        let tasks = tasks.filter_map(|t| Some((t.name.as_str(), t.server?)));
        let groups = self.set.groups.iter().filter(|g| of_group(g.parent, g.domain));
        let groups = groups.filter_map(|g| match g.server {
            ServerSpec::Periodic { kind, .. } => Some((g.name.as_str(), kind)),
            ServerSpec::Windows { .. } => None,
        });
        tasks.chain(groups).find(|(_, kind)| !kind.suits(to)).map(|(name, _)| name)
    }

    /// Gives a task with a reservation of its own another budget, ns, from its next release on.
    ///
    /// # Errors
    /// [`Refusal::Nothing`] for a task whose releases its policy makes job by job; the dispatcher's
    /// refusal of the budget. The budget is unchanged then.
    pub fn change_budget(
        &mut self,
        gsi: &mut dyn Gsi,
        task: TaskId,
        budget: u64,
    ) -> Result<(), Refusal> {
        let s = self.slot_of(task).ok_or(Refusal::Nothing)?;
        let slot = &mut self.slots[s];
        let Phase::Reserved(r) = slot.phase else { return Err(Refusal::Nothing) };
        let before = std::mem::replace(&mut slot.member.budget, budget);
        let policy = self.at_work[slot.next_by as usize].policy.as_ref();
        let changed = match standing(slot, policy).filter(|_| policy.rows(&slot.member) == 0) {
            Some(to) => gsi.change_reservation(r, &to),
            None => Err(Refusal::Nothing),
        };
        if changed.is_err() {
            slot.member.budget = before;
        }
        changed
    }

    /// An unused place in the list of policies at work, or a new one.
    fn place_for(&mut self, at_work: AtWork) -> u32 {
        let kinds = self.kinds..self.kinds + crate::servers::KINDS.len() as u32;
        let free = |at: &u32| !kinds.contains(at) && !self.is_used(*at);
        match (0..self.at_work.len() as u32).find(free) {
            Some(at) => {
                self.at_work[at as usize] = at_work;
                at
            }
            None => {
                self.at_work.push(at_work);
                self.at_work.len() as u32 - 1
            }
        }
    }
}
