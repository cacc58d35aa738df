//! Roles of programs of RTAI whose hard tasks are the service's (see library_roles.rs).

use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

// Has its functions linked.
use punctual_rtai as _;
use punctual_service::ServiceClient;
use punctual_sys::clock::{monotonic_ns, thread_cpu_ns};
use punctual_sys::sched::{pin, policy, thread_id};
use punctual_test_support::{execute_briefly, judge_timing};

use super::LIFE;

extern "C" {
    fn rt_task_init(name: c_ulong, priority: c_int, stack: c_int, message: c_int) -> *mut c_void;
    fn rt_thread_delete(task: *mut c_void) -> c_int;
    fn rt_get_time() -> i64;
    fn rt_make_hard_real_time();
    fn rt_make_soft_real_time();
    fn rt_is_hard_real_time(task: *mut c_void) -> c_int;
    fn rt_task_make_periodic(task: *mut c_void, start: i64, period: i64) -> c_int;
    fn rt_task_make_periodic_budget(
        task: *mut c_void,
        start: i64,
        period: i64,
        budget: i64,
    ) -> c_int;
    fn rt_task_wait_period() -> c_int;
    fn rt_task_next_period() -> i64;
    fn rt_typed_sem_init(name: c_ulong, value: c_int, kind: c_int) -> *mut c_void;
    fn rt_sem_delete(sem: *mut c_void) -> c_int;
    fn rt_sem_signal(sem: *mut c_void) -> c_int;
    fn rt_sem_wait(sem: *mut c_void) -> c_int;
    fn rt_rpc(task: *mut c_void, word: c_ulong, result: *mut c_long) -> *mut c_void;
    fn rt_receive(task: *mut c_void, word: *mut c_long) -> *mut c_void;
    fn rt_return(task: *mut c_void, result: c_ulong) -> *mut c_void;
}

const MS: i64 = 1_000_000;
const OVERRUN: c_int = 0x3FFF_FF01;
const CNT_SEM: c_int = 2;

/// Objects of this program's own, and a place for its hard tasks.
fn arrange(cpu: u32) -> tempfile::TempDir {
    let objects = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
    std::env::set_var("PUNCTUAL_SHM_DIR", objects.path().join("rtai"));
    std::env::set_var("PUNCTUAL_RTAI_HOST", "service");
    std::env::set_var("PUNCTUAL_RTAI_CPU", cpu.to_string());
    objects
}

/// Calls `f` until it holds: another dispatcher may have the CPU for a while.
fn until(mut f: impl FnMut() -> bool) {
    let end = Instant::now() + LIFE / 2;
    while !f() {
        assert!(Instant::now() < end, "the service does not schedule the task");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The service has something of this program; inside the kernel its thread is of no other class.
fn is_reserved() -> bool {
    let mut client = ServiceClient::require(&punctual_service::socket()).expect("it serves");
    let reservations = client.status().expect("it serves").reservations;
    reservations.iter().any(|r| r.pid == std::process::id() as i32)
}

/// The thread's task, which becomes hard.
fn hard_task(name: c_ulong) -> *mut c_void {
    // SAFETY: calls without memory of the caller.
    unsafe {
        let task = rt_task_init(name, 1, 0, 0);
        assert!(!task.is_null());
        until(|| {
            rt_make_hard_real_time();
            rt_is_hard_real_time(ptr::null_mut()) != 0
        });
        task
    }
}

/// Executes for so many ns of the thread's own CPU time.
fn execute(ns: i64) {
    let (end, give_up) = (thread_cpu_ns() + ns as u64, Instant::now() + LIFE / 2);
    while thread_cpu_ns() < end && Instant::now() < give_up {
        execute_briefly();
    }
}

/// Calls `f` beside an ordinary thread that always executes on the CPU: there is no idle time, in
/// which the service on the user host would let a task continue whose budget is used up.
fn without_idle_time<T>(cpu: u32, f: impl FnOnce() -> T) -> T {
    struct SetsAtEnd<'a>(&'a AtomicBool);
    impl Drop for SetsAtEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(0, cpu).expect("it is permitted");
            let end = Instant::now() + LIFE;
            while !is_over.load(Ordering::Relaxed) && Instant::now() < end {
                execute_briefly();
            }
        });
        let _at_end = SetsAtEnd(&is_over);
        f()
    })
}

