//! Roles of this test binary (see adversarial.rs) of a program that has its tasks by the service,
//! with the library. Each ends the program with what it found wrong, or with 0.

use std::process::Command;
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

use ::punctual::{
    Barrier, Error, ErrorKind, Host, LockError, Mutex, Parameters, Policy, Punctual, Released,
    RunEvent, Running, Semaphore, Task, TaskEnd, WaitError,
};
use punctual_service::ServiceClient;
use punctual_sys::sched::{policy, thread_id};
use punctual_test_support::execute_briefly;

use super::LIFE;

#[path = "library_end_roles.rs"]
pub mod library_end_roles;
use library_end_roles::{ends, replaced};
#[path = "library_suspend_roles.rs"]
mod library_suspend_roles;
use library_suspend_roles::{suspends, suspends_for_long};
#[path = "rtai_roles.rs"]
mod rtai_roles;

const MS: Duration = Duration::from_millis(1);

/// Plays `role`, with the service at `socket` on `cpu`.
pub fn play(role: &str, socket: &str, cpu: u32) {
    std::env::set_var("PUNCTUAL_SOCKET", socket);
    let role: fn(u32) = match role {
        "threads" => threads,
        "further" => further_tasks,
        "programs" => programs,
        "refused" => refused,
        "locks" => locks,
        "spins" => spins,
        "suspends" => suspends,
        "suspends-for-long" => suspends_for_long,
        "too-much" => too_much,
        "ends" => ends,
        "replaced" => replaced,
        "auto" => auto,
        "alone" => auto_alone,
        "rtai-budget" => rtai_roles::runs_over_a_budget,
        "rtai-periods" => rtai_roles::has_periods,
        "rtai-talks" => rtai_roles::talk,
        _ => std::process::exit(99),
    };
    // Not on the thread of the initialization, which has no test harness to catch a panic.
    if std::thread::spawn(move || role(cpu)).join().is_err() {
        std::process::exit(101);
    }
}

/// Calls `f` until it succeeds: another Punctual on this machine, or the service's own dispatcher
/// that ends, may have the CPU for a while.
fn patiently<T>(mut f: impl FnMut() -> Result<T, Error>) -> T {
    let end = Instant::now() + LIFE / 2;
    loop {
        match f() {
            Ok(done) => return done,
            Err(e) if e.cause.contains("already has a dispatcher") && Instant::now() < end => {
                std::thread::sleep(100 * MS);
            }
            Err(e) => panic!("{e}"),
        }
    }
}

fn start(mut declare: impl FnMut() -> Punctual) -> Running {
    patiently(|| declare().admit().expect("it is in order").start())
}

fn by_service(cpu: u32) -> Punctual {
    Punctual::on_cpu(cpu).host(Host::Service)
}

/// What schedules the reservations of the service.
fn host_of_service() -> String {
    let mut client = ServiceClient::require(&punctual_service::socket()).expect("it serves");
    client.status().expect("it serves").host
}

/// A set by the service, with what is observed.
fn observed(set: Punctual) -> (Punctual, Receiver<RunEvent>) {
    let (events, stream) = channel();
    (set.observe(move |event| drop(events.send(event))), stream)
}

/// The first event of which this holds.
fn await_event(events: &Receiver<RunEvent>, is: impl Fn(&RunEvent) -> bool) -> RunEvent {
    let end = Instant::now() + LIFE / 2;
    loop {
        let event = events.recv_timeout(end.saturating_duration_since(Instant::now()));
        match event.expect("it comes") {
            event if is(&event) => return event,
            _ => {}
        }
    }
}

fn warning(event: &RunEvent, words: &str) -> bool {
    matches!(event, RunEvent::Warning(text) if text.contains(words))
}

/// Waits for releases until the run is over.
fn wait_until_over(task: &Task<'_>) -> Option<Released> {
    let mut last = None;
    while let Some(release) = task.wait_period() {
        last = Some(release);
    }
    assert!(task.is_over() && task.wait_period().is_none());
    last
}

fn is_ordinary() -> bool {
    let end = Instant::now() + LIFE / 2;
    while Instant::now() < end {
        if policy(thread_id()) == Some(libc::SCHED_OTHER) {
            return true;
        }
    }
    false
}

