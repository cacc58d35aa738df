//! Programs that were started separately and share Punctual's locks by name, as tasks of the user
//! host and of the service: who executes while one waits, and who pays for it.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;

use punctual_ipc::{Name, Namespace, SharedLockState, SharedLockUse};
use punctual_service::{PeriodReport, ServiceClient, TaskRequest};
use punctual_test_support::judge_timing;
use punctual_trace::Trace;

use crate::kills::NEEDS;
use crate::locking_roles::{Shared, NAMED, NONE, SEMAPHORE};
use crate::machine::permitted_cpu;
use crate::process::eventually;
use crate::punctual::{adversarial, list, run_set, Scratch};
use crate::service::{Service, SERVICE_NEEDS};
use crate::service_threads::Program;

const MS: u64 = 1_000_000;
const ROOT: u32 = 0;

/// The programs of Mars Pathfinder, by number.
const BUS: u32 = 0;
const COMMUNICATION: u32 = 1;
const WEATHER: u32 = 2;

/// What a task executed from one time to another, ns.
fn executed(trace: &Trace, task: u32, from: u64, to: u64) -> u64 {
    let of_task = trace.intervals().into_iter().filter(|i| i.task == task);
    of_task.map(|i| i.to.min(to).saturating_sub(i.from.max(from))).sum()
}

/// When a task has executed for so long after a time.
fn done(trace: &Trace, task: u32, from: u64, mut time: u64) -> Option<u64> {
    for i in trace.intervals().into_iter().filter(|i| i.task == task && i.to > from) {
        let begin = i.from.max(from);
        if i.to - begin >= time {
            return Some(begin + time);
        }
        time -= i.to - begin;
    }
    None
}

/// Mars Pathfinder, 1997, as three programs of different users on the user host: each 80 ms the
/// weather program takes the lock for 4 ms, 1 ms later the communication program begins with 8 ms,
/// and 1 ms later the bus program needs the lock for 1 ms, to be done within 10 ms. Returns how
/// long the communication program executed, by the trace, before the bus program had executed, in
/// each of its rounds in which the weather program has the lock.
fn pathfinder(cpu: u32, kind: u64) -> (&'static Shared, Vec<u64>) {
    let scratch = Scratch::new();
    let file = scratch.path("shared");
    let shared = Shared::create(Path::new(&file), true);
    let task = |name: &str, [period, budget, deadline, offset]: [u64; 4], role: &str| {
        let mut command = adversarial(role);
        command.insert(2, file.clone());
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period}ms\"\nbudget = \"{budget}ms\"\n\
             deadline = \"{deadline}ms\"\noffset = \"{offset}ms\"\ncommand = {}\n",
            list(&command)
        )
    };
    let set = [
        format!("cpu = {cpu}\npolicy = \"dm\"\nduration = \"1s\"\n"),
        task("bus", [20, 6, 15, 2], &format!("round 0 {kind} 2000 20000 1000 10000")),
        task("communication", [40, 10, 40, 1], &format!("round 1 {NONE} 1000 40000 8000 40000")),
        task("weather", [80, 10, 80, 0], &format!("round 2 {kind} 0 80000 4000 80000")),
    ];
    let path = scratch.path("run.trace");
    let ended = run_set(&set.concat(), &["--json", "--overload", "--trace", &path]);
    ended.assert_ran().assert_nothing_left(&[cpu]);
    let trace = std::fs::File::open(&path).expect("it was written");
    let trace = Trace::read(&mut std::io::BufReader::new(trace)).expect("it is whole");
    let begin = shared.begin.load(SeqCst);
    let rounds = (0..shared.figures(BUS).0).step_by(4).map_while(|round| {
        let from = begin + (2 + 20 * round) * MS;
        let to = done(&trace, BUS, from, MS * 9 / 10)?;
        Some(executed(&trace, COMMUNICATION, from, to))
    });
    let rounds = rounds.collect();
    (shared, rounds)
}