/// RTAI with budgets (Perng, Liu and Kuo), Fig. 2(a): W = 2, P = 5, execution 3, 1, 1 units of
/// 10 ms, each a little less, as in liblxrt's own test. The unit that runs over comes in period 1,
/// and the wait that was due in period 0 returns there at once.
pub fn runs_over_a_budget(cpu: u32) {
    let _objects = arrange(cpu);
    without_idle_time(cpu, run_over_a_budget);
}

fn run_over_a_budget() {
    let (period, budget) = (50 * MS, 20 * MS);
    // SAFETY: calls without memory of the caller, in the thread of the task.
    let waits = unsafe {
        let task = rt_task_init(12, 1, 0, 0);
        assert!(!task.is_null());
        until(|| {
            let start = rt_get_time() + 60 * MS;
            assert_eq!(rt_task_make_periodic_budget(task, start, period, budget), 0);
            is_reserved()
        });
        // From a release on: the question has used up some of the budget.
        let end = Instant::now() + LIFE / 2;
        while rt_task_wait_period() == OVERRUN {
            assert!(Instant::now() < end, "each wait is late");
        }
        let waits = [29, 9, 9].map(|time| {
            execute(time * MS);
            let wait = rt_task_wait_period();
            (wait, monotonic_ns() as i64)
        });
        assert_eq!(rt_thread_delete(task), 0);
        waits
    };
    println!("waits: {waits:x?}");
    assert_eq!(waits[0].0, OVERRUN, "the wait of a job of more than a budget is late");
    judge_timing(|| {
        assert_eq!(waits.map(|(wait, _)| wait), [OVERRUN, 0, 0]);
        // The service may begin later than it was asked to. The unit that runs over has its budget
        // with period 1; then the waits of periods 1 and 2 return with the next one.
        let begin = waits[2].1 - 3 * period;
        for (wait, returned) in waits.into_iter().zip([59 * MS, 100 * MS, 150 * MS]) {
            assert!((wait.1 - begin - returned).abs() < MS, "{waits:?}");
        }
    });
}

/// A hard task without a budget has its periods.
pub fn has_periods(cpu: u32) {
    let _objects = arrange(cpu);
    let task = hard_task(13);
    // SAFETY: as above.
    unsafe {
        assert_eq!(rt_task_make_periodic(task, rt_get_time() + 20 * MS, 10 * MS), 0);
        let mut late = 0;
        for _ in 0..20 {
            let due = rt_task_next_period();
            let wait = rt_task_wait_period();
            assert!(wait == 0 || wait == OVERRUN, "{wait:x}");
            assert!(rt_get_time() >= due);
            late += i32::from(wait == OVERRUN);
        }
        judge_timing(|| assert_eq!(late, 0));
        rt_make_soft_real_time();
        assert_eq!(policy(thread_id()), Some(libc::SCHED_OTHER));
        assert_eq!(rt_thread_delete(task), 0);
    }
}

/// Two hard tasks of one CPU call and signal each other.
pub fn talk(cpu: u32) {
    const CALLS: c_ulong = 50;
    let _objects = arrange(cpu);
    // SAFETY: as above; `word` and `result` are there during the calls.
    unsafe {
        let answered = rt_typed_sem_init(20, 0, CNT_SEM) as usize;
        assert_ne!(answered, 0);
        let (sender, receiver) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            let task = hard_task(14);
            sender.send(task as usize).expect("it is awaited");
            for n in 0..CALLS {
                let mut word = 0;
                let caller = rt_receive(ptr::null_mut(), &mut word);
                assert_eq!(word as c_ulong, n);
                rt_return(caller, n + 1);
                rt_sem_signal(answered as *mut c_void);
            }
            assert_eq!(rt_thread_delete(task), 0);
        });
        let task = hard_task(15);
        let server = receiver.recv_timeout(LIFE / 2).expect("it begins");
        for n in 0..CALLS {
            let mut result = 0;
            rt_rpc(server as *mut c_void, n, &mut result);
            assert_eq!(result as c_ulong, n + 1);
            rt_sem_wait(answered as *mut c_void);
        }
        other.join().expect("it does not panic");
        assert_eq!(rt_sem_delete(answered as *mut c_void), 0);
        assert_eq!(rt_thread_delete(task), 0);
    }
}
