//! The main cause of a miss.
//!
//! A job that missed lacked some execution at its deadline. What took as long as that is enough to
//! explain the miss. What a set does not plan for (a suspension, a late release, an overrun, lost
//! time) comes before what it does (a server without budget, tasks that come first): without it the
//! deadline would have been met.

use punctual_taskset::{DomainId, ServerSpec, TaskSet};
use serde::{Deserialize, Serialize};

use crate::explanation::Share;
use crate::order::Reason;
use crate::window::Activity;

/// What kind of cause it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// A task of higher priority, by whatever order the policy has.
    HigherPriority,
    /// A task with an earlier deadline (`edf`).
    EarlierDeadline,
    /// A task that is equal in the policy's order, and came first.
    EqualPriority,
    /// The table or bands of the policy gave the time to others.
    PolicyOrder,
    /// Several tasks that came first: no single one of them took enough.
    SeveralTasks,
    /// A task that came later in the policy's order executed all the same.
    LowerPriority,
    /// A task that came first had overrun: it executed longer than usual, or earlier work.
    OtherOverrun,
    /// What the tasks were promised is more than a CPU.
    Overload,
    /// The job needed more than the task's budget.
    DemandBeyondBudget,
    /// The task's budget was used up; how much the job needed is not known.
    BudgetExhausted,
    /// The budget of this release was less than the task's: it settled an earlier excess.
    BudgetSettled,
    /// The budget of this release was less than the task's: its adaptive server predicted less use.
    BudgetAdapted,
    /// After a suspension the wake-up rule cut the budget.
    BudgetCut,
    /// The server of the task's group, or of one above, was exhausted.
    ServerExhausted,
    /// The server was not replenished yet, or outside its windows.
    ServerNotReplenished,
    /// The segment of a budget group was exhausted.
    SegmentExhausted,
    /// The task was blocked or slept.
    Suspended,
    /// The task's own windows were too few or elsewhere.
    OutsideWindow,
    /// The release was made late: a late timer, or a dispatcher that was woken late.
    ReleasedLate,
    /// The dispatcher did not execute in time.
    DispatcherStalled,
    /// Earlier releases' work: the task was late before.
    CarriedOver,
    /// Nothing in the trace used the time: interrupts, steal, other scheduling classes.
    Unaccounted,
    /// Records are missing.
    RecordsLost,
    /// Its job ended before it was done, neither exhausted nor expired.
    JobEnded,
}

/// The main cause of one miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What it is.
    pub kind: CauseKind,
    /// How much of the window it took, ns.
    pub ns: u64,
    /// The tasks that executed instead, by their places in the set, each with its time, ns; the
    /// longest first.
    pub tasks: Vec<(u32, u64)>,
    /// The group (or budget group, for its segment), by its place in the set.
    pub group: Option<u32>,
    /// What the job lacked at its deadline, ns, at least 1.
    pub lacking_ns: u64,
    /// What the job needed, ns, as far as known.
    pub demand_ns: Option<u64>,
    /// The budget of this release, ns.
    pub given_ns: u64,
}

/// What is known of a miss beside its shares. Times are ns.
pub(crate) struct Facts {
    pub domain: DomainId,
    pub window: u64,
    pub lacking: u64,
    pub demand: Option<u64>,
    /// The task's, and of this release.
    pub budget: u64,
    pub given: u64,
    pub exhausted: bool,
    /// An adaptive server has assigned less than the task's budget.
    pub adapted: bool,
    /// What the wake-up rule cut.
    pub cut: u64,
    pub woken_late: bool,
}

/// How a candidate ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The set plans for it: tasks that come first.
    Planned,
    /// The set limits it: servers, segments, windows.
    Limited,
    /// No set plans for it.
    Unplanned,
}

struct Candidate {
    rank: Rank,
    kind: CauseKind,
    ns: u64,
    tasks: Vec<(u32, u64)>,
    group: Option<u32>,
}

/// The main cause of a miss with these shares.
pub(crate) fn find(set: &TaskSet, shares: &[Share], facts: &Facts) -> Cause {
    let all = candidates(shares, facts);
    let preempted =
        all.iter().find(|c| c.rank == Rank::Planned).map_or(&[][..], |c| &c.tasks).to_vec();
    let mut cause = Cause {
        kind: CauseKind::Unaccounted,
        ns: 0,
        tasks: preempted,
        group: None,
        lacking_ns: facts.lacking,
        demand_ns: facts.demand,
        given_ns: facts.given,
    };
    let never =
        all.iter().position(|c| c.kind == CauseKind::DispatcherStalled && c.ns == facts.window);
    let budget = budget(shares, facts).filter(|_| never.is_none());
    if let Some((kind, ns)) = budget {
        return Cause { kind, ns, tasks: Vec::new(), ..cause };
    }
    let Some(main) = main_of(all, facts) else { return cause };
    (cause.kind, cause.ns, cause.group, cause.tasks) = (main.kind, main.ns, main.group, main.tasks);
    if planned(main.rank, main.kind) && overloaded(set, facts.domain) {
        cause.kind = CauseKind::Overload;
    }
    cause
}

/// Whether a sum of budgets beyond a CPU would lead to it.
fn planned(rank: Rank, kind: CauseKind) -> bool {
    rank == Rank::Planned || matches!(kind, CauseKind::CarriedOver | CauseKind::OtherOverrun)
}

fn main_of(all: Vec<Candidate>, facts: &Facts) -> Option<Candidate> {
    // Each window has some microseconds of every host's own work: they explain no miss that
    // something else explains.
    let enough = |c: &Candidate| {
        c.ns >= facts.lacking && (c.rank != Rank::Unplanned || c.ns >= facts.window / 100)
    };
    all.into_iter().max_by_key(|c| (enough(c), enough(c).then_some(c.rank), c.ns))
}

