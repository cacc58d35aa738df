//! A task-set file as it is written: a struct for each kind of table, its keys in the order that
//! errors list them in. Reading, writing and the JSON Schema are made from these.
//!
//! Here each value has its form only. What must hold between values is checked by `set`; what the
//! schema can express of it stands beside the structs.

mod work;

pub(crate) use work::{Bin, Distribution, Forever, Recorded, Spin, Step, Work, HISTOGRAM};

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess};
use serde::{Deserialize, Serialize};

use crate::checks::{LARGEST_CPU, LARGEST_PID, LONGEST_NAME, MOST_BUDGET_GROUPS, MOST_GROUPS};
use crate::duration::quote;
use crate::explain::nearest;
use crate::objective::LONGEST_OBJECTIVE;
use crate::registry::{names, policies};
use crate::value::{by_forms, fault, At, Duration, Forms, Positive, Table, Whole, Word};
use crate::{Overrun, ServerKind, MOST_WEIGHT};

pub(crate) type Cpu = Whole<0, { LARGEST_CPU as i64 }>;
pub(crate) type Pid = Whole<1, { LARGEST_PID as i64 }>;
pub(crate) type Seed = Whole<0, { i64::MAX }>;
pub(crate) type Weight = Whole<1, { u32::MAX as i64 }>;
pub(crate) type Share = Whole<1, { MOST_WEIGHT as i64 }>;
pub(crate) type Integer = Whole<{ i64::MIN }, { i64::MAX }>;
pub(crate) type Tables<T> = At<Vec<At<Table<T>>>>;

/// Of a task, a group or a budget group.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend(
    "minLength" = 1,
    "maxLength" = LONGEST_NAME,
    "pattern" = r"^[^\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]*$",
    "not" = { "pattern": r"^\s*$" }
))]
pub(crate) struct Name(pub(crate) String);

/// A task-set file (TOML) of Punctual. docs/task-set.md explains every key; what a schema cannot
/// express (a budget above its period, a name given twice) is checked by the program.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("allOf" = [
    { "not": { "required": ["cpu", "cpus"] } },
    {
        "if": {
            "required": ["cpus"],
            "properties": { "cpus": { "type": "array", "minItems": 2 } }
        },
        "then": {
            "required": ["domain"],
            "if": { "properties": { "domain": { "const": "partitioned" } } },
            "then": { "properties": {
                "task": { "items": {
                    "anyOf": [{ "required": ["cpu"] }, { "required": ["group"] }]
                } },
                "group": { "items": {
                    "anyOf": [{ "required": ["cpu"] }, { "required": ["parent"] }]
                } },
                "budget_group": { "items": {
                    "anyOf": [{ "required": ["cpu"] }, { "required": ["parent"] }]
                } }
            } },
            "else": { "properties": {
                "task": { "items": { "not": { "required": ["cpu"] } } },
                "group": { "items": { "not": { "required": ["cpu"] } } },
                "budget_group": { "items": { "not": { "required": ["cpu"] } } }
            } }
        }
    },
    {
        "if": { "required": ["policy"], "properties": { "policy": { "anyOf": [
            { "const": "fp" },
            { "type": "object", "required": ["name"], "properties": { "name": { "const": "fp" } } }
        ] } } },
        "then": { "properties": {
            "task": { "items": {
                "anyOf": [{ "required": ["priority"] }, { "required": ["group"] }]
            } },
            "group": { "items": {
                "anyOf": [{ "required": ["priority"] }, { "required": ["parent"] }]
            } }
        } }
    }
], "required" = ["policy", "task"]))]
pub(crate) struct Set {
    /// The one CPU that the set uses; by default the last that the process may use.
    pub(crate) cpu: Option<At<Cpu>>,
    /// The CPUs that the set uses, instead of cpu.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub(crate) cpus: Option<At<Vec<At<Cpu>>>>,
    /// How several CPUs are shared: each task runs on the one it names, or one dispatcher serves
    /// them all, which no host does yet. Required with several.
    #[schemars(extend("enum" = ["partitioned", "global"]))]
    pub(crate) domain: Option<At<String>>,
    /// Which task comes first at the top.
    pub(crate) policy: Option<At<Policy>>,
    /// How long the set runs; else until all tasks have ended.
    pub(crate) duration: Option<At<Positive>>,
    /// The tasks, each below a [[task]] line.
    #[schemars(length(min = 1))]
    pub(crate) task: Option<Tables<Task>>,
    /// The scheduling groups, each below a [[group]] line.
    #[schemars(length(max = MOST_GROUPS))]
    pub(crate) group: Option<Tables<Group>>,
    /// Budgets that several tasks and groups share, each below a [[budget_group]] line.
    #[schemars(length(max = MOST_BUDGET_GROUPS))]
    pub(crate) budget_group: Option<Tables<BudgetGroup>>,
}

