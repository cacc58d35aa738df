//! The dispatcher against a naive reference: the same random operations to both, everything that
//! they say compared, and the invariants of the design (section 3) checked after each.
//!
//! `PUNCTUAL_OPERATIONS` sets the number of operations (4,000,000), `PUNCTUAL_SEED` the first seed.

mod model;

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;

use model::{Model, State, Told};
use punctual_dispatcher::{
    Attribute, Dispatcher, End, For, Job, JobId, Limits, Overrun, Refusal, Reservation, ReservationId, TaskId, INFINITE,
};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Clone, Copy, Debug)]
struct Size {
    jobs: u32,
    tasks: u32,
    events: u32,
}

/// Both sides, and what is needed to name things to the real one.
struct Pair {
    real: Dispatcher,
    model: Model,
    ids: HashMap<u64, JobId>,
    recent: Vec<u64>,
    random: Random,
    now: u64,
    size: Size,
    ended: HashSet<u64>,
    ends_seen: u64,
    charged: u128,
    popping: bool,
    /// Additions prevail, until the table of jobs is full.
    filling: bool,
    lost: u64,
}

fn same<T: PartialEq + Debug>(real: T, model: T, what: &str) {
    assert_eq!(real, model, "{what}: dispatcher (left) and reference differ");
}

impl Pair {
    fn new(size: Size, seed: u64) -> Pair {
        let limits = Limits {
            jobs: size.jobs,
            reservations: size.tasks,
            events: size.events,
            records: 1024,
            ..Limits::for_tasks(size.tasks)
        };
        Pair {
            real: Dispatcher::new(limits).expect("valid limits"),
            model: Model::new(size.jobs, size.tasks, size.tasks, size.events),
            ids: HashMap::new(),
            recent: vec![0; 32],
            random: Random(seed),
            now: 1000,
            size,
            ended: HashSet::new(),
            ends_seen: 0,
            charged: 0,
            popping: true,
            filling: false,
            lost: 0,
        }
    }

    fn remember(&mut self, id: JobId) {
        let at = self.random.below(self.recent.len() as u64) as usize;
        self.recent[at] = id.as_u64();
        self.ids.insert(id.as_u64(), id);
    }

    /// A job that was there, and may be.
    fn some_job(&mut self) -> Option<JobId> {
        if !self.model.jobs.is_empty() && !self.random.one_in(4) {
            let at = self.random.below(self.model.jobs.len() as u64) as usize;
            return self.ids.get(&self.model.jobs[at].id).copied();
        }
        let at = self.random.below(self.recent.len() as u64) as usize;
        self.ids.get(&self.recent[at]).copied()
    }

    fn some_task(&mut self) -> TaskId {
        TaskId(self.random.below(u64::from(self.size.tasks) + 1) as u32)
    }

    fn some_reservation(&mut self) -> ReservationId {
        ReservationId(self.random.below(u64::from(self.size.tasks) + 1) as u32)
    }

    fn add_job(&mut self) {
        let now = self.now;
        let r = &mut self.random;
        let job = Job {
            start: match r.below(4) {
                0 => now + r.below(3000),
                1 => now - r.below(now.min(500)),
                _ => now,
            },
            finish: match r.below(8) {
                0 | 1 => INFINITE,
                2 => now - r.below(now.min(3)),
                _ => now + r.below(8) * 1000,
            },
            budget: match r.below(16) {
                0 => 0,
                1 => INFINITE >> r.below(2),
                2..=6 => 1000,
                _ => r.below(3000),
            },
            priority: match r.below(32) {
                0 => i64::MIN,
                1 => i64::MAX,
                _ => r.below(5) as i64 - 2,
            },
            cookie: r.next(),
            serves: For::Task(TaskId(r.below(u64::from(self.size.tasks)) as u32)),
            group: 0,
            budget_group: 0,
        };
        let real = self.real.add_job(&job, now);
        same(real.map(JobId::as_u64), self.model.add_job(&job, now), "add_job");
        if let Ok(id) = real {
            assert!(!self.ids.contains_key(&id.as_u64()), "an id given out twice");
            self.remember(id);
        }
    }

