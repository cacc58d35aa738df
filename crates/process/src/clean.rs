//! What dead owners left: found and reported (`doctor`), or restored (`clean`).

use crate::demote::{self, Dying};
use crate::journal::{self, Contents, Journal, Purpose};
use crate::proc::{self, Identity};
use crate::restore::{self, RestoreReport};
use punctual_diagnostic::Diagnostic;
use punctual_sys::cgroup::Hierarchy;
use rustix::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Something that a dead Punctual left on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The journal or the cgroup.
    pub path: PathBuf,
    /// The process that left it.
    pub owner: i32,
    /// Its description for people.
    pub cause: String,
    /// How to be rid of it.
    pub help: String,
}

/// What dead owners of this user left. Changes nothing. Not real-time safe.
pub fn leftovers() -> Vec<Leftover> {
    let mut out: Vec<Leftover> = dead_journals().iter().map(of_journal).collect();
    let named: Vec<PathBuf> = groups_of_journals();
    out.extend(orphan_groups().into_iter().filter(|(dir, _)| !named.contains(dir)).map(
        |(path, id)| Leftover {
            cause: format!(
                "the cgroup {} of process {}, which is gone, holds {} processes",
                path.display(),
                id.pid,
                crate::cgroup::list(&path, "cgroup.procs").len()
            ),
            owner: id.pid,
            help: "punctual clean".to_owned(),
            path,
        },
    ));
    out
}

fn of_journal(j: &Journal) -> Leftover {
    let c = Contents::of(j.as_fd());
    let command = c.owner.as_ref().map(|o| o.3.clone()).unwrap_or_default();
    Leftover {
        path: j.path().to_owned(),
        owner: j.owner().pid,
        cause: format!(
            "process {} ({command}) was killed and left {} adopted processes, {} commands and {} \
             cgroups behind",
            j.owner().pid,
            c.adopted.len(),
            c.children.len(),
            c.groups.len()
        ),
        help: "punctual clean".to_owned(),
    }
}

/// Restores all changes of dead owners: first by their journals, then the Punctual cgroups that
/// no journal names. Never touches what a living owner has. Not real-time safe.
///
/// # Errors
/// None; a journal or cgroup that cannot be restored is a report with problems.
pub fn clean() -> Result<Vec<RestoreReport>, Diagnostic> {
    let mut reports: Vec<RestoreReport> = dead_journals().iter().map(restore::restore).collect();
    if !orphan_groups().is_empty() {
        // A guardian with a state directory that we do not see may be at work on it this very
        // moment.
        std::thread::sleep(Duration::from_millis(300));
        let named = groups_of_journals();
        for (dir, id) in orphan_groups().into_iter().filter(|(d, _)| !named.contains(d)) {
            reports.push(clean_group(&dir, id));
        }
    }
    Ok(reports)
}

/// A group without a journal: its name tells what it is for. What was adopted becomes ordinary.
fn clean_group(dir: &Path, id: Identity) -> RestoreReport {
    let mut report = RestoreReport { owner: id.pid, ..RestoreReport::default() };
    let mut dying = Dying::default();
    demote::if_dying(id);
    match purpose_of(dir) {
        Purpose::Adopted => restore::empty_adopted_group(dir, &[], &mut report),
        _ => {
            let inner = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
            for d in inner.filter(|d| d.is_dir()) {
                match d.file_name().is_some_and(|n| n.to_string_lossy().starts_with("adopt.")) {
                    true => restore::empty_adopted_group(&d, &[], &mut report),
                    false => restore::kill_group(&d, &mut dying, &mut report),
                }
            }
        }
    }
    restore::remove_group(dir, Purpose::Base, &mut dying, &mut report);
    report
}

/// Journals of this user whose owner is dead. Journals that others could have written are ignored.
fn dead_journals() -> Vec<Journal> {
    all_journals().into_iter().filter(|j| !j.owner().can_act()).collect()
}

fn all_journals() -> Vec<Journal> {
    let mut dirs = vec![journal::directory()];
    if std::env::var_os("PUNCTUAL_STATE_DIR").is_none() {
        // A later session may have another runtime directory than the one that wrote it.
        dirs.push(PathBuf::from(format!("/tmp/punctual-{}", rustix::process::geteuid().as_raw())));
    }
    dirs.dedup();
    let mut out = Vec::new();
    for dir in dirs.iter().filter(|d| journal::is_ours_alone(d)) {
        let files = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
        let journals = files
            .filter(|p| p.extension().is_some_and(|e| e == "journal") && journal::is_ours_alone(p));
        out.extend(journals.filter_map(|p| Journal::open(&p)));
    }
    out
}

fn groups_of_journals() -> Vec<PathBuf> {
    all_journals().iter().flat_map(|j| Contents::of(j.as_fd()).groups).map(|g| g.0).collect()
}

/// Punctual's cgroups anywhere in the hierarchy whose owner, of this pid namespace, is dead.
fn orphan_groups() -> Vec<(PathBuf, Identity)> {
    let Some(mount) = Hierarchy::V2.mount() else { return Vec::new() };
    let here = proc::pid_namespace();
    let all = crate::cgroup::tree(&mount.point).into_iter();
    all.filter_map(|d| {
        let (id, namespace) = owner_of(d.file_name()?.to_str()?)?;
        (namespace == here && !id.can_act() && may_write(&d)).then_some((d, id))
    })
    .collect()
}

fn may_write(dir: &Path) -> bool {
    rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
}

/// `punctual-PID-START-NAMESPACE`, perhaps with `.NAME`.
fn owner_of(name: &str) -> Option<(Identity, u64)> {
    let id = name.strip_prefix("punctual-")?.split('.').next()?;
    let mut parts = id.split('-');
    let (pid, start, namespace) =
        (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some((Identity { pid, start }, namespace))
}

fn purpose_of(dir: &Path) -> Purpose {
    let name = dir.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    if name.contains('.') {
        Purpose::Adopted
    } else {
        Purpose::Base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_we_make_are_ours() {
        assert_eq!(owner_of("punctual-7-99-4026"), Some((Identity { pid: 7, start: 99 }, 4026)));
        assert_eq!(owner_of("punctual-7-99-4026.xz"), Some((Identity { pid: 7, start: 99 }, 4026)));
        assert_eq!(owner_of("punctual.service"), None);
        assert_eq!(owner_of("punctual-clock"), None);
        assert_eq!(owner_of("punctual-7-99-4026-1"), None);
    }
}
