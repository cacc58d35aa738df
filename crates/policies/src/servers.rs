//! Servers of scheduling groups, and the budgets of budget groups: members whose jobs serve a group
//! or a node (RED-Linux V-A, V-B). A reservation of the dispatcher releases each, or its policy.

mod adaptive;
mod reserved;
mod soft_bandwidth;
mod sporadic;
mod total_bandwidth;

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::{Attribute, For, OverrunPolicy, Refusal};
use punctual_taskset::{GroupSpec, ServerKind, ServerSpec, TaskSet};

use crate::allocators::Allocators;
use crate::at_work::AtWork;
use crate::entry::{PolicyEntry, Setup};
use crate::jobs::SERVER;
use crate::policy::{number, MemberParams, PolicyEvent};
use crate::reserve::standing;
use crate::slot::{Phase, Slot};
use crate::{Context, Gsi, JobParams};

/// The kinds of server, each a policy of its own.
pub(crate) static KINDS: [&PolicyEntry; 8] = [
    &reserved::DEFERRABLE,
    &reserved::POLLING,
    &reserved::CONSTANT_BANDWIDTH,
    &soft_bandwidth::SOFT_CONSTANT_BANDWIDTH,
    &total_bandwidth::TOTAL_BANDWIDTH,
    &total_bandwidth::CONSTANT_UTILIZATION,
    &sporadic::SPORADIC,
    &adaptive::ADAPTIVE,
];

/// Its place in [`KINDS`].
pub(crate) fn place_of(kind: ServerKind) -> u32 {
    match kind {
        ServerKind::Deferrable => 0,
        ServerKind::Polling => 1,
        ServerKind::ConstantBandwidth => 2,
        ServerKind::SoftConstantBandwidth => 3,
        ServerKind::TotalBandwidth => 4,
        ServerKind::ConstantUtilization => 5,
        ServerKind::Sporadic => 6,
        ServerKind::Adaptive => 7,
    }
}

/// A server orders nothing; the group that it serves has a policy of its own.
const NO_MEMBERS: &[Attribute] = &[];

/// Begins a release, due at `at`, whose only job this is: with its finish as the deadline, and its
/// budget. If the dispatcher refuses the job, the host reports the release as lost.
fn begin_with_job(context: &mut Context<'_>, at: u64, job: JobParams) {
    if context.begin_release(at, job.finish, job.budget).is_ok() {
        let _ = context.add_job(&JobParams { budget: context.release().left, ..job });
    }
}

/// What a kind of server keeps of each member, by index.
fn state<T: Clone>(setup: &Setup<'_>, initial: T) -> Vec<T> {
    vec![initial; setup.members as usize]
}

/// The servers of a domain: those of budget groups, then those of groups, in the order of the file
/// (a job may name a node only when that is made, so parents come first).
pub(crate) fn members(
    set: &TaskSet,
    domain: punctual_taskset::DomainId,
) -> Vec<(MemberParams, ServerKind)> {
    let mut servers = Vec::new();
    let parents: Vec<Option<usize>> = set.budget_groups.iter().map(|b| b.parent).collect();
    for n in parents_first(&parents) {
        let b = &set.budget_groups[n];
        if b.domain == domain {
            let member = MemberParams {
                index: 0,
                serves: For::Budget(number(Some(n))),
                group: 0,
                budget_group: number(b.parent),
                offset: 0,
                period: b.period,
                budget: b.budget,
                deadline: b.period,
                priority: 0,
                min_budget: None,
                mandatory: None,
                promotion: None,
            };
            servers.push((member, ServerKind::Deferrable));
        }
    }
    for (n, g) in set.groups.iter().enumerate().filter(|(_, g)| g.domain == domain) {
        servers.extend(of_group(n, g));
    }
    servers
}

/// One server, or one of each window.
fn of_group(n: usize, g: &GroupSpec) -> Vec<(MemberParams, ServerKind)> {
    let server = |offset, period, budget, deadline| MemberParams {
        index: 0,
        serves: For::Group(number(Some(n))),
        group: number(g.parent),
        budget_group: number(g.budget_group),
        offset,
        period,
        budget,
        deadline,
        priority: g.priority,
        min_budget: None,
        mandatory: None,
        promotion: None,
    };
    match &g.server {
        ServerSpec::Periodic { period, budget, deadline, offset, kind } => {
            vec![(server(*offset, *period, *budget, *deadline), *kind)]
        }
        ServerSpec::Windows { cycle, windows } => windows
            .iter()
            .map(|w| (server(w.start, *cycle, w.length, w.length), ServerKind::Deferrable))
            .collect(),
    }
}

