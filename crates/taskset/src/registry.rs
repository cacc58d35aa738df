//! The registry of policies and kinds of server: what is known of each by name. Files, the schema,
//! errors and listings take it from here; `punctual-policies` implements each. A program may
//! register policies of its own beside those of Punctual.

mod admission;
mod plugin;
mod registered;

pub use admission::{AdmissionTest, GroupDemand, MemberDemand, PriorityFn};
pub use plugin::{load_plugin, load_plugins_by, PluginLoader};
pub use registered::{check_name, policies, register};

/// What is known of a policy, or of a kind of server, beside how it works.
#[derive(Debug)]
pub struct PolicyInfo {
    /// Its name in task sets.
    pub name: &'static str,
    /// Its title, for people.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// What it can schedule, for people.
    pub limits: &'static str,
    /// Other names, with blanks between: an error suggests `name` in their place.
    pub aliases: &'static str,
    /// Whether a set gives its order: `policy = { name = "NAME", order = "EXPRESSION" }`.
    pub takes_order: bool,
    /// Whether its tasks have weights in place of periods and budgets, and a set may give its
    /// quantum: `policy = { name = "NAME", quantum = "4ms" }`.
    pub takes_weights: bool,
    /// Whether its tasks may reclaim the budgets that others do not use: `policy = { name = "NAME",
    /// reclaim = true }`.
    pub takes_reclaim: bool,
    /// How admission tests its groups, for a policy of the program; that of Punctual's own is in
    /// `punctual-analysis`.
    pub admission: AdmissionTest,
    /// The tables of a set that may name it; a set may name a policy at its top as well.
    pub tables: &'static [&'static str],
}

impl PolicyInfo {
    /// What most policies have in common.
    pub const POLICY: PolicyInfo = PolicyInfo {
        name: "",
        title: "",
        source: "",
        limits: "deadlines up to the period",
        aliases: "",
        takes_order: false,
        takes_weights: false,
        takes_reclaim: false,
        admission: AdmissionTest::None,
        tables: &["group"],
    };
}

/// The policies of Punctual, in the order of listings. [`policies`] has those of the program, too.
pub static POLICIES: [&PolicyInfo; 10] =
    [&RM, &DM, &EDF, &FP, &TD, &IMPRECISE, &DUAL, &OBJECTIVE, &WFQ, &SFQ];

/// All kinds of server.
pub static SERVERS: [&PolicyInfo; 8] = [
    &DEFERRABLE,
    &POLLING,
    &CONSTANT_BANDWIDTH,
    &SOFT_CONSTANT_BANDWIDTH,
    &TOTAL_BANDWIDTH,
    &CONSTANT_UTILIZATION,
    &SPORADIC,
    &ADAPTIVE,
];

/// Rate monotonic.
pub static RM: PolicyInfo = PolicyInfo {
    name: "rm",
    title: "rate monotonic",
    source: "Liu and Layland 1973; RED-Linux Table 1",
    aliases: "rate-monotonic rate_monotonic rms",
    ..PolicyInfo::POLICY
};

/// Deadline monotonic.
pub static DM: PolicyInfo = PolicyInfo {
    name: "dm",
    title: "deadline monotonic",
    source: "Leung and Whitehead 1982",
    aliases: "deadline-monotonic deadline_monotonic",
    ..PolicyInfo::POLICY
};

/// Earliest deadline first.
pub static EDF: PolicyInfo = PolicyInfo {
    name: "edf",
    title: "earliest deadline first",
    source: "Liu and Layland 1973; RED-Linux Table 1",
    aliases: "earliest-deadline-first deadline",
    takes_reclaim: true,
    ..PolicyInfo::POLICY
};

/// Fixed priorities, as the set gives them.
pub static FP: PolicyInfo = PolicyInfo {
    name: "fp",
    title: "fixed priority",
    source: "RED-Linux, IV-B",
    aliases: "fixed-priority fifo",
    ..PolicyInfo::POLICY
};

/// Time driven.
pub static TD: PolicyInfo = PolicyInfo {
    name: "td",
    title: "time driven",
    source: "RED-Linux Table 1 and Table 2",
    limits: "periodic tasks; servers with windows; windows that do not overlap; tables of up to \
             65,536 windows",
    aliases: "time-driven table cyclic",
    ..PolicyInfo::POLICY
};

/// Imprecise computation.
pub static IMPRECISE: PolicyInfo = PolicyInfo {
    name: "imprecise",
    title: "imprecise computation",
    source: "Liu, Lin, Shih et al. 1991; RED-Linux IV-E.1, Figs. 3 and 4",
    limits: "deadlines up to the period; servers of groups are in the mandatory band",
    aliases: "imprecise-computation",
    ..PolicyInfo::POLICY
};

/// Dual priority.
pub static DUAL: PolicyInfo = PolicyInfo {
    name: "dual",
    title: "dual priority",
    source: "Davis and Wellings 1995; RED-Linux IV-E.2, Fig. 5",
    limits: "deadlines up to the period; in a group with a server each periodic task needs its \
             `promotion`",
    aliases: "dual-priority dual_priority",
    ..PolicyInfo::POLICY
};

