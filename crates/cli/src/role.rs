//! `punctual role`: the roles of this machine.

use std::fmt::Write;
use std::path::Path;

use punctual_diagnostic::{Diagnostic, Kind};
use punctual_report::grid::{grid, Column};
use punctual_report::units::{count, percent, time};
use punctual_report::ErrorInfo;
use punctual_taskset::{FoundRole, Overrun, Role, RoleFolders};
use serde::Serialize;

use crate::args_role::ShowRole;
use crate::output::{view, Outcome};

/// The result of `punctual role list --json` and `punctual role show --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RoleResult {
    /// Where roles are looked for; of one name the first holds.
    folders: Vec<String>,
    /// All, or the one that was asked for, by name.
    roles: Vec<RoleInfo>,
    /// Files that no program can have a role by.
    wrong: Vec<WrongFile>,
}

/// One role.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RoleInfo {
    /// Its name.
    name: String,
    /// For people; may be empty.
    description: String,
    /// Time between releases, ns.
    period_ns: u64,
    /// Execution time per period, ns.
    budget_ns: u64,
    /// Budget by period, parts per million.
    share_ppm: u64,
    /// Relative deadline, ns.
    deadline_ns: u64,
    /// What happens on overrun.
    overrun: Overrun,
    /// Its CPU; `null`: the last that the caller may use.
    cpu: Option<u32>,
    /// Its scheduling policy.
    policy: String,
    /// The scheduling group of the service in which its programs compete.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// The file that it is from.
    file: String,
    /// Files of the same name in later folders, which `file` replaces.
    replaces: Vec<String>,
}

/// The file of a role with an error.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WrongFile {
    /// The name of the role.
    name: String,
    /// The file.
    file: String,
    /// What is wrong with it.
    error: ErrorInfo,
}

impl RoleInfo {
    fn of(role: Role, file: &Path, replaced: &[impl AsRef<Path>]) -> RoleInfo {
        let Role { name, description, period, budget, deadline, overrun, cpu, policy, group } =
            role;
        let share = u128::from(budget) * 1_000_000 / u128::from(period.max(1));
        RoleInfo {
            name,
            description,
            period_ns: period,
            budget_ns: budget,
            share_ppm: u64::try_from(share).unwrap_or(u64::MAX),
            deadline_ns: deadline.unwrap_or(period),
            overrun: overrun.unwrap_or_default(),
            cpu,
            policy: policy.unwrap_or_else(|| "edf".to_owned()),
            group,
            file: file.display().to_string(),
            replaces: replaced.iter().map(|file| file.as_ref().display().to_string()).collect(),
        }
    }

    /// For people.
    fn text(&self) -> String {
        let mut text = String::new();
        let mut row = |what: &str, value: &str| {
            let _ = writeln!(text, "{what:<11} {value}");
        };
        if !self.description.is_empty() {
            row("description", &self.description);
        }
        row("deadline", &time(self.deadline_ns));
        row("overrun", &overrun_name(self.overrun));
        let cpu = self.cpu.map_or("the last that the caller may use".to_owned(), |n| n.to_string());
        row("cpu", &cpu);
        row("policy", &self.policy);
        self.group.iter().for_each(|group| row("group", &format!("{group}, by the service")));
        row("file", &self.file);
        self.replaces.iter().for_each(|file| row("replaces", file));
        text
    }
}

/// As files have it.
fn overrun_name(overrun: Overrun) -> String {
    format!("{overrun:?}").to_lowercase()
}

fn result(folders: &RoleFolders, roles: Vec<RoleInfo>, wrong: Vec<WrongFile>) -> RoleResult {
    let folders = folders.paths().iter().map(|folder| folder.display().to_string()).collect();
    RoleResult { folders, roles, wrong }
}

/// `punctual role list`.
///
/// # Errors
/// A folder cannot be read.
pub fn list() -> Result<Outcome<RoleResult>, Diagnostic> {
    let folders = RoleFolders::default();
    let (mut roles, mut wrong) = (Vec::new(), Vec::new());
    let mut errors = Vec::new();
    for FoundRole { name, file, replaced, role } in folders.list()? {
        match role {
            Ok(role) => roles.push(RoleInfo::of(role, &file, &replaced)),
            Err(error) => {
                let file = file.display().to_string();
                wrong.push(WrongFile { name, file, error: ErrorInfo::from(&error) });
                errors.push(error.to_string());
            }
        }
    }
    let roles_in_words = count(roles.len() as u64, "role");
    let verdict = match (roles.len(), wrong.len()) {
        (0, 0) => "There are no roles.".to_owned(),
        (_, 0) => format!("{roles_in_words}."),
        (_, n) => {
            let files = count(n as u64, "file");
            format!("{roles_in_words}; {files} of a role cannot be used.")
        }
    };
    let mut text = format!("{verdict}\n");
    if !roles.is_empty() {
        let view = view(false);
        let _ = write!(text, "\n{}", grid(columns(&roles), view.width, view.color));
    }
    if !errors.is_empty() {
        let _ = write!(text, "\n{}\n", errors.join("\n"));
    }
    let result = result(&folders, roles, wrong);
    if result.roles.is_empty() && errors.is_empty() {
        let _ = writeln!(text, "\nLooked in {} (docs/roles.md).", result.folders.join(", "));
    }
    let ok = errors.is_empty();
    let code = if ok { 0 } else { Kind::Usage.exit_code() };
    Ok(Outcome { verdict, ok, code, result, text, error: None })
}

/// `punctual role show`.
///
/// # Errors
/// There is no such role; its file is wrong.
pub fn show(args: &ShowRole) -> Result<Outcome<RoleResult>, Diagnostic> {
    let folders = RoleFolders::default();
    let FoundRole { file, replaced, role, .. } = folders.look_up(&args.name)?;
    let info = RoleInfo::of(role?, &file, &replaced);
    let verdict = format!(
        "{}: {} in every {}, {} % of a CPU.",
        info.name,
        time(info.budget_ns),
        time(info.period_ns),
        percent(info.share_ppm)
    );
    let text = format!("{verdict}\n\n{}", info.text());
    let result = result(&folders, vec![info], Vec::new());
    Ok(Outcome { verdict, ok: true, code: 0, result, text, error: None })
}

fn columns(roles: &[RoleInfo]) -> Vec<Column> {
    let file = |role: &RoleInfo| match role.replaces.is_empty() {
        true => role.file.clone(),
        false => format!("{} (replaces {})", role.file, role.replaces.join(", ")),
    };
    vec![
        Column::new("", "role", 0).cells(roles.iter().map(|role| role.name.clone())),
        Column::new("", "period", 0).cells(roles.iter().map(|role| time(role.period_ns))),
        Column::new("", "budget", 0).cells(roles.iter().map(|role| time(role.budget_ns))),
        Column::new("", "share (%)", 0).cells(roles.iter().map(|role| percent(role.share_ppm))),
        Column::new("", "file", 1).cells(roles.iter().map(file)),
    ]
}