/// A task.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend(
    "required" = ["name"],
    "oneOf" = [{ "required": ["work"] }, { "required": ["command"] }, { "required": ["pid"] }],
    "not" = { "required": ["arrival", "offset"], "properties": { "arrival": { "type": "array" } } },
    "allOf" = [
        {
            "if": { "required": ["weight"] },
            "then": { "not": { "anyOf": [
                { "required": ["role"] },
                { "required": ["period"] }, { "required": ["budget"] },
                { "required": ["deadline"] }, { "required": ["overrun"] },
                { "required": ["server"] }, { "required": ["jitter"] },
                { "required": ["blocking"] }
            ] } },
            "else": { "anyOf": [{ "required": ["role"] }, { "required": ["period", "budget"] }] }
        },
        {
            "if": { "required": ["server"], "properties": { "server": { "const": "adaptive" } } },
            "then": { "properties": { "arrival": {
                "not": { "anyOf": [
                    { "type": "array" }, { "type": "object", "required": ["aperiodic"] }
                ] }
            } } },
            "else": { "not": { "required": ["min_budget"] } }
        }
    ]
))]
pub(crate) struct Task {
    /// Unique among the tasks.
    pub(crate) name: Option<At<Name>>,
    /// The role that gives the period, budget, deadline and overrun that the task has not itself.
    #[schemars(extend(
        "minLength" = 1,
        "maxLength" = LONGEST_NAME,
        "pattern" = r"^[^./][^/]*$",
        "not" = { "pattern": r"^\s*$" }
    ))]
    pub(crate) role: Option<At<String>>,
    /// Time between releases, at least 100us.
    pub(crate) period: Option<At<Positive>>,
    /// Execution time promised, and allowed, in each period; at most the deadline.
    pub(crate) budget: Option<At<Positive>>,
    /// From release; at most the period, which is the default.
    pub(crate) deadline: Option<At<Positive>>,
    /// The first release, from the start of the run; default 0.
    pub(crate) offset: Option<At<Duration>>,
    /// For the policy fp: larger is more important.
    pub(crate) priority: Option<At<Integer>>,
    /// When it is released.
    pub(crate) arrival: Option<At<Arrival>>,
    /// The CPU of this task; its group's by default.
    pub(crate) cpu: Option<At<Cpu>>,
    /// What happens when the budget is used up before the task is done; default carry.
    pub(crate) overrun: Option<At<Word<Overrun>>>,
    /// The scheduling group in which it competes; without it, the top.
    pub(crate) group: Option<At<String>>,
    /// Under wfq and sfq, instead of period and budget: of what its group executes, it receives the
    /// part weight / (sum of the group's weights).
    pub(crate) weight: Option<At<Share>>,
    /// The budget group that limits it.
    pub(crate) budget_group: Option<At<String>>,
    /// Its own server, which makes its releases: soft_constant_bandwidth, total_bandwidth or
    /// constant_utilization under edf, sporadic under rm, dm, fp and an objective without release
    /// and finish, adaptive under any of these. Without it, each arrival is a release.
    #[schemars(extend("not" = { "enum": ["deferrable", "polling", "constant_bandwidth"] }))]
    pub(crate) server: Option<At<Word<ServerKind>>>,
    /// For the server adaptive: the least budget of a release, at most the budget; default a tenth
    /// of the budget.
    pub(crate) min_budget: Option<At<Positive>>,
    /// For the policy td: when it executes in its period, in any order, not overlapping.
    #[schemars(length(min = 1))]
    pub(crate) windows: Option<Tables<Window>>,
    /// For the policy imprecise: the budget of the mandatory part, at most the budget.
    pub(crate) mandatory: Option<At<Positive>>,
    /// For the policy dual: the time from its release to its promotion; before the
    /// deadline.
    pub(crate) promotion: Option<At<Duration>>,
    /// A release may come so much late; below the period.
    pub(crate) jitter: Option<At<Duration>>,
    /// The longest time that a task of lower priority may block it.
    pub(crate) blocking: Option<At<Duration>>,
    /// Synthetic execution.
    pub(crate) work: Option<At<Table<Work>>>,
    /// A program and its arguments; no shell reads them.
    #[schemars(length(min = 1), inner(regex(pattern = r"^[^\u0000]*$")))]
    #[schemars(extend("not" = { "items": [{ "pattern": r"^\s*$" }] }))]
    pub(crate) command: Option<At<Vec<At<String>>>>,
    /// A running process, adopted with all its threads.
    pub(crate) pid: Option<At<Pid>>,
}

