//! `punctual lock list` and `remove`.

use punctual_diagnostic::Diagnostic;
use punctual_ipc::{
    lock_names, remove_lock, Lifetime, LockKind, Name, Namespace, SharedLockOwner, SharedLockState,
    SharedLockUse,
};
use punctual_report::grid::{grid, Column};
use serde::Serialize;

use crate::args_lock::{ListLocks, RemoveLocks};
use crate::output::{view, Outcome};

/// The result of `punctual lock list --json` and `remove --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LockResult {
    /// The folder in which they are.
    folder: String,
    /// The number of the user whose locks they are.
    user: u32,
    /// All, or those that were removed, by name.
    locks: Vec<LockInfo>,
}

/// One lock.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LockInfo {
    /// Its name.
    name: String,
    /// What it is.
    kind: LockKindInfo,
    /// Of a mutex: the thread that holds it, if one does.
    owner: Option<LockOwnerInfo>,
    /// Of a mutex: a thread ended while it held it, and none called it consistent since.
    inconsistent: bool,
    /// How many threads wait for it.
    waiters: usize,
    /// Of a semaphore: how many units it has.
    units: Option<u32>,
    /// Of a semaphore: how many units it can have.
    maximum: Option<u32>,
    /// Of a barrier: how many threads have come.
    came: Option<u32>,
    /// Of a barrier: how many threads meet.
    parties: Option<u32>,
    /// Whether a program has it open.
    in_use: bool,
    /// Whether it lives until it is removed, and not just while it is in use.
    persistent: bool,
}

/// What a lock is.
#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum LockKindInfo {
    /// A mutex.
    Mutex,
    /// A condition variable.
    ConditionVariable,
    /// A semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
}

/// The thread that holds a mutex.
#[derive(Serialize, Clone, Copy)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LockOwnerInfo {
    /// The number of the thread.
    thread: u32,
    /// Its process; null if it is not alive.
    process: Option<u32>,
    /// Whether there is such a thread. One that is not alive was never there: the memory of the
    /// lock is damaged, or the thread is of another PID namespace.
    alive: bool,
}

impl LockInfo {
    fn of(name: &Name, state: &SharedLockState) -> Self {
        let mut info = Self {
            name: name.to_string(),
            kind: match state.usage.kind() {
                LockKind::Mutex => LockKindInfo::Mutex,
                LockKind::Condvar => LockKindInfo::ConditionVariable,
                LockKind::Semaphore => LockKindInfo::Semaphore,
                LockKind::Barrier => LockKindInfo::Barrier,
            },
            owner: None,
            inconsistent: false,
            waiters: state.waiters,
            units: None,
            maximum: None,
            came: None,
            parties: None,
            in_use: state.in_use,
            persistent: state.lifetime == Lifetime::Persistent,
        };
        match state.usage {
            SharedLockUse::Mutex { owner, inconsistent } => {
                info.owner = owner.map(LockOwnerInfo::of);
                info.inconsistent = inconsistent;
            }
            SharedLockUse::Condvar => {}
            SharedLockUse::Semaphore { units, maximum } => {
                (info.units, info.maximum) = (Some(units), Some(maximum));
            }
            SharedLockUse::Barrier { came, parties } => {
                (info.came, info.parties) = (Some(came), Some(parties));
            }
        }
        info
    }

    fn kind(&self) -> &'static str {
        match self.kind {
            LockKindInfo::Mutex => "mutex",
            LockKindInfo::ConditionVariable => "condition variable",
            LockKindInfo::Semaphore => "semaphore",
            LockKindInfo::Barrier => "barrier",
        }
    }

    /// The holder of a mutex, the units of a semaphore, who has come to a barrier.
    fn state(&self) -> String {
        let of = |n: Option<u32>, all: Option<u32>| Some((n?, all?));
        let state = match (self.owner, of(self.units, self.maximum), of(self.came, self.parties)) {
            (Some(LockOwnerInfo { thread, process: None, .. }), ..) => {
                format!("held by thread {thread}, which is not there")
            }
            (Some(LockOwnerInfo { thread, process: Some(process), .. }), ..)
                if thread == process =>
            {
                format!("held by process {process}")
            }
            (Some(LockOwnerInfo { thread, process: Some(process), .. }), ..) => {
                format!("held by process {process}, thread {thread}")
            }
            (_, Some((units, maximum)), _) => format!("{units} of {maximum} units"),
            (_, _, Some((came, parties))) => format!("{came} of {parties} have come"),
            _ if self.kind == LockKindInfo::Mutex => "free".to_owned(),
            _ => "-".to_owned(),
        };
        match self.inconsistent {
            true => format!("{state}, inconsistent"),
            false => state,
        }
    }
}

