//! What a host takes of a CPU for its own work.

use std::fmt;

use crate::fmt_ns;

/// The execution time that a host takes of a CPU at each of its events, and the least budget that
/// the host enforces.
///
/// No budget is charged for that time: it delays the tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Costs {
    /// Each release of a task, and each replenishment of a server or a budget group, ns.
    #[serde(rename = "release_ns")]
    pub release: u64,
    /// Each time that another task gets the CPU, ns.
    #[serde(rename = "switch_ns")]
    pub switch: u64,
    /// Each expiry of a timer that ends a budget or that a policy asked for, ns.
    #[serde(rename = "timer_ns")]
    pub timer: u64,
    /// Each command of a task: the wait for the next period, and a suspension or a wake-up in
    /// mid-job, ns.
    #[serde(rename = "command_ns")]
    pub command: u64,
    /// A smaller budget is not enforced to a tenth of it in each period, ns.
    #[serde(rename = "least_budget_ns")]
    pub least_budget: u64,
    /// Where the numbers are from.
    pub basis: CostBasis,
}

/// Where the numbers of [`Costs`] are from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CostBasis {
    /// No host: all are 0.
    #[default]
    None,
    /// Named by the caller.
    Given,
    /// Counted in a virtual machine whose clock counts instructions.
    Counted,
}

impl Costs {
    /// No costs at all: pure theory.
    pub const NONE: Costs = Costs {
        release: 0,
        switch: 0,
        timer: 0,
        command: 0,
        least_budget: 0,
        basis: CostBasis::None,
    };

    /// Whether no event costs anything.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.release | self.switch | self.timer | self.command == 0
    }

    /// The larger of each number. `basis` is that of `self`.
    #[must_use]
    pub fn max(self, other: Costs) -> Costs {
        Costs {
            release: self.release.max(other.release),
            switch: self.switch.max(other.switch),
            timer: self.timer.max(other.timer),
            command: self.command.max(other.command),
            least_budget: self.least_budget.max(other.least_budget),
            basis: self.basis,
        }
    }
}

impl fmt::Display for Costs {
    /// In one line: `release 5 us, switch 1 us, timer 3 us, command 2 us, least budget 50 us
    /// (counted in ...)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = [self.release, self.switch, self.timer, self.command].map(fmt_ns);
        write!(
            f,
            "release {}, switch {}, timer {}, command {}",
            times[0], times[1], times[2], times[3]
        )?;
        if self.least_budget > 0 {
            write!(f, ", least budget {}", fmt_ns(self.least_budget))?;
        }
        f.write_str(match self.basis {
            CostBasis::None | CostBasis::Given => "",
            CostBasis::Counted => " (counted in a virtual machine)",
        })
    }
}
