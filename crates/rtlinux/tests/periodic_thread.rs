//! A thread with periods beside a less important one that executes for several of them at a time.
//! Where the clock is counted, its releases are judged, and what it executed by the dispatcher's
//! trace. The thread sleeps between its periods, so the trace does not have each of them.

use std::ffi::{c_int, c_uint, c_void};
use std::fs::File;
use std::io::BufReader;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use punctual_rtlinux as _;
use punctual_test_support::process::{has_run, ignored_test, MISSING};
use punctual_test_support::{comes_true, execute_briefly, judge_timing, LIVENESS};
use punctual_timeline::{Timeline, What};

/// `rtl_pthread_attr_t`: room for one.
#[repr(C, align(16))]
struct Attr([u8; 128]);

extern "C" {
    fn rtl_pthread_attr_init(attr: *mut Attr) -> c_int;
    fn rtl_pthread_attr_setschedparam(attr: *mut Attr, parameters: *const c_int) -> c_int;
    fn rtl_pthread_create(
        thread: *mut libc::pthread_t,
        attr: *const Attr,
        start: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    fn rtl_pthread_join(thread: libc::pthread_t, value: *mut *mut c_void) -> c_int;
    fn pthread_make_periodic_np(thread: libc::pthread_t, start: i64, period: i64) -> c_int;
    fn pthread_wait_np() -> c_int;
    fn gethrtime() -> i64;
    fn rtf_create(fifo: c_uint, size: c_int) -> c_int;
    fn rtf_put(fifo: c_uint, from: *const c_void, count: c_int) -> c_int;
    fn rtf_get(fifo: c_uint, to: *mut c_void, count: c_int) -> c_int;
}

const US: i64 = 1000;
const PERIOD: i64 = 2000 * US;
const PERIODS: usize = 100;
/// What a job executes.
const WORK: i64 = 200 * US;
/// The same of the less important thread. Both together are less than the group's budget in any 10
/// ms: when that is used up, none of the group executes.
const LONG_WORK: i64 = 6000 * US;
const LONG_PERIOD: i64 = 10_000 * US;
/// Of the group, percent.
const SHARE: &str = "90";
/// From the release to the first instruction, in a guest with a counted clock.
const LATEST: i64 = 100 * US;
const FIFO: c_uint = 4;
/// Names the file for the trace, in the process that runs the scenario.
const TRACE: &str = "PUNCTUAL_RTLINUX_TRACE";

/// The less important thread is a task.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
static IS_OVER: AtomicBool = AtomicBool::new(false);

fn is_task() -> bool {
    // SAFETY: no memory.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO
}

fn begin(priority: c_int, start: extern "C" fn(*mut c_void) -> *mut c_void) -> libc::pthread_t {
    let mut attr = Attr([0; 128]);
    let mut thread = 0;
    // SAFETY: calls of RT-Linux, with what they take.
    unsafe {
        assert_eq!(rtl_pthread_attr_init(&mut attr), 0);
        assert_eq!(rtl_pthread_attr_setschedparam(&mut attr, &priority), 0);
        assert_eq!(rtl_pthread_create(&mut thread, &attr, start, std::ptr::null_mut()), 0);
    }
    thread
}

fn join(thread: libc::pthread_t) -> bool {
    let mut value = std::ptr::null_mut();
    // SAFETY: a thread of `begin`.
    assert_eq!(unsafe { rtl_pthread_join(thread, &mut value) }, 0);
    !value.is_null()
}

fn value(is_true: bool) -> *mut c_void {
    usize::from(is_true) as *mut c_void
}

extern "C" fn looks(_: *mut c_void) -> *mut c_void {
    value(is_task())
}

/// Execution time of this thread, ns.
fn executed() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Executes for several periods of the other thread at a time.
extern "C" fn executes_for_long(_: *mut c_void) -> *mut c_void {
    let give_up = Instant::now() + LIVENESS;
    HAS_BEGUN.store(true, Ordering::Relaxed);
    // SAFETY: calls of RT-Linux.
    unsafe {
        let start = gethrtime() + LONG_PERIOD;
        assert_eq!(pthread_make_periodic_np(libc::pthread_self(), start, LONG_PERIOD), 0);
        while !IS_OVER.load(Ordering::Relaxed) && Instant::now() < give_up {
            assert_eq!(pthread_wait_np(), 0);
            let before = executed();
            while executed() < before + LONG_WORK {
                execute_briefly();
            }
        }
    }
    value(true)
}

/// Puts the time of each release, and when it executed, into the FIFO.
extern "C" fn has_periods(_: *mut c_void) -> *mut c_void {
    // SAFETY: calls of RT-Linux.
    unsafe {
        let start = gethrtime() + 10 * PERIOD;
        assert_eq!(pthread_make_periodic_np(libc::pthread_self(), start, PERIOD), 0);
        let mut release = start;
        for _ in 0..PERIODS {
            assert_eq!(pthread_wait_np(), 0);
            let now = gethrtime();
            // Releases that went by while the machine had the CPU became one.
            release += (now - release).max(0) / PERIOD * PERIOD;
            let sample = [release, now];
            let size = size_of_val(&sample) as c_int;
            assert_eq!(rtf_put(FIFO, sample.as_ptr().cast(), size), size);
            while gethrtime() < now + WORK {
                execute_briefly();
            }
            release += PERIOD;
        }
    }
    value(true)
}

/// The scenario in a process of its own, whose trace is complete when it has ended; else nothing.
#[test]
#[ignore = "it is no test by itself"]
fn scenario() {
    if std::env::var_os(TRACE).is_none() {
        return;
    }
    // Another dispatcher may have the CPU for a while.
    let until = Instant::now() + LIVENESS;
    while !join(begin(1, looks)) {
        // SAFETY: no arguments.
        if Instant::now() > until || unsafe { libc::geteuid() } != 0 {
            std::process::exit(MISSING);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut samples = vec![[0i64; 2]; PERIODS];
    let size = size_of_val(&samples[..]) as c_int;
    // SAFETY: calls of RT-Linux, with what they take.
    unsafe { assert_eq!(rtf_create(FIFO, size), 0) };
    let background = begin(1, executes_for_long);
    assert!(comes_true(|| HAS_BEGUN.load(Ordering::Relaxed)));
    assert!(join(begin(2, has_periods)));
    IS_OVER.store(true, Ordering::Relaxed);
    assert!(join(background));
    // SAFETY: as above.
    unsafe { assert_eq!(rtf_get(FIFO, samples.as_mut_ptr().cast(), size), size) };
    let latest = samples.iter().map(|[release, now]| now - release).max();
    println!("latest: {latest:?} ns");
    assert!(samples.iter().all(|[release, now]| now >= release), "{samples:?}");
    judge_timing(|| {
        assert!(latest < Some(LATEST), "{samples:?}");
        let is_next = |pair: &[[i64; 2]]| pair[1][0] - pair[0][0] == PERIOD;
        assert!(samples.windows(2).all(is_next), "no release is lost: {samples:?}");
    });
}

#[test]
fn a_thread_has_its_periods_beside_a_less_important_one_that_executes_for_long() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
    let trace = folder.path().join("trace");
    let mut scenario = ignored_test("scenario");
    scenario.env(TRACE, &trace).env("PUNCTUAL_RTLINUX_HOST", "user");
    scenario.env("PUNCTUAL_RTLINUX_SHARE", SHARE);
    scenario.env("PUNCTUAL_SHM_DIR", folder.path().join("objects"));
    if !has_run(&mut scenario) {
        return;
    }
    let file = BufReader::new(File::open(&trace).expect("the trace was written"));
    let timeline = Timeline::new(file).expect("it is a trace");
    // By the places of tasks, in the order in which they came: the last two are the scenario's.
    let mut executed: Vec<u64> = Vec::new();
    for moment in timeline {
        let moment = moment.expect("it is whole");
        let What::Executed { task, from, .. } = moment.what else { continue };
        let place = task as usize;
        executed.resize(executed.len().max(place + 1), 0);
        executed[place] += moment.at - from;
    }
    println!("executed: {executed:?}");
    let [.., background, periodic] = executed[..] else { panic!("{executed:?}") };
    let work = (PERIODS as i64 * WORK) as u64;
    // Whatever the machine does, it has executed; so has the other one, in what was left.
    assert!(periodic > 0 && background > 0);
    judge_timing(|| {
        assert!((work * 9 / 10..work * 12 / 10).contains(&periodic), "{periodic} ns of {work}");
    });
}
