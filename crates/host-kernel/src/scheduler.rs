//! The scheduler object, loaded and attached. The kernel takes it back when this is dropped or its
//! process dies.

use std::sync::Arc;

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapMut, Object, ObjectBuilder, OpenObject};
use punctual_dispatcher::{Limits, Refusal};

use crate::abi::{Call, Command, Context, Create, Exit};
use crate::diagnostics::{refused, OTHERS};
use crate::guard::{Ahead, Guard};
use crate::kernel_btf;
use crate::link_in_children;
use crate::machine;
use crate::programs::Programs;
use crate::timer_process::TimerProcess;
use crate::verifier_log::listening;
use punctual_diagnostic::Diagnostic;
use punctual_sys::memory::map_unlocked;

#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/scheduler.bpf.o")));

/// The ops table's name in the object, and while it is attached the kernel's name for the
/// scheduler.
const OPS: &str = "punctual";

/// ```text
///   load ──> create (each domain) ──> attach: it schedules this machine ──> detach
/// ```
pub(crate) struct Scheduler {
    link: Option<Link>,
    guard: Option<Guard>,
    object: Object,
    programs: Arc<Programs>,
}

impl Scheduler {
    /// Loads it, as `prepare` leaves it.
    ///
    /// # Errors
    /// The verifier's refusal, with its last words; no memory.
    pub fn load(
        prepare: impl FnOnce(&mut OpenObject) -> Result<(), Diagnostic>,
    ) -> Result<Scheduler, Diagnostic> {
        let refused = |e: &dyn std::fmt::Display, log: &str| {
            let log = if log.is_empty() { String::new() } else { format!("; it said:\n{log}") };
            refused(format!("the kernel refused to load the scheduler: {e:#}{log}"))
        };
        let mut open =
            ObjectBuilder::default().open_memory(&OBJECT.0).map_err(|e| refused(&e, ""))?;
        prepare(&mut open)?;
        // The arena is mapped here.
        let (loaded, log) = listening(|| map_unlocked(|| open.load()));
        let object = loaded
            .map_err(|e| kernel_btf::missing_function().unwrap_or_else(|| refused(&e, &log)))?;
        let programs = Programs::of(&object).map_err(|e| refused(&e, ""))?;
        Ok(Scheduler { link: None, guard: None, object, programs: Arc::new(programs) })
    }

    /// For the threads that send commands.
    pub fn programs(&self) -> Arc<Programs> {
        self.programs.clone()
    }

    /// Makes a domain's dispatcher; timers nearer than `granularity`, ns, fire at once.
    ///
    /// # Errors
    /// The kernel has no memory for it.
    pub fn create(
        &self,
        domain: u32,
        cpu: u32,
        asks_policies: bool,
        limits: &Limits,
        granularity: u64,
    ) -> Result<(), Diagnostic> {
        let mut create = Create {
            domain,
            cpu,
            asks_policies: asks_policies.into(),
            unused: 0,
            limits: limits.into(),
            granularity,
        };
        let mut timer = Call::new(domain, Command::TimerCreate);
        let made = self.programs.run(&mut create).and_then(|refusal| match refusal {
            0 => self.programs.run(&mut timer).map(|_| timer.result),
            refusal => Ok(refusal.into()),
        });
        let refusal = made.map_err(|e| Diagnostic::machine(e, OTHERS))?;
        if refusal != 0 {
            let why = Refusal::from_raw(refusal);
            return Err(Diagnostic::machine(
                format!("the kernel made no dispatcher for CPU {cpu}: {why}"),
                OTHERS,
            ));
        }
        Ok(())
    }

    /// What wakes a domain where the kernel has no timer for it; before the scheduler is attached.
    ///
    /// # Errors
    /// See [`TimerProcess::start`].
    pub fn timer_process(&self, domain: u32, cpu: u32) -> Result<TimerProcess, Diagnostic> {
        let wake = Call::new(domain, Command::TimerProcess);
        let program =
            self.programs.fd(wake.program()).map_err(|e| Diagnostic::machine(e, OTHERS))?;
        TimerProcess::start(program, domain, cpu)
    }

    /// From here on it schedules this machine.
    ///
    /// # Errors
    /// The kernel's refusal: another scheduler is there, or it ended this one at once.
    pub fn attach(&mut self) -> Result<(), Diagnostic> {
        self.guard = Guard::start();
        let ahead = Ahead::of_others();
        let (attached, log) = listening(|| {
            map(&mut self.object, OPS)?.attach_struct_ops().map_err(|e| format!("{e:#}"))
        });
        drop(ahead);
        let link = attached.map_err(|e| {
            let log = if log.is_empty() { log } else { format!("; it said:\n{log}") };
            let refused =
                || refused(format!("the kernel refused to attach the scheduler: {e}{log}"));
            machine::taken().unwrap_or_else(refused)
        })?;
        link_in_children::close_in_children(&link);
        self.link = Some(link);
        Ok(())
    }

    /// The ring that is written to when a domain has new events.
    pub fn doorbell(&mut self, domain: u32) -> Result<MapHandle, Diagnostic> {
        let bell = map(&mut self.object, "doorbell")
            .and_then(|m| MapHandle::try_from(&*m).map_err(|e| e.to_string()));
        bell.map_err(|e| {
            Diagnostic::machine(
                format!("the doorbell of domain {domain} cannot be opened: {e}"),
                OTHERS,
            )
        })
    }

    /// For statistics of its programs.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// How it ended, when the kernel ended it; `None` while it lives.
    pub fn ended(&self) -> Option<Exit> {
        let info = self.object.maps().find(|m| m.name() == "exit_info")?;
        let value = info.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        Exit::of(&value).filter(|e| e.kind != 0)
    }

    /// Every task goes back to the normal class.
    pub fn detach(&mut self) {
        if let Some(guard) = &mut self.guard {
            guard.alert();
        }
        let ahead = Ahead::of_others();
        if let Some(link) = self.link.take() {
            link_in_children::forget();
            // Refused where the kernel has ended the scheduler. A process that was forked without
            // the C library may have the descriptor still.
            let _ = link.detach();
        }
        drop(ahead);
        self.guard = None;
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.detach();
    }
}

fn map<'a>(object: &'a mut Object, name: &str) -> Result<MapMut<'a>, String> {
    object
        .maps_mut()
        .find(|m| m.name() == name)
        .ok_or_else(|| format!("the BPF object has no map {name}"))
}
