//! Earliest deadline first with reclaiming: GRUB, greedy reclamation of unused bandwidth (Lipari
//! and Baruah 2000; as Linux has it for SCHED_DEADLINE, Abeni, Lipari, Parri and Sun 2016).
//!
//! Each task has a server of the bandwidth U = budget / deadline. While the sum of the bandwidths
//! of active servers is A, execution of `t` depletes a server's budget by `t * A / C`: alone, a
//! task executes until it has used the part C of the CPU. A server is active from its release
//! until its task has nothing to execute and its 0-lag time has come, `deadline - left / U`: by
//! then its task had executed all that its bandwidth demands.
//!
//! A job of the dispatcher has its budget from its beginning, and A changes in its course. So a
//! job gets what is sure whatever becomes active: `left * C / T`, T being the bandwidth of all
//! servers together. When it is exhausted, what it depleted is known, and a further job of the same
//! deadline gets what is sure of the rest, until the rest is small. Where all are active, the first
//! job is all of it.

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::{End, Standing};
use punctual_taskset::{ServerKind, ServerSpec, PART_FOR_TASKS};

use crate::entry::{PolicyEntry, Setup};
use crate::error::{place, refused};
use crate::policy::{number, MemberParams, PolicyEvent, SchedulingPolicy};
use crate::{Context, JobParams};

/// Bandwidths are parts of a CPU, times this.
const ONE: u64 = 1 << 32;

/// C: the rest is left to ordinary programs, as hosts do.
const RECLAIMED: u64 = ONE * PART_FOR_TASKS.0 / PART_FOR_TASKS.1;

/// A rest below this share of the budget gets no further job.
const LEAST_SHARE: u64 = 32;

/// How many jobs a release has at most.
const MOST_JOBS: u32 = 8;

pub(crate) struct Reclaiming {
    /// By member.
    servers: Vec<Server>,
    /// Of servers that are active, times [`ONE`].
    active: u64,
    /// Of all servers, times [`ONE`].
    total: u64,
    /// The earliest 0-lag time that is ahead, ns.
    next_zero_lag: u64,
    /// The longest relative deadline of a task of the set, until the first event, ns.
    longest: Option<u64>,
    /// What the host takes for a further job of a release: it is paid from the rest, ns.
    further_job: u64,
}

#[derive(Clone, Copy, Default)]
struct Server {
    /// Times [`ONE`]; 0: of no task of this policy so far.
    bandwidth: u64,
    state: State,
    /// Budget, ns: depleted up to `executed`.
    left: u64,
    /// What the task had executed then in all its jobs, ns.
    executed: u64,
    /// Absolute, ns.
    deadline: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Inactive,
    /// Its task has something to execute.
    Contending,
    /// It has not, and this 0-lag time is to come, ns.
    UntilZeroLag(u64),
}

/// `budget` in each `period`, times [`ONE`], rounded up.
fn bandwidth(budget: u64, period: u64) -> u64 {
    let parts = (u128::from(budget) * u128::from(ONE)).div_ceil(u128::from(period.max(1)));
    u64::try_from(parts).unwrap_or(u64::MAX)
}

/// How fast execution depletes a budget, at most as it executes, while this bandwidth is active;
/// times [`RECLAIMED`].
fn rate(active: u64) -> u128 {
    u128::from(active.min(RECLAIMED))
}