    fn add_reservation(&mut self) {
        let now = self.now;
        let r = &mut self.random;
        let period = if r.one_in(16) { 10_000_000_000 } else { 500 + r.below(4000) };
        let deadline = if r.one_in(2) { period } else { period - r.below(period / 4) };
        let reservation = Reservation {
            serves: For::Task(TaskId(r.below(u64::from(self.size.tasks)) as u32)),
            start: if r.one_in(4) { now - r.below(now.min(9000)) } else { now + r.below(2000) },
            period,
            budget: if r.one_in(32) { deadline + 1 } else { 1 + r.below(deadline.min(1 << 32)) },
            deadline,
            priority: r.below(5) as i64 - 2,
            group: 0,
            budget_group: 0,
            cookie: None,
            overrun: [Overrun::Carry, Overrun::Skip, Overrun::Background, Overrun::Signal][r.below(4) as usize],
            // Above 2^32 ns the core's rounding is coarser than the reference's.
            wakeup_rule: deadline < 1 << 32 && r.one_in(2),
        };
        same(
            self.real.add_reservation(&reservation, now).map(|r| r.0 as usize),
            self.model.add_reservation(&reservation, now),
            "add_reservation",
        );
    }

    fn charge(&mut self) {
        let Some(id) = self.some_job() else { return };
        let left = self.model.job(id.as_u64()).map_or(0, |j| j.remaining);
        let ran = match self.random.below(4) {
            0 if left < 1 << 40 => left + self.random.below(40),
            1 if left < 1 << 40 => left.saturating_sub(self.random.below(30)),
            _ => self.random.below(600),
        };
        let model = self.model.charge_job(id.as_u64(), ran);
        same(self.real.charge_job(id, ran, self.now), model, "charge_job");
        if model.is_ok() {
            self.charged += u128::from(ran);
        }
    }

    fn charge_task(&mut self) {
        let task = self.some_task();
        let ran = self.random.below(900);
        let model = self.model.charge_task(task.0, ran);
        same(self.real.charge_task(task, ran, self.now), model.map(|m| m.0), "charge_task");
        if let Ok((_, true)) = model {
            self.charged += u128::from(ran);
        }
    }

    fn instant(&mut self) {
        let now = self.now;
        self.real.advance(now);
        self.model.advance(now);
        self.take_events();
        let ranked = self.model.ranked();
        let selected = self.real.select(0, now).map(JobId::as_u64);
        same(selected, ranked.first().copied(), "select");
        // Invariant 2: no CPU idles while a job could be selected.
        assert_eq!(selected.is_some(), self.model.jobs.iter().any(|j| j.state == State::Ready), "select");
        // Invariant 1.
        if let Some(job) = selected.and_then(|id| self.model.job(id)) {
            assert!(job.start <= now && now < job.finish && job.remaining > 0, "{job:?} at {now}");
        }
        let path: Vec<_> = self.real.path(0).map(JobId::as_u64).collect();
        same(path, ranked.iter().take(1).copied().collect(), "path");
        let ranks = self.random.below(6) as u32;
        if self.random.one_in(2) {
            for rank in (0..ranks + 2).rev() {
                let real = self.real.runner_up(0, rank).map(JobId::as_u64);
                same(real, ranked.get(rank as usize).copied(), "runner_up");
            }
        }
        let timer = self.real.timer(0, ranks, now);
        same(timer, self.model.timer(ranks as usize, now), "timer");
        if self.random.one_in(3) && timer > now && timer - now < 20_000 {
            self.now = timer;
        }
    }

    /// All that both have to say.
    fn take_events(&mut self) {
        if !self.popping {
            return;
        }
        self.take_some_events(usize::MAX);
    }

    fn take_some_events(&mut self, most: usize) {
        for _ in 0..most {
            let real = self.real.next_event();
            let told = real.map(Told::from);
            same(told, self.model.next_event(), "event");
            match real {
                None => break,
                Some(punctual_dispatcher::Event::Released { job, .. }) => self.remember(job),
                _ => {}
            }
            match told {
                // Invariant 4: once, with one event.
                Some(Told::Ended { job, .. }) => {
                    assert!(self.ended.insert(job), "job {job:#x} ended twice");
                    assert_eq!(self.model.job(job).map(|j| j.id), None, "it ended");
                    self.ends_seen += 1;
                }
                Some(Told::Lost { count, .. }) => self.lost += count,
                _ => {}
            }
        }
    }

