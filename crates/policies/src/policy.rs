//! What a policy is: it receives the events of a group's members, and issues their jobs.

use punctual_dispatcher::{End, For, TaskId};
use punctual_taskset::{PolicySpec, TaskChange, TaskSpec, Window};

use crate::Context;

/// The parameters of a member of a scheduling group for its policy: of a task, or of the server of
/// a group or of a budget-group node. Times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberParams {
    /// Its number: a task's is its place in the task set; those of servers follow.
    pub index: u32,
    /// What its jobs serve.
    pub serves: For,
    /// The scheduling group in which its jobs compete.
    pub group: u32,
    /// The budget-group node that limits them; 0 for none.
    pub budget_group: u32,
    /// From the origin to its first release.
    pub offset: u64,
    /// Time between releases.
    pub period: u64,
    /// Execution time per release, 1..=deadline.
    pub budget: u64,
    /// Relative deadline, budget..=period.
    pub deadline: u64,
    /// A task's importance, for the policy `fp`; a server's, as the policy of its group has it.
    pub priority: i64,
    /// The least budget of a release, for the server `adaptive`.
    pub min_budget: Option<u64>,
    /// Budget of the mandatory part, for the policy `imprecise`.
    pub mandatory: Option<u64>,
    /// Promotion time, for the policy `dual`.
    pub promotion: Option<u64>,
}

/// A release that is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// From 0.
    pub number: u64,
    /// When it was due, ns.
    pub at: u64,
    /// Its absolute deadline, ns.
    pub deadline: u64,
    /// Its remaining budget, ns, as of the last job that ended.
    pub left: u64,
    /// How many jobs were made of it so far.
    pub part: u32,
}

/// The reservation that carries out each release of a member by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationParams {
    /// Priority of its jobs.
    pub priority: i64,
    /// Whether a task that wakes in mid-job is cut to its bandwidth (the revised CBS rule).
    pub wakeup_rule: bool,
}

/// An event of one member of a policy's group; [`Context`] names the member and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyEvent {
    /// A release is due: of a task, [`Context::release`]. Its first job is expected in return, or
    /// a timer; without either the release is lost. Of a member that the policy paces: an arrival,
    /// or the start of a server; a release that it begins is expected, or a timer.
    Released,
    /// The job in flight ended. A release that has not completed is over unless another job or an
    /// timer is the answer.
    JobEnded {
        /// How.
        end: End,
        /// Its execution time, ns.
        used: u64,
        /// Its remaining budget, ns.
        remaining: u64,
    },
    /// The task woke up in mid-job; the served group got its first ready member (GROUP_ACTIVE).
    Ready,
    /// The task fell asleep in mid-job; the served group lost its last ready member (GROUP_IDLE).
    Blocked,
    /// The timer that the policy set for this member has expired.
    Timer,
    /// Events of this member may have been lost; [`Context::standing`] returns its present state.
    Lost,
}

/// A policy at work in one scheduling group (RED-Linux IV-D.2, "the allocator"), or a kind of
/// server at work for all of its servers.
///
/// The releases of tasks, their numbers, overruns and reports to the host are the business of
/// [`Allocators`](crate::Allocators); the policy says which jobs they become. What is said of it
/// once, such as the ordering of its group, is in its [`PolicyEntry`](crate::PolicyEntry). It
/// allocates nothing once tasks run. A policy whose jobs follow from each release by itself is
/// shorter as a [`ReleasePolicy`](crate::ReleasePolicy).
pub trait SchedulingPolicy: Send {
    /// Whether a task that is not in the set can be added.
    fn admits(&self, member: &MemberParams) -> bool {
        let _ = member;
        true
    }

    /// Whether the dispatcher's own reservation can carry this member out, and how; `None` when
    /// each release needs the policy. A server always needs one.
    fn reservation(&self, member: &MemberParams) -> Option<ReservationParams> {
        let _ = member;
        None
    }

    /// Whether the policy itself says when this member's releases begin, and with what budget and
    /// deadline ([`Context::begin_release`]), as servers with replenishments of their own do. Then
    /// no reservation releases it.
    fn paces(&self, member: &MemberParams) -> bool {
        let _ = member;
        false
    }

    /// The budget of the member's next release, ns, 1..=`member.budget`, where no reservation
    /// releases it and the policy does not pace it.
    fn budget(&self, member: &MemberParams) -> u64 {
        member.budget
    }

    /// With a reservation: after how many releases the task's windows come again; 0 where a release
    /// is one job.
    fn rows(&self, member: &MemberParams) -> u64 {
        let _ = member;
        0
    }

    /// The windows of release `number`, at least one, in order; starts count from the release.
    fn windows(&self, member: &MemberParams, number: u64) -> &[Window] {
        let _ = (member, number);
        &[]
    }

    /// With a reservation: whether the policy must receive the member's events all the same. On the
    /// kernel host that takes a thread in user space, which learns of them late.
    fn observes(&self, member: &MemberParams) -> bool {
        let _ = member;
        false
    }

    /// The priority of the jobs of a server that competes in the policy's group, where the entry's
    /// `priority` does not decide.
    fn server_priority(&self, server: &MemberParams) -> Option<i64> {
        let _ = server;
        None
    }

    /// Becomes the policy `to` in a swap, with all that it keeps of its members. `false`: it
    /// cannot, and another policy is made in its place.
    fn becomes(&mut self, to: &PolicySpec) -> bool {
        let _ = to;
        false
    }

    /// Why the policy must be stopped, as what it did; asked after each event, of policies of the
    /// program.
    fn fault(&mut self) -> Option<String> {
        None
    }

    /// Answers an event of a member. What it does through `context` takes effect at the same
    /// instant.
    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent);
}

impl MemberParams {
    /// What policies know of a task of a set.
    pub fn of(spec: &TaskSpec, index: u32, task: TaskId) -> MemberParams {
        MemberParams {
            index,
            serves: For::Task(task),
            group: number(spec.group),
            budget_group: number(spec.budget_group),
            offset: spec.offset,
            period: spec.period,
            budget: spec.budget,
            deadline: spec.deadline,
            priority: spec.priority,
            min_budget: spec.min_budget,
            mandatory: spec.mandatory,
            promotion: spec.promotion,
        }
    }

    /// Gives a task other parameters.
    pub(crate) fn change(&mut self, change: &TaskChange) {
        (self.period, self.deadline) = change.times(self.period, self.deadline);
        self.budget = change.budget.unwrap_or(self.budget);
        self.priority = change.priority.unwrap_or(self.priority);
    }

    /// Its number in the dispatcher; [`TaskId::NONE`] of a server.
    pub fn task(&self) -> TaskId {
        match self.serves {
            For::Task(task) => task,
            For::Group(_) | For::Budget(_) => TaskId::NONE,
        }
    }
}

/// A set's n-th group or budget group is the dispatcher's n + 1.
pub(crate) fn number(index: Option<usize>) -> u32 {
    index.map_or(0, |i| i as u32 + 1)
}