/// A scheduling group: period and budget, or windows and cycle.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["name", "policy"], "oneOf" = [
    {
        "required": ["period", "budget"],
        "not": { "anyOf": [{ "required": ["windows"] }, { "required": ["cycle"] }] }
    },
    {
        "required": ["windows", "cycle"],
        "not": { "anyOf": [
            { "required": ["period"] }, { "required": ["budget"] }, { "required": ["deadline"] },
            { "required": ["offset"] }, { "required": ["server"] }
        ] }
    }
]))]
pub(crate) struct Group {
    /// Unique among the groups.
    pub(crate) name: Option<At<Name>>,
    /// The group in which its servers compete; without it, the top.
    pub(crate) parent: Option<At<String>>,
    /// How its members are scheduled.
    pub(crate) policy: Option<At<Policy>>,
    /// Time between replenishments, at least 100us.
    pub(crate) period: Option<At<Positive>>,
    /// Execution time per period; at most the deadline.
    pub(crate) budget: Option<At<Positive>>,
    /// From each replenishment; at most the period, which is the default.
    pub(crate) deadline: Option<At<Positive>>,
    /// The first replenishment, from the start of the run; default 0.
    pub(crate) offset: Option<At<Duration>>,
    /// What becomes of the budget while the group has nothing to execute; default
    /// constant_bandwidth where the policy above is edf, else deferrable.
    #[schemars(extend("not" = {
        "enum": ["soft_constant_bandwidth", "total_bandwidth", "constant_utilization", "adaptive"]
    }))]
    pub(crate) server: Option<At<Word<ServerKind>>>,
    /// When it executes in the cycle, instead of period and budget.
    #[schemars(length(min = 1))]
    pub(crate) windows: Option<Tables<Window>>,
    /// After which the windows come again, at least 100us.
    pub(crate) cycle: Option<At<Positive>>,
    /// Where the policy above is fp: larger is more important.
    pub(crate) priority: Option<At<Integer>>,
    /// The budget group that limits it.
    pub(crate) budget_group: Option<At<String>>,
    /// The CPU of this group; its parent's by default.
    pub(crate) cpu: Option<At<Cpu>>,
}

/// A budget that tasks and groups share.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["name", "period", "budget"]))]
pub(crate) struct BudgetGroup {
    /// Unique among the budget groups.
    pub(crate) name: Option<At<Name>>,
    /// The budget group that limits this one.
    pub(crate) parent: Option<At<String>>,
    /// Time between replenishments, at least 100us.
    pub(crate) period: Option<At<Positive>>,
    /// Execution time per period; at most the period.
    pub(crate) budget: Option<At<Positive>>,
    /// The CPU of this budget group; its parent's by default.
    pub(crate) cpu: Option<At<Cpu>>,
}

/// A part of a cycle.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["start", "length"]))]
pub(crate) struct Window {
    /// From the start of the cycle.
    pub(crate) start: Option<At<Duration>>,
    /// How long.
    pub(crate) length: Option<At<Positive>>,
}