    fn ask(&mut self) {
        let r = self.some_reservation();
        let n = r.0 as usize;
        let model = self.model.reservations.get(n).and_then(Option::as_ref);
        same(self.real.job_of(r).map(JobId::as_u64), model.and_then(|v| v.job), "job_of");
        same(self.real.delayed(r), model.map_or(0, |v| v.delayed), "delayed");
        same(i128::from(self.real.enforcement_error(r)), model.map_or(0, |v| v.error), "enforcement_error");
        same(self.real.take_lost(r), self.model.take_lost(n), "take_lost");
        if let Some(id) = self.real.job_of(r) {
            self.ids.insert(id.as_u64(), id);
        }
    }

    /// Every job that is there, and the conservation of time.
    fn check_all(&mut self) {
        let mut used = self.model.used_by_ended;
        for job in &self.model.jobs {
            used += u128::from(job.used);
            if let Some(id) = self.ids.get(&job.id) {
                same(self.real.remaining(*id), job.remaining, "remaining");
                same(self.real.task_of(*id).map(|t| t.0), Some(job.task), "task_of");
            }
        }
        assert_eq!(used, self.charged, "time executed = time charged");
    }

    fn step(&mut self) {
        if self.random.one_in(2) {
            self.now += self.random.below(300);
        }
        if self.random.one_in(2000) {
            self.now += self.random.below(100_000);
        }
        let now = self.now;
        if self.filling && self.random.one_in(2) {
            return self.add_job();
        }
        match self.random.below(64) {
            0..=13 => self.add_job(),
            14..=25 => self.charge(),
            26..=29 => self.charge_task(),
            30..=33 => {
                if let Some(id) = self.some_job() {
                    let model = self.model.end_job(id.as_u64(), End::Cancelled, now);
                    same(self.real.cancel_job(id, now), model, "cancel_job");
                }
            }
            34..=36 => {
                if let Some(id) = self.some_job() {
                    let model = self.model.end_job(id.as_u64(), End::Completed, now);
                    same(self.real.complete_job(id, now), model, "complete_job");
                }
            }
            37..=38 => {
                let task = self.some_task();
                let model = self.model.task_blocked(task.0, now);
                same(self.real.task_blocked(task, now), model, "task_blocked");
            }
            39..=41 => {
                let task = self.some_task();
                let model = self.model.task_ready(task.0, now);
                same(self.real.task_ready(task, now), model, "task_ready");
            }
            42..=45 => {
                let task = self.some_task();
                let model = self.model.task_done(task.0, now);
                same(self.real.task_done(task, now), model, "task_done");
            }
            46 => {
                if self.random.one_in(4) {
                    let task = self.some_task();
                    let model = self.model.task_gone(task.0, now);
                    same(self.real.task_gone(task, now), model, "task_gone");
                }
            }
            47..=48 => {
                same(self.real.add_task(now).map(|t| t.0), self.model.add_task(), "add_task");
            }
            49 => self.add_reservation(),
            50 => {
                if self.random.one_in(4) {
                    let r = self.some_reservation();
                    let model = self.model.remove_reservation(r.0 as usize, now);
                    same(self.real.remove_reservation(r, now), model, "remove_reservation");
                }
            }
            51..=59 => self.instant(),
            60 => {
                let most = self.random.below(6) as usize;
                self.take_some_events(most);
            }
            61 => {
                // Mostly refused, for it is not empty.
                let by = some_order(&mut self.random);
                same(self.real.set_order(0, &by), self.model.set_order(&by), "set_order");
            }
            _ => self.ask(),
        }
        if self.random.one_in(64) {
            self.check_all();
        }
    }

