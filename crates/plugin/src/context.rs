//! The calls of a policy in a shared object, as long as they are permitted.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use punctual_dispatcher::Refusal;
use punctual_policies::{Context, JobParams, MemberParams};

use crate::abi::{self, refusal};

/// What a call of [`Handle::during`] gives the policy, for the life of the process: a policy may
/// keep the pointer, and use it when it must not.
#[repr(C)]
pub(crate) struct Handle {
    /// First: the policy has a pointer to this.
    abi: abi::PluginContext,
    /// The context of the event that is handled; null in between.
    current: AtomicPtr<Context<'static>>,
    /// The thread of the latest event.
    thread: AtomicUsize,
    misuse: AtomicU32,
}

// SAFETY: the table of calls is a constant.
unsafe impl Sync for Handle {}

const OUTSIDE: u32 = 1;
const ANOTHER_THREAD: u32 = 2;

impl Handle {
    pub(crate) fn new() -> &'static Handle {
        Box::leak(Box::new(Handle {
            abi: abi::PluginContext { calls: &CALLS },
            current: AtomicPtr::new(ptr::null_mut()),
            thread: AtomicUsize::new(0),
            misuse: AtomicU32::new(0),
        }))
    }

    /// Calls the policy for an event.
    pub(crate) fn during(
        &'static self,
        context: &mut Context<'_>,
        call: impl FnOnce(*mut abi::PluginContext),
    ) {
        self.thread.store(this_thread(), Relaxed);
        self.current.store(ptr::from_mut(context).cast(), SeqCst);
        call(ptr::from_ref(self).cast_mut().cast());
        self.current.store(ptr::null_mut(), SeqCst);
    }

    /// How the policy has broken the rules of its calls, if it has.
    pub(crate) fn misuse(&self) -> Option<&'static str> {
        match self.misuse.load(Relaxed) {
            OUTSIDE => Some("has made a call outside of its `handle`"),
            ANOTHER_THREAD => Some("has made a call from another thread than that of the event"),
            _ => None,
        }
    }

    /// The context, for the thread that handles an event.
    fn context(&self) -> Option<*mut Context<'static>> {
        let current = self.current.load(SeqCst);
        let misuse = match this_thread() == self.thread.load(Relaxed) {
            true if !current.is_null() => return Some(current),
            true => OUTSIDE,
            false => ANOTHER_THREAD,
        };
        self.misuse.store(misuse, Relaxed);
        None
    }
}

/// A number that no other living thread has. No system call.
fn this_thread() -> usize {
    thread_local! { static PLACE: u8 = const { 0 } }
    PLACE.with(|place| ptr::from_ref(place).addr())
}

/// Does something with the context of a call.
///
/// # Safety
/// `context` is that of a [`Handle`], or null.
unsafe fn with<T>(
    context: *mut abi::PluginContext,
    otherwise: T,
    call: impl FnOnce(&mut Context<'static>) -> T,
) -> T {
    // SAFETY: a handle begins with it, and lives as long as the process.
    let handle = unsafe { context.cast::<Handle>().as_ref() };
    let context = handle.and_then(Handle::context);
    // SAFETY: it is there while this thread, which is here, is in `during`, where the policy has
    // the only use of it: this call, until it returns.
    context.map_or(otherwise, |context| call(unsafe { &mut *context }))
}

fn code(result: Result<(), Refusal>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(Refusal::Full) => refusal::FULL,
        Err(Refusal::Nothing) => refusal::NOTHING,
        Err(Refusal::Busy) => refusal::BUSY,
        Err(Refusal::Invalid | Refusal::Tree) => refusal::INVALID,
    }
}

static CALLS: abi::PluginCalls = abi::PluginCalls {
    size: size_of::<abi::PluginCalls>() as u32,
    now,
    member,
    release,
    add_job,
    replace_job,
    cancel_job,
    remaining,
    used,
    executed,
    set_timer,
    cancel_timer,
    extend,
};

// SAFETY of all of them: the policy calls them through its context, with pointers to structures of
// its own, as the header says.

unsafe extern "C" fn now(context: *mut abi::PluginContext) -> u64 {
    // SAFETY: see above.
    unsafe { with(context, 0, |context| context.now()) }
}

unsafe extern "C" fn member(context: *mut abi::PluginContext, to: *mut abi::PluginMember) -> c_int {
    // SAFETY: see above.
    unsafe {
        with(context, refusal::NOT_HERE, |context| {
            *to = member_of(context.member());
            0
        })
    }
}

unsafe extern "C" fn release(
    context: *mut abi::PluginContext,
    to: *mut abi::PluginRelease,
) -> c_int {
    // SAFETY: see above.
    unsafe {
        with(context, refusal::NOT_HERE, |context| {
            let &punctual_policies::Release { number, at, deadline, left, part } =
                context.release();
            *to = abi::PluginRelease { number, at, deadline, left, part };
            0
        })
    }
}

unsafe extern "C" fn add_job(
    context: *mut abi::PluginContext,
    job: *const abi::PluginJob,
) -> c_int {
    // SAFETY: see above.
    unsafe { with(context, refusal::NOT_HERE, |context| code(context.add_job(&job_of(&*job)))) }
}

unsafe extern "C" fn replace_job(
    context: *mut abi::PluginContext,
    job: *const abi::PluginJob,
) -> c_int {
    // SAFETY: see above.
    unsafe { with(context, refusal::NOT_HERE, |context| code(context.replace_job(&job_of(&*job)))) }
}

unsafe extern "C" fn cancel_job(context: *mut abi::PluginContext) -> c_int {
    // SAFETY: see above.
    unsafe { with(context, refusal::NOT_HERE, |context| code(context.cancel_job())) }
}

unsafe extern "C" fn remaining(context: *mut abi::PluginContext) -> u64 {
    // SAFETY: see above.
    unsafe { with(context, 0, |context| context.remaining()) }
}

unsafe extern "C" fn used(context: *mut abi::PluginContext) -> u64 {
    // SAFETY: see above.
    unsafe { with(context, 0, |context| context.used()) }
}

unsafe extern "C" fn executed(context: *mut abi::PluginContext, index: u32) -> u64 {
    // SAFETY: see above.
    unsafe { with(context, 0, |context| context.executed(index)) }
}

unsafe extern "C" fn set_timer(context: *mut abi::PluginContext, at: u64) -> c_int {
    // SAFETY: see above.
    unsafe { with(context, refusal::NOT_HERE, |context| code(context.set_timer(at))) }
}

unsafe extern "C" fn cancel_timer(context: *mut abi::PluginContext) -> c_int {
    // SAFETY: see above.
    unsafe {
        with(context, refusal::NOT_HERE, |context| {
            context.cancel_timer();
            0
        })
    }
}

unsafe extern "C" fn extend(context: *mut abi::PluginContext, ns: u64) -> c_int {
    // SAFETY: see above.
    unsafe { with(context, refusal::NOT_HERE, |context| code(context.extend(ns))) }
}

fn job_of(job: &abi::PluginJob) -> JobParams {
    let &abi::PluginJob { start, finish, budget, priority } = job;
    JobParams { start, finish, budget, priority }
}

/// A member, as the interface has it.
pub(crate) fn member_of(member: &MemberParams) -> abi::PluginMember {
    let &MemberParams { index, group, offset, period, deadline, budget, priority, .. } = member;
    let of = abi::PluginAttributes { offset, period, deadline, budget, priority };
    abi::PluginMember { of, index, group }
}
