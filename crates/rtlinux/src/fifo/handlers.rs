//! Handlers of a FIFO: functions of the program that are called when the FIFO was accessed.
//!
//! A handler of `rtf_create_handler` is for the accesses of other programs. Two ordinary threads
//! watch the sides of the FIFO; what this program itself moves there is counted by its ends, under
//! their mutex, and not reported.

use std::cell::Cell;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use punctual::fifo::{Access, Error as EndError, Fifo};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::sched;

use super::{slot, FifoError, OpenFifo};
use crate::hard;

/// A function of the program.
pub type FifoHandler = extern "C" fn(c_uint) -> c_int;

/// How long a thread that watches sleeps before it looks whether it is still to, ns.
const LOOK_AGAIN: u64 = 1_000_000_000;

/// Handlers for other programs that are installed.
static INSTALLED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The FIFO whose handler this thread executes, and one more; 0: none.
    static IN_HANDLER: Cell<u32> = const { Cell::new(0) };
}

/// Whether a handler for the accesses of other programs is installed.
pub fn is_any_installed() -> bool {
    INSTALLED.load(Ordering::Relaxed) > 0
}

/// Those of one FIFO.
pub struct Handlers {
    number: u32,
    installed: Mutex<Installed>,
    /// Locked while a handler executes.
    call: Mutex<()>,
    /// The address of the function for this program's own accesses; 0: none.
    rt: AtomicUsize,
}

struct Installed {
    handler: Option<FifoHandler>,
    /// Counts the changes: threads of an earlier one end.
    changes: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handlers {
    pub fn new(number: u32) -> Handlers {
        let installed = Mutex::new(Installed { handler: None, changes: 0 });
        Handlers { number, installed, call: Mutex::new(()), rt: AtomicUsize::new(0) }
    }

    /// Installs a handler for the accesses of other programs, in place of the one there.
    ///
    /// # Errors
    /// [`FifoError::Memory`]: there are too many threads or open files.
    pub fn install(&'static self, handler: FifoHandler, fifo: &Fifo) -> Result<(), FifoError> {
        let change = self.replace(Some(handler));
        self.watch(fifo, change).inspect_err(|_| {
            self.replace(None);
        })
    }

    fn replace(&self, handler: Option<FifoHandler>) -> u64 {
        let mut installed = locked(&self.installed);
        match (installed.handler.is_some(), handler.is_some()) {
            (false, true) => drop(INSTALLED.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(INSTALLED.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        installed.handler = handler;
        installed.changes += 1;
        installed.changes
    }

    /// Begins a thread for each side of the FIFO. What is moved from here on is reported.
    fn watch(&'static self, fifo: &Fifo, change: u64) -> Result<(), FifoError> {
        let of_side = slot(self.number)?;
        let refused = |_| FifoError::Memory;
        let mut reader = fifo.reader(Access::Shared).map_err(refused)?;
        let mut writer = fifo.writer(Access::Shared).map_err(refused)?;
        let watched = Watched { handlers: self, fifo: fifo.clone(), change };
        // Under the mutex of the end, what it has moved and where it is fit together.
        let puts = move |of: &OpenFifo, seen: u64| {
            let waited = reader.wait_for_puts(seen, monotonic_ns() + LOOK_AGAIN);
            let others = of.put.with(|side| reader.puts().wrapping_sub(side.moved));
            (waited, others)
        };
        let gets = move |of: &OpenFifo, seen: u64| {
            let waited = writer.wait_for_gets(seen, monotonic_ns() + LOOK_AGAIN);
            let others = of.get.with(|side| writer.gets().wrapping_sub(side.moved));
            (waited, others)
        };
        watched.clone().begin(of_side, puts)?;
        watched.begin(of_side, gets)
    }

    /// Calls the handler, if it is still the one of this change.
    fn call(&self, change: u64) {
        let _executes = locked(&self.call);
        let handler = {
            let installed = locked(&self.installed);
            installed.handler.filter(|_| installed.changes == change)
        };
        if let Some(handler) = handler {
            IN_HANDLER.set(self.number + 1);
            handler(self.number);
            IN_HANDLER.set(0);
        }
    }

    /// No handler is called once this has returned, but for the one that calls this.
    pub fn remove(&self) {
        self.replace(None);
        self.rt.store(0, Ordering::Release);
        if IN_HANDLER.get() != self.number + 1 {
            drop(locked(&self.call));
        }
    }

    pub fn install_rt(&self, handler: FifoHandler) {
        self.rt.store(handler as usize, Ordering::Release);
    }

    /// Real-time safe, if the handler is.
    pub fn call_rt(&self) {
        let address = self.rt.load(Ordering::Acquire);
        if address != 0 {
            // SAFETY: what `install_rt` has stored.
            let handler = unsafe { std::mem::transmute::<usize, FifoHandler>(address) };
            handler(self.number);
        }
    }
}

/// Where a side is, and how much of that others have moved; `None`: that is unknown.
type Position = (Result<u64, EndError>, Option<u64>);

/// What a thread watches, and for which change of the handlers.
#[derive(Clone)]
struct Watched {
    handlers: &'static Handlers,
    fifo: Fifo,
    change: u64,
}

impl Watched {
    /// `look` waits until a side is not at a position, and returns where it is.
    fn begin(
        self,
        of: &'static OpenFifo,
        mut look: impl FnMut(&OpenFifo, u64) -> Position + Send + 'static,
    ) -> Result<(), FifoError> {
        // At no position: it returns at once.
        let (seen, others) = look(of, u64::MAX);
        let (mut seen, mut others) = (seen.unwrap_or(0), others);
        let watch = move || {
            if let Some(cpus) = hard::cpus() {
                // Perhaps a task has installed it, which has one CPU.
                let _ = sched::set_affinity(0, cpus);
            }
            loop {
                let (moved, now) = look(of, seen);
                seen = moved.unwrap_or(seen);
                let is_current = locked(&self.handlers.installed).changes == self.change;
                if !is_current || self.fifo.is_destroyed() {
                    break;
                }
                if now.is_some() && now != others {
                    others = now;
                    self.handlers.call(self.change);
                }
            }
            // Another program has destroyed it.
            let mut installed = locked(&self.handlers.installed);
            if installed.changes == self.change && installed.handler.take().is_some() {
                INSTALLED.fetch_sub(1, Ordering::Relaxed);
            }
        };
        let name = format!("rtf-{}", self.handlers.number);
        let begun = thread::Builder::new().name(name).spawn(watch);
        begun.map(drop).map_err(|_| FifoError::Memory)
    }
}
