//! Synthetic work as it is written: times, distributions, recordings and steps.

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess};
use serde::{Deserialize, Serialize};

use super::{Seed, Tables, Weight};
use crate::value::{by_forms, fault, At, Forms, Positive};
use crate::MOST_STEPS;

/// Synthetic execution: one of these forms, a seed beside what is drawn.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    { "required": ["spin"], "not": { "required": ["seed"] } },
    { "required": ["steps"], "not": { "required": ["seed"] } },
    { "required": ["uniform"] },
    { "required": ["histogram"] },
    { "required": ["recorded"], "not": { "required": ["seed"] } }
]))]
pub(crate) struct Work {
    /// A time, "forever", or a distribution.
    pub(crate) spin: Option<At<Spin>>,
    /// Executes and sleeps in order.
    #[schemars(length(min = 1, max = MOST_STEPS))]
    pub(crate) steps: Option<Tables<Step>>,
    /// Between two durations, evenly distributed.
    #[schemars(length(equal = 2))]
    pub(crate) uniform: Option<At<Vec<At<Positive>>>>,
    /// One of several durations, each with its weight.
    #[schemars(length(min = 1))]
    pub(crate) histogram: Option<At<Vec<At<Bin>>>>,
    /// One after the other, over and over.
    pub(crate) recorded: Option<At<Recorded>>,
    /// Of the generator; default 0.
    pub(crate) seed: Option<At<Seed>>,
}

/// A part of a job: spin or sleep.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["spin"] }, { "required": ["sleep"] }]))]
pub(crate) struct Step {
    /// A time, "forever", or a distribution.
    pub(crate) spin: Option<At<Spin>>,
    /// Sleeps for this time.
    pub(crate) sleep: Option<At<Positive>>,
}

/// Execution of one job or step.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Spin {
    Word(Forever),
    For(Positive),
    Drawn(Distribution),
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Forever {
    Forever,
}

impl Forms for Spin {
    const WANTED: &'static str = Positive::WANTED;

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        match text {
            "forever" => Ok(Spin::Word(Forever::Forever)),
            _ => Positive::text(text).map(Spin::For),
        }
    }
    fn table<'de, A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(table)).map(Spin::Drawn)
    }
}

/// Of execution times: one of these forms, a seed beside what is drawn.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    { "required": ["uniform"] },
    { "required": ["histogram"] },
    { "required": ["recorded"], "not": { "required": ["seed"] } }
]))]
pub(crate) struct Distribution {
    /// Between two durations, evenly distributed.
    #[schemars(length(equal = 2))]
    pub(crate) uniform: Option<At<Vec<At<Positive>>>>,
    /// One of several durations, each with its weight.
    #[schemars(length(min = 1))]
    pub(crate) histogram: Option<At<Vec<At<Bin>>>>,
    /// One after the other, over and over.
    pub(crate) recorded: Option<At<Recorded>>,
    /// Of the generator; default 0.
    pub(crate) seed: Option<At<Seed>>,
}

/// An execution time and its weight.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Bin(pub(crate) At<Positive>, pub(crate) Weight);

pub(crate) const HISTOGRAM: &str =
    "write it as histogram = [[\"100us\", 3], [\"1ms\", 1]]: execution times and their weights";

impl Forms for Bin {
    const WANTED: &'static str = "a pair";

    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let miscounted = |count| {
            fault(format_args!("a bin of the histogram has {count} values, not two"), HISTOGRAM)
        };
        let time = list.next_element()?.ok_or_else(|| miscounted(0))?;
        let weight = list.next_element()?.ok_or_else(|| miscounted(1))?;
        let mut count = 2;
        while list.next_element::<serde::de::IgnoredAny>()?.is_some() {
            count += 1;
        }
        match count {
            2 => Ok(Bin(time, weight)),
            _ => Err(miscounted(count)),
        }
    }
}

/// A text file with one duration on each line, whose path begins at the folder of the task-set
/// file; or the durations themselves.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Recorded {
    #[schemars(extend("minLength" = 1))]
    File(String),
    #[schemars(extend("minItems" = 1))]
    Times(Vec<At<Positive>>),
}

impl Forms for Recorded {
    const WANTED: &'static str = "a string";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Recorded::File(text.to_owned()))
    }
    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(Recorded::Times)
    }
}

by_forms! {
    impl[] Spin;
    impl[] Bin;
    impl[] Recorded;
}