#[test]
fn programs_on_the_user_host_execute_the_holder_first_that_another_one_waits_for() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let (without, beside) = pathfinder(cpu.0, SEMAPHORE);
    let (with, alone) = pathfinder(cpu.0, NAMED);
    let longest = with.longest[BUS as usize].load(SeqCst);
    println!("without inheritance {:?} {beside:?}", without.figures(BUS));
    println!("with it {:?}, at most {} ns, {alone:?}", with.figures(BUS), longest);
    for shared in [without, with] {
        assert!((0..3).all(|program| shared.figures(program).0 > 0), "each has its rounds");
    }
    judge_timing(|| {
        let weather = without.figures(WEATHER).0;
        assert!(weather >= 10, "{weather} rounds");
        // One of four rounds waits behind the communication program.
        assert_eq!(without.figures(BUS).1, weather);
        // The first one may fall into the start of the programs.
        assert!(beside.len() >= 10 && beside[1..].iter().all(|&ns| ns > 6 * MS), "{beside:?}");
        assert_eq!(with.figures(BUS).1, 0);
        // The 4 ms of the weather program, 1 ms of its own, and less than 2 ms of the communication
        // program. By its own clock: in the trace, what several executed between two events has no
        // order, and an event may come just before it begins.
        assert!(alone.len() >= 10 && longest < 7 * MS, "{} ns", longest);
    });
}

/// Programs that share the locks of a file, with reservations for their first threads.
struct Programs {
    service: Service,
    client: ServiceClient,
    file: String,
    shared: &'static Shared,
    running: Vec<Program>,
    ids: Vec<u64>,
    _scratch: Scratch,
}

impl Programs {
    fn new(cpu: u32) -> Programs {
        let scratch = Scratch::new();
        let file = scratch.path("shared");
        let shared = Shared::create(Path::new(&file), true);
        shared.gate.store(5, SeqCst);
        let service = Service::start(cpu);
        let client = service.client();
        let (running, ids) = (Vec::new(), Vec::new());
        Programs { service, client, file, shared, running, ids, _scratch: scratch }
    }

    /// Starts one in this role; its number.
    fn start(&mut self, role: &str) -> usize {
        let (name, rest) = role.split_once(' ').unwrap_or((role, ""));
        self.running.push(Program::start_as(ROOT, &format!("{name} {} {rest}", self.file)));
        self.running.len() - 1
    }

    /// Reserves for the first thread of one.
    fn reserve(&mut self, program: usize, period: u64, budget: u64) {
        let pid = self.running[program].pid();
        let task = TaskRequest::new("program", pid, period * MS, budget * MS);
        let task = TaskRequest { tid: Some(pid), ..task };
        self.ids.extend(self.service.reserve(&mut self.client, &[task]));
    }

    /// Lets the programs begin, which have their reservations; of a chain, from a number on.
    fn open(&self, from: usize) {
        self.shared.gate.store(from as u64, SeqCst);
    }

    /// The state of a mutex.
    fn mutex(&self, n: usize) -> SharedLockState {
        let folder = PathBuf::from(format!("{}.objects", self.file));
        let namespace = Namespace::at(&folder).expect("it was made");
        SharedLockState::of(&namespace, &Name::from(n as u32)).expect("it was made")
    }

    fn is_held_by(&self, n: usize, program: usize) -> bool {
        let pid = self.running[program].pid() as u32;
        matches!(self.mutex(n).usage, SharedLockUse::Mutex { owner: Some(owner), .. }
            if owner.process == Some(pid))
    }

    /// No program received more than its budgets: of each, all periods until now but two.
    fn assert_within_budgets(&mut self) {
        let events = self.client.take_events().expect("it serves").events;
        for id in &self.ids {
            let of_task = events.iter().filter(|event| event.id == *id);
            let periods: Vec<&PeriodReport> =
                of_task.filter_map(|event| event.period.as_ref()).skip(2).collect();
            let sum = |of: fn(&PeriodReport) -> u64| periods.iter().map(|p| of(p)).sum::<u64>();
            let (received, assigned) = (sum(|p| p.received_ns), sum(|p| p.assigned_ns));
            println!("{received} ns of {assigned} ns in {} periods", periods.len());
            judge_timing(|| {
                let margin = assigned / 50 + MS / 2;
                assert!(received <= assigned + margin, "{received} of {assigned}: {periods:#?}");
            });
        }
    }

