//! Servers of scheduling groups, and the budgets of budget groups: reservations whose jobs serve a
//! group or a node (RED-Linux V-A, V-B).
//!
//! A deferrable server needs nothing more: the dispatcher keeps its budget while its group is idle
//! (Strosnider, Lehoczky and Sha 1995). A polling server's budget is taken back as soon as its
//! group is idle, and at its release if it is idle then (Sprunt, Sha and Lehoczky 1989).

use punctual_dispatcher::{
    For, JobId, OverrunPolicy, Refusal, Reservation, ReservationId, Standing,
};
use punctual_taskset::{DomainId, ServerKind, ServerSpec, TaskSet};

use crate::allocator::number;
use crate::allocators::{group_number, Allocators};
use crate::policy::Urgency;
use crate::Gsi;

/// In a server job's cookie, beside its place in the list of servers.
pub(crate) const SERVER: u64 = 1 << 62;

/// One reservation that serves a group or a node. Times are ns.
pub(crate) struct Server {
    serves: For,
    /// The group in which its jobs compete; of a node: 0.
    parent: u32,
    budget_group: u32,
    start: u64,
    period: u64,
    budget: u64,
    deadline: u64,
    priority: i64,
    pub(crate) polling: bool,
    reservation: Option<ReservationId>,
}

/// All of one domain: budget groups, then servers, in the order of the file (a job may name a node
/// only when that is made, so parents come first).
pub(crate) fn of(set: &TaskSet, domain: DomainId) -> Vec<Server> {
    let mut servers = Vec::new();
    let parents: Vec<Option<usize>> = set.budget_groups.iter().map(|b| b.parent).collect();
    for n in parents_first(&parents) {
        let b = &set.budget_groups[n];
        if b.domain == domain {
            servers.push(Server {
                serves: For::Budget(group_number(n)),
                parent: 0,
                budget_group: number(b.parent),
                start: 0,
                period: b.period,
                budget: b.budget,
                deadline: b.period,
                priority: 0,
                polling: false,
                reservation: None,
            });
        }
    }
    for (n, g) in set.groups.iter().enumerate().filter(|(_, g)| g.domain == domain) {
        let server = |start, period, budget, deadline, polling| Server {
            serves: For::Group(group_number(n)),
            parent: number(g.parent),
            budget_group: number(g.budget_group),
            start,
            period,
            budget,
            deadline,
            priority: g.priority,
            polling,
            reservation: None,
        };
        match &g.server {
            ServerSpec::Periodic { period, budget, deadline, offset: start, kind } => {
                servers.push(server(
                    *start,
                    *period,
                    *budget,
                    *deadline,
                    *kind == ServerKind::Polling,
                ));
            }
            ServerSpec::Windows { cycle, windows } => {
                for w in windows {
                    servers.push(server(w.start, *cycle, w.length, w.length, false));
                }
            }
        }
    }
    servers
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

impl Server {
    fn reservation(&self, priority: fn(&Urgency) -> i64, origin: u64, place: usize) -> Reservation {
        let urgency =
            Urgency { period: self.period, deadline: self.deadline, priority: self.priority };
        Reservation {
            serves: self.serves,
            start: origin.saturating_add(self.start),
            period: self.period,
            budget: self.budget,
            deadline: self.deadline,
            priority: priority(&urgency),
            group: self.parent,
            budget_group: self.budget_group,
            cookie: Some(SERVER | place as u64),
            overrun: OverrunPolicy::Carry,
            wakeup_rule: false,
        }
    }
}

impl Allocators {
    pub(crate) fn begin_servers(&mut self, gsi: &mut dyn Gsi) -> Result<(), Refusal> {
        for (place, server) in self.servers.iter_mut().enumerate() {
            let policy = self.groups[server.parent as usize].0;
            let reservation = server.reservation(policy.priority, self.origin, place);
            server.reservation = Some(gsi.add_reservation(&reservation)?);
        }
        Ok(())
    }

    /// Server jobs in a group whose policy changed.
    pub(crate) fn rank_servers(&mut self, gsi: &mut dyn Gsi, group: u32) -> Result<(), Refusal> {
        let policy = self.groups[group as usize].0;
        for (place, server) in self.servers.iter().enumerate() {
            if server.parent == group && matches!(server.serves, For::Group(_)) {
                if let Some(r) = server.reservation {
                    gsi.change_reservation(
                        r,
                        &server.reservation(policy.priority, self.origin, place),
                    )?;
                }
            }
        }
        Ok(())
    }

    /// A group became idle: its polling servers lose what they have. It may have become active
    /// since, so what counts is what a server job does now.
    pub(crate) fn poll_away(&mut self, gsi: &mut dyn Gsi, group: u32) {
        if !self.polling {
            return;
        }
        for server in self.servers.iter().filter(|s| s.polling && s.serves == For::Group(group)) {
            if let Some(job) = server.reservation.and_then(|r| gsi.job_of(r)) {
                take_back(gsi, job);
            }
        }
    }

    /// A server job was released: one that polls looks once.
    pub(crate) fn server_released(&mut self, gsi: &mut dyn Gsi, job: JobId) {
        if !self.polling {
            return;
        }
        let mut polling = self.servers.iter().filter(|s| s.polling);
        if polling.any(|s| s.reservation.and_then(|r| gsi.job_of(r)) == Some(job)) {
            take_back(gsi, job);
        }
    }

    /// All polling servers look: some event of theirs was lost.
    pub(crate) fn poll_all(&mut self, gsi: &mut dyn Gsi) {
        for server in self.servers.iter().filter(|s| s.polling) {
            if let Some(job) = server.reservation.and_then(|r| gsi.job_of(r)) {
                take_back(gsi, job);
            }
        }
    }
}

/// Ends a server job that has no task to serve.
fn take_back(gsi: &mut dyn Gsi, job: JobId) {
    if gsi.standing(job) == Some(Standing::Idle) {
        // It exists, since it has a standing.
        let _ = gsi.cancel_job(job);
    }
}
