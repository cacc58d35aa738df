//! The values of one reservation: those of its request, or of the role that it names.

use punctual_service::{ServiceError, TaskRequest};
use punctual_taskset::{Overrun, Role, RoleFolders};
use serde::{Deserialize, Serialize};

use crate::owner::invalid;
use crate::scheduling_groups::ServiceGroup;

/// The policy of the service's dispatchers.
const POLICY: &str = "edf";

/// Period, budget and what belongs to them. Times are ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    /// Time between releases.
    pub period_ns: u64,
    /// Execution time in each period.
    pub budget_ns: u64,
    /// Relative deadline; `None`: the period.
    pub deadline_ns: Option<u64>,
    /// When the budget is used up before the job is done.
    pub overrun: Overrun,
    /// The CPU, if it has to be a certain one.
    pub cpu: Option<u32>,
    /// The scheduling group in which the reservation competes.
    pub group: Option<String>,
    /// Who has chosen them.
    pub origin: Origin,
}

/// Who has chosen the values of a reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Its client.
    Client,
    /// The file of a role; `is_named`: the configuration names the role for the user.
    Role { name: String, is_named: bool },
    /// The configuration, for an interface that takes them from there.
    Interface,
}

impl Values {
    /// The values that a request has itself.
    ///
    /// # Errors
    /// One is missing, or is none.
    pub fn of_request(request: &TaskRequest) -> Result<Values, ServiceError> {
        let given = |value: Option<u64>, what: &str| {
            let help = "give period_ns and budget_ns, or a role";
            value.ok_or_else(|| invalid(format!("the request has no {what}"), help))
        };
        Ok(Values {
            period_ns: given(request.period_ns, "period")?,
            budget_ns: given(request.budget_ns, "budget")?,
            deadline_ns: request.deadline_ns,
            overrun: overrun(request.overrun.as_deref())?,
            cpu: request.cpu,
            group: None,
            origin: Origin::Client,
        })
    }

    /// The same for an interface that takes them from the configuration.
    ///
    /// # Errors
    /// As of [`of_request`](Values::of_request).
    pub fn of_interface(request: &TaskRequest) -> Result<Values, ServiceError> {
        Ok(Values { origin: Origin::Interface, ..Values::of_request(request)? })
    }

    /// The values of the role that a request names, as its file has them now.
    ///
    /// # Errors
    /// The request has values beside the role; there is no such role; its file is wrong; the
    /// service cannot schedule it, or has no such group.
    pub fn of_role(
        name: &str,
        is_named: bool,
        request: &TaskRequest,
        (folders, groups): (&RoleFolders, &[ServiceGroup]),
    ) -> Result<Values, ServiceError> {
        let own = [request.period_ns, request.budget_ns, request.deadline_ns];
        if own.iter().any(Option::is_some) || request.overrun.is_some() {
            let cause = format!("the request has values beside those of the role {name:?}");
            let help = "leave out period_ns, budget_ns, deadline_ns and overrun, or the role";
            return Err(invalid(cause, help));
        }
        let Role { period, budget, deadline, overrun, cpu, policy, group, .. } =
            folders.look_up(name)?.role.map_err(|error| ServiceError::MachineRefused {
                cause: match error.place() {
                    Some(place) => format!("{place}: {}", error.cause),
                    None => error.cause,
                },
                help: error.help,
            })?;
        let cpu = match &group {
            Some(group) => Some(cpu_of_group((name, group), request.cpu.or(cpu), groups)?),
            None => request.cpu.or(cpu),
        };
        // Of a group, the policy is its own.
        if let (Some(policy), None) = (policy.filter(|policy| policy != POLICY), &group) {
            let cause = format!(
                "the role {name:?} has the policy {policy}, and the service schedules by {POLICY}"
            );
            return Err(invalid(cause, "use another role, or another host"));
        }
        Ok(Values {
            period_ns: period,
            budget_ns: budget,
            deadline_ns: deadline,
            overrun: overrun.unwrap_or_default(),
            cpu,
            group,
            origin: Origin::Role { name: name.to_owned(), is_named },
        })
    }

    /// The role that they are of.
    pub fn role(&self) -> Option<&str> {
        match &self.origin {
            Origin::Role { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Whether the administrator has chosen them.
    pub fn are_of_the_configuration(&self) -> bool {
        matches!(self.origin, Origin::Role { is_named: true, .. } | Origin::Interface)
    }
}

/// The CPU of the group that a role names, if that is none other than the one asked for.
fn cpu_of_group(
    (role, name): (&str, &str),
    wanted: Option<u32>,
    groups: &[ServiceGroup],
) -> Result<u32, ServiceError> {
    let Some(group) = groups.iter().find(|group| group.name == name) else {
        return Err(ServiceError::MachineRefused {
            cause: format!("the role {role:?} is of the group {name:?}, which the service lacks"),
            help: "add it as a [[scheduling_group]] to the configuration (docs/service.md)".into(),
        });
    };
    match wanted {
        Some(cpu) if cpu != group.cpu => Err(invalid(
            format!("the role {role:?} is of the group {name:?}, which is on CPU {}", group.cpu),
            "use that CPU, or leave the CPU out",
        )),
        _ => Ok(group.cpu),
    }
}

fn overrun(name: Option<&str>) -> Result<Overrun, ServiceError> {
    let all = [Overrun::Carry, Overrun::Skip, Overrun::Background, Overrun::Signal];
    let Some(name) = name else { return Ok(Overrun::default()) };
    all.into_iter().find(|overrun| overrun.to_string() == name).ok_or_else(|| {
        invalid(format!("{name:?} is no overrun policy"), "use carry, skip, background or signal")
    })
}