impl Server {
    /// How long it can execute until its budget is depleted, at the rate of `bandwidth`, ns.
    fn time_at(&self, bandwidth: u64) -> u64 {
        let time = u128::from(self.left) * u128::from(RECLAIMED) / rate(bandwidth).max(1);
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// When a server that has so much left had executed what its bandwidth demands, ns.
    fn zero_lag(&self) -> u64 {
        let needs = u128::from(self.left) * u128::from(ONE) / u128::from(self.bandwidth.max(1));
        self.deadline.saturating_sub(u64::try_from(needs).unwrap_or(u64::MAX))
    }
}

pub(crate) fn make(
    _: &'static PolicyEntry,
    setup: &Setup<'_>,
) -> Result<Box<dyn SchedulingPolicy>, Diagnostic> {
    if let Some(group) = setup.group.checked_sub(1) {
        let g = &setup.set.groups[group as usize];
        let cause = "only the policy at the top can reclaim: a group has no CPU of its own";
        let help = "remove reclaim, or put its tasks at the top";
        return Err(refused(place("group", &g.name, g.line), cause, help));
    }
    let mut servers = vec![Server::default(); setup.members as usize];
    // Servers of other kinds count as always active.
    let mut constant = 0_u64;
    for (index, task) in setup.tasks() {
        let bandwidth = bandwidth(task.budget, task.deadline);
        match task.server {
            Some(_) => constant = constant.saturating_add(bandwidth),
            None => servers[index].bandwidth = bandwidth,
        }
    }
    let at_the_top = setup.set.groups.iter().filter(|g| g.domain == setup.domain);
    for g in at_the_top.filter(|g| number(g.parent) == setup.group) {
        match &g.server {
            ServerSpec::Periodic { period: _, budget, deadline, kind, .. }
                if *kind != ServerKind::Deferrable =>
            {
                constant = constant.saturating_add(bandwidth(*budget, *deadline));
            }
            _ => {
                let cause = "its server may demand more than its bandwidth, so that nothing can \
                             be reclaimed beside it";
                let help = "give it server = \"constant_bandwidth\", or remove reclaim";
                return Err(refused(place("group", &g.name, g.line), cause, help));
            }
        }
    }
    let longest = setup.tasks().map(|(_, task)| task.deadline).max();
    let of_tasks = servers.iter().map(|server| server.bandwidth);
    let total = of_tasks.fold(constant, u64::saturating_add);
    // Each is rounded up.
    if total > ONE + u64::from(setup.members) {
        let percent = u128::from(total) * 100 / u128::from(ONE);
        let cause = format!(
            "reclaim: budget / deadline of all tasks and servers are {percent} % together, and \
             nothing can be reclaimed beyond 100 %"
        );
        let help = "give longer deadlines or smaller budgets, or remove reclaim";
        return Err(refused("policy", cause, help));
    }
    let next_zero_lag = u64::MAX;
    let further_job = setup.costs.timer.saturating_add(setup.costs.release);
    let active = constant;
    Ok(Box::new(Reclaiming { servers, active, total, next_zero_lag, longest, further_job }))
}

impl Reclaiming {
    /// Depletes a server's budget by what its task executed since, at the present rate.
    fn deplete(&mut self, context: &Context<'_>, index: usize) {
        let server = &mut self.servers[index];
        let executed = context.executed(index as u32);
        let ran = executed.saturating_sub(std::mem::replace(&mut server.executed, executed));
        let depleted = (u128::from(ran) * rate(self.active)).div_ceil(u128::from(RECLAIMED));
        let depleted = u64::try_from(depleted).unwrap_or(u64::MAX);
        server.left = server.left.saturating_sub(depleted);
    }

    /// After a swap the releases of the policy before are in flight until their deadlines, so that
    /// their tasks' bandwidth is active.
    fn begin(&mut self, context: &Context<'_>) {
        let Some(longest) = self.longest.take() else { return };
        if context.release().number == 0 {
            return;
        }
        self.next_zero_lag = context.now().saturating_add(longest);
        for server in self.servers.iter_mut().filter(|server| server.bandwidth > 0) {
            server.state = State::UntilZeroLag(self.next_zero_lag);
            self.active += server.bandwidth;
        }
    }

    /// The member's bandwidth, if it is not the one so far: of a task that is not in the set, or
    /// that another one precedes in its place.
    fn register(&mut self, member: &MemberParams) {
        let server = &mut self.servers[member.index as usize];
        let bandwidth = bandwidth(member.budget, member.deadline);
        if server.state == State::Inactive && server.bandwidth != bandwidth {
            self.total = (self.total - server.bandwidth).saturating_add(bandwidth);
            server.bandwidth = bandwidth;
        }
    }

    /// Changes the active bandwidth: what was executed until now was so at the rate until now.
    fn change_active(&mut self, context: &Context<'_>, active: u64) {
        if rate(active) != rate(self.active) {
            for index in 0..self.servers.len() {
                if self.servers[index].state == State::Contending {
                    self.deplete(context, index);
                }
            }
        }
        self.active = active;
    }

    /// Servers whose 0-lag time has come become inactive.
    fn expire(&mut self, context: &Context<'_>) {
        let now = context.now();
        if now < self.next_zero_lag {
            return;
        }
        self.next_zero_lag = u64::MAX;
        let mut active = self.active;
        for server in &mut self.servers {
            match server.state {
                State::UntilZeroLag(at) if at <= now => {
                    server.state = State::Inactive;
                    active -= server.bandwidth;
                }
                State::UntilZeroLag(at) => self.next_zero_lag = self.next_zero_lag.min(at),
                _ => {}
            }
        }
        self.change_active(context, active);
    }

    /// The member has something to execute.
    fn activate(&mut self, context: &mut Context<'_>, index: usize) {
        let server = &mut self.servers[index];
        match std::mem::replace(&mut server.state, State::Contending) {
            State::Contending => {}
            State::UntilZeroLag(_) => context.cancel_timer(),
            State::Inactive => {
                server.executed = context.executed(index as u32);
                let active = self.active + server.bandwidth;
                self.change_active(context, active);
            }
        }
    }

