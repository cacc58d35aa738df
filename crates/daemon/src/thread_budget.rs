//! The reservation of a thread that asks for a real-time priority by the interface of RealtimeKit.

use punctual_taskset::fmt_ns;
use serde::Deserialize;

use crate::config_value::duration;
use crate::domain::LEAST_BUDGET_NS;

/// What each such thread gets.
///
/// By default 1 ms in 10 ms, a tenth of a CPU: PipeWire asks for a thread of its server and for one
/// of each client, so that a CPU has to admit several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadBudget {
    /// Time between releases, ns.
    pub period_ns: u64,
    /// Execution time in each period, ns.
    pub budget_ns: u64,
}

impl Default for ThreadBudget {
    fn default() -> ThreadBudget {
        ThreadBudget { period_ns: 10_000_000, budget_ns: 1_000_000 }
    }
}

/// The section `[realtime_kit]` of the configuration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThreadBudgetKeys {
    period: Option<String>,
    budget: Option<String>,
}

impl ThreadBudget {
    /// # Errors
    /// What is wrong: no duration, a budget below that of ordinary users or above the period.
    pub(crate) fn of(keys: &ThreadBudgetKeys) -> Result<ThreadBudget, String> {
        let default = ThreadBudget::default();
        let given = |key, text: &Option<String>, default| {
            text.as_deref().map_or(Ok(default), |text| duration(key, text))
        };
        let period_ns = given("period", &keys.period, default.period_ns)?;
        let budget_ns = given("budget", &keys.budget, default.budget_ns)?;
        let (period, budget) = (fmt_ns(period_ns), fmt_ns(budget_ns));
        if budget_ns < LEAST_BUDGET_NS {
            return Err(format!("budget {budget} is less than {}", fmt_ns(LEAST_BUDGET_NS)));
        }
        if budget_ns > period_ns {
            return Err(format!("budget {budget} is more than its period {period}"));
        }
        Ok(ThreadBudget { period_ns, budget_ns })
    }
}
