//! The observer of a set: a function of C that is called with what becomes known.

use std::cell::Cell;
use std::ffi::{c_char, c_void, CString};
use std::mem::size_of;
use std::ptr;

use punctual::{RunEvent, NEVER};

use crate::task::number_of;

/// `struct punctual_report`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CReport {
    pub size: usize,
    pub kind: u32,
    pub flags: u32,
    pub task: *const c_char,
    pub number: u64,
    pub release: u64,
    pub deadline: u64,
    pub started: u64,
    pub completed: u64,
    pub received: u64,
    pub assigned: u64,
    pub how: u32,
    pub code: i32,
    pub text: *const c_char,
}

/// PUNCTUAL_REPORT_PERIOD, PUNCTUAL_REPORT_DROPPED, PUNCTUAL_REPORT_ENDED, PUNCTUAL_REPORT_WARNING.
pub const PERIOD: u32 = 0;
pub const DROPPED: u32 = 1;
pub const ENDED: u32 = 2;
pub const WARNING: u32 = 3;
/// PUNCTUAL_PERIOD_MISSED, PUNCTUAL_PERIOD_OVERRAN.
pub const MISSED: u32 = 1;
pub const OVERRAN: u32 = 2;

/// A function of C.
pub type ObserverFunction = extern "C" fn(*const CReport, *mut c_void);

thread_local! {
    /// An observer is called in this thread, for which the set waits.
    static CALLED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is in an observer.
pub fn is_called() -> bool {
    CALLED.get()
}

/// An observer with its argument.
pub struct SetObserver {
    function: ObserverFunction,
    argument: *mut c_void,
}

// SAFETY: the header says that a thread of the library calls it.
unsafe impl Send for SetObserver {}

impl SetObserver {
    /// # Safety
    /// That of the header.
    pub unsafe fn new(function: ObserverFunction, argument: *mut c_void) -> SetObserver {
        SetObserver { function, argument }
    }

    /// Calls it with an event, if that is one of C.
    pub fn report(&self, event: &RunEvent) {
        let none = CReport {
            size: size_of::<CReport>(),
            kind: WARNING,
            flags: 0,
            task: ptr::null(),
            number: 0,
            release: 0,
            deadline: 0,
            started: NEVER,
            completed: NEVER,
            received: 0,
            assigned: 0,
            how: 0,
            code: 0,
            text: ptr::null(),
        };
        match event {
            RunEvent::Period { task, period: p } => self.call(
                task,
                CReport {
                    kind: PERIOD,
                    flags: u32::from(p.miss) * MISSED + u32::from(p.overrun) * OVERRAN,
                    number: p.number,
                    release: p.release,
                    deadline: p.deadline,
                    started: p.started,
                    completed: p.completed,
                    received: p.received,
                    assigned: p.assigned,
                    ..none
                },
            ),
            RunEvent::Unreported { task, count } => {
                self.call(task, CReport { kind: DROPPED, number: *count, ..none });
            }
            RunEvent::Ended { task, how } => {
                let (how, code) = number_of(how);
                self.call(task, CReport { kind: ENDED, how, code, ..none });
            }
            RunEvent::Warning(text) => {
                let text = c_text(text);
                self.call("", CReport { text: text.as_ptr(), ..none });
            }
            RunEvent::Executed { .. } | RunEvent::PolicyStopped(_) => {}
        }
    }

    fn call(&self, task: &str, mut report: CReport) {
        let name = c_text(task);
        if !task.is_empty() {
            report.task = name.as_ptr();
        }
        CALLED.set(true);
        (self.function)(&report, self.argument);
        CALLED.set(false);
    }
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}
