//! The processes that synthetic tasks are. Not threads of ours: whoever stops us does not stop them.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use punctual_taskset::TaskSet;
use punctual_workload::{Spinner, Work};

use crate::run_error::RunError;
use crate::scheduler::Scheduler;

/// A task set has no more of them here.
const MOST: usize = 256;
const NOT_YET: i64 = i64::MIN;
const PATIENCE: Duration = Duration::from_secs(10);

/// What they and we see.
#[repr(C)]
struct Shared {
    over: AtomicBool,
    numbers: [AtomicI64; MOST],
}

pub(crate) struct Tasks {
    shared: *mut Shared,
    pids: Vec<i32>,
}

impl Tasks {
    /// Starts one process per task; each joins the scheduler and waits for its first release.
    pub fn start(set: &TaskSet, scheduler: &mut Scheduler) -> Result<Tasks, RunError> {
        let machine = |what: &str| {
            let e = std::io::Error::last_os_error();
            RunError::machine(format!("{what}: {e}"), "make room for the set's processes")
        };
        if set.tasks.len() > MOST {
            return Err(RunError::set(format!("{} tasks are more than the kernel host's {MOST}", set.tasks.len())));
        }
        // SAFETY: a new mapping of our own.
        let shared = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Shared>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if shared == libc::MAP_FAILED {
            return Err(machine("memory for the tasks"));
        }
        let mut tasks = Tasks { shared: shared.cast(), pids: Vec::new() };
        tasks.numbers().iter().for_each(|n| n.store(NOT_YET, Ordering::Relaxed));
        let spinner = Spinner::calibrate();
        for (index, spec) in set.tasks.iter().enumerate() {
            let Some(mut work) = Work::of(&spec.body) else { continue };
            // SAFETY: getpid and fork take nothing; the child uses what it inherited, and leaves by _exit.
            let (us, pid) = unsafe { (libc::getpid(), libc::fork()) };
            match pid {
                -1 => return Err(machine("a process for a task")),
                0 => tasks.live(us, index, &mut work, &spinner, scheduler),
                pid => tasks.pids.push(pid),
            }
        }
        Ok(tasks)
    }

    fn over(&self) -> &AtomicBool {
        // SAFETY: mapped until we are dropped.
        unsafe { &(*self.shared).over }
    }

    fn numbers(&self) -> &[AtomicI64; MOST] {
        // SAFETY: as above.
        unsafe { &(*self.shared).numbers }
    }

    /// The child's whole life.
    fn live(&self, parent: i32, index: usize, work: &mut Work, spinner: &Spinner, scheduler: &mut Scheduler) -> ! {
        // SAFETY: plain system calls on ourselves. Whoever starts us dies with us in tow.
        let orphan = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::getppid() != parent
        };
        if orphan {
            // SAFETY: nothing is left to do.
            unsafe { libc::_exit(1) };
        }
        let number = scheduler.join().unwrap_or(-1);
        // What keeps the scheduler attached is the loader's alone.
        // SAFETY: nothing here uses a descriptor from now on.
        unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) };
        self.numbers()[index].store(number, Ordering::Release);
        loop {
            // SAFETY: takes nothing. It returns at the next release, or when the scheduler is gone.
            unsafe { libc::sched_yield() };
            if self.over().load(Ordering::Acquire) || !work.run_job(spinner, self.over()) {
                // SAFETY: no destructor of what was inherited may run here.
                unsafe { libc::_exit(0) };
            }
        }
    }

    /// Their numbers in the dispatcher, in the order of the set.
    pub fn joined(&self) -> Result<Vec<u32>, RunError> {
        let limit = Instant::now() + PATIENCE;
        loop {
            let numbers: Vec<i64> =
                self.numbers()[..self.pids.len()].iter().map(|n| n.load(Ordering::Acquire)).collect();
            if let Some(refusal) = numbers.iter().find(|&&n| n < 0 && n != NOT_YET) {
                return Err(RunError::machine(format!("a task could not join the scheduler ({refusal})"), "try again"));
            }
            if !numbers.contains(&NOT_YET) {
                return Ok(numbers.into_iter().map(|n| n as u32).collect());
            }
            if Instant::now() > limit {
                return Err(RunError::machine(
                    "the tasks were not started in time",
                    "try when the machine is less busy",
                ));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The first that has died since it was last asked for: its place in the set.
    pub fn died(&mut self) -> Option<usize> {
        self.pids.iter_mut().position(|pid| {
            // SAFETY: a child of ours that was not waited for.
            let gone = *pid > 0 && unsafe { libc::waitpid(*pid, std::ptr::null_mut(), libc::WNOHANG) } == *pid;
            *pid = if gone { 0 } else { *pid };
            gone
        })
    }

    /// They are to end at their next look.
    pub fn end(&self) {
        self.over().store(true, Ordering::Release);
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.end();
        let limit = Instant::now() + Duration::from_secs(1);
        while self.pids.iter().any(|&pid| pid > 0) && Instant::now() < limit {
            while self.died().is_some() {}
            std::thread::sleep(Duration::from_millis(2));
        }
        for &pid in self.pids.iter().filter(|&&pid| pid > 0) {
            // SAFETY: children of ours that were not waited for.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
        }
        // SAFETY: our mapping; nobody here uses it any more.
        unsafe { libc::munmap(self.shared.cast(), size_of::<Shared>()) };
    }
}