/// The cause of a job whose budget was used up before it was done.
fn budget(shares: &[Share], facts: &Facts) -> Option<(CauseKind, u64)> {
    if !facts.exhausted {
        return None;
    }
    let of = |what| shares.iter().find(|s| s.what == what).map_or(0, |s| s.ns);
    let (carried, suspended) = (of(Activity::CarriedOver), of(Activity::Suspended));
    let without = of(Activity::BudgetExhausted);
    let beyond = facts.demand.is_some_and(|demand| demand > facts.budget);
    Some(match facts.demand {
        _ if carried > 0 && !beyond => (CauseKind::CarriedOver, carried),
        _ if beyond => (CauseKind::DemandBeyondBudget, without),
        _ if facts.cut > 0 => (CauseKind::BudgetCut, suspended),
        _ if facts.adapted => (CauseKind::BudgetAdapted, without),
        Some(demand) if demand > facts.given => (CauseKind::BudgetSettled, without),
        _ => (CauseKind::BudgetExhausted, without),
    })
}

/// Each cause that the shares give, with all that it took.
fn candidates(shares: &[Share], facts: &Facts) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    let mut tasks: Vec<(u32, u64, Reason)> = Vec::new();
    for share in shares {
        let (rank, kind, group) = match share.what {
            Activity::Task { task, reason, overrun, .. } => {
                match tasks.iter_mut().find(|t| t.0 == task) {
                    Some(t) => t.1 += share.ns,
                    None => tasks.push((task, share.ns, reason)),
                }
                if overrun {
                    let (rank, kind) = (Rank::Unplanned, CauseKind::OtherOverrun);
                    all.push(Candidate {
                        rank,
                        kind,
                        ns: share.ns,
                        tasks: vec![(task, share.ns)],
                        group: None,
                    });
                }
                continue;
            }
            Activity::Executed | Activity::BudgetExhausted => continue,
            Activity::CarriedOver => (Rank::Unplanned, CauseKind::CarriedOver, None),
            Activity::Suspended => (Rank::Unplanned, CauseKind::Suspended, None),
            Activity::JobEnded => (Rank::Unplanned, CauseKind::JobEnded, None),
            Activity::ServerExhausted(group) => {
                (Rank::Limited, CauseKind::ServerExhausted, Some(group))
            }
            Activity::ServerNotReplenished(group) => {
                (Rank::Limited, CauseKind::ServerNotReplenished, Some(group))
            }
            Activity::SegmentExhausted(node) => {
                (Rank::Limited, CauseKind::SegmentExhausted, Some(node))
            }
            Activity::OutsideWindow => (Rank::Limited, CauseKind::OutsideWindow, None),
            Activity::ReleasedLate => (Rank::Unplanned, CauseKind::ReleasedLate, None),
            Activity::NeverReleased => (Rank::Unplanned, CauseKind::DispatcherStalled, None),
            Activity::Unaccounted if facts.woken_late => {
                (Rank::Unplanned, CauseKind::DispatcherStalled, None)
            }
            Activity::Unaccounted => (Rank::Unplanned, CauseKind::Unaccounted, None),
            Activity::RecordsLost => (Rank::Unplanned, CauseKind::RecordsLost, None),
        };
        all.push(Candidate { rank, kind, ns: share.ns, tasks: Vec::new(), group });
    }
    all.extend(preemption(tasks, facts.lacking));
    all
}

/// All tasks that executed instead, as one cause.
fn preemption(mut tasks: Vec<(u32, u64, Reason)>, lacking: u64) -> Option<Candidate> {
    tasks.sort_by_key(|t| (std::cmp::Reverse(t.1), t.0));
    let &(_, most, reason) = tasks.first()?;
    let kind = match reason {
        _ if tasks.len() > 1 && most < lacking => CauseKind::SeveralTasks,
        Reason::HigherPriority | Reason::ShorterPeriod | Reason::ShorterDeadline => {
            CauseKind::HigherPriority
        }
        Reason::EarlierDeadline => CauseKind::EarlierDeadline,
        Reason::ArrivedFirst => CauseKind::EqualPriority,
        Reason::Table | Reason::Band | Reason::Objective | Reason::Program | Reason::FairShare => {
            CauseKind::PolicyOrder
        }
        Reason::Later => CauseKind::LowerPriority,
    };
    let rank = if kind == CauseKind::LowerPriority { Rank::Unplanned } else { Rank::Planned };
    let ns = tasks.iter().map(|t| t.1).sum();
    let tasks = tasks.into_iter().map(|t| (t.0, t.1)).collect();
    Some(Candidate { rank, kind, ns, tasks, group: None })
}

/// Whether the budgets at the top of a domain are more than a CPU together.
fn overloaded(set: &TaskSet, domain: DomainId) -> bool {
    let ppm = |budget: u64, period: u64| u128::from(budget) * 1_000_000 / u128::from(period.max(1));
    let tasks = set.tasks.iter().filter(|t| t.domain == domain && t.group.is_none());
    let groups = set.groups.iter().filter(|g| g.domain == domain && g.parent.is_none());
    let of_groups = groups.map(|g| match &g.server {
        ServerSpec::Periodic { period, budget, .. } => ppm(*budget, *period),
        ServerSpec::Windows { cycle, windows } => {
            ppm(windows.iter().map(|w| w.length).sum(), *cycle)
        }
    });
    tasks.map(|t| ppm(t.budget, t.period)).chain(of_groups).sum::<u128>() > 1_000_000
}