    /// Everything goes, so that an ordering can be chosen anew.
    fn restart(&mut self) {
        self.take_some_events(usize::MAX);
        for task in 0..self.size.tasks {
            let model = self.model.task_gone(task, self.now);
            same(self.real.task_gone(TaskId(task), self.now), model, "task_gone");
            self.take_some_events(usize::MAX);
        }
        assert!(self.model.jobs.is_empty());
        self.check_all();
        let by = some_order(&mut self.random);
        same(self.real.set_order(0, &by), Ok(()), "set_order");
        self.model.set_order(&by).expect("it is empty");
        let granularity = [0, 0, 15, 200][self.random.below(4) as usize];
        self.real.set_granularity(granularity).expect("a small one");
        self.model.set_granularity(granularity);
        self.popping = !self.random.one_in(4);
        self.filling = self.random.one_in(3);
        self.ids.clear();
        self.ended.clear();
    }
}

/// Each of the four, and each combination in each sequence.
fn some_order(random: &mut Random) -> Vec<Attribute> {
    let mut all = vec![Attribute::Start, Attribute::Finish, Attribute::Budget, Attribute::Priority];
    let count = 1 + random.below(4) as usize;
    (0..count).map(|_| all.swap_remove(random.below(all.len() as u64) as usize)).collect()
}

fn environment(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => otherwise,
    }
}

/// So many operations, over and over with another ordering; how many events were lost.
fn run(size: Size, seed: u64, operations: u64) -> u64 {
    let mut pair = Pair::new(size, seed);
    for number in 0..operations {
        if number % 2000 == 0 {
            pair.restart();
        }
        let at = pair.now;
        let step = std::panic::AssertUnwindSafe(|| pair.step());
        if let Err(cause) = std::panic::catch_unwind(step) {
            eprintln!("{size:?}, seed {seed}: operation {number}, at {at}");
            std::panic::resume_unwind(cause);
        }
    }
    pair.restart();
    assert!(pair.model.ended > operations / 20, "jobs end: {}", pair.model.ended);
    pair.lost
}

#[test]
fn decides_as_the_naive_reference() {
    let operations = environment("PUNCTUAL_OPERATIONS", 4_000_000);
    let seed = environment("PUNCTUAL_SEED", 1);
    let sizes = [
        (Size { jobs: 4, tasks: 2, events: 4 }, 2),
        (Size { jobs: 24, tasks: 8, events: 32 }, 6),
        (Size { jobs: 100, tasks: 24, events: 128 }, 1),
        (Size { jobs: 500, tasks: 60, events: 1024 }, 1),
    ];
    let mut lost = 0;
    for (size, tenths) in sizes {
        lost += run(size, seed, operations * tenths / 10);
    }
    assert!(operations < 10_000 || lost > 0, "the ring overflowed at times");
}

/// Invariant 6: the same inputs make the same decisions, byte for byte.
#[test]
fn the_same_inputs_leave_the_same_trace() {
    let size = Size { jobs: 24, tasks: 8, events: 32 };
    let trace = |seed| {
        let mut pair = Pair::new(size, seed);
        let mut all = Vec::new();
        for number in 0..20_000 {
            if number % 2000 == 0 {
                pair.restart();
            }
            let before = pair.real.record_count();
            pair.step();
            all.extend((before..pair.real.record_count()).map(|n| pair.real.record(n)));
        }
        assert!(all.iter().all(Option::is_some));
        all
    };
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7), trace(8));
}

/// Invariant 5: limits are set at creation and refused clearly.
#[test]
fn refuses_what_is_beyond_its_limits() {
    let limits = Limits { jobs: 2, reservations: 1, events: 8, records: 8, ..Limits::for_tasks(1) };
    let mut d = Dispatcher::new(limits).expect("valid limits");
    let task = d.add_task(0).expect("the first");
    assert_eq!(d.add_task(0), Err(Refusal::Full));
    let job = Job::new(For::Task(task), 1);
    d.add_job(&job, 0).expect("the first");
    let second = d.add_job(&job, 0).expect("the second");
    assert_eq!(d.add_job(&job, 0), Err(Refusal::Full));
    d.cancel_job(second, 0).expect("it is there");
    assert_eq!(d.cancel_job(second, 0), Err(Refusal::Nothing));
    d.add_job(&job, 0).expect("room again");
    assert!(matches!(Dispatcher::new(Limits { events: 3, ..limits }), Err(Refusal::Invalid)));
    assert!(matches!(Dispatcher::new(Limits { jobs: 0, ..limits }), Err(Refusal::Invalid)));
}
