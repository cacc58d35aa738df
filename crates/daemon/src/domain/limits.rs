//! What a CPU refuses.

use punctual::Ppm;
use punctual_diagnostic::{Diagnostic, Kind};
use punctual_service::ServiceError;

use super::Domain;
use crate::dispatchers::{DispatcherLayout, ServiceRun};
use crate::user::User;
use crate::values::Values;

/// Reservations of one user on one CPU, root excepted, and their least budget, ns. The dispatcher
/// looks whether a sleeping program runs again at intervals of a part of its budget, at the cost of
/// the others: of 16 programs with budgets of 1 ms, 2,600 times a second.
const PER_USER: usize = 16;
pub(crate) const LEAST_BUDGET_NS: u64 = 1_000_000;

impl Domain {
    /// What a reservation costs the dispatcher, whatever its share.
    pub(super) fn check_cost(&self, caller: &User, values: &Values) -> Result<(), ServiceError> {
        let own = self.held.values().filter(|held| held.info.uid == caller.uid).count();
        if caller.is_root() {
            return Ok(());
        }
        if own >= PER_USER {
            return Err(ServiceError::NotPermitted {
                cause: format!("user {} has {own} reservations on CPU {}", caller.uid, self.cpu),
                help: "release one, or use another CPU".to_owned(),
            });
        }
        self.check_kept(caller)?;
        if values.are_of_the_configuration() {
            return Ok(());
        }
        check_least_budget(caller, values.budget_ns)
    }

    pub(super) fn check_limit(
        &self,
        caller: &User,
        limit_ppm: u64,
        ppm: u64,
        others_ppm: u64,
    ) -> Result<(), ServiceError> {
        if caller.is_root() || others_ppm.saturating_add(ppm) <= limit_ppm {
            return Ok(());
        }
        let cause = match limit_ppm {
            0 => format!("user {} may reserve nothing on CPU {}", caller.uid, self.cpu),
            _ => format!(
                "user {} may reserve {} of CPU {}, has {} and requests {} more",
                caller.uid,
                Ppm(limit_ppm),
                self.cpu,
                Ppm(others_ppm),
                Ppm(ppm)
            ),
        };
        let help = "ask the administrator for a larger share (docs/service.md)".to_owned();
        Err(ServiceError::NotPermitted { cause, help })
    }

    /// # Errors
    /// The dispatcher was started without this group.
    pub(super) fn check_group(&self, name: &str, run: &ServiceRun) -> Result<(), Diagnostic> {
        if run.groups.iter().any(|group| group.cpu == self.cpu && group.name == name) {
            return Ok(());
        }
        Err(Diagnostic::machine(
            format!("the dispatcher of CPU {} was started before its group {name:?}", self.cpu),
            "have it start again: release all its reservations, or run punctual serve --replace",
        ))
    }

    /// The refusal as the caller may see it: admission names the tasks of all users. `group`: in
    /// which the reservation competes.
    pub(super) fn explain(
        &mut self,
        mut refusal: Diagnostic,
        caller: &User,
        group: Option<&str>,
        layout: &DispatcherLayout,
    ) -> ServiceError {
        let own = caller.is_root() || self.held.values().all(|held| held.info.uid == caller.uid);
        if refusal.kind != Kind::NotAdmitted {
            return refusal.into();
        }
        if own {
            let of = group.map_or_else(String::new, |name| format!("group {name:?}: "));
            refusal.cause.insert_str(0, &of);
            return refusal.into();
        }
        let cause = match group {
            Some(name) => {
                let reserved = Ppm(self.of_group_ppm(name));
                format!(
                    "the group {name:?} cannot promise this beside the {reserved} of CPU {} that \
                     its reservations have",
                    self.cpu
                )
            }
            None => {
                let reserved = Ppm(self.reserved_ppm(layout));
                format!("CPU {} cannot promise this beside the {reserved} that it has", self.cpu)
            }
        };
        let help = "lower the budget, lengthen the period, or use another CPU".to_owned();
        ServiceError::NotAdmitted { cause, help }
    }
}

pub(super) fn check_least_budget(caller: &User, budget_ns: u64) -> Result<(), ServiceError> {
    if caller.is_root() || budget_ns >= LEAST_BUDGET_NS {
        return Ok(());
    }
    Err(ServiceError::NotPermitted {
        cause: "a program of an ordinary user has a budget of at least 1 ms".to_owned(),
        help: "lengthen the budget, and the period with it".to_owned(),
    })
}
