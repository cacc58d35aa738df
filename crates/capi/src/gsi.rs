//! The allocator of gsi.h: the interface of RED-Linux's general scheduling framework.

use std::ffi::{c_int, CStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use punctual::jobs::{
    AddedJobEnd, Attribute, JobError, JobEvent, JobEvents, JobParams, JobRefusal, NoEvent, TaskJobs,
};
use punctual::{Error, Policy, Punctual, Running, SchedulingGroup, Time};
use punctual_sys::pidfd;
use punctual_sys::sched::thread_id;

use crate::current;
use crate::error::{error, failed, returned, CallError};
use crate::fork;
use crate::gsi_job::{ticks, GsiEvent, GsiJob, Placed, GSI_EV_JOB_EXPIRED};
use crate::gsi_table::{abort_job, AbortError, Message, ProcessEntry, ProcessTable, PROCESSES};
use crate::job::ATTRIBUTES;
use crate::plain;

/// The group of all jobs, below the allocator.
const TOP: &str = "gsi";
/// What the allocator and all jobs together may have in each period.
const PERIOD: Duration = Duration::from_millis(10);
const ALLOCATOR_BUDGET: Duration = Duration::from_millis(1);
const JOBS_BUDGET: Duration = Duration::from_millis(9);
/// The period and the budget of each process: its jobs are what limits it.
const WHOLE: Duration = Duration::from_secs(10);
/// Messages of processes that one look takes.
const MESSAGES: usize = 2 * PROCESSES;
/// GSI_GONE
const GONE: c_int = 4;
/// How often a look shows processes whose ends no event reports, ms.
const LOOK: c_int = 100;
/// By number: QOS_PRIORITY, QOS_STARTTIME, QOS_FINISHTIME, QOS_BUDGET.
const QOS: [usize; 4] = [3, 0, 1, 2];

/// The thread that is the allocator; 0: none.
static OWNER: AtomicI32 = AtomicI32::new(0);
static ALLOCATOR: Mutex<Option<Allocator>> = Mutex::new(None);

/// What an allocator has.
struct Allocator {
    running: Running,
    events: JobEvents,
    table: &'static ProcessTable,
    processes: Vec<Process>,
    sequence: u64,
}

/// A process that has had a job.
struct Process {
    pid: i32,
    pidfd: OwnedFd,
    jobs: TaskJobs,
    entry: &'static ProcessEntry,
    in_flight: Option<InFlight>,
    /// It has ended: an event said so.
    gone: bool,
}

impl Process {
    /// Its job has ended: the event.
    fn ended(&mut self, reason: c_int, remaining: u64, at: u64) -> Option<GsiEvent> {
        let job = self.in_flight.take()?;
        self.gone |= reason == GONE;
        let (budget, time) = (ticks(remaining), ticks(at));
        let (kind, pid, private) = (GSI_EV_JOB_EXPIRED, self.pid, job.private);
        Some(GsiEvent { kind, reason, budget, time, pid, reserved: 0, private })
    }

    /// It has ended, and the event of its last job was received.
    fn has_ended(&self) -> bool {
        self.in_flight.is_none() && (self.gone || self.jobs.is_over())
    }
}

/// A job whose event was not received. Times are ns.
#[derive(Clone, Copy)]
struct InFlight {
    /// Among all that the library adds, and among all of the allocator.
    id: u64,
    sequence: u64,
    start: u64,
    budget: u64,
    private: isize,
}

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
    let jobs = SchedulingGroup::new(TOP, PERIOD, JOBS_BUDGET).policy(Policy::Jobs);
    let mut set = set.policy(Policy::FixedPriority).overload().task_limit(PROCESSES as u32 + 1);
    set = set.group(jobs.priority(0));
    if let Some(trace) = std::env::var_os("PUNCTUAL_GSI_TRACE") {
        set = set.trace(trace);
    }
    let running = set.admit()?.start()?;
    let events = running.job_events()?;
    let allocator = running.task("allocator").period(PERIOD).budget(ALLOCATOR_BUDGET).priority(1);
    current::enter(allocator.attach()?, std::ptr::null_mut());
    table.set_open(true);
    let processes = Vec::with_capacity(PROCESSES);
    let allocator = Allocator { running, events, table, processes, sequence: 0 };
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
        let Some(Allocator { running, processes, table, .. }) = allocator else { return Ok(()) };
        let stopped = running.stop();
        table.set_open(false);
        processes.iter().for_each(|process| process.entry.release());
        match &stopped?.problems[..] {
            [] => Ok(()),
            problems => Err(error(libc::EIO, problems.join("; "), "see punctual clean").into()),
        }
    }))
}

