//! The calls of gsi.h: the interface of RED-Linux's general scheduling framework.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use punctual::jobs::Attribute;
use punctual::{Host, Punctual, Time};
use punctual_sys::sched::thread_id;

use crate::current;
use crate::error::{error, failed, returned, CallError};
use crate::fork;
use crate::gsi_allocator::Allocator;
use crate::gsi_job::{ticks, GsiEvent, GsiJob, GROUPS};
use crate::gsi_table::{abort_job, AbortError, ProcessTable};
use crate::job::ATTRIBUTES;
use crate::plain;

/// By number: QOS_PRIORITY, QOS_STARTTIME, QOS_FINISHTIME, QOS_BUDGET.
const QOS: [usize; 4] = [3, 0, 1, 2];

/// The thread that is the allocator; 0: none.
static OWNER: AtomicI32 = AtomicI32::new(0);
static ALLOCATOR: Mutex<Option<Allocator>> = Mutex::new(None);

/// Calls `f` with the allocator that the calling thread is.
///
/// # Errors
/// EPERM.
fn with<T>(f: impl FnOnce(&mut Allocator) -> Result<T, CallError>) -> Result<T, CallError> {
    let not_it = || failed(libc::EPERM, c"the calling thread is not the allocator: GSI_register");
    // No other thread locks it while this one is the owner.
    if OWNER.load(SeqCst) != thread_id() {
        return Err(not_it());
    }
    let mut allocator = ALLOCATOR.lock().unwrap_or_else(PoisonError::into_inner);
    f(allocator.as_mut().ok_or_else(not_it)?)
}

fn count(result: Result<usize, CallError>) -> c_int {
    result.map_or_else(|CallError(number)| number, |count| count as c_int)
}

#[no_mangle]
pub extern "C" fn GSI_register() -> c_int {
    returned(register())
}

fn register() -> Result<(), CallError> {
    fork::watch()?;
    let me = thread_id();
    if let Err(owner) = OWNER.compare_exchange(0, me, SeqCst, SeqCst) {
        let cause = format!("thread {owner} of this program is the allocator");
        return Err(error(libc::EBUSY, cause, "call GSI_unregister there first").into());
    }
    let begun = begin();
    if begun.is_err() {
        OWNER.store(0, SeqCst);
    }
    begun
}

fn begin() -> Result<(), CallError> {
    let no_memory = |e: std::io::Error| {
        let errno = e.raw_os_error().unwrap_or(libc::ENOMEM);
        error(errno, format!("no memory to share with processes: {e}"), "close descriptors")
    };
    let table = ProcessTable::of_allocator().map_err(no_memory)?;
    let set = match std::env::var("PUNCTUAL_GSI_CPU") {
        Err(_) => Punctual::on_last_cpu(),
        Ok(cpu) => Punctual::on_cpu(cpu.parse().map_err(|_| {
            let cause = format!("PUNCTUAL_GSI_CPU: {cpu:?} is no CPU");
            error(libc::EINVAL, cause, "set it to the number of one, or to nothing")
        })?),
    };
    let host = match std::env::var("PUNCTUAL_GSI_HOST").as_deref() {
        Err(_) | Ok("user") => Host::User,
        Ok("kernel") => Host::Kernel,
        Ok(host) => {
            let cause = format!("PUNCTUAL_GSI_HOST: {host:?} is no host of jobs");
            return Err(error(libc::EINVAL, cause, "set it to user or kernel").into());
        }
    };
    let trace = std::env::var_os("PUNCTUAL_GSI_TRACE");
    let allocator = Allocator::start(set, host, trace, table)?;
    *ALLOCATOR.lock().unwrap_or_else(PoisonError::into_inner) = Some(allocator);
    Ok(())
}

#[no_mangle]
pub extern "C" fn GSI_unregister() -> c_int {
    returned(with(|_| Ok(())).and_then(|()| {
        let allocator = ALLOCATOR.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The program may have called punctual_detach.
        let _ = current::leave();
        OWNER.store(0, SeqCst);
        allocator.map_or(Ok(()), Allocator::stop)
    }))
}

#[no_mangle]
pub unsafe extern "C" fn GSI_setQOS(qos: *const c_int) -> c_int {
    // SAFETY: the caller's.
    returned(with(|allocator| unsafe { set_order(allocator, 0, qos) }))
}

#[no_mangle]
pub unsafe extern "C" fn GSI_setgroupQOS(group: c_int, qos: *const c_int) -> c_int {
    // SAFETY: the caller's.
    returned(with(|allocator| unsafe { set_order(allocator, group, qos) }))
}

