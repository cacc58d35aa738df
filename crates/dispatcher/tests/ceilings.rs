//! Tasks that are raised while they hold locks (docs/model.md, "Ceilings").

use punctual_dispatcher::{
    Attribute, Dispatcher, For, Job, JobId, Limits, Refusal, Reservation, TaskCeiling, TaskId,
};

/// A dispatcher with so many tasks in group 0, ordered by this attribute.
fn with_tasks<const N: usize>(by: Attribute) -> (Dispatcher, [TaskId; N]) {
    let mut d = Dispatcher::new(Limits::for_tasks(N as u32)).expect("valid limits");
    d.set_order(0, &[by]).expect("valid");
    let tasks = std::array::from_fn(|_| d.add_task(0).expect("room"));
    (d, tasks)
}

fn add(d: &mut Dispatcher, task: TaskId, priority: i64, finish: u64, now: u64) -> JobId {
    d.add_job(&Job { priority, finish, start: now, ..Job::new(For::Task(task), 100) }, now)
        .expect("room")
}

const BY_PRIORITY: Attribute = Attribute::Priority;

/// Mars Pathfinder, 1997: communications preempt the meteorological task, which holds the mutex
/// that the bus management task needs. With the ceiling of that mutex they do not.
#[test]
fn the_task_that_holds_the_lock_is_not_preempted_by_one_below_the_ceiling() {
    let (mut d, [bus, communication, weather]) = with_tasks(BY_PRIORITY);
    let weather_job = add(&mut d, weather, 1, 1000, 0);
    assert_eq!(d.select(0, 0), Some(weather_job));
    d.raise(weather, Some(TaskCeiling::Priority(3)), 10).unwrap();
    let communication_job = add(&mut d, communication, 2, 1000, 20);
    let bus_job = add(&mut d, bus, 3, 1000, 30);
    assert_eq!(d.select(0, 30), Some(weather_job), "the bus task is at the ceiling, not above it");
    d.raise(weather, None, 40).unwrap();
    assert_eq!(d.select(0, 40), Some(bus_job));
    assert_eq!(d.runner_up(0, 1), Some(communication_job));
    assert_eq!(d.runner_up(0, 2), Some(weather_job));
}

#[test]
fn a_job_above_the_ceiling_preempts_one_that_is_raised() {
    let (mut d, [high, low]) = with_tasks(BY_PRIORITY);
    let low_job = add(&mut d, low, 1, 1000, 0);
    d.raise(low, Some(TaskCeiling::Priority(3)), 0).unwrap();
    assert_eq!(d.select(0, 0), Some(low_job));
    let high_job = add(&mut d, high, 4, 1000, 10);
    assert_eq!(d.select(0, 10), Some(high_job));
}

#[test]
fn a_later_finish_than_the_ceiling_does_not_preempt() {
    let (mut d, [short, long, urgent]) = with_tasks(Attribute::Finish);
    let long_job = add(&mut d, long, 0, 1000, 0);
    // It shares a lock with a task whose relative deadline is 100.
    d.raise(long, Some(TaskCeiling::Finish(10 + 100)), 10).unwrap();
    let short_job = add(&mut d, short, 0, 10 + 100, 10);
    assert_eq!(d.select(0, 10), Some(long_job));
    let urgent_job = add(&mut d, urgent, 0, 60, 20);
    assert_eq!(d.select(0, 20), Some(urgent_job));
    d.complete_job(urgent_job, 25).unwrap();
    assert_eq!(d.select(0, 25), Some(long_job));
    d.raise(long, None, 30).unwrap();
    assert_eq!(d.select(0, 30), Some(short_job));
}

/// The queue that is ordered by finish no longer serves for the finishes.
#[test]
fn finishes_are_kept_while_a_task_is_raised_beyond_its_ceiling() {
    let (mut d, [first, second]) = with_tasks(Attribute::Finish);
    let raised = add(&mut d, first, 0, 1000, 0);
    let other = add(&mut d, second, 0, 200, 0);
    d.raise(first, Some(TaskCeiling::Finish(50)), 0).unwrap();
    assert_eq!(d.timer(0, 0, 0), 200, "the ceiling is no finish");
    d.advance(100);
    assert_eq!(d.select(0, 100), Some(raised));
    d.advance(200);
    assert_eq!(d.standing(other), None, "it has expired");
    assert!(d.standing(raised).is_some());
    d.advance(1000);
    assert_eq!(d.standing(raised), None, "its own finish");
}