fn threads(cpu: u32) {
    let mut events = None;
    let mut handles = None;
    let running = start(|| {
        let (mut set, stream) = observed(by_service(cpu));
        events = Some(stream);
        let counts = set.add("counts").period(10 * MS).budget(2 * MS);
        let counts = counts.spawn(|task| {
            let releases: Vec<Released> = task.releases().take(50).collect();
            let (now, left) = (task.current(), task.remaining_budget());
            assert!(now.number >= releases[49].number && left <= 3 * MS, "{now:?} {left:?}");
            assert_eq!((task.release(), task.deadline()), (now.release, now.deadline));
            assert!(!task.is_over() && task.lost() == task.current().lost);
            releases
        });
        let panics = set.add("panics").period(20 * MS).budget(MS).spawn(|task| {
            let _ = task.wait_period();
            panic!("on purpose");
        });
        handles = Some((counts, panics));
        set
    });
    let (Some((counts, panics)), Some(events)) = (handles, events) else {
        panic!("it was declared")
    };
    let panics: Result<(), TaskEnd> = panics.join();
    assert_eq!(panics, Err(TaskEnd::Panicked("on purpose".to_owned())));
    let releases = counts.join().expect("it returns");
    for pair in releases.windows(2) {
        let after = pair[1].number - pair[0].number;
        assert_eq!(pair[1].release.since(pair[0].release), 10 * MS * after as u32, "{pair:?}");
        assert_eq!(pair[1].deadline.since(pair[1].release), 10 * MS);
    }
    // The observer gets the periods of each task in order.
    let mut next = 0;
    await_event(&events, |event| match event {
        RunEvent::Ended { task, .. } => &**task == "counts",
        _ => false,
    });
    let results = running.results().expect("it runs");
    assert!(results.tasks[0].periods > 0, "{results:?}");
    let outcome = running.stop().expect("it runs");
    assert!(outcome.problems.is_empty() && outcome.failure.is_none(), "{:?}", outcome.problems);
    assert_eq!(outcome.results.host.to_string(), "punctual (service)");
    for event in events.try_iter() {
        if let RunEvent::Period { task, period } = event {
            if &*task == "counts" {
                assert!(period.number >= next);
                next = period.number + 1;
            }
        }
    }
}

fn further_tasks(cpu: u32) {
    let running = start(|| by_service(cpu).task("first").period(20 * MS).budget(MS).spawn(drop_of));
    let draft = |name: &str| running.task(name).period(10 * MS).budget(MS);
    let twice = draft("first").spawn(|_| {}).expect_err("its name is taken, or it fits");
    assert!(twice.cause.contains("first"), "{twice}");
    // The calling thread.
    let before = policy(thread_id());
    let number = draft("entered").enter(|task| {
        assert_eq!(task.name(), "entered");
        let again = draft("again").attach().expect_err("it is a task already");
        assert_eq!(again.errno, Some(libc::EALREADY), "{again}");
        task.releases().take(5).last().map(|release| release.number)
    });
    assert!(number.expect("it is admitted") >= Some(4));
    assert_eq!(policy(thread_id()), before);
    let attached = draft("entered").attach().expect("the one of this name has ended");
    assert!(attached.task().wait_period().is_some());
    drop(attached);
    assert_eq!(policy(thread_id()), before);
    // Threads that borrow.
    let seen = std::sync::Mutex::new(0);
    running.scope(|scope| {
        let task = scope.task("scoped").period(10 * MS).budget(MS);
        let task = task.spawn_scoped(|task| {
            for _ in task.releases().take(3) {
                *seen.lock().expect("no panic") += 1;
            }
        });
        task.expect("it fits").join().expect("it returns");
        let unending = scope.task("unending").period(10 * MS).budget(MS);
        unending.spawn_scoped(drop_of).expect("it fits");
    });
    assert_eq!(seen.into_inner().ok(), Some(3));
    // Changes, and the end on request.
    let task = draft("changes").spawn(|task| wait_until_over(task).is_some()).expect("it fits");
    task.set_budget(2 * MS).expect("it fits");
    match (task.change(&Parameters::new().period(20 * MS)), host_of_service().as_str()) {
        (changed, "user") => changed.expect("it fits"),
        (changed, _) => {
            let refused = changed.expect_err("inside the kernel");
            assert!(refused.cause.contains("keeps its period"), "{refused}");
        }
    }
    let refused = task.change(&Parameters::new().priority(3)).expect_err("by edf");
    assert!(refused.cause.contains("without priorities"), "{refused}");
    assert!(task.jobs().expect_err("it has none").cause.contains("no jobs"));
    while task.results().expect("it runs").periods == 0 {
        std::thread::sleep(10 * MS);
    }
    task.stop().expect("it runs");
    assert_eq!(task.join(), Ok(true));
    drop(running.stop().expect("it runs"));
}