/// An expression of the set orders releases, the smaller value first.
pub static OBJECTIVE: PolicyInfo = PolicyInfo {
    name: "objective",
    title: "the smaller value of an expression",
    source: "RED-Linux IV-B",
    limits: "deadlines up to the period; servers of groups only where the order has neither \
             `release` nor `finish`",
    aliases: "expression function",
    takes_order: true,
    ..PolicyInfo::POLICY
};

/// Tasks share their group by weight, the earliest finish of a fluid system first.
pub static WFQ: PolicyInfo = PolicyInfo {
    name: "wfq",
    title: "weighted fair queueing",
    source: "Demers, Keshav and Shenker 1989; Parekh and Gallager 1993",
    limits: "tasks with a weight, which have no period and no budget; no groups below",
    aliases: "fair fair-queueing weighted-fair-queueing share pgps gps",
    takes_weights: true,
    ..PolicyInfo::POLICY
};

/// Tasks share their group by weight, the earliest start first.
pub static SFQ: PolicyInfo = PolicyInfo {
    name: "sfq",
    title: "start-time fair queueing",
    source: "Goyal, Vin and Cheng 1996; Goyal, Guo and Vin 1996",
    limits: "tasks with a weight, which have no period and no budget; no groups below",
    aliases: "start-time-fair-queueing start-time-fair",
    takes_weights: true,
    ..PolicyInfo::POLICY
};

/// A server that keeps its budget until the end of its period.
pub static DEFERRABLE: PolicyInfo = PolicyInfo {
    name: "deferrable",
    title: "deferrable server",
    source: "Strosnider, Lehoczky and Sha 1995",
    ..PolicyInfo::POLICY
};

/// A server that loses its budget when its group has nothing to execute.
pub static POLLING: PolicyInfo = PolicyInfo {
    name: "polling",
    title: "polling server",
    source: "Sprunt, Sha and Lehoczky 1989",
    ..PolicyInfo::POLICY
};

/// A server whose budget is cut to its bandwidth when its group becomes active.
pub static CONSTANT_BANDWIDTH: PolicyInfo = PolicyInfo {
    name: "constant_bandwidth",
    title: "constant bandwidth server, hard",
    source: "Abeni and Buttazzo 1998; Abeni, Lipari and Lelli 2014",
    limits: "in groups under edf",
    ..PolicyInfo::POLICY
};

/// A server that is replenished as soon as it is exhausted, with a later deadline.
pub static SOFT_CONSTANT_BANDWIDTH: PolicyInfo = PolicyInfo {
    name: "soft_constant_bandwidth",
    title: "constant bandwidth server, soft",
    source: "Abeni and Buttazzo 1998",
    limits: "tasks under edf; the deadline is the period",
    aliases: "cbs soft-cbs soft_cbs",
    tables: &["task"],
    ..PolicyInfo::POLICY
};

/// A server that gives each request a deadline by its bandwidth.
pub static TOTAL_BANDWIDTH: PolicyInfo = PolicyInfo {
    name: "total_bandwidth",
    title: "total bandwidth server",
    source: "Spuri and Buttazzo 1994",
    limits: "tasks under edf; the deadline is the period",
    aliases: "tbs total-bandwidth",
    tables: &["task"],
    ..PolicyInfo::POLICY
};

/// A server that begins no request before the deadline of the one before.
pub static CONSTANT_UTILIZATION: PolicyInfo = PolicyInfo {
    name: "constant_utilization",
    title: "constant utilization server",
    source: "Deng, Liu and Sun 1997",
    limits: "tasks under edf; the deadline is the period",
    aliases: "cus constant-utilization",
    tables: &["task"],
    ..PolicyInfo::POLICY
};

/// A server whose execution comes back a period later.
pub static SPORADIC: PolicyInfo = PolicyInfo {
    name: "sporadic",
    title: "sporadic server",
    source: "Sprunt, Sha and Lehoczky 1989; Stanovich et al. 2010",
    limits: "tasks and groups under fixed priorities; the deadline is the period",
    tables: &["task", "group"],
    ..PolicyInfo::POLICY
};

/// A server that gives each release the budget that its task's recent use predicts.
pub static ADAPTIVE: PolicyInfo = PolicyInfo {
    name: "adaptive",
    title: "adaptive budget",
    source: "Abeni and Buttazzo 1999; Abeni, Cucinotta, Lipari, Marzario and Palopoli 2005",
    limits: "periodic and sporadic tasks under edf and fixed priorities",
    aliases: "adaptive-budget adaptive_budget adaptive_reservation feedback aquosa",
    tables: &["task"],
    ..PolicyInfo::POLICY
};

/// The names of a list of policies, in its order.
#[must_use]
pub fn names(of: &[&'static PolicyInfo]) -> Vec<&'static str> {
    of.iter().map(|policy| policy.name).collect()
}