#[test]
fn releases_to_come_are_raised_and_budgets_stay() {
    let (mut d, [task, other]) = with_tasks(BY_PRIORITY);
    d.add_reservation(&Reservation::new(For::Task(task), 1000, 200), 0).unwrap();
    d.raise(task, Some(TaskCeiling::Priority(5)), 0).unwrap();
    let other_job = add(&mut d, other, 4, 10_000, 0);
    for release in [0, 1000, 2000] {
        d.advance(release);
        let job = d.select(0, release).expect("one is ready");
        assert_eq!((d.owner_of(job), d.remaining(job)), (Some(task), 200));
        d.charge_job(job, 200, release + 200).unwrap();
        d.advance(release + 200);
        assert_eq!(d.select(0, release + 200), Some(other_job));
    }
}

#[test]
fn a_ceiling_ends_with_the_task_and_unknown_tasks_are_refused() {
    let (mut d, [first, second]) = with_tasks(BY_PRIORITY);
    d.raise(first, Some(TaskCeiling::Priority(9)), 0).unwrap();
    d.task_gone(first, 0).unwrap();
    assert_eq!(d.raise(first, None, 0), Err(Refusal::Nothing));
    let again = d.add_task(0).unwrap();
    assert_eq!(again, first);
    let low = add(&mut d, again, 1, 1000, 0);
    let high = add(&mut d, second, 2, 1000, 0);
    assert_eq!(d.select(0, 0), Some(high));
    assert_eq!(d.runner_up(0, 1), Some(low));
}

/// What a task does in each job: so many units, each with the locks that it holds meanwhile, the
/// outermost first.
type Script = Vec<Vec<usize>>;

struct Periodic {
    script: Script,
    period: u64,
    /// The present job, its finish, the unit that is next, and the critical sections of worse jobs
    /// that executed since its release.
    job: Option<(JobId, u64, usize, Vec<u64>)>,
}

/// Numbers without end (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

const LOCKS: u64 = 3;

/// One to six units; now and then two locks are nested, in any order.
fn some_script(random: &mut Random) -> Script {
    let mut script = Script::new();
    for _ in 0..1 + random.below(2) {
        let (outer, inner) = (random.below(LOCKS) as usize, random.below(LOCKS) as usize);
        script.push(Vec::new());
        script.push(vec![outer]);
        script.push(if inner == outer { vec![outer] } else { vec![outer, inner] });
    }
    script
}

/// How the jobs of a set were delayed.
#[derive(Default)]
struct Delays {
    /// Locks that were taken; of these, in another one.
    taken: u64,
    nested: u64,
    /// A task wanted a lock that another one held, at which the run ends.
    waited: bool,
    /// Units in which a worse job executed outside of a critical section.
    inverted: u64,
    /// The most critical sections of worse jobs that delayed one job.
    most: usize,
    /// Jobs that one delayed.
    delayed: u64,
}