/// Places in the list, every parent before its children; those of a cycle are left out.
fn parents_first(parents: &[Option<usize>]) -> Vec<usize> {
    let mut placed = vec![false; parents.len()];
    let mut order = Vec::with_capacity(parents.len());
    let mut chain = Vec::new();
    for n in 0..parents.len() {
        let mut at = Some(n);
        while let Some(i) = at.filter(|&i| !placed[i] && chain.len() <= parents.len()) {
            chain.push(i);
            at = parents[i];
        }
        if chain.len() > parents.len() {
            chain.clear();
        }
        for i in chain.drain(..).rev() {
            placed[i] = true;
            order.push(i);
        }
    }
    order
}

impl Allocators {
    /// Slots and policies of all servers.
    pub(crate) fn add_servers(&mut self) -> Result<(), Diagnostic> {
        let servers = members(&self.set, self.domain);
        let kinds = self.at_work.len() as u32;
        self.kinds = kinds;
        for entry in KINDS {
            let (set, domain, costs) = (&self.set, self.domain, self.options.costs);
            let members = (self.slots.len() + servers.len()) as u32;
            let setup = Setup { set, domain, group: 0, policy: &set.policy, costs, members };
            self.at_work.push(AtWork::make(entry, &setup, None)?);
        }
        for (place, (member, kind)) in servers.into_iter().enumerate() {
            let index = self.slots.len() as u32;
            let by = kinds + place_of(kind);
            let mut slot = Slot::new(MemberParams { index, ..member }, OverrunPolicy::Carry);
            slot.cookie = Some(SERVER | place as u64);
            (slot.by, slot.next_by) = (by, by);
            self.slots.push(slot);
            let policy = &self.at_work[by as usize].policy;
            if policy.observes(&member) || policy.paces(&member) {
                self.observed.push(index);
            }
        }
        Ok(())
    }

    pub(crate) fn begin_servers(&mut self, gsi: &mut dyn Gsi) -> Result<(), Refusal> {
        for s in self.servers..self.slots.len() {
            let slot = &mut self.slots[s];
            slot.next = self.origin.saturating_add(slot.member.offset);
            if let Some(reservation) = self.server_reservation(s) {
                self.slots[s].phase = Phase::Reserved(gsi.add_reservation(&reservation)?);
            } else {
                self.slots[s].phase = Phase::Waiting;
                self.arm(gsi, s)?;
            }
        }
        Ok(())
    }

    /// Server jobs in a group whose policy changed.
    pub(crate) fn rank_servers(&mut self, gsi: &mut dyn Gsi, group: u32) -> Result<(), Refusal> {
        for s in self.servers..self.slots.len() {
            let Slot { member, phase, .. } = &self.slots[s];
            let competes = member.group == group && matches!(member.serves, For::Group(_));
            if let (true, &Phase::Reserved(r)) = (competes, phase) {
                if let Some(reservation) = self.server_reservation(s) {
                    gsi.change_reservation(r, &reservation)?;
                }
            }
        }
        Ok(())
    }

    /// The policy of the group in which a server competes says how it ranks there.
    fn server_reservation(&self, s: usize) -> Option<punctual_dispatcher::Reservation> {
        let slot = &self.slots[s];
        let policy = self.at_work[slot.by as usize].policy.as_ref();
        let mut reservation = standing(slot, policy)?;
        if matches!(slot.member.serves, For::Group(_)) {
            reservation.priority = self.rank_of(s);
        }
        Some(reservation)
    }

    /// Hands an event to the policies of those observed servers for which `of` holds.
    pub(crate) fn notify_servers(
        &mut self,
        gsi: &mut dyn Gsi,
        event: PolicyEvent,
        report: &mut dyn FnMut(crate::ReleaseEvent),
        of: impl Fn(&dyn Gsi, &Slot) -> bool,
    ) {
        for n in 0..self.observed.len() {
            let s = self.observed[n] as usize;
            let has_begun = matches!(self.slots[s].phase, Phase::Reserved(_) | Phase::Open);
            if has_begun && of(gsi, &self.slots[s]) {
                self.dispatch_event(gsi, s, event, report);
            }
        }
    }
}