    /// The member has nothing to execute until its next event; its `left` is up to date.
    fn quiesce(&mut self, context: &mut Context<'_>, index: usize) {
        let server = &mut self.servers[index];
        if server.state != State::Contending {
            return;
        }
        let at = server.zero_lag();
        // Without its timer it becomes inactive at the next event of any member.
        server.state = State::UntilZeroLag(at);
        self.next_zero_lag = self.next_zero_lag.min(at);
        if at <= context.now() {
            self.expire(context);
        } else {
            let _ = context.set_timer(at);
        }
    }

    /// The release is over, and what is left of its budget is lost: its 0-lag time is the deadline.
    /// A timer would keep the release in flight.
    fn end_without_timer(&mut self, context: &Context<'_>, index: usize) {
        let server = &mut self.servers[index];
        if server.state == State::Contending {
            (server.left, server.state) = (0, State::UntilZeroLag(server.deadline));
            self.next_zero_lag = self.next_zero_lag.min(server.deadline);
            self.expire(context);
        }
    }

    /// How long the member can execute until its budget is depleted, whatever becomes active, ns. A
    /// budget group limits what its tasks execute all together: they reclaim nothing.
    fn sure(&self, member: &MemberParams) -> u64 {
        let server = &self.servers[member.index as usize];
        match member.budget_group {
            0 => server.time_at(self.total),
            _ => server.left,
        }
    }

    /// A job of the release in flight with what is sure of the budget that is left.
    fn job(&self, context: &mut Context<'_>) -> JobParams {
        let (sure, release) = (self.sure(context.member()), *context.release());
        // The release is in flight.
        let _ = context.extend(sure.saturating_sub(release.left));
        JobParams { start: release.at, finish: release.deadline, budget: sure, priority: 0 }
    }

    /// The revised CBS wake-up rule, for the budget of the server.
    fn wake(&mut self, context: &mut Context<'_>, index: usize) {
        if context.standing().is_none() {
            return;
        }
        self.activate(context, index);
        let (member, now) = (*context.member(), context.now());
        let server = &mut self.servers[index];
        let allowed = crate::wakeup::bandwidth(&member, server.deadline.saturating_sub(now));
        if server.left <= allowed {
            return;
        }
        server.left = allowed;
        let sure = self.sure(&member);
        let remaining = context.remaining();
        if sure < remaining {
            context.give_up(remaining - sure);
            let job = self.job(context);
            let _ = context.replace_job(&JobParams { budget: sure, ..job });
        }
    }
}

impl SchedulingPolicy for Reclaiming {
    /// A task that is not in the set has a bandwidth from its first release on.
    fn admits(&self, member: &MemberParams) -> bool {
        (member.index as usize) < self.servers.len()
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        let member = *context.member();
        let index = member.index as usize;
        self.begin(context);
        self.expire(context);
        match event {
            PolicyEvent::Released => {
                self.register(&member);
                self.activate(context, index);
                let (executed, release) = (context.executed(member.index), *context.release());
                let server = &mut self.servers[index];
                (server.left, server.deadline) = (release.left, release.deadline);
                server.executed = executed;
                let job = self.job(context);
                // One that is refused loses the release: the host learns of it.
                if context.add_job(&job).is_err() {
                    self.end_without_timer(context, index);
                }
            }
            PolicyEvent::JobEnded { end, .. } => {
                context.cancel_timer();
                self.deplete(context, index);
                let server = &mut self.servers[index];
                let rest = server.left.saturating_sub(self.further_job);
                let more = end == End::Exhausted
                    && member.budget_group == 0
                    && server.deadline > context.now()
                    && context.release().part < MOST_JOBS
                    && rest > member.budget / LEAST_SHARE;
                if more {
                    server.left = rest;
                    let job = self.job(context);
                    if context.add_job(&job).is_ok() {
                        return;
                    }
                }
                if end == End::Completed {
                    self.quiesce(context, index);
                } else {
                    self.end_without_timer(context, index);
                }
            }
            PolicyEvent::Ready => self.wake(context, index),
            PolicyEvent::Blocked => {
                self.deplete(context, index);
                self.quiesce(context, index);
            }
            PolicyEvent::Lost => match context.standing() {
                Some(Standing::Ready) => self.wake(context, index),
                Some(_) => {
                    self.deplete(context, index);
                    self.quiesce(context, index);
                }
                None => {}
            },
            PolicyEvent::Timer => {}
        }
    }
}