/// Four tasks with locks, unit by unit. All their work together is less than the shortest period,
/// so that each job ends in time.
fn execute(by: Attribute, ceilings: bool, seed: u64) -> Delays {
    let mut random = Random(seed);
    let (mut d, ids) = with_tasks::<4>(by);
    let mut tasks = ids.map(|_| Periodic {
        script: some_script(&mut random),
        period: 30 + random.below(60),
        job: None,
    });
    let users = |tasks: &[Periodic], lock: usize| {
        let uses = |t: &&Periodic| t.script.iter().any(|held| held.contains(&lock));
        tasks.iter().filter(uses).map(|t| t.period).min().expect("the one that takes it")
    };
    // Rate monotonic: the shorter period is the better; so in a lock's ceiling.
    let periods = [0, 1, 2].map(|lock| {
        let used = tasks.iter().any(|t| t.script.iter().any(|held| held.contains(&lock)));
        used.then(|| users(&tasks, lock))
    });
    let mut owners = [None; LOCKS as usize];
    let mut raised: [Vec<TaskCeiling>; 4] = Default::default();
    let mut section = [0u64; 4];
    let mut sections = 0;
    let mut delays = Delays::default();
    for now in 0..2000 {
        d.advance(now);
        for (t, id) in tasks.iter_mut().zip(ids) {
            if now % t.period == 0 {
                assert!(t.job.is_none(), "each job ends in time");
                let finish = now + t.period;
                let job = add(&mut d, id, -(t.period as i64), finish, now);
                t.job = Some((job, finish, 0, Vec::new()));
            }
        }
        let Some(selected) = d.select(0, now) else { continue };
        let k = ids.iter().position(|&id| d.owner_of(selected) == Some(id)).expect("a task's");
        let (job, finish, unit, _) = tasks[k].job.clone().expect("it is selected");
        let held = tasks[k].script[unit].clone();
        // It locks what this unit needs.
        for &lock in &held[raised[k].len().min(held.len())..] {
            if owners[lock].is_some() {
                delays.waited = true;
                return delays;
            }
            owners[lock] = Some(k);
            if raised[k].is_empty() {
                sections += 1;
                section[k] = sections;
            }
            delays.taken += 1;
            delays.nested += u64::from(!raised[k].is_empty());
            let period = periods[lock].expect("it is used");
            let ceiling = match by {
                Attribute::Finish => TaskCeiling::Finish(now + period),
                _ => TaskCeiling::Priority(-(period as i64)),
            };
            raised[k].push(ceiling);
            raise(&mut d, ids[k], &raised[k], ceilings, now);
        }
        let is_critical = !raised[k].is_empty();
        let (number, period) = (section[k], tasks[k].period);
        for (other, t) in tasks.iter_mut().enumerate() {
            let Some((_, due, _, by_worse)) = t.job.as_mut().filter(|_| other != k) else {
                continue;
            };
            let is_worse = match by {
                Attribute::Finish => finish > *due,
                _ => period > t.period,
            };
            if is_worse && !is_critical {
                delays.inverted += 1;
            } else if is_worse && !by_worse.contains(&number) {
                by_worse.push(number);
            }
            delays.most = delays.most.max(by_worse.len());
        }
        let ended = unit + 1 == tasks[k].script.len();
        let next = if ended { &[][..] } else { &tasks[k].script[unit + 1][..] };
        // Unlocked at the end of the unit, the innermost first.
        let kept = held.iter().zip(next).take_while(|(a, b)| a == b).count();
        for &lock in held[kept..].iter().rev() {
            owners[lock] = None;
            raised[k].pop();
            raise(&mut d, ids[k], &raised[k], ceilings, now + 1);
        }
        d.charge_job(job, 1, now + 1).unwrap();
        match ended {
            true => {
                let (_, _, _, by_worse) = tasks[k].job.take().expect("it executed");
                delays.delayed += u64::from(!by_worse.is_empty());
                d.complete_job(job, now + 1).unwrap();
            }
            false => tasks[k].job.as_mut().expect("it executed").2 += 1,
        }
    }
    delays
}

/// To the best of its ceilings.
fn raise(d: &mut Dispatcher, task: TaskId, all: &[TaskCeiling], ceilings: bool, now: u64) {
    let best = all.iter().copied().min_by_key(|ceiling| match ceiling {
        TaskCeiling::Finish(finish) => i128::from(*finish),
        TaskCeiling::Priority(priority) => -i128::from(*priority),
    });
    d.raise(task, best.filter(|_| ceilings), now).unwrap();
}

fn each_job_is_delayed_once_at_most(by: Attribute) {
    let all = |ceilings| (1..300).map(move |seed| execute(by, ceilings, seed * 0x9e37_79b9));
    let (mut taken, mut nested, mut delayed) = (0, 0, 0);
    for (delays, seed) in all(true).zip(1..) {
        assert!(!delays.waited, "a lock was not free, seed {seed}");
        assert_eq!(delays.inverted, 0, "seed {seed}");
        assert!(delays.most <= 1, "{} critical sections, seed {seed}", delays.most);
        taken += delays.taken;
        nested += delays.nested;
        delayed += delays.delayed;
    }
    assert!(taken > 1000 && nested > 1000 && delayed > 1000, "{taken}, {nested}, {delayed}");
    assert!(all(false).any(|delays| delays.waited), "without ceilings, tasks wait");
}

#[test]
fn each_job_is_delayed_by_one_critical_section_at_most_by_priority() {
    each_job_is_delayed_once_at_most(Attribute::Priority);
}

#[test]
fn each_job_is_delayed_by_one_critical_section_at_most_by_finish() {
    each_job_is_delayed_once_at_most(Attribute::Finish);
}
