//! Watching a program: started for it, or running already. It runs in the class that it has, on
//! the CPUs that it may use; an ordinary thread takes its records at intervals.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_measure::noise::{Noise, NoiseReading};
use punctual_process::{
    descendants, is_kernel_thread, threads_of, CommandSpec, Commands, Identity, Output,
};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::perf::{SwitchRecord, SwitchRecorder};
use punctual_sys::{pidfd, sched};
use punctual_trace::TaskEnd;
use rustix::event::{poll, PollFd, PollFlags, Timespec};

/// The program to watch.
#[derive(Debug, Clone)]
pub enum Target {
    /// Started for it, with our standard input; killed at the end with what it started.
    Command(Vec<String>, Output),
    /// A running one, with all its threads and descendants; left as it is.
    Pid(i32),
}

/// When to end, beside the program's own end.
#[derive(Debug, Clone)]
pub struct Until {
    /// After so long, ns.
    pub duration: Option<u64>,
    /// Once true.
    pub stop: Arc<AtomicBool>,
}

/// What was seen.
#[derive(Debug, Clone)]
pub struct Observation {
    /// In order of time.
    pub records: Vec<SwitchRecord>,
    /// Records that found no room.
    pub lost: u64,
    /// CLOCK_MONOTONIC, ns.
    pub begin: u64,
    /// ns.
    pub end: u64,
    /// How the program ended; `None` if it did not, or is none of ours.
    pub ended: Option<TaskEnd>,
    /// What disturbed the CPUs.
    pub noise: Noise,
    /// Names of threads that lived long enough to be asked.
    pub names: BTreeMap<i32, String>,
    /// What a reader should know beside it.
    pub problems: Vec<String>,
}

/// Records are taken this often. A ring holds 21,845 of them: a million switches a second.
const INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The most records that are kept: 400 MB.
const MOST_RECORDS: usize = 1 << 24;

/// Watches a program until it ends, or as `until` says; `progress` gets the time since the
/// beginning, ns, and the number of records. Call it from an ordinary thread that outlives the
/// call.
///
/// # Errors
/// The program cannot be started or is not there; the machine does not permit to record switches.
pub fn observe(
    target: &Target,
    until: &Until,
    progress: &mut dyn FnMut(u64, usize),
) -> Result<Observation, Diagnostic> {
    match target {
        Target::Command(argv, output) => command(argv, *output, until, progress),
        Target::Pid(pid) => running(*pid, until, progress),
    }
}

fn command(
    argv: &[String],
    output: Output,
    until: &Until,
    progress: &mut dyn FnMut(u64, usize),
) -> Result<Observation, Diagnostic> {
    let mut commands = Commands::new(&[])?;
    let spec = CommandSpec { streams: output.streams(true), ..CommandSpec::new(argv) };
    let name = argv.first().map_or("", String::as_str);
    let spawned = commands.start(spec, name)?;
    let recorder = SwitchRecorder::start(&[spawned.id().pid]).map_err(|e| refused(&e))?;
    let fd = spawned.pidfd().try_clone_to_owned().map_err(|e| refused(&e))?;
    let mut watch = Watch::new(recorder);
    commands.release();
    let mut warnings = Vec::new();
    watch.until_end(fd.as_fd(), until, progress, &mut || {
        warnings.extend(commands.replace_dead_guardian());
    });
    let status = commands.try_wait(0).ok().flatten();
    let mut observation = watch.end();
    observation.ended = status.map(TaskEnd::from);
    observation.problems = warnings;
    observation.problems.extend(commands.end());
    Ok(observation)
}

fn running(
    pid: i32,
    until: &Until,
    progress: &mut dyn FnMut(u64, usize),
) -> Result<Observation, Diagnostic> {
    let gone = || {
        let cause = format!("there is no process {pid}");
        Diagnostic::usage(cause, "give the number of a running process (pgrep -n NAME)")
    };
    let fd = pidfd::open(pid).map_err(|_| gone())?;
    Identity::of(pid).ok_or_else(gone)?;
    if is_kernel_thread(pid) {
        let cause = format!("process {pid} is a thread of the kernel");
        return Err(Diagnostic::usage(cause, "give the number of a program"));
    }
    let processes = [pid].into_iter().chain(descendants(&[pid]));
    let threads: Vec<i32> = processes.flat_map(threads_of).collect();
    let recorder = SwitchRecorder::start(&threads).map_err(|e| refused(&e))?;
    let mut watch = Watch::new(recorder);
    watch.until_end(fd.as_fd(), until, progress, &mut || {});
    Ok(watch.end())
}

