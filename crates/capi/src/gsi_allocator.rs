//! The allocator of gsi.h: a set of one CPU, whose jobs the program adds. Its thread is a task
//! before all jobs; the jobs are in a group below it.

use std::ffi::{c_int, CStr, OsString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use punctual::jobs::{
    AddedJobEnd, Attribute, GroupJobs, JobError, JobEvent, JobEvents, JobParams, JobPlace,
    JobRefusal, NoEvent, ProgramGroups, TaskJobs,
};
use punctual::{Host, Policy, Punctual, Running, SchedulingGroup, TaskEnd, TaskHandle, Time};
use punctual_sys::pidfd;

use crate::current;
use crate::error::{error, failed, CallError};
use crate::gsi_job::{ticks, GsiEvent, GsiJob, Served, GROUPS, GSI_EV_JOB_EXPIRED};
use crate::gsi_table::{Message, ProcessEntry, ProcessTable, PROCESSES};

/// The group of all jobs, below the allocator.
const TOP: &str = "gsi";
/// What the allocator and all jobs together may have in each period.
const PERIOD: Duration = Duration::from_millis(10);
const ALLOCATOR_BUDGET: Duration = Duration::from_millis(1);
const JOBS_BUDGET: Duration = Duration::from_millis(9);
/// The period and the budget of each process: its jobs are what limits it.
const WHOLE: Duration = Duration::from_secs(10);
/// How long a new process waits for the end of the task of one that has ended.
const ROOM: Duration = Duration::from_secs(10);
/// Messages of processes that one look takes.
const MESSAGES: usize = 2 * PROCESSES;
/// GSI_CANCELLED
const CANCELLED: c_int = 3;
/// GSI_GONE
const GONE: c_int = 4;
/// How often a look shows processes whose ends no event reports, ms.
const LOOK: c_int = 100;
/// Jobs of groups at one time.
const GROUP_JOBS: usize = 256;
/// What an allocator has.
pub struct Allocator {
    running: Running,
    events: JobEvents,
    table: &'static ProcessTable,
    /// Processes that may have jobs at one time.
    most: usize,
    processes: Vec<Process>,
    /// Tasks of processes that have ended, which the set still has.
    ending: Vec<TaskHandle<TaskEnd>>,
    group_jobs: GroupJobs,
    /// Jobs of groups whose events were not received.
    of_groups: Vec<OfGroup>,
    /// Budget groups that have had a budget, by number.
    supplied: [bool; GROUPS as usize + 1],
    sequence: u64,
}

/// A job of a group. `is_bounded`: it ends even if nothing executes on it.
#[derive(Clone, Copy)]
struct OfGroup {
    id: u64,
    private: isize,
    is_bounded: bool,
}

/// A process that has had a job.
struct Process {
    pid: i32,
    pidfd: OwnedFd,
    task: TaskHandle<TaskEnd>,
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
        Some(event_of(reason, remaining, at, self.pid, job.private))
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

impl Allocator {
    /// Starts the dispatcher of a set, inside the kernel or not, with a trace, and makes the
    /// calling thread its allocator.
    ///
    /// # Errors
    /// Those of [`Punctual::admit`], `start` and `attach`.
    pub fn start(
        set: Punctual,
        host: Host,
        trace: Option<OsString>,
        table: &'static ProcessTable,
    ) -> Result<Allocator, CallError> {
        let groups = ProgramGroups { scheduling: GROUPS, budget: GROUPS };
        let jobs = SchedulingGroup::new(TOP, PERIOD, JOBS_BUDGET).policy(Policy::Jobs);
        let in_the_kernel = host == Host::Kernel;
        // Inside the kernel a CPU has 256 tasks, of which the allocator is one.
        let most = if in_the_kernel { PROCESSES - 1 } else { PROCESSES };
        let set = set.host(host).policy(Policy::FixedPriority).overload();
        let mut set = set.task_limit(most as u32 + 1);
        // Processes come and go without end.
        set = set.group(jobs.priority(0)).program_groups(groups).forget_ended();
        if let Some(trace) = trace {
            set = set.trace(trace);
        }
        let running = set.admit()?.start()?;
        let (events, group_jobs) = (running.job_events()?, running.group_jobs(Some(TOP))?);
        let allocator =
            running.task("allocator").period(PERIOD).budget(ALLOCATOR_BUDGET).priority(1);
        if in_the_kernel {
            allocator.bound_this_thread()?;
        } else {
            current::enter(allocator.attach()?, std::ptr::null_mut());
        }
        table.set_by_yield(in_the_kernel);
        table.set_open(true);
        Ok(Allocator {
            running,
            events,
            table,
            most,
            processes: Vec::with_capacity(PROCESSES),
            ending: Vec::with_capacity(PROCESSES),
            group_jobs,
            of_groups: Vec::with_capacity(GROUP_JOBS),
            supplied: [false; GROUPS as usize + 1],
            sequence: 0,
        })
    }

    /// Ends the dispatcher. The calling thread is not its allocator any more.
    ///
    /// # Errors
    /// EIO: what could not be restored.
    pub fn stop(self) -> Result<(), CallError> {
        let Allocator { running, processes, table, .. } = self;
        let stopped = running.stop();
        table.set_open(false);
        processes.iter().for_each(|process| process.entry.release());
        match &stopped?.problems[..] {
            [] => Ok(()),
            problems => Err(error(libc::EIO, problems.join("; "), "see punctual clean").into()),
        }
    }

    /// Orders a group; 0 is the top one. Real-time safe.
    ///
    /// # Errors
    /// EAGAIN, ECANCELED.
    pub fn set_order(&mut self, group: u32, by: &[Attribute]) -> Result<(), CallError> {
        self.group_jobs.order(group, by).map_err(of_group)
    }

    /// Sends a job. Real-time safe, but for the first one of a process.
    pub fn add(&mut self, job: &GsiJob) -> Result<(), CallError> {
        let (served, params) = (job.served()?, job.params()?);
        let (group, budget_group) = job.place();
        if budget_group != 0 && !self.supplied[budget_group as usize] {
            return Err(failed(libc::ENOENT, c"the budget group has had no budget yet"));
        }
        let place = self.group_jobs.place(group, budget_group).map_err(of_group)?;
        let Served::Process(pid) = served else {
            return self.add_of_group(served, place, budget_group, &params, job.private);
        };
        let at = match self.processes.iter().position(|process| process.pid == pid) {
            Some(at) if !self.processes[at].has_ended() => at,
            // It is on its way to its end.
            Some(at) if !pidfd::has_ended(&self.processes[at].pidfd) => return Err(ended()),
            _ => self.add_process(pid)?,
        };
        self.send(at, place, &params, job.private)
    }

    /// Sends a job of a group. Real-time safe.
    fn add_of_group(
        &mut self,
        served: Served,
        place: JobPlace,
        limited_by: u32,
        params: &JobParams,
        private: isize,
    ) -> Result<(), CallError> {
        if self.of_groups.len() == GROUP_JOBS {
            return Err(failed(libc::ENOSPC, c"256 jobs of groups have not ended"));
        }
        let jobs = &mut self.group_jobs;
        let id = match served {
            Served::Group(group) => jobs.serve(group, place, params, 0),
            Served::Budget(group) => jobs.supply(group, limited_by, params, 0),
            Served::Process(_) => Err(JobError::Invalid),
        };
        let id = id.map_err(of_group)?;
        if let Served::Budget(group) = served {
            self.supplied[group as usize] = true;
        }
        let is_bounded = params.finish != u64::MAX;
        self.of_groups.push(OfGroup { id, private, is_bounded });
        Ok(())
    }

    /// The dispatcher has taken all jobs of groups: one that it refused has its event. To be asked
    /// before events are looked for.
    pub fn has_sent_all(&self) -> bool {
        self.group_jobs.are_executed()
    }

    /// Whether a job is left of which an event may come.
    pub fn expects_events(&self) -> bool {
        self.processes.iter().any(|process| process.in_flight.is_some())
            || self.of_groups.iter().any(|job| job.is_bounded)
    }

    fn add_process(&mut self, pid: i32) -> Result<usize, CallError> {
        self.drop_ended();
        let pidfd = pidfd::open(pid).map_err(|e| match e.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => failed(libc::EMFILE, c"no descriptor is left"),
            _ => ended(),
        })?;
        // One that has ended and was not waited for is no process either.
        if pidfd::has_ended(&pidfd) {
            return Err(ended());
        }
        let most = self.most;
        let full =
            || error(libc::ENOSPC, format!("{most} processes have jobs"), "end one of them first");
        let name = format!("process {pid}");
        if self.processes.len() >= most || !self.has_room(&name) {
            return Err(full().into());
        }
        let task = self.running.task(name).group(TOP);
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
        let process = Process { pid, pidfd, task, jobs, entry, in_flight: None, gone: false };
        self.processes.push(process);
        Ok(self.processes.len() - 1)
    }

    /// Drops the processes that have ended: another one may have the number of one of them.
    fn drop_ended(&mut self) {
        while let Some(at) = self.processes.iter().position(Process::has_ended) {
            let process = self.processes.swap_remove(at);
            process.entry.release();
            self.ending.push(process.task);
        }
    }

    /// Whether the set has room for a task of this name. Waits for it: the program has the event
    /// of a process that has ended before the set has its end.
    fn has_room(&mut self, name: &str) -> bool {
        let until = Instant::now() + ROOM;
        loop {
            self.ending.retain(|task| !task.is_finished());
            let in_the_way = self.processes.len() + self.ending.len() >= self.most
                || self.ending.iter().any(|task| task.name() == name);
            if !in_the_way || Instant::now() >= until {
                return !in_the_way;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn send(
        &mut self,
        at: usize,
        place: JobPlace,
        params: &JobParams,
        private: isize,
    ) -> Result<(), CallError> {
        let Allocator { processes, sequence, .. } = self;
        let process = &mut processes[at];
        if process.in_flight.is_some() {
            return Err(failed(libc::EBUSY, c"the process has a job: receive its event first"));
        }
        *sequence += 1;
        process.entry.begin(*sequence, params.start);
        let id = process.jobs.add_in(place, params, 0).map_err(refused)?;
        let JobParams { start, budget, .. } = *params;
        process.in_flight = Some(InFlight { id, sequence: *sequence, start, budget, private });
        Ok(())
    }

    /// Completes the jobs of the processes that have called GSI_abort_job. Real-time safe.
    pub fn take_messages(&mut self) {
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
    pub fn next_event(&mut self) -> Result<Option<GsiEvent>, CallError> {
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
            if let Some(at_place) = self.of_groups.iter().position(|job| job.id == id) {
                let OfGroup { private, .. } = self.of_groups.swap_remove(at_place);
                let reason = match reason(end) {
                    GONE => CANCELLED,
                    reason => reason,
                };
                return Ok(Some(event_of(reason, remaining, at, 0, private)));
            }
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
    pub fn wait(&self) {
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let (events, messages) = (self.events.as_fd(), self.table.messages());
        let mut fds = [poll(events.as_raw_fd()), poll(messages.as_raw_fd())];
        // A signal ends it: that which parks the allocator when its budget is used up, too.
        // SAFETY: two descriptors.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, LOOK) };
    }
}

fn event_of(reason: c_int, remaining: u64, at: u64, pid: i32, private: isize) -> GsiEvent {
    let (kind, budget, time) = (GSI_EV_JOB_EXPIRED, ticks(remaining), ticks(at));
    GsiEvent { kind, reason, budget, time, pid, reserved: 0, private }
}

/// GSI_COMPLETED and the following.
pub fn reason(end: AddedJobEnd) -> c_int {
    match end {
        AddedJobEnd::Completed => 0,
        AddedJobEnd::Exhausted => 1,
        AddedJobEnd::Expired => 2,
        AddedJobEnd::TaskGone | AddedJobEnd::Refused(JobRefusal::Nothing) => GONE,
        _ => CANCELLED,
    }
}

#[cold]
fn ended() -> CallError {
    failed(libc::ESRCH, c"there is no such process, or it has ended")
}

#[cold]
fn of_group(e: JobError) -> CallError {
    let text: &CStr = match e {
        JobError::Full => c"the dispatcher has not taken 64 requests for groups",
        JobError::Invalid => c"there is no such group",
        JobError::Quota => c"the budget is too large",
        JobError::Over => c"the dispatcher has ended",
    };
    failed(e.errno(), text)
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
