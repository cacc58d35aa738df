//! The reservation of a thread that asks for a real-time priority by the interface of RealtimeKit.

use punctual_taskset::{fmt_ns, parse_duration};
use serde::Deserialize;

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
        let period_ns = duration("period", keys.period.as_deref(), default.period_ns)?;
        let budget_ns = duration("budget", keys.budget.as_deref(), default.budget_ns)?;
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

fn duration(key: &str, text: Option<&str>, default: u64) -> Result<u64, String> {
    text.map_or(Ok(default), |text| parse_duration(text).map_err(|e| format!("{key}: {e}")))
}