fn drop_of(task: &Task<'_>) {
    let _ = wait_until_over(task);
}

fn programs(cpu: u32) {
    let mut sleeper = Command::new("sleep").arg("60").spawn().expect("it starts");
    let pid = sleeper.id() as i32;
    let mut handles = None;
    let running = start(|| {
        let mut set = by_service(cpu);
        let command = set.add("command").period(20 * MS).budget(2 * MS);
        let command = command.command(["sh", "-c", "exit 7"]);
        let process = set.add("process").period(20 * MS).budget(MS).pid(pid);
        handles = Some((command, process));
        set
    });
    let Some((command, process)) = handles else { panic!("it was declared") };
    assert_eq!(command.join(), Ok(TaskEnd::Exited(7)));
    let further = running.task("command").period(20 * MS).budget(2 * MS);
    assert_eq!(further.command(["true"]).expect("it fits").join(), Ok(TaskEnd::Exited(0)));
    let further = running.task("killed").period(20 * MS).budget(2 * MS);
    let killed = further.command(["sleep", "60"]).expect("it fits");
    killed.stop().expect("it runs");
    assert_eq!(killed.join(), Ok(TaskEnd::Signalled(libc::SIGKILL)));
    let missing = running.task("none").period(20 * MS).budget(2 * MS).command(["/none"]);
    assert_eq!(missing.expect_err("it is not there").kind, ErrorKind::Command);
    process.stop().expect("it runs");
    assert_eq!(process.join(), Ok(TaskEnd::Stopped));
    // One thread of another process.
    let thread = running.task("thread").period(20 * MS).budget(MS).thread_of(pid, pid);
    let thread = thread.expect("it is the user's");
    drop(running.stop().expect("it runs"));
    assert_eq!(thread.join(), Ok(TaskEnd::Stopped));
    assert!(sleeper.try_wait().expect("it is a child").is_none(), "it continues");
    sleeper.kill().expect("it is a child");
    sleeper.wait().expect("it is a child");
}

fn refused(cpu: u32) {
    extern "C" fn handler(_: *mut libc::c_void) {}
    let task = |set: Punctual| set.task("task").period(10 * MS).budget(MS).spawn(|_| {});
    let set = || by_service(cpu);
    let group = ::punctual::SchedulingGroup::new("group", 10 * MS, MS);
    let with_handler = set().task("task").period(10 * MS).budget(MS);
    // SAFETY: it does nothing.
    let with_handler = unsafe { with_handler.overrun_handler(handler, std::ptr::null_mut()) };
    let long = "x".repeat(41);
    for (declared, words) in [
        (task(set().group(group)), "no scheduling groups"),
        (task(set().policy(Policy::RateMonotonic)), "schedules by edf"),
        (task(set().trace("/tmp/none")), "writes no traces"),
        (task(set().overload()), "admits no set that does not fit"),
        (with_handler.spawn(|_| {}), "calls no overrun handlers"),
        (set().task(long).period(10 * MS).budget(MS).spawn(|_| {}), "is longer than 40"),
        (task(set().policy(Policy::Jobs)), "only the user host and the kernel host take jobs"),
    ] {
        let refused = declared.admit().expect_err(words);
        assert!(refused.cause.contains(words), "{refused}");
    }
    // By the service, and so at the start: all or none, and none begins.
    let (began, begins) = channel();
    let two = |budget| {
        let began = began.clone();
        let set = set().task("first").period(20 * MS).budget(2 * MS);
        let set = set.spawn(move |task| {
            let _ = began.send(());
            drop_of(task);
        });
        set.task("second").period(20 * MS).budget(budget).spawn(drop_of)
    };
    let refusal = loop {
        let refused = two(5 * MS).admit().expect("it fits the CPU").start();
        let refused = refused.expect_err("it is more than the share");
        if !refused.cause.contains("already has a dispatcher") {
            break refused;
        }
    };
    assert!(refusal.cause.contains("may reserve 30"), "{refusal}");
    assert_eq!(refusal.errno, Some(libc::EPERM));
    let running = start(|| two(2 * MS));
    begins.recv_timeout(LIFE / 2).expect("the second attempt begins");
    let further = running.task("further").period(20 * MS).budget(5 * MS).spawn(|_| {});
    assert!(further.expect_err("more than the share").cause.contains("may reserve 30"));
    let further = running.task("further").period(20 * MS).budget(MS);
    // SAFETY: it does nothing.
    let further = unsafe { further.overrun_handler(handler, std::ptr::null_mut()) };
    let further = further.spawn(|_| {}).expect_err("by the service");
    assert!(further.cause.contains("calls no overrun handlers"), "{further}");
    drop(running);
    assert_eq!(begins.try_iter().count(), 0, "the first attempt began");
}

