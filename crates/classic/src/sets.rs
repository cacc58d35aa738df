//! The sets of a program.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Once, PoisonError};

use punctual::Error;
use punctual_sys::sched;

use crate::set::{in_handler, CpuSet, MemberId};
use crate::{InterfaceNames, PiMutex};

/// The sets of this program for one interface, in a static variable.
pub struct ClassicSets {
    names: InterfaceNames,
    /// The process that has them; 0: none has yet.
    process: AtomicU32,
    by_cpu: LazyLock<PiMutex<BTreeMap<u32, Arc<CpuSet>>>>,
}

/// The sets that the end of the process closes.
static USED: Mutex<Vec<&'static ClassicSets>> = Mutex::new(Vec::new());

extern "C" fn at_exit() {
    if let Ok(used) = USED.try_lock() {
        used.iter().for_each(|sets| sets.close());
    }
}

impl ClassicSets {
    /// None yet.
    pub const fn new(names: InterfaceNames) -> ClassicSets {
        ClassicSets {
            names,
            process: AtomicU32::new(0),
            by_cpu: LazyLock::new(|| PiMutex::new(BTreeMap::new())),
        }
    }

    /// What the interface calls itself.
    pub fn names(&self) -> &InterfaceNames {
        &self.names
    }

    /// The set for a task that may execute on these CPUs, a bit for each.
    ///
    /// # Errors
    /// None of them is free; what the machine does not permit; this process is the child of
    /// one that had sets.
    pub fn on(&'static self, cpus: u64) -> Result<Arc<CpuSet>, Error> {
        let cpu = self.choose_cpu(cpus)?;
        self.begin()?;
        let found = self.by_cpu.with(|sets| {
            if let Some(set) = sets.get(&cpu) {
                return Ok(set.clone());
            }
            let trace = self.names.setting("TRACE").map(|mut path| {
                if !sets.is_empty() {
                    path.push(format!(".cpu{cpu}"));
                }
                PathBuf::from(path)
            });
            let set = Arc::new(CpuSet::start(self.names, cpu, trace)?);
            sets.insert(cpu, set.clone());
            Ok(set)
        });
        found.unwrap_or_else(|| Err(in_handler()))
    }

    /// A member of a set of this process has another priority.
    pub fn change_priority(&'static self, member: MemberId, priority: i64) {
        if !self.is_own() {
            return;
        }
        // It may wait, without the lock: others join and leave meanwhile.
        let sets = self.by_cpu.with(|sets| sets.values().cloned().collect::<Vec<_>>());
        for set in sets.into_iter().flatten() {
            set.change_priority(member, priority);
        }
    }

    /// Whether this process has sets, and not its parent.
    fn is_own(&self) -> bool {
        self.process.load(Ordering::Acquire) == std::process::id()
    }

    /// Before the first set of this process, its sets are made known to its end.
    ///
    /// # Errors
    /// This process is the child of one that had sets.
    fn begin(&'static self) -> Result<(), Error> {
        let (process, order) = (std::process::id(), Ordering::AcqRel);
        let former = self.process.compare_exchange(0, process, order, Ordering::Acquire);
        if former.is_err_and(|former| former != process) {
            return Err(Error::usage(
                "this is the child of a process that had tasks",
                "fork before the first task, or call exec in the child",
            ));
        }
        if former.is_ok() {
            USED.lock().unwrap_or_else(PoisonError::into_inner).push(self);
            static REGISTERED: Once = Once::new();
            // SAFETY: the handler neither unwinds nor returns to code that is gone: the library
            // stays.
            REGISTERED.call_once(|| unsafe {
                libc::atexit(at_exit);
            });
        }
        Ok(())
    }

    /// Ends all sets without tasks, and completes the traces of all. Others end with the process.
    fn close(&self) {
        if self.is_own() {
            let is_traced = self.names.setting("TRACE").is_some();
            self.by_cpu.try_with(|sets| sets.retain(|_, set| !is_traced && set.has_members()));
        }
    }

    /// The CPU for a task that may execute on these.
    fn choose_cpu(&self, cpus: u64) -> Result<u32, Error> {
        let may = sched::affinity(0).map_err(|e| {
            Error::refused("the CPUs of this thread cannot be read", e, "see punctual doctor")
        })?;
        let may: Vec<u32> = sched::cpus(&may).collect();
        let asked = |cpu: &u32| 1u64.checked_shl(*cpu).is_some_and(|bit| cpus & bit != 0);
        let chosen: Vec<u32> = may.iter().copied().filter(asked).collect();
        // All of them, or none that is there: the program does not care.
        let is_open = chosen.is_empty() || chosen.len() == may.len();
        if let (true, Some(text)) = (is_open, self.names.setting("CPU")) {
            let text = text.to_string_lossy();
            let cpu = text.parse().ok().filter(|cpu| may.contains(cpu));
            return cpu.ok_or_else(|| {
                let name = self.names.variable("CPU");
                Error::usage(format!("{name}={text} is no CPU of this program"), "see taskset(1)")
            });
        }
        let from = if chosen.is_empty() { may } else { chosen };
        // The first ones have most interrupts.
        let last = from.into_iter().max();
        last.ok_or_else(|| Error::machine("there is no CPU", "see taskset(1)"))
    }
}
