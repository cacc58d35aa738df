//! What clients request, and what they get.

use serde::{Deserialize, Serialize};

/// A running process with its children, or one thread, that is to execute within a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskRequest {
    /// 1 to 40 printable bytes; chosen by the client, for people.
    pub name: String,
    /// The process: one of the client's user.
    pub pid: i32,
    /// A thread of the process; where it is missing, the process with its children.
    #[serde(default)]
    pub tid: Option<i32>,
    /// The CPU; where it is missing, the service chooses.
    #[serde(default)]
    pub cpu: Option<u32>,
    /// The role that has period, budget, deadline and overrun policy, as the service reads it. Only
    /// where it is missing, these are given here.
    #[serde(default)]
    pub role: Option<String>,
    /// Time between releases, ns.
    #[serde(default)]
    pub period_ns: Option<u64>,
    /// Execution time in each period, ns.
    #[serde(default)]
    pub budget_ns: Option<u64>,
    /// Relative deadline, ns; where it is missing, the period.
    #[serde(default)]
    pub deadline_ns: Option<u64>,
    /// From the reservation to the first release, ns; where it is missing, 0. The service adds some
    /// 20 ms, in which it prepares the release.
    #[serde(default)]
    pub offset_ns: Option<u64>,
    /// Time of the first release, CLOCK_MONOTONIC, ns, from which the offset counts too; if that is
    /// less than 20 ms ahead, the first release is whole periods later. Where it is missing, it is
    /// some 20 ms after the reservation.
    #[serde(default)]
    pub first_release_ns: Option<u64>,
    /// `carry`, `skip`, `background` or `signal`; where it is missing, `carry`.
    #[serde(default)]
    pub overrun: Option<String>,
    /// The thread waits for its releases by the page of the latest `MakePage`, which its client has
    /// mapped; where it is missing, it does not.
    #[serde(default)]
    pub page: Option<bool>,
}

impl TaskRequest {
    /// `budget_ns` in each `period_ns` for a process with its children, with all else left to the
    /// service.
    #[must_use]
    pub fn new(name: impl Into<String>, pid: i32, period_ns: u64, budget_ns: u64) -> TaskRequest {
        TaskRequest {
            name: name.into(),
            pid,
            tid: None,
            cpu: None,
            role: None,
            period_ns: Some(period_ns),
            budget_ns: Some(budget_ns),
            deadline_ns: None,
            offset_ns: None,
            first_release_ns: None,
            overrun: None,
            page: None,
        }
    }

    /// What a role has, for a process with its children, with all else left to the service.
    #[must_use]
    pub fn by_role(name: impl Into<String>, pid: i32, role: impl Into<String>) -> TaskRequest {
        let role = Some(role.into());
        TaskRequest { role, period_ns: None, budget_ns: None, ..TaskRequest::new(name, pid, 0, 0) }
    }
}

/// Other values for a reservation, from its next release on. What is missing stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationChange {
    /// Time between releases, ns. The next release comes when it was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<u64>,
    /// Execution time in each period, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// Relative deadline, ns. Where it is missing and was the period, it stays the period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
}

impl ReservationChange {
    /// Another budget, ns.
    #[must_use]
    pub fn of_budget(budget_ns: u64) -> ReservationChange {
        ReservationChange { budget_ns: Some(budget_ns), ..ReservationChange::default() }
    }
}

/// A reservation of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationInfo {
    /// Names it in further calls; never used again.
    pub id: u64,
    /// As the client named it.
    pub name: String,
    /// The user whose process it is.
    pub uid: u32,
    /// The process.
    pub pid: i32,
    /// The thread of it, if the reservation is for that alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<i32>,
    /// Its CPU.
    pub cpu: u32,
    /// The role whose values it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The scheduling group in which it competes; none: with the groups themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Time between releases, ns.
    pub period_ns: u64,
    /// Execution time in each period, ns.
    pub budget_ns: u64,
    /// Relative deadline, ns.
    pub deadline_ns: u64,
    /// How often it is suspended and was not resumed.
    pub suspensions: u32,
}

/// The answer to `Reserve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveReply {
    /// In the order of the requests.
    pub reservations: Vec<ReservationInfo>,
}

/// The answer to `MakePage`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageReply {
    /// Which of the descriptors of the message is the page's: 0, the only one.
    pub page_fd: u32,
}

/// What one CPU has promised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuStatus {
    /// The CPU.
    pub cpu: u32,
    /// Sum of budget / period over all scheduling groups and all reservations outside of them, of
    /// all users, parts per million.
    pub reserved_ppm: u64,
    /// The same of the caller's user.
    pub own_ppm: u64,
    /// What the caller's user may have at most, parts per million; 0: nothing.
    pub limit_ppm: u64,
}

/// A scheduling group of the service's configuration, or of the dispatcher of its CPU, as long as
/// that has reservations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// By which roles name it.
    pub name: String,
    /// Its CPU.
    pub cpu: u32,
    /// Time between two replenishments of its budget, ns.
    pub period_ns: u64,
    /// Execution time of all its reservations together in each period, ns.
    pub budget_ns: u64,
    /// Which of its reservations executes: `edf`, `rm` or `dm`.
    pub policy: String,
    /// Sum of budget / period over its reservations, of all users, parts per million of the CPU.
    pub reserved_ppm: u64,
}

/// The answer to `GetStatus`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReply {
    /// The version of the service.
    pub version: String,
    /// What schedules the reservations: `user` or `kernel`.
    pub host: String,
    /// The CPUs on which reservations may be made.
    pub cpus: Vec<CpuStatus>,
    /// The scheduling groups, in which reservations by roles compete.
    pub groups: Vec<GroupStatus>,
    /// The reservations of the caller's user; of all users if root asks.
    pub reservations: Vec<ReservationInfo>,
}