#[no_mangle]
pub unsafe extern "C" fn GSI_setQOS(qos: *const c_int) -> c_int {
    returned(with(|allocator| {
        plain::not_null(qos)?;
        // SAFETY: the caller's: an array of four, or up to the first that is -1.
        let order = order((0..4).map(|n| unsafe { qos.add(n).read() }))?;
        Ok(allocator.running.order_jobs(Some(TOP), &order)?)
    }))
}

/// The attributes of GSI_setQOS up to the first that is -1, each once; without any by priority.
fn order(qos: impl Iterator<Item = c_int>) -> Result<Vec<Attribute>, Error> {
    let mut order = Vec::new();
    for number in qos.take_while(|&number| number != -1) {
        let known = usize::try_from(number).ok().and_then(|number| QOS.get(number));
        let Some(&at) = known else {
            let cause = format!("there is no attribute {number}");
            return Err(error(libc::EINVAL, cause, "use QOS_PRIORITY and the following, or -1"));
        };
        if !order.contains(&ATTRIBUTES[at]) {
            order.push(ATTRIBUTES[at]);
        }
    }
    if order.is_empty() {
        order.push(Attribute::Priority);
    }
    Ok(order)
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
            allocator.take_messages();
            while filled < number {
                let Some(event) = allocator.next_event()? else { break };
                // SAFETY: the caller's: room for so many events.
                unsafe { events.add(filled).write(event) };
                filled += 1;
            }
            if filled > 0 || allocator.processes.iter().all(|p| p.in_flight.is_none()) {
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

impl Allocator {
    /// Sends a job. Real-time safe, but for the first one of a process.
    fn add(&mut self, job: &GsiJob) -> Result<(), CallError> {
        let placed = job.placed()?;
        let Placed::Process(pid) = placed;
        let params = job.params()?;
        let at = match self.processes.iter().position(|process| process.pid == pid) {
            Some(at) if !self.processes[at].has_ended() => at,
            // It is on its way to its end.
            Some(at) if !pidfd::has_ended(&self.processes[at].pidfd) => return Err(ended()),
            _ => self.add_process(pid)?,
        };
        self.send(at, &params, job.private)
    }

    fn add_process(&mut self, pid: i32) -> Result<usize, CallError> {
        // Another process may have the number of one that has ended.
        self.processes.retain(|process| {
            let ended = process.has_ended();
            if ended {
                process.entry.release();
            }
            !ended
        });
        let pidfd = pidfd::open(pid).map_err(|e| match e.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => failed(libc::EMFILE, c"no descriptor is left"),
            _ => ended(),
        })?;
        // One that has ended and was not waited for is no process either.
        if pidfd::has_ended(&pidfd) {
            return Err(ended());
        }
        let full = || failed(libc::ENOSPC, c"256 processes have jobs; end one of them first");
        if self.processes.len() == PROCESSES {
            return Err(full());
        }
        let task = self.running.task(format!("process {pid}")).group(TOP);
        let task = task.period(WHOLE).budget(WHOLE).pid(pid)?;
        let jobs = match task.jobs() {
            Ok(jobs) => jobs,
            Err(e) => {
                // It ends with the set, if not by this.
                let _ = task.stop();
                return Err(e.into());
            }
        };
        let entry = self.table.claim(pid).ok_or_else(full)?;
        self.processes.push(Process { pid, pidfd, jobs, entry, in_flight: None, gone: false });
        Ok(self.processes.len() - 1)
    }

    fn send(&mut self, at: usize, params: &JobParams, private: isize) -> Result<(), CallError> {
        let Allocator { processes, sequence, .. } = self;
        let process = &mut processes[at];
        if process.in_flight.is_some() {
            return Err(failed(libc::EBUSY, c"the process has a job: receive its event first"));
        }
        *sequence += 1;
        process.entry.begin(*sequence, params.start);
        let id = process.jobs.add(params, 0).map_err(refused)?;
        let JobParams { start, budget, .. } = *params;
        process.in_flight = Some(InFlight { id, sequence: *sequence, start, budget, private });
        Ok(())
    }

    /// Completes the jobs of the processes that have called GSI_abort_job. Real-time safe.
    fn take_messages(&mut self) {
        for _ in 0..MESSAGES {
            let Some(Message { pid, sequence }) = self.table.next_message() else { break };
            let Some(process) = self.processes.iter_mut().find(|p| p.pid == pid) else { continue };
            let now = Time::now().as_nanos();
            let its = |job: &InFlight| job.sequence == sequence && job.start <= now;
            let completed = match process.in_flight.filter(its) {
                Some(job) => process.jobs.complete(job.id),
                // The job is one gone by: it continues on the one that it has, or gets.
                None => Err(JobError::Over),
            };
            if completed.is_err() {
                process.entry.answer();
            }
        }
    }

    /// The next event; does not wait. Real-time safe.
    fn next_event(&mut self) -> Result<Option<GsiEvent>, CallError> {
        let last = self.processes.iter().position(|p| p.in_flight.is_some() && p.jobs.is_over());
        loop {
            let event = match self.events.next(0) {
                Ok(event) => event,
                Err(NoEvent::TimedOut) => return Ok(last.and_then(|at| self.end_of_last_job(at))),
                Err(NoEvent::Over) => {
                    return Err(failed(libc::ECANCELED, c"the dispatcher has ended"))
                }
            };
            let JobEvent { at, id, end, remaining, .. } = event;
            let its = |p: &&mut Process| p.in_flight.is_some_and(|job| job.id == id);
            // One that ended by itself may have an event, too.
            let Some(process) = self.processes.iter_mut().find(its) else { continue };
            return Ok(process.ended(reason(end), remaining, at));
        }
    }

    /// The end of a job that was sent when its process had ended, which the dispatcher does not
    /// report: all events that came before its process was removed were read.
    fn end_of_last_job(&mut self, at: usize) -> Option<GsiEvent> {
        let process = &mut self.processes[at];
        let budget = process.in_flight?.budget;
        process.ended(GONE, budget, Time::now().as_nanos())
    }

    /// Waits for an event or a message, or for any other reason. Real-time safe.
    fn wait(&self) {
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let (events, messages) = (self.events.as_fd(), self.table.messages());
        let mut fds = [poll(events.as_raw_fd()), poll(messages.as_raw_fd())];
        // A signal ends it: that which parks the allocator when its budget is used up, too.
        // SAFETY: two descriptors.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, LOOK) };
    }
}

/// GSI_COMPLETED and the following.
pub fn reason(end: AddedJobEnd) -> c_int {
    match end {
        AddedJobEnd::Completed => 0,
        AddedJobEnd::Exhausted => 1,
        AddedJobEnd::Expired => 2,
        AddedJobEnd::TaskGone | AddedJobEnd::Refused(JobRefusal::Nothing) => GONE,
        _ => 3,
    }
}

#[cold]
fn ended() -> CallError {
    failed(libc::ESRCH, c"there is no such process, or it has ended")
}

#[cold]
fn refused(e: JobError) -> CallError {
    let text: &CStr = match e {
        JobError::Full => c"the dispatcher has not taken 16 requests of this process",
        JobError::Invalid => c"the finish of a job is after its start",
        JobError::Quota => c"the budget is too large",
        JobError::Over => c"the process has ended, or the dispatcher",
    };
    match e {
        JobError::Over => failed(libc::ESRCH, text),
        e => failed(e.errno(), text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_ends_at_the_first_that_is_none_and_has_each_attribute_once() {
        use Attribute::{Budget, Finish, Priority, Start};
        let order = |qos: [c_int; 4]| order(qos.into_iter()).map_err(|e| e.errno);
        assert_eq!(order([0, -1, 9, 9]), Ok(vec![Priority]));
        assert_eq!(order([-1, 1, 1, 1]), Ok(vec![Priority]));
        assert_eq!(order([0, 0, 0, 0]), Ok(vec![Priority]));
        assert_eq!(order([2, 0, 1, 3]), Ok(vec![Finish, Priority, Start, Budget]));
        for unknown in [4, -2, c_int::MAX, c_int::MIN] {
            assert_eq!(order([0, unknown, -1, -1]), Err(Some(libc::EINVAL)));
        }
    }
}