/// Why switches cannot be recorded, and what helps.
fn refused(error: &io::Error) -> Diagnostic {
    let help = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
            match paranoid.ok().and_then(|text| text.trim().parse::<i32>().ok()) {
                Some(level) if level > 2 => format!(
                    "run it as root, or permit it: sysctl kernel.perf_event_paranoid=2 (it is \
                    {level})"
                ),
                _ => "run it as root; in a container, permit perf_event_open in its seccomp \
                    profile, \
                      or add CAP_PERFMON"
                    .to_owned(),
            }
        }
        Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => {
            "use a kernel with CONFIG_PERF_EVENTS=y".to_owned()
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "raise the limit on open files (ulimit -n): each thread needs one for each CPU"
                .to_owned()
        }
        Some(libc::ESRCH) => "give a program that still runs".to_owned(),
        _ => "report it with the output of punctual doctor".to_owned(),
    };
    let error = io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO));
    Diagnostic::refused("the program's context switches cannot be recorded", error, help)
}

struct Watch {
    recorder: SwitchRecorder,
    records: Vec<SwitchRecord>,
    lost: u64,
    begin: u64,
    before: Vec<(u32, NoiseReading)>,
    names: BTreeMap<i32, String>,
    full: bool,
}

impl Watch {
    fn new(recorder: SwitchRecorder) -> Watch {
        let cpus: Vec<u32> =
            sched::affinity(0).map(|mask| sched::cpus(&mask).collect()).unwrap_or_default();
        let read = |cpu: u32| (cpu, NoiseReading::of(cpu));
        Watch {
            recorder,
            records: Vec::new(),
            lost: 0,
            begin: monotonic_ns(),
            before: cpus.into_iter().map(read).collect(),
            names: BTreeMap::new(),
            full: false,
        }
    }

    fn drain(&mut self) {
        let (records, names) = (&mut self.records, &mut self.names);
        self.lost += self.recorder.drain(&mut |record: SwitchRecord| {
            names.entry(record.tid).or_insert_with(|| {
                let comm = std::fs::read_to_string(format!("/proc/{}/comm", record.tid));
                comm.unwrap_or_default().trim().to_owned()
            });
            if records.len() < MOST_RECORDS {
                records.push(record);
            }
        });
        self.full |= self.records.len() == MOST_RECORDS;
    }

    /// Takes records until the end; calls `regularly` each time.
    fn until_end(
        &mut self,
        program: BorrowedFd<'_>,
        until: &Until,
        progress: &mut dyn FnMut(u64, usize),
        regularly: &mut dyn FnMut(),
    ) {
        loop {
            let mut fds = [PollFd::new(&program, PollFlags::IN)];
            // A signal interrupts it; the flag is read below.
            let ended = poll(&mut fds, Some(&INTERVAL)).is_ok_and(|ready| ready > 0);
            self.drain();
            regularly();
            let elapsed = monotonic_ns() - self.begin;
            progress(elapsed, self.records.len());
            let over = until.duration.is_some_and(|duration| elapsed >= duration);
            if ended || over || self.full || until.stop.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    fn end(mut self) -> Observation {
        let end = monotonic_ns();
        self.drain();
        let noise = |(cpu, before): &(u32, NoiseReading)| before.until(&NoiseReading::of(*cpu));
        let noise = self.before.iter().map(noise).reduce(|a, b| a.join(&b)).unwrap_or_default();
        self.records.retain(|record| record.time <= end);
        self.records.sort_by_key(|record| record.time);
        Observation {
            records: self.records,
            lost: self.lost,
            begin: self.begin,
            end,
            ended: None,
            noise,
            names: self.names,
            problems: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_cause_and_what_helps() {
        for (errno, help) in [
            (libc::EACCES, "run it as root"),
            (libc::EPERM, "run it as root"),
            (libc::ENOSYS, "CONFIG_PERF_EVENTS"),
            (libc::EMFILE, "ulimit -n"),
            (libc::ESRCH, "still runs"),
            (libc::EINVAL, "report it"),
        ] {
            let error = refused(&io::Error::from_raw_os_error(errno));
            assert_eq!((error.exit_code(), error.errno), (4, Some(errno)));
            assert!(error.help.contains(help), "{errno}: {}", error.help);
            assert!(error.cause.contains("context switches cannot be recorded"), "{}", error.cause);
        }
    }

    #[test]
    fn a_process_that_is_not_there_or_a_kernel_thread_is_refused() {
        let until = Until { duration: None, stop: Arc::default() };
        let refusal = |pid| observe(&Target::Pid(pid), &until, &mut |_, _| {}).unwrap_err();
        assert!(refusal(i32::MAX).cause.contains("there is no process"));
        // Where processes are hidden, or in a container, there is no kernel thread.
        if is_kernel_thread(2) {
            assert!(refusal(2).cause.contains("thread of the kernel"));
        }
    }
}