/// A policy by its name, or by a table that has it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("not" = { "const": "objective" }))]
pub(crate) enum Policy {
    Name(PolicyName),
    Table(PolicyTable),
}

/// The name of a policy.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("enum" = names(policies())))]
pub(crate) struct PolicyName(pub(crate) String);

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, extend(
    "oneOf" = [{ "required": ["name"] }, { "required": ["plugin"] }],
    "if" = { "required": ["name"], "properties": { "name": { "const": "objective" } } },
    "then" = {
        "required": ["order"],
        "not": { "anyOf": [{ "required": ["quantum"] }, { "required": ["reclaim"] }] }
    },
    "else" = {
        "not": { "required": ["order"] },
        "allOf": [{
            "if": { "required": ["quantum"] },
            "then": { "required": ["name"], "properties": { "name": { "enum": ["wfq", "sfq"] } } }
        }, {
            "if": { "required": ["reclaim"] },
            "then": { "required": ["name"], "properties": { "name": { "const": "edf" } } }
        }]
    }
))]
pub(crate) struct PolicyTable {
    pub(crate) name: Option<At<PolicyName>>,
    /// Instead of a name: the file of a shared object with a policy, from the folder of this file.
    #[schemars(length(min = 1))]
    pub(crate) plugin: Option<At<String>>,
    /// For the policy objective: an expression; the smaller its value, the more important.
    #[schemars(length(min = 1, max = LONGEST_OBJECTIVE))]
    pub(crate) order: Option<At<String>>,
    /// For the policies wfq and sfq: the budget of each job, 100us to 1s; default 4ms.
    pub(crate) quantum: Option<At<Positive>>,
    /// For the policy edf: tasks reclaim the budgets that others do not use.
    pub(crate) reclaim: Option<At<bool>>,
}

impl Forms for Policy {
    const WANTED: &'static str = "a name";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Policy::Name(PolicyName(text.to_owned())))
    }
    fn table<'de, A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(table)).map(Policy::Table)
    }
}

/// When a task is released.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Arrival {
    Word(Periodic),
    Random(Random),
    #[schemars(extend("minItems" = 1))]
    List(Vec<At<Duration>>),
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Periodic {
    Periodic,
}

/// At random: one of sporadic and aperiodic.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, extend("oneOf" = [{ "required": ["sporadic"] }, { "required": ["aperiodic"] }]))]
pub(crate) struct Random {
    /// The longest time between two; the period is the shortest.
    pub(crate) sporadic: Option<At<Positive>>,
    /// The mean time between two.
    pub(crate) aperiodic: Option<At<Positive>>,
    /// Of the generator; default 0.
    pub(crate) seed: Option<At<Seed>>,
}

pub(crate) const ARRIVALS: &str =
    "write \"periodic\", { sporadic = \"LONGEST\" }, { aperiodic = \"MEAN\" } or a list of times";

impl Forms for Arrival {
    const WANTED: &'static str = "a word, a table or a list";

    fn text<E: Error>(word: &str) -> Result<Self, E> {
        let near = nearest(&word.to_lowercase(), &["periodic", "sporadic", "aperiodic"]);
        Err(match (word, near) {
            ("periodic", _) => return Ok(Arrival::Word(Periodic::Periodic)),
            ("sporadic", _) => fault(
                "sporadic arrival needs the longest time between two",
                "write arrival = { sporadic = \"LONGEST\" }; the period is the shortest",
            ),
            ("aperiodic", _) => fault(
                "aperiodic arrival needs the mean time between two",
                "write arrival = { aperiodic = \"MEAN\" }",
            ),
            (_, Some(near)) => fault(
                format_args!("unknown arrival {}", quote(word)),
                format_args!("did you mean {}?", quote(near)),
            ),
            (_, None) => fault(format_args!("unknown arrival {}", quote(word)), ARRIVALS),
        })
    }
    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(Arrival::List)
    }
    fn table<'de, A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(table)).map(Arrival::Random)
    }
}

by_forms! {
    impl[] Policy;
    impl[] Arrival;
}
