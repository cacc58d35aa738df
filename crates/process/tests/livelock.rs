//! What is killed loses its real-time priority, for it may need others to run before it can die.
//! Here a killed command spins inside the kernel at its level until a thread below it continues:
//!
//! ```text
//!   CPU 1: FIFO 61  the command: reaps `many`, and so removes its entries of /proc
//!          FIFO 60  our own thread: closes files in /proc/many/task, which frees these entries
//!   CPU 0: ordinary `many`: had hundreds of threads, ends while the files are being closed
//! ```
//!
//! Where the command wakes while our thread is in the middle of freeing an entry, it retries until
//! no thread frees any, and our thread never runs again. Neither SIGKILL nor the freezer can stop
//! it.

mod common;
use common::*;
use punctual_process::*;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

const ROLE: &str = "PUNCTUAL_TEST_ROLE";
const STAGE: &str = "PUNCTUAL_TEST_STAGE";
/// Each is an entry that our thread frees: some 3 us of work.
const THREADS: u32 = 300;
/// Rounds until it is provoked; one in a few is.
const ROUNDS: u32 = 200;

/// Where a round stands; a page that all processes share.
struct Stage(*const AtomicU32);

const THREADS_LIVE: u32 = 1;
const END_THREADS: u32 = 2;
const THREADS_GONE: u32 = 3;
const END: u32 = 4;

impl Stage {
    fn open(file: &File) -> Stage {
        // SAFETY: maps a page of a file of ours; the result is checked.
        let page = unsafe {
            let both = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), 4096, both, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(page, libc::MAP_FAILED);
        Stage(page.cast())
    }

    /// Of a process that was started for it.
    fn given() -> Stage {
        let path = std::env::var(STAGE).unwrap();
        Stage::open(&File::options().read(true).write(true).open(path).unwrap())
    }

    fn word(&self, n: usize) -> &AtomicU32 {
        // SAFETY: within the page.
        unsafe { &*self.0.add(n) }
    }

    fn step(&self) -> &AtomicU32 {
        self.word(0)
    }

    fn pid(&self) -> &AtomicU32 {
        self.word(1)
    }

    /// Waits for a step; ten seconds at most, then the waiting process ends.
    fn await_step(&self, step: u32) -> bool {
        let end = Instant::now() + Duration::from_secs(10);
        while self.step().load(SeqCst) < step {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        true
    }
}

fn schedule(cpu: usize, policy: i32, sched_priority: i32) {
    // SAFETY: scheduling calls on the calling thread; the values live here.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set), 0);
        assert_eq!(libc::sched_setscheduler(0, policy, &libc::sched_param { sched_priority }), 0);
    }
}

/// What the command and `many` do; nothing when this is an ordinary run of the tests.
#[test]
fn the_others() {
    match std::env::var(ROLE).as_deref() {
        Ok("reaper") => {
            // It stays at the level and on the CPU that its owner gave it.
            let me = std::env::current_exe().unwrap();
            let many = Command::new(me)
                .args(["--exact", "the_others", "--test-threads=1"])
                .env(ROLE, "many")
                .status();
            assert!(many.is_ok());
        }
        Ok("many") => be_many(),
        _ => {}
    }
}

fn be_many() {
    schedule(0, libc::SCHED_OTHER, 0);
    let stage = Stage::given();
    let door = Arc::new(RwLock::new(()));
    let shut = door.write().unwrap();
    let through = || {
        let door = door.clone();
        let thread = std::thread::Builder::new().stack_size(32 << 10);
        thread.spawn(move || drop(door.read())).expect("so many threads")
    };
    let threads: Vec<_> = (0..THREADS).map(|_| through()).collect();
    stage.pid().store(std::process::id(), SeqCst);
    stage.step().store(THREADS_LIVE, SeqCst);
    stage.await_step(END_THREADS);
    drop(shut);
    threads.into_iter().for_each(|t| drop(t.join()));
    stage.step().store(THREADS_GONE, SeqCst);
    let end = Instant::now() + Duration::from_secs(10);
    while stage.step().load(SeqCst) < END && Instant::now() < end {
        std::hint::spin_loop();
    }
    let at = Instant::now() + Duration::from_micros(random(500));
    while Instant::now() < at {}
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) };
}

/// Opens what is to be freed, and closes it below the command on request.
fn closer(pid: u32, go: Arc<AtomicBool>, done: Arc<AtomicBool>, ready: Arc<AtomicBool>) {
    let open = |t: &i32| File::open(format!("/proc/{pid}/task/{t}/stat")).ok();
    let files: Vec<File> =
        threads_of(pid as i32).iter().filter(|t| **t != pid as i32).filter_map(open).collect();
    schedule(1, libc::SCHED_FIFO, 60);
    ready.store(true, SeqCst);
    while !go.load(SeqCst) {
        std::thread::sleep(Duration::from_micros(100));
    }
    drop(files);
    done.store(true, SeqCst);
}

/// What a failed test leaves does not keep a CPU.
struct Unwind(i32);

impl Drop for Unwind {
    fn drop(&mut self) {
        for pid in descendants(&[self.0]).into_iter().chain([self.0]) {
            for tid in threads_of(pid) {
                // SAFETY: reads one value that lives here; a thread that is gone is an error.
                unsafe {
                    libc::sched_setscheduler(
                        tid,
                        libc::SCHED_OTHER,
                        &libc::sched_param { sched_priority: 0 },
                    )
                };
            }
        }
    }
}