fn locks(cpu: u32) {
    let running = start(|| by_service(cpu));
    let draft = running.task("locks").period(10 * MS).budget(MS);
    let attached = draft.attach().expect("it fits");
    let task = &attached.task();
    let mutex = Mutex::new(0);
    assert_eq!(mutex.lock(task).err(), Some(LockError::NotLent));
    assert_eq!(mutex.lock_poisoned(task).err(), Some(LockError::NotLent));
    assert!(mutex.try_lock(task).is_none() && !mutex.is_poisoned());
    let semaphore = Semaphore::new(1, 1);
    assert_eq!(semaphore.acquire(task), Err(WaitError::Lock(LockError::NotLent)));
    assert!(semaphore.try_acquire(), "nothing was taken");
    let barrier = Barrier::new(1);
    assert_eq!(barrier.wait(task), Err(WaitError::Lock(LockError::NotLent)));
    assert!(task.wait_period().is_some());
}

/// Executes whatever its budget, until a file says that it is enough.
fn spins(cpu: u32) {
    let enough = format!("{}.enough", std::env::var("PUNCTUAL_SOCKET").expect("it is set"));
    let running = start(|| {
        let set = by_service(cpu).task("spins").period(10 * MS).budget(2 * MS);
        set.spawn(|task| {
            while !task.is_over() {
                execute_briefly();
            }
        })
    });
    let end = Instant::now() + LIFE / 2;
    let periods = || running.results().expect("it runs").tasks[0].periods;
    while periods() < 100 || !std::path::Path::new(&enough).exists() {
        assert!(Instant::now() < end, "it receives periods");
        std::thread::sleep(20 * MS);
    }
    let outcome = running.stop().expect("it runs");
    let task = &outcome.results.tasks[0];
    println!("{} periods, {:?}, {:?}", task.periods, task.budget_received, task.long_run_ppm);
    punctual_test_support::judge_timing(|| {
        let median = task.budget_received.expect("it was always ready").median_ppm;
        assert!((950_000..=1_050_000).contains(&median), "{task:?}");
        assert!(task.long_run_ppm.expect("it was always ready") <= 1_050_000, "{task:?}");
    });
}

/// More than the CPU has beside the reservations of others.
fn too_much(cpu: u32) {
    let set = by_service(cpu).task("much").period(10 * MS).budget(8 * MS).spawn(|_| {});
    let refused = set.admit().expect("alone it fits").start().expect_err("not beside others");
    assert_eq!(refused.kind, ErrorKind::NotAdmitted, "{refused}");
    println!("{refused}");
}

/// The set of a program that uses the service if there is one.
fn auto(cpu: u32) {
    let mut events = None;
    let running = start(|| {
        let (set, stream) = observed(Punctual::on_cpu(cpu).host(Host::Auto));
        events = Some(stream);
        set.task("task").period(10 * MS).budget(MS).spawn(drop_of)
    });
    await_event(&events.expect("it was declared"), |event| warning(event, "the service host: "));
    let results = running.stop().expect("it runs").results;
    assert!(results.notes[0].contains("the service host: punctuald serves at"), "{results:?}");
    // What the service does not do, this program does: for a user without rights, not even that.
    let set = Punctual::on_cpu(cpu).host(Host::Auto).policy(Policy::RateMonotonic);
    let set = set.task("task").period(10 * MS).budget(MS).spawn(drop_of);
    let admitted = set.admit().expect("it fits");
    assert!(format!("{admitted:?}").contains("User"), "{admitted:?}");
}

/// There is no service at this socket.
fn auto_alone(cpu: u32) {
    let running = start(|| {
        let set = Punctual::on_cpu(cpu).host(Host::Auto);
        set.task("task").period(10 * MS).budget(MS).spawn(drop_of)
    });
    let results = running.stop().expect("it runs").results;
    let note = "the user host, in this program: no punctuald listens at";
    assert!(results.notes[0].contains(note), "{results:?}");
    let refused = by_service(cpu).admit().expect("it fits").start().expect_err("none listens");
    assert_eq!(refused.errno, Some(libc::ECONNREFUSED), "{refused}");
}