    fn end(self, cpu: u32) {
        drop((self.client, self.running));
        self.service.end(cpu);
    }
}

/// Rounds of the bus program that took more than 60 ms, of eight. The weather program has 1 ms in
/// 100 for the 4 ms that it holds the lock. A third program uses up its budgets, and an ordinary
/// one all that is left.
fn late_rounds(cpu: u32, kind: u64) -> u64 {
    const ROUNDS: u64 = 8;
    let mut programs = Programs::new(cpu);
    let weather = programs.start(&format!("round 2 {kind} 0 10000 4000 100000"));
    programs.reserve(weather, 100, 1);
    let communication = programs.start("spin");
    programs.reserve(communication, 40, 10);
    programs.start("spin");
    let bus = programs.start(&format!("round 0 {kind} 0 150000 1000 60000"));
    programs.reserve(bus, 20, 8);
    programs.open(0);
    let shared = programs.shared;
    eventually("it has its rounds", || shared.figures(BUS).0 >= ROUNDS);
    programs.assert_within_budgets();
    let late = shared.figures(BUS).1;
    programs.end(cpu);
    late
}

#[test]
fn a_program_of_the_service_pays_for_the_holder_that_it_waits_for() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let [without, with] = [SEMAPHORE, NAMED].map(|kind| late_rounds(cpu.0, kind));
    println!("late without inheritance: {without}, with it: {with}");
    judge_timing(|| {
        assert!(without > 0, "the holder waits for its next budgets");
        assert_eq!(with, 0);
    });
}

/// Each of five programs holds a mutex that the next one waits for. The one at the end has 1 ms in
/// 100 for 300 ms with its mutex.
#[test]
fn a_program_of_the_service_pays_through_four_mutexes() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut programs = Programs::new(cpu.0);
    programs.start("spin");
    // The first one executes 300 ms for itself, too.
    let chain = (0..5).map(|n| programs.start(&format!("chain {n} 300000 {NAMED}")));
    let chain: Vec<usize> = chain.collect();
    let shared = programs.shared;
    eventually("they have started", || shared.arrived.load(SeqCst) == 5);
    for (n, &program) in chain.iter().enumerate() {
        programs.reserve(program, 100, if n == 0 { 50 } else { 1 });
    }
    for n in (1..5).rev() {
        programs.open(n);
        eventually("it holds its mutex", || programs.is_held_by(n, chain[n]));
        if n < 4 {
            eventually("it waits for the next one", || programs.mutex(n + 1).waiters == 1);
        }
    }
    programs.open(0);
    let waits = punctual_sys::clock::monotonic_ns();
    eventually("the last mutex is free", || !programs.is_held_by(4, chain[4]));
    let waited = punctual_sys::clock::monotonic_ns() - waits;
    println!("it waited {} ms for the last one of them", waited / MS);
    // 300 ms at 50 in 100, and not at 1 in 100.
    judge_timing(|| assert!(waited < 2_000 * MS, "{waited} ns"));
    programs.assert_within_budgets();
    programs.end(cpu.0);
}

#[test]
fn a_program_of_the_service_gets_the_mutex_of_one_that_is_killed() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut programs = Programs::new(cpu.0);
    let dies = programs.start(&format!("die-with-lock 100000 {NAMED}"));
    eventually("it holds the mutex", || programs.is_held_by(0, dies));
    let waits = programs.start(&format!("round 0 {NAMED} 0 20000 1000 60000"));
    programs.reserve(dies, 100, 1);
    programs.reserve(waits, 20, 8);
    programs.open(0);
    let shared = programs.shared;
    eventually("it has the mutex, and continues", || shared.figures(BUS).0 >= 10);
    assert_eq!(shared.inherited.load(SeqCst), 1, "once, after the death of its holder");
    programs.assert_within_budgets();
    programs.end(cpu.0);
}
