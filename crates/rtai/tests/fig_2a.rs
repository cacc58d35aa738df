//! RTAI with budgets (Perng, Liu and Kuo), Fig. 2(a), by RTAI's own calls: W = 2, P = 5, execution
//! 3, 1, 1 units of 10 ms, each a little less, because 3 + 1 units are exactly two budgets. One
//! unit runs over into period 1; the wait that was due in period 0 comes in period 1, and is
//! ignored.

use std::ffi::{c_int, c_ulong, c_void};
use std::fs::File;
use std::io::BufReader;
use std::time::{Duration, Instant};

use punctual_rtai as _;
use punctual_test_support::process::{has_run, ignored_test, MISSING};
use punctual_test_support::{execute_briefly, judge_timing, LIVENESS};
use punctual_timeline::{Timeline, What};
use punctual_trace::JobEnd;

extern "C" {
    fn rt_task_init(name: c_ulong, priority: c_int, stack: c_int, message: c_int) -> *mut c_void;
    fn rt_get_time() -> i64;
    fn rt_task_make_periodic_budget(
        task: *mut c_void,
        start: i64,
        period: i64,
        budget: i64,
    ) -> c_int;
    fn rt_task_wait_period() -> c_int;
    fn rt_thread_delete(task: *mut c_void) -> c_int;
}

const MS: i64 = 1_000_000;
const PERIOD: i64 = 50 * MS;
const BUDGET: i64 = 20 * MS;
const OVERRUN: c_int = 0x3FFF_FF01;
/// Names the file for the trace, in the process that runs the scenario.
const TRACE: &str = "PUNCTUAL_RTAI_TRACE";

/// Executes for so many ns of the thread's own CPU time.
fn execute(ns: i64) {
    let executed = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: valid for the call.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        time.tv_sec * 1000 * MS + time.tv_nsec
    };
    let (end, give_up) = (executed() + ns, Instant::now() + LIVENESS);
    while executed() < end && Instant::now() < give_up {
        execute_briefly();
    }
}

/// The scenario in a process of its own, whose trace is complete when it has ended; else nothing.
#[test]
#[ignore = "it is no test by itself"]
fn scenario() {
    if std::env::var_os(TRACE).is_none() {
        return;
    }
    // SAFETY: calls of RTAI, in the thread of the task.
    let waits: Vec<c_int> = unsafe {
        let task = rt_task_init(12, 1, 0, 0);
        assert!(!task.is_null());
        let policy = || libc::sched_getscheduler(0) & !0x4000_0000;
        let until = Instant::now() + LIVENESS;
        // Another dispatcher may have the CPU for a while.
        while policy() != libc::SCHED_FIFO {
            if Instant::now() > until || libc::geteuid() != 0 {
                std::process::exit(MISSING);
            }
            std::thread::sleep(Duration::from_millis(100));
            let start = rt_get_time() + 30 * MS;
            assert_eq!(rt_task_make_periodic_budget(task, start, PERIOD, BUDGET), 0);
        }
        let waits = [29, 9, 9].map(|time| {
            execute(time * MS);
            rt_task_wait_period()
        });
        rt_thread_delete(task);
        waits.to_vec()
    };
    // What a machine that takes the CPU for a period changes is judged in a guest.
    println!("waits: {waits:x?}");
    assert_eq!(waits[0], OVERRUN, "the wait of a job of more than a budget is late");
    judge_timing(|| assert_eq!(waits, [OVERRUN, 0, 0]));
}

/// What the trace has of the task, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Release of this number.
    Released(u64),
    /// The job of the release ended so.
    Ended(JobEnd),
    /// The task called `rt_task_wait_period`.
    Waited,
}

#[test]
fn the_delayed_wait_is_ignored_and_the_task_catches_up() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
    let trace = folder.path().join("trace");
    let mut scenario = ignored_test("scenario");
    scenario.env(TRACE, &trace).env("PUNCTUAL_RTAI_HOST", "user");
    scenario.env("PUNCTUAL_SHM_DIR", folder.path().join("objects"));
    if !has_run(&mut scenario) {
        return;
    }
    let file = BufReader::new(File::open(&trace).expect("the trace was written"));
    let mut periods = Vec::new();
    let mut steps = Vec::new();
    for moment in Timeline::new(file).expect("it is a trace") {
        match moment.expect("it is whole").what {
            What::Released { number, .. } => steps.push(Step::Released(number)),
            What::JobEnded { task: Some(_), end, .. } => steps.push(Step::Ended(end)),
            What::Done { .. } => steps.push(Step::Waited),
            What::Period(period) => periods.push(period),
            _ => {}
        }
    }
    println!("{steps:?}");
    // Before the first period there is a release with a wait of the library's own.
    let first = steps.iter().position(|step| *step == Step::Waited).expect("it waits");
    let rest = &steps[first + 1..];
    let begin = rest.iter().position(|s| matches!(s, Step::Released(_))).expect("a release");
    let rest = &rest[begin..];
    let Step::Released(number) = rest[0] else { unreachable!() };
    // Whatever the machine does, a budget is not enough, and the wait comes after a release.
    let Step::Ended(end) = rest[1] else { panic!("{rest:?}") };
    assert!(matches!(end, JobEnd::Exhausted | JobEnd::Expired), "{rest:?}");
    assert!(matches!(rest[2], Step::Released(_)), "{rest:?}");
    judge_timing(|| {
        let expected = [
            Step::Released(number),
            // W is used up: the task is suspended, and the third unit comes in period 1.
            Step::Ended(JobEnd::Exhausted),
            Step::Released(number + 1),
            // The wait of period 0 is ignored: the job of period 1 continues.
            Step::Waited,
            // That of period 1 is in time.
            Step::Waited,
            Step::Ended(JobEnd::Completed),
            Step::Released(number + 2),
            // Period 2 is as if nothing had happened.
            Step::Waited,
            Step::Ended(JobEnd::Completed),
        ];
        assert_eq!(&rest[..expected.len()], expected);
        let used = |n: u64| {
            let period = periods.iter().find(|p| p.number == number + n).expect("it is there");
            i64::try_from(period.received).expect("it is short")
        };
        for (n, executed) in [(0, BUDGET), (1, 18 * MS), (2, 9 * MS)] {
            assert!((used(n) - executed).abs() < MS, "period {n}: {} ns", used(n));
        }
    });
}
