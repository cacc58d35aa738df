//! Other policies for groups, while their tasks run.

use punctual_dispatcher::{Refusal, TaskId};
use punctual_taskset::{PolicySpec, TaskChange, TaskSet};

use crate::at_work::AtWork;
use crate::error::refused;
use crate::reserve::{in_windows, standing};
use crate::servers::KINDS;
use crate::slot::Phase;
use crate::{Allocators, Gsi, PolicySwap};
use punctual_diagnostic::Diagnostic;

impl Allocators {
    /// Gives groups other policies. Their orderings change at once; each task's jobs are those of
    /// the new policy from that task's next release on, on the same grid; a release in flight ends
    /// under the old one. All of it takes effect at this instant. Does not allocate.
    ///
    /// # Errors
    /// The dispatcher refuses the priority of a server in a swapped group; all other changes are
    /// made then.
    pub fn swap(&mut self, gsi: &mut dyn Gsi, swap: &mut PolicySwap) -> Result<(), Refusal> {
        let mut done = Ok(());
        for change in &mut swap.groups {
            let group = change.group;
            let Some(new) = &change.at_work else { continue };
            let entry = new.entry;
            self.guarded |= new.is_guarded();
            done = done.and(gsi.set_order(group, entry.order));
            let at = self.groups[group as usize] as usize;
            let becomes = self.at_work[at].policy.becomes(&change.spec);
            std::mem::swap(spec_of(&mut self.set, group), &mut change.spec);
            if becomes {
                self.at_work[at].entry = entry;
                continue;
            }
            let at = self.place_for(&mut change.at_work);
            self.groups[group as usize] = at;
            for s in 0..self.servers {
                if self.slots[s].member.group == group && self.slots[s].server.is_none() {
                    self.swap_member(gsi, s, at);
                }
            }
            done = done.and(self.rank_servers(gsi, group));
        }
        done
    }

    /// Gives one group another policy, as [`swap`](Allocators::swap); without a quantum it keeps
    /// that of the group. Allocates (the new policy's own data).
    ///
    /// # Errors
    /// There is no such group; what the new policy cannot do with the group's tasks. Everything is
    /// as before then.
    pub fn swap_group(
        &mut self,
        gsi: &mut dyn Gsi,
        group: u32,
        to: &PolicySpec,
    ) -> Result<(), Diagnostic> {
        let place = || format!("group {group}");
        if group as usize >= self.groups.len() {
            return Err(refused(place(), "there is no such group", "name one of the set"));
        }
        let mut set = self.set.clone();
        let spec = spec_of(&mut set, group);
        let quantum = to.quantum.or(spec.quantum);
        *spec = PolicySpec { quantum, ..to.clone() };
        let mut swap = PolicySwap::prepare(&self.set, &set, self.domain, self.options)?;
        self.swap(gsi, &mut swap).map_err(|e| {
            let cause = format!("the dispatcher refuses the change: {e}");
            refused(place(), cause, "report it with the task set")
        })
    }

    /// The next release of a task is the one of the policy at this place.
    fn swap_member(&mut self, gsi: &mut dyn Gsi, s: usize, at: u32) {
        let slot = &mut self.slots[s];
        slot.next_by = at;
        slot.no_room = false;
        let Phase::Reserved(r) = slot.phase else { return };
        // A task without a reservation under the new policy leaves this one at its next release.
        let policy = self.at_work[at as usize].policy.as_ref();
        let Some(to) = standing(slot, policy) else { return };
        match in_windows(gsi, slot, policy, |gsi| gsi.change_reservation(r, &to)) {
            Ok(Some(())) => slot.by = at,
            // The policy makes its jobs then.
            Ok(None) | Err(_) => slot.no_room = true,
        }
    }

    /// Gives a task with a reservation of its own other parameters, from its next release on, which
    /// comes when it was due.
    ///
    /// # Errors
    /// [`Refusal::Nothing`] for a task whose releases its policy makes job by job; the dispatcher's
    /// refusal of the parameters. They are unchanged then.
    pub fn change(
        &mut self,
        gsi: &mut dyn Gsi,
        task: TaskId,
        change: &TaskChange,
    ) -> Result<(), Refusal> {
        let s = self.slot_of(task).ok_or(Refusal::Nothing)?;
        let slot = &mut self.slots[s];
        let Phase::Reserved(r) = slot.phase else { return Err(Refusal::Nothing) };
        let before = slot.member;
        slot.member.change(change);
        let policy = self.at_work[slot.next_by as usize].policy.as_ref();
        let changed = match standing(slot, policy).filter(|_| policy.rows(&slot.member) == 0) {
            Some(to) => gsi.change_reservation(r, &to),
            None => Err(Refusal::Nothing),
        };
        if changed.is_err() {
            slot.member = before;
        }
        changed
    }

    /// Puts a policy into an unused place of the list of policies at work, and takes what was
    /// there; or into a new one.
    fn place_for(&mut self, new: &mut Option<AtWork>) -> u32 {
        let kinds = self.kinds..self.kinds + KINDS.len() as u32;
        let free = |at: &u32| !kinds.contains(at) && !self.is_used(*at);
        let place = (0..self.at_work.len() as u32).find(free);
        match (place, new.as_mut()) {
            (Some(at), Some(new)) => {
                std::mem::swap(&mut self.at_work[at as usize], new);
                at
            }
            _ => {
                self.at_work.extend(new.take());
                self.at_work.len() as u32 - 1
            }
        }
    }
}

/// The policy of a group.
pub(crate) fn spec_of(set: &mut TaskSet, group: u32) -> &mut PolicySpec {
    match group.checked_sub(1) {
        None => &mut set.policy,
        Some(g) => &mut set.groups[g as usize].policy,
    }
}