unsafe fn set_order(
    allocator: &mut Allocator,
    group: c_int,
    qos: *const c_int,
) -> Result<(), CallError> {
    plain::not_null(qos)?;
    let known = u32::try_from(group).ok().filter(|group| *group <= GROUPS);
    let group = known.ok_or_else(|| failed(libc::ENOENT, c"groups have the numbers 1 to 32"))?;
    // SAFETY: the caller's: an array of four, or up to the first that is -1.
    let (order, count) = order((0..4).map(|n| unsafe { qos.add(n).read() }))?;
    allocator.set_order(group, &order[..count])
}

/// The attributes of GSI_setQOS up to the first that is -1, each once, and how many they are;
/// without any by priority. Real-time safe.
fn order(qos: impl Iterator<Item = c_int>) -> Result<([Attribute; 4], usize), CallError> {
    let (mut order, mut count) = ([Attribute::Priority; 4], 0);
    for number in qos.take_while(|&number| number != -1) {
        let known = usize::try_from(number).ok().and_then(|number| QOS.get(number));
        let Some(&at) = known else {
            return Err(failed(libc::EINVAL, c"use QOS_PRIORITY and the following, or -1"));
        };
        if !order[..count].contains(&ATTRIBUTES[at]) {
            order[count] = ATTRIBUTES[at];
            count += 1;
        }
    }
    Ok((order, count.max(1)))
}

#[no_mangle]
pub unsafe extern "C" fn GSI_addjob(jobs: *const GsiJob, number: c_int) -> c_int {
    count(with(|allocator| {
        let Ok(number) = usize::try_from(number) else {
            return Err(failed(libc::EINVAL, c"the number of jobs is negative"));
        };
        if number > 0 {
            plain::not_null(jobs)?;
        }
        for n in 0..number {
            // SAFETY: the caller's: so many jobs.
            let job = unsafe { jobs.add(n).read() };
            match allocator.add(&job) {
                Ok(()) => {}
                Err(e) if n == 0 => return Err(e),
                Err(_) => return Ok(n),
            }
        }
        Ok(number)
    }))
}

#[no_mangle]
pub unsafe extern "C" fn GSI_getevents(events: *mut GsiEvent, number: c_int) -> c_int {
    count(with(|allocator| {
        plain::not_null(events)?;
        let number = usize::try_from(number).ok().filter(|&number| number > 0);
        let number = number.ok_or_else(|| {
            failed(libc::EINVAL, c"there is no room for an event: pass 1 or more")
        })?;
        let mut filled = 0;
        loop {
            let sent_all = allocator.has_sent_all();
            allocator.take_messages();
            while filled < number {
                let event = match allocator.next_event() {
                    Ok(Some(event)) => event,
                    Err(e) if filled == 0 => return Err(e),
                    Ok(None) | Err(_) => break,
                };
                // SAFETY: the caller's: room for so many events.
                unsafe { events.add(filled).write(event) };
                filled += 1;
            }
            if filled > 0 || sent_all && !allocator.expects_events() {
                return Ok(filled);
            }
            allocator.wait();
        }
    }))
}

#[no_mangle]
pub extern "C" fn GSI_abort_job() -> c_int {
    returned(abort_job().map_err(|e| match e {
        AbortError::NoAllocator => failed(
            libc::ESRCH,
            c"this process has no allocator: it is to be forked by it, after GSI_register",
        ),
        AbortError::Over => failed(libc::ECANCELED, c"the allocator of this process has ended"),
    }))
}

#[no_mangle]
pub extern "C" fn GSI_now() -> i64 {
    ticks(Time::now().as_nanos())
}

#[no_mangle]
pub extern "C" fn GSI_msec_to_ticks(milliseconds: i64) -> i64 {
    milliseconds.saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_ends_at_the_first_that_is_none_and_has_each_attribute_once() {
        use Attribute::{Budget, Finish, Priority, Start};
        let order = |qos: [c_int; 4]| {
            let order = order(qos.into_iter());
            order.map(|(by, count)| by[..count].to_vec()).map_err(|e| e.0)
        };
        assert_eq!(order([0, -1, 9, 9]), Ok(vec![Priority]));
        assert_eq!(order([-1, 1, 1, 1]), Ok(vec![Priority]));
        assert_eq!(order([0, 0, 0, 0]), Ok(vec![Priority]));
        assert_eq!(order([2, 0, 1, 3]), Ok(vec![Finish, Priority, Start, Budget]));
        for unknown in [4, -2, c_int::MAX, c_int::MIN] {
            assert_eq!(order([0, unknown, -1, -1]), Err(-libc::EINVAL));
        }
    }
}
