//! `punctual serve --status`.

use punctual_analysis::Ppm;
use punctual_service::{CpuStatus, GroupStatus, ReservationInfo, StatusReply};
use punctual_taskset::fmt_ns;
use serde::Serialize;

use crate::output::Outcome;

/// The result of `punctual serve --status --json`; without `--status` there is none.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServiceStatus {
    /// Version of the service.
    version: String,
    /// What schedules the reservations: `user` or `kernel`.
    host: String,
    /// The CPUs on which reservations may be made.
    cpus: Vec<CpuShare>,
    /// The scheduling groups, in which reservations by roles compete.
    groups: Vec<Group>,
    /// The reservations of the user who asks; of all users if root asks.
    reservations: Vec<Reserved>,
}

/// What one CPU has promised.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CpuShare {
    /// Its number.
    cpu: u32,
    /// Sum of budget / period over all scheduling groups and all reservations outside of them,
    /// parts per million.
    reserved_ppm: u64,
    /// The same of the user who asks.
    own_ppm: u64,
    /// What this user may reserve at most, parts per million.
    limit_ppm: u64,
}

/// One scheduling group.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Group {
    /// By which roles name it.
    name: String,
    /// Its CPU.
    cpu: u32,
    /// Time between two replenishments of its budget, ns.
    period_ns: u64,
    /// Execution time of all its reservations together in each period, ns.
    budget_ns: u64,
    /// Which of its reservations executes.
    policy: String,
    /// Sum of budget / period over its reservations, parts per million of the CPU.
    reserved_ppm: u64,
}

/// One reservation.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Reserved {
    /// Its number.
    id: u64,
    /// Its task's name.
    name: String,
    /// Its user.
    uid: u32,
    /// Its process.
    pid: i32,
    /// The thread of it, if it is for that alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<i32>,
    /// Its CPU.
    cpu: u32,
    /// The role whose values it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// The scheduling group in which it competes.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// Time between releases, ns.
    period_ns: u64,
    /// Execution time in each period, ns.
    budget_ns: u64,
    /// Relative deadline, ns.
    deadline_ns: u64,
    /// How often it is suspended and was not resumed.
    suspensions: u32,
}

impl From<CpuStatus> for CpuShare {
    fn from(c: CpuStatus) -> CpuShare {
        CpuShare {
            cpu: c.cpu,
            reserved_ppm: c.reserved_ppm,
            own_ppm: c.own_ppm,
            limit_ppm: c.limit_ppm,
        }
    }
}

impl From<GroupStatus> for Group {
    fn from(g: GroupStatus) -> Group {
        Group {
            name: g.name,
            cpu: g.cpu,
            period_ns: g.period_ns,
            budget_ns: g.budget_ns,
            policy: g.policy,
            reserved_ppm: g.reserved_ppm,
        }
    }
}

impl From<ReservationInfo> for Reserved {
    fn from(r: ReservationInfo) -> Reserved {
        Reserved {
            id: r.id,
            name: r.name,
            uid: r.uid,
            pid: r.pid,
            tid: r.tid,
            cpu: r.cpu,
            role: r.role,
            group: r.group,
            period_ns: r.period_ns,
            budget_ns: r.budget_ns,
            deadline_ns: r.deadline_ns,
            suspensions: r.suspensions,
        }
    }
}

/// What `GetStatus` returned, for people and as JSON.
pub(super) fn outcome(reply: StatusReply) -> Outcome<Option<ServiceStatus>> {
    let StatusReply { version, host, cpus, groups, reservations } = reply;
    let verdict = match reservations.len() {
        0 => "There are no reservations of yours.".to_owned(),
        1 => "There is one reservation.".to_owned(),
        count => format!("There are {count} reservations."),
    };
    let text = format!(
        "{verdict} The service is on the {host} host.\n{}{}{}",
        text_of_cpus(&cpus),
        text_of_groups(&groups),
        text_of_reservations(&reservations)
    );
    let cpus = cpus.into_iter().map(Into::into).collect();
    let groups = groups.into_iter().map(Into::into).collect();
    let reservations = reservations.into_iter().map(Into::into).collect();
    let result = ServiceStatus { version, host, cpus, groups, reservations };
    Outcome { verdict, ok: true, code: 0, result: Some(result), text, error: None }
}

fn text_of_cpus(cpus: &[CpuStatus]) -> String {
    let mut text = "\n  CPU   reserved      yours   you may\n".to_owned();
    for cpu in cpus {
        let [reserved, own, limit] =
            [cpu.reserved_ppm, cpu.own_ppm, cpu.limit_ppm].map(|ppm| Ppm(ppm).to_string());
        text += &format!("{:>5} {reserved:>10} {own:>10} {limit:>9}\n", cpu.cpu);
    }
    text
}

fn text_of_groups(groups: &[GroupStatus]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut text =
        "\n  CPU   reserved      share      budget      period  policy  group\n".to_owned();
    for group in groups {
        text += &format!(
            "{:>5} {:>10} {:>10} {:>11} {:>11}  {:<6}  {}\n",
            group.cpu,
            Ppm(group.reserved_ppm).to_string(),
            Ppm(share_ppm(group)).to_string(),
            fmt_ns(group.budget_ns),
            fmt_ns(group.period_ns),
            group.policy,
            group.name
        );
    }
    text
}

fn text_of_reservations(reservations: &[ReservationInfo]) -> String {
    if reservations.is_empty() {
        return String::new();
    }
    let heads = "   id  CPU    user process[/thread]      budget      period  name (role, group)";
    let mut text = format!("\n{heads}\n");
    for r in reservations {
        let process = r.tid.map_or(r.pid.to_string(), |tid| format!("{}/{tid}", r.pid));
        let of: Vec<&str> = r.role.iter().chain(&r.group).map(String::as_str).collect();
        let of = if of.is_empty() { String::new() } else { format!(" ({})", of.join(", ")) };
        let suspended = if r.suspensions > 0 { ", suspended" } else { "" };
        text += &format!(
            "{:>5} {:>4} {:>7} {:>16} {:>11} {:>11}  {}{of}{suspended}\n",
            r.id,
            r.cpu,
            r.uid,
            process,
            fmt_ns(r.budget_ns),
            fmt_ns(r.period_ns),
            r.name
        );
    }
    text
}

fn share_ppm(group: &GroupStatus) -> u64 {
    let ppm = u128::from(group.budget_ns) * 1_000_000 / u128::from(group.period_ns.max(1));
    u64::try_from(ppm).unwrap_or(u64::MAX)
}
