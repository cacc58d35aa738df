//! What an interface calls itself, and what the environment sets for it.

use std::ffi::OsString;
use std::time::Duration;

use punctual::Error;

/// Period of the group of tasks without a budget, and of their reservations by the service.
pub(crate) const GROUP_PERIOD: Duration = Duration::from_millis(10);

/// Percent of a CPU for the group.
const SHARE: u32 = 50;
/// Percent of a CPU for each task without a budget, by the service.
const TASK_SHARE: u32 = 10;

/// The names of one interface.
#[derive(Debug, Clone, Copy)]
pub struct InterfaceNames {
    /// The library, in messages.
    pub library: &'static str,
    /// The scheduling group of tasks without a budget.
    pub group: &'static str,
    /// What the variables of the environment begin with:
    ///
    /// | variable | is |
    /// |---|---|
    /// | `PREFIX_HOST` | `user`, `service` or `none`; else what there is |
    /// | `PREFIX_CPU` | the CPU of tasks that may execute on all |
    /// | `PREFIX_SHARE` | percent of a CPU for the group |
    /// | `PREFIX_TASK_SHARE` | percent of a CPU for each task without a budget, by the service |
    /// | `PREFIX_TRACE` | a file for the trace of the first set; `.cpuN` is appended for others |
    pub prefix: &'static str,
    /// Tasks of a set, at most.
    pub tasks: u32,
}

impl InterfaceNames {
    /// The name of a variable.
    pub(crate) fn variable(&self, name: &str) -> String {
        format!("{}_{name}", self.prefix)
    }

    /// The value of a variable.
    pub(crate) fn setting(&self, name: &str) -> Option<OsString> {
        std::env::var_os(self.variable(name))
    }

    /// The group's part of its period.
    ///
    /// # Errors
    /// The setting is no share of a CPU.
    pub(crate) fn group_budget(&self) -> Result<Duration, Error> {
        self.part_of_period("SHARE", SHARE)
    }

    /// The part of the period of a task without a budget, by the service.
    ///
    /// # Errors
    /// The setting is no share of a CPU.
    pub(crate) fn task_budget(&self) -> Result<Duration, Error> {
        self.part_of_period("TASK_SHARE", TASK_SHARE)
    }

    fn part_of_period(&self, name: &str, percent: u32) -> Result<Duration, Error> {
        let percent = match self.setting(name) {
            None => percent,
            Some(text) => {
                let number = text.to_str().and_then(|text| text.parse().ok());
                number.filter(|n| (1..=90).contains(n)).ok_or_else(|| {
                    let (name, text) = (self.variable(name), text.to_string_lossy());
                    Error::usage(
                        format!("{name}={text} is no share of a CPU"),
                        "use 1 to 90 (percent)",
                    )
                })?
            }
        };
        Ok(GROUP_PERIOD * percent / 100)
    }
}