/// One round; `None` when the command did not meet our thread in the middle of something.
fn provoked(give_back: impl FnOnce(Guardian, &Journal)) -> Option<()> {
    let path = state_dir().join("stage");
    let file =
        File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    file.set_len(4096).unwrap();
    let stage = Stage::open(&file);
    let journal = Journal::create().unwrap();
    let guardian = Guardian::start(&journal, &[]).unwrap();
    let base = CgroupBase::create(&journal).unwrap();
    let park = Park::for_command(&journal, Some(&base), "reaper").unwrap();
    let me = std::env::current_exe().unwrap().into_os_string();
    let words = [me, "--exact".into(), "the_others".into(), "--test-threads=1".into()];
    let mut spec = CommandSpec::new(words).on(1);
    spec.level = 61;
    spec.env = vec![(ROLE.into(), "reaper".into()), (STAGE.into(), path.into_os_string())];
    spec.streams = [Stream::Null, Stream::Null, Stream::Null];
    let command = spawn(&journal, spec, &park).unwrap();
    let _unwind = Unwind(command.id().pid);
    command.release(&park).unwrap();
    assert!(stage.await_step(THREADS_LIVE), "the threads live");

    let (go, done, ready) = <(Arc<AtomicBool>, Arc<AtomicBool>, Arc<AtomicBool>)>::default();
    let pid = stage.pid().load(SeqCst);
    let thread = {
        let (go, done, ready) = (go.clone(), done.clone(), ready.clone());
        std::thread::spawn(move || closer(pid, go, done, ready))
    };
    eventually("the files are open", || ready.load(SeqCst));
    stage.step().store(END_THREADS, SeqCst);
    assert!(stage.await_step(THREADS_GONE), "the threads are gone");
    go.store(true, SeqCst);
    stage.step().store(END, SeqCst);
    let end = Instant::now() + Duration::from_millis(100);
    while !done.load(SeqCst) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    let spins = !done.load(SeqCst) && !poll_in(&command.pidfd(), 0);
    give_back(guardian, &journal);
    let own = std::process::id() as i32;
    eventually("our thread continues", || done.load(SeqCst));
    eventually("the command is gone", || groups_of(own).is_empty() && journals_of(own).is_empty());
    thread.join().unwrap();
    spins.then_some(())
}

fn spinner_is_ended(give_back: impl Fn(Guardian, &Journal)) {
    let _alone = alone();
    if !permitted(true) {
        return;
    }
    if let Err(e) = check_privileges(&[0, 1]) {
        return punctual_test_support::ignored(format_args!("it takes two CPUs: {e}"));
    }
    match (1..=ROUNDS).find(|_| provoked(&give_back).is_some()) {
        Some(round) => println!("provoked in round {round}"),
        // Kernels differ in where a thread can be preempted.
        None => println!("not provoked in {ROUNDS} rounds; all of them were given back"),
    }
}

#[test]
fn a_killed_command_that_spins_in_the_kernel_above_us_is_ended_by_restore() {
    spinner_is_ended(|guardian, journal| {
        let report = restore(journal);
        assert!(report.is_complete(), "{report}");
        guardian.dismiss();
    });
}

#[test]
fn a_killed_command_that_spins_in_the_kernel_above_us_is_ended_by_the_guardian() {
    // Dropped and not dismissed it acts.
    spinner_is_ended(|guardian, _| drop(guardian));
}

/// The thread that traces a command, so that it stops in its exit and stays there until `go`.
fn hold_in_exit(pid: i32, go: Arc<AtomicBool>, ready: Arc<AtomicBool>) {
    let options = libc::PTRACE_O_TRACEEXIT as usize as *mut libc::c_void;
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: a child of ours; no memory is passed.
    assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, none, options) }, 0);
    ready.store(true, SeqCst);
    while !go.load(SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: as above; by the thread that traces it.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, pid, none, none) };
}

#[test]
fn what_is_killed_and_cannot_die_is_in_the_ordinary_class_and_named() {
    let _alone = alone();
    if !permitted(true) {
        return;
    }
    for freezer in [true, false] {
        let journal = Journal::create().unwrap();
        let base = freezer.then(|| CgroupBase::create(&journal).unwrap());
        let park = Park::for_command(&journal, base.as_ref(), "sleep").unwrap();
        let mut spec = CommandSpec::new(["sleep", "50"]).on(1);
        spec.level = 61;
        let command = spawn(&journal, spec, &park).unwrap();
        let pid = command.id().pid;
        command.release(&park).unwrap();
        assert_eq!(attributes(pid).map(|a| (a.0, a.1)), Some((policy(freezer), 61)));
        let (go, ready) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let tracer = {
            let (go, ready) = (go.clone(), ready.clone());
            std::thread::spawn(move || hold_in_exit(pid, go, ready))
        };
        eventually("it is traced", || ready.load(SeqCst));
        let report = restore(&journal);
        let held = attributes(pid).map(|a| (a.0, a.1));
        let state = state_of(pid);
        go.store(true, SeqCst);
        tracer.join().unwrap();
        assert_eq!((held, state), (Some((libc::SCHED_OTHER, 0)), Some('t')), "{report}");
        assert!(report.problems.iter().any(|p| p.contains(&format!("process {pid} "))), "{report}");
        assert!(restore(&journal).is_complete(), "and a second time it is gone");
        assert!(journals_of(std::process::id() as i32).is_empty());
    }
}