impl LockOwnerInfo {
    fn of(SharedLockOwner { thread, process }: SharedLockOwner) -> Self {
        Self { thread, process, alive: process.is_some() }
    }
}

fn outcome(
    namespace: &Namespace,
    locks: Vec<LockInfo>,
    verdict: String,
    more: &str,
) -> Outcome<LockResult> {
    let text = format!("{verdict}\n{more}");
    let folder = namespace.path().display().to_string();
    let user = namespace.user();
    let result = LockResult { folder, user, locks };
    Outcome { verdict, ok: true, code: 0, result, text, error: None }
}

/// `punctual lock list`.
pub fn list(_: &ListLocks) -> Result<Outcome<LockResult>, Diagnostic> {
    let namespace = Namespace::of_user()?;
    let mut locks = Vec::new();
    let mut damaged = Vec::new();
    for name in lock_names(&namespace)? {
        match SharedLockState::of(&namespace, &name) {
            Ok(state) => locks.push(LockInfo::of(&name, &state)),
            // Removed meanwhile.
            Err(error) if error.errno == Some(libc::ENOENT) => {}
            Err(error) => damaged.push(format!("{error}\n")),
        }
    }
    let verdict = match (locks.len(), damaged.len()) {
        (0, 0) => "No locks of this user.".to_owned(),
        (1, 0) => "1 lock of this user.".to_owned(),
        (n, 0) => format!("{n} locks of this user."),
        (n, bad) => format!("{n} locks of this user, and {bad} that cannot be opened."),
    };
    let table = if locks.is_empty() { String::new() } else { format!("\n{}", table(&locks)) };
    Ok(outcome(&namespace, locks, verdict, &format!("{table}{}", damaged.concat())))
}

/// `punctual lock remove`.
pub fn remove(args: &RemoveLocks) -> Result<Outcome<LockResult>, Diagnostic> {
    let namespace = Namespace::of_user()?;
    let mut removed = Vec::new();
    for name in &args.names {
        match SharedLockState::of(&namespace, name) {
            Err(error) if error.errno == Some(libc::ENOENT) => return Err(error),
            // One that is damaged is removed all the same.
            state => removed.extend(state.ok().map(|state| LockInfo::of(name, &state))),
        }
    }
    for name in &args.names {
        remove_lock(&namespace, name)?;
    }
    let names: Vec<&str> = args.names.iter().map(Name::as_str).collect();
    let used: Vec<&str> = removed.iter().filter(|l| l.in_use).map(|l| l.name.as_str()).collect();
    let mut verdict = format!("Removed: {}.", names.join(", "));
    if !used.is_empty() {
        verdict += &format!(" Programs that have {} open keep it.", used.join(", "));
    }
    Ok(outcome(&namespace, removed, verdict, ""))
}

fn table(locks: &[LockInfo]) -> String {
    let column = |head: &str, expendable, cell: fn(&LockInfo) -> String| {
        Column::new("", head, expendable).cells(locks.iter().map(cell))
    };
    let columns = vec![
        column("name", 0, |l| l.name.clone()),
        column("kind", 0, |l| l.kind().to_owned()),
        column("state", 0, LockInfo::state),
        column("waiting", 0, |l| l.waiters.to_string()),
        column("in use", 1, |l| if l.in_use { "yes" } else { "no" }.to_owned()),
        column("lives until", 2, |l| if l.persistent { "removed" } else { "unused" }.to_owned()),
    ];
    let view = view(false);
    grid(columns, view.width, view.color)
}
