//! Fair queueing: the published schedules and bounds, on one CPU in exact virtual time. Tasks sleep
//! and wake at random times; each bound is computed from what executed, not from tags.

mod support;

use oorandom::Rand64;
use punctual_dispatcher::{Dispatcher, End, Limits};
use punctual_policies::{Allocators, LocalDispatcher, ReleaseEvent};
use punctual_taskset::{DomainId, PolicySpec, ServerKind, TaskSet, TaskSpec};
use support::{at_times, group, policy, set, task, Cpu};

/// More than any run executes.
const FOREVER: &[u64] = &[u64::MAX / 2];

fn weighted(name: &str, weight: u32) -> TaskSpec {
    TaskSpec { weight: Some(weight), ..task(name, 1, 1) }
}

fn by_weight(by: &str, quantum: u64) -> PolicySpec {
    PolicySpec { quantum: Some(quantum), ..policy(by) }
}

/// Tasks of these weights share the CPU.
fn shared(by: &str, quantum: u64, weights: &[u32]) -> TaskSet {
    let mut set = set(by, weights.iter().map(|&weight| weighted("t", weight)).collect());
    set.policy = by_weight(by, quantum);
    set.apply_weights();
    set
}

#[test]
fn backlogged_tasks_execute_exactly_in_proportion_to_their_weights() {
    let weights = [1, 2, 3, 5, 10_000];
    let sum: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    for by in ["wfq", "sfq"] {
        let set = shared(by, 300, &weights);
        let mut cpu = Cpu::new(&set, &[FOREVER; 5]);
        cpu.run(3 * sum * 300);
        for (n, &weight) in weights.iter().enumerate() {
            assert_eq!(cpu.total(n), 3 * 300 * u64::from(weight), "{by}: weight {weight}");
        }
    }
}

/// By hand: quanta of 6, weights 1 and 2. The quanta of the first task have the tags 0, 6, 12 and
/// so on, those of the second one 0, 3, 6. Equal tags are in order of arrival.
#[test]
fn quanta_are_in_order_of_start_tags_under_sfq_and_of_finish_tags_under_wfq() {
    let first = |by| {
        let mut cpu = Cpu::new(&shared(by, 6, &[1, 2]), &[FOREVER; 2]);
        cpu.run(36);
        cpu.when(0)
    };
    // Starts: 0, then 0 and 3 of the other; 6 arrived before the other's 6.
    assert_eq!(first("sfq"), [(0, 6), (18, 24)]);
    // Finishes: 3 of the other, 6, then 6 and 9 of the other; 12 arrived before the other's 12.
    assert_eq!(first("wfq"), [(6, 12), (24, 30)]);
}

#[test]
fn the_period_of_a_quantum_is_the_time_in_which_it_is_the_fair_share() {
    // At the top 90 % of the CPU are sure.
    let set = shared("wfq", 900, &[1, 3]);
    assert_eq!([0, 1].map(|n| set.tasks[n].period), [4_000, 1_334]);
    assert_eq!(
        [0, 1].map(|n| (set.tasks[n].budget, set.tasks[n].deadline)),
        [(900, 4_000), (900, 1_334)]
    );
    // In a group, what its server has.
    let mut set = shared("wfq", 10, &[1, 1]);
    set.groups.push(group("g", "sfq", 100, 25, ServerKind::Deferrable));
    set.groups[0].policy = by_weight("sfq", 10);
    set.tasks.iter_mut().for_each(|t| t.group = Some(0));
    set.apply_weights();
    assert_eq!([0, 1].map(|n| set.tasks[n].period), [80, 80]);
}

/// A job that waits for its next release begins it at once; one with arrivals waits for those.
#[test]
fn a_task_without_arrivals_begins_its_next_job_at_once() {
    let mut set = shared("sfq", 10, &[1, 1]);
    set.tasks[1] = at_times(set.tasks[1].clone(), &[0, 97]);
    let mut cpu = Cpu::new(&set, &[&[15], &[10]]);
    cpu.run(140);
    assert_eq!(cpu.when(1), [(10, 20), (100, 110)]);
    assert_eq!(cpu.total(0), 120);
}

#[test]
fn a_task_that_slept_has_no_credit() {
    for by in ["wfq", "sfq"] {
        let mut cpu = Cpu::new(&shared(by, 10, &[1, 1]), &[FOREVER; 2]);
        cpu.run(30);
        let sleeper = cpu.tasks[0].id;
        cpu.d.task_blocked(sleeper, 30).unwrap();
        cpu.run(10_000);
        let before = [0, 1].map(|n| cpu.total(n));
        assert!(before[0] <= 20 && before[1] >= 9_980, "{by}: {before:?}");
        cpu.d.task_ready(sleeper, 10_000).unwrap();
        cpu.run(11_000);
        let since = [0, 1].map(|n| cpu.total(n) - before[n]);
        assert!(since[0].abs_diff(since[1]) <= 20, "{by}: {since:?}");
    }
}

/// The dispatcher reports the sleep first, and then the end of the quantum.
#[test]
fn a_quantum_at_whose_end_its_task_falls_asleep_is_counted() {
    for by in ["wfq", "sfq"] {
        let mut cpu = Cpu::new(&shared(by, 10, &[1, 1, 1]), &[FOREVER; 3]);
        let sleeper = cpu.tasks[1].id;
        cpu.run_to_charge(20);
        cpu.d.task_blocked(sleeper, 20).unwrap();
        cpu.run(21);
        cpu.d.task_ready(sleeper, 21).unwrap();
        // The virtual time is that of the third task's quantum still, which is below its tag.
        cpu.run(50);
        assert_eq!(cpu.when(1), [(10, 20), (40, 50)], "{by}");
    }
}

/// A run in which tasks fall asleep and wake at random times, in quanta and between them.
struct Random {
    cpu: Cpu,
    weights: Vec<u64>,
    quantum: u64,
    /// By task: from when to when it was ready.
    ready: Vec<Vec<(u64, u64)>>,
    end: u64,
}

impl Random {
    fn run(by: &str, seed: u64) -> Random {
        let mut random = Rand64::new(u128::from(seed));
        let tasks = random.rand_range(2..6) as usize;
        let quantum = random.rand_range(5..40);
        let weights: Vec<u32> = (0..tasks).map(|_| random.rand_range(1..9) as u32).collect();
        let mut cpu = Cpu::new(&shared(by, quantum, &weights), &vec![FOREVER; tasks]);
        let mut ready = vec![vec![(0, u64::MAX)]; tasks];
        for _ in 0..60 {
            cpu.run(cpu.now + random.rand_range(1..4 * quantum));
            let n = random.rand_range(0..tasks as u64) as usize;
            let (id, now) = (cpu.tasks[n].id, cpu.now);
            let latest = ready[n].last_mut().unwrap();
            if latest.1 == u64::MAX {
                latest.1 = now;
                cpu.d.task_blocked(id, now).unwrap();
            } else {
                ready[n].push((now, u64::MAX));
                cpu.d.task_ready(id, now).unwrap();
            }
        }
        let end = cpu.now + 50 * quantum;
        cpu.run(end);
        ready.iter_mut().flatten().for_each(|span| span.1 = span.1.min(end));
        let weights = weights.into_iter().map(u64::from).collect();
        Random { cpu, weights, quantum, ready, end }
    }

    /// What executes in each unit of time.
    fn executing(&self) -> Vec<Option<usize>> {
        let mut by_time = vec![None; self.end as usize];
        for &(from, to, n) in &self.cpu.ran {
            by_time[from as usize..to as usize].fill(Some(n));
        }
        by_time
    }

    fn is_ready(&self, n: usize, at: u64) -> bool {
        self.ready[n].iter().any(|&(from, to)| (from..to).contains(&at))
    }

    /// Begin, end and execution of each quantum of a task: it ends when the task sleeps, too.
    fn quanta(&self, n: usize) -> Vec<(u64, u64, u64)> {
        let mut begun = None;
        let mut all = Vec::new();
        for event in &self.cpu.reported {
            match *event {
                ReleaseEvent::Released { index, release, .. } if index as usize == n => {
                    begun = Some(release);
                }
                ReleaseEvent::Replenished { index, at, used, .. } if index as usize == n => {
                    let begin = begun.take().unwrap();
                    let asleep = self.ready[n].iter().map(|span| span.1);
                    let asleep = asleep.filter(|to| (begin..at).contains(to)).min();
                    all.push((begin, asleep.unwrap_or(at), used));
                }
                _ => {}
            }
        }
        all
    }
}

/// Goyal, Vin and Cheng 1996, theorem 1: |W_f / r_f - W_g / r_g| <= l_f / r_f + l_g / r_g in each
/// interval in which both are backlogged.
#[test]
fn sfq_two_backlogged_tasks_differ_by_a_quantum_of_each_at_most() {
    let (mut pairs, mut largest) = (0, 0.0f64);
    for seed in 0..150 {
        let run = Random::run("sfq", seed);
        let executing = run.executing();
        let tasks = run.weights.len();
        for f in 0..tasks {
            for g in f + 1..tasks {
                let (w_f, w_g) = (run.weights[f] as i64, run.weights[g] as i64);
                let bound = run.quantum as i64 * (w_f + w_g);
                // Times the product of both weights.
                let (mut differ, mut least, mut most) = (0, 0, 0);
                for (at, executes) in executing.iter().enumerate() {
                    if !run.is_ready(f, at as u64) || !run.is_ready(g, at as u64) {
                        (differ, least, most) = (0, 0, 0);
                        continue;
                    }
                    differ += match *executes {
                        Some(n) if n == f => w_g,
                        Some(n) if n == g => -w_f,
                        _ => 0,
                    };
                    (least, most) = (least.min(differ), most.max(differ));
                    assert!(most - least <= bound, "seed {seed}: {f} and {g} at {at}");
                    largest = largest.max((most - least) as f64 / bound as f64);
                }
                pairs += 1;
            }
        }
    }
    assert!(pairs > 500 && largest > 0.9, "{pairs} pairs, {largest} of the bound");
}

/// Goyal, Vin and Cheng 1996, theorem 4: a quantum ends by EAT + sum of l_n / C over all tasks,
/// where EAT, its expected arrival, is the time at which its task is due another quantum.
#[test]
fn sfq_a_quantum_ends_within_one_quantum_of_each_task_after_its_expected_arrival() {
    let mut nearest = u64::MAX;
    for seed in 0..300 {
        let run = Random::run("sfq", seed);
        let (sum, tasks) = (run.weights.iter().sum::<u64>(), run.weights.len() as u64);
        for n in 0..run.weights.len() {
            let weight = run.weights[n];
            // Times the weight.
            let mut expected = 0;
            for (begin, end, used) in run.quanta(n) {
                expected = expected.max(begin * weight);
                let bound = expected + tasks * run.quantum * weight;
                assert!(end * weight <= bound, "seed {seed}: {n} from {begin} to {end}");
                nearest = nearest.min(bound - end * weight);
                expected += used * sum;
            }
        }
    }
    assert_eq!(nearest, 0, "the bound is reached");
}

/// Parekh and Gallager 1993, theorem 1: a quantum ends at most one quantum later than in the fluid
/// system (GPS), which serves a task as long as it is ready here or has received less there.
#[test]
fn wfq_a_quantum_ends_within_one_quantum_after_its_end_in_the_fluid_system() {
    let (mut quanta, mut late) = (0, 0);
    for seed in 0..300 {
        let run = Random::run("wfq", seed);
        let executing = run.executing();
        let tasks = run.weights.len();
        let mut real = vec![0u64; tasks];
        let mut fluid = vec![0f64; tasks];
        // By time: what the fluid system has given to each.
        let mut history = vec![fluid.clone()];
        // By time: what each had received.
        let mut received = vec![real.clone()];
        for at in 0..run.end {
            let ready: Vec<bool> = (0..tasks).map(|n| run.is_ready(n, at)).collect();
            for n in 0..tasks {
                let begins = ready[n] && (at == 0 || !run.is_ready(n, at - 1));
                // What it received there beyond what it wanted is lost.
                if begins || !ready.contains(&true) {
                    fluid[n] = if ready.contains(&true) {
                        fluid[n].min(real[n] as f64)
                    } else {
                        real[n] as f64
                    };
                }
            }
            // One that is not ready and has as much begins even.
            let backlogged: Vec<bool> =
                (0..tasks).map(|n| ready[n] || fluid[n] + 1e-9 < real[n] as f64).collect();
            if executing[at as usize].is_some() {
                serve(&mut fluid, &real, &ready, &backlogged, &run.weights);
            }
            if let Some(n) = executing[at as usize] {
                real[n] += 1;
            }
            history.push(fluid.clone());
            received.push(real.clone());
        }
        for n in 0..tasks {
            for (begin, end, _) in run.quanta(n) {
                let wanted = (received[begin as usize][n] + run.quantum) as f64;
                let before = end.saturating_sub(run.quantum) as usize;
                assert!(history[before][n] <= wanted + 1e-6, "seed {seed}: {n} from {begin}");
                late += u32::from(history[end as usize][n] > wanted + 1e-6);
                quanta += 1;
            }
        }
    }
    assert!(quanta > 10_000, "{quanta}");
    // A quantum that is due earlier preempts here, so that none is later than in the fluid system.
    assert_eq!(late, 0, "of {quanta}");
}

/// One unit of time, in which the fluid system serves all that are backlogged by their weights.
fn serve(fluid: &mut [f64], real: &[u64], ready: &[bool], backlogged: &[bool], weights: &[u64]) {
    let mut left = 1.0;
    let mut served = backlogged.to_vec();
    while left > 1e-12 {
        let members = || (0..fluid.len()).filter(|&n| served[n]);
        let sum: f64 = members().map(|n| weights[n] as f64).sum();
        // Until the first of those that sleep has as much as here.
        let lacks = |n: usize| (real[n] as f64 - fluid[n]) / weights[n] as f64 * sum;
        let asleep = members().filter(|&n| !ready[n]);
        let until = asleep.map(|n| (n, lacks(n))).min_by(|a, b| a.1.total_cmp(&b.1));
        let (gone, part) = match until {
            Some((n, needed)) if needed <= left => (Some(n), needed.max(0.0)),
            _ => (None, left),
        };
        for n in 0..fluid.len() {
            if served[n] {
                fluid[n] += part * weights[n] as f64 / sum;
            }
        }
        left -= part;
        match gone {
            Some(n) => served[n] = false,
            None => break,
        }
    }
}

/// Tasks with weights behind a server, beside a control task: the deadlines that the bounds assign
/// hold, and the control task never misses.
#[test]
fn in_a_group_each_quantum_ends_by_the_deadline_that_the_bound_assigns() {
    let (mut ended, mut nearest) = (0, i64::MAX);
    for seed in 0..200 {
        let mut random = Rand64::new(seed);
        let by = ["wfq", "sfq"][(seed % 2) as usize];
        let tasks = random.rand_range(1..5) as usize;
        let budget = random.rand_range(10..90);
        let blackout = 200 - budget as i64;
        let mut set = set("edf", vec![task("control", 130, 12)]);
        set.tasks.extend((0..tasks).map(|n| {
            let spec = weighted(&format!("{n}"), random.rand_range(1..9) as u32);
            TaskSpec { group: Some(0), ..spec }
        }));
        set.groups.push(group("g", by, 100, budget, ServerKind::ConstantBandwidth));
        set.groups[0].policy = by_weight(by, random.rand_range(3..60));
        set.apply_weights();
        let demand: Vec<&[u64]> =
            (0..=tasks).map(|n| if n == 0 { &[12][..] } else { FOREVER }).collect();
        let mut cpu = Cpu::new(&set, &demand);
        let mut asleep = vec![false; tasks + 1];
        for _ in 0..80 {
            cpu.run(cpu.now + random.rand_range(1..150));
            let n = random.rand_range(1..tasks as u64 + 1) as usize;
            let (id, now) = (cpu.tasks[n].id, cpu.now);
            asleep[n] = !asleep[n];
            match asleep[n] {
                true => cpu.d.task_blocked(id, now).unwrap(),
                false => cpu.d.task_ready(id, now).unwrap(),
            }
        }
        cpu.run(cpu.now + 5_000);
        let mut due = vec![0; tasks + 1];
        for event in &cpu.reported {
            match *event {
                ReleaseEvent::Released { index, deadline, .. } => due[index as usize] = deadline,
                // Those that slept in it end later.
                ReleaseEvent::Replenished { index, at, remaining: 0, .. }
                | ReleaseEvent::Ended { index, at, .. } => {
                    let due = due[index as usize];
                    assert!(at <= due, "seed {seed}, {by}: task {index} at {at}, due {due}");
                    ended += 1;
                    if index > 0 {
                        nearest = nearest.min((due - at) as i64 - blackout);
                    }
                }
                _ => {}
            }
        }
        let control = cpu.ends(0);
        assert!(control.iter().all(|&(_, _, _, used)| used == 12), "seed {seed}");
    }
    // Some need a part of the time in which the server may receive nothing.
    assert!(ended > 20_000 && nearest < 0, "{ended} ended, the nearest by {nearest}");
}

#[test]
fn a_swap_between_the_two_keeps_the_tags() {
    let mut cpu = Cpu::new(&shared("sfq", 10, &[1, 3]), &[FOREVER; 2]);
    cpu.run(400);
    cpu.swap(0, "wfq");
    cpu.run(800);
    cpu.swap(0, "sfq");
    cpu.run(1_200);
    assert_eq!(cpu.a.policy_of(0).unwrap().info.name, "sfq");
    for (n, fair) in [(0, 300), (1, 900)] {
        assert!(cpu.total(n).abs_diff(fair) <= 10, "{n}: {}", cpu.total(n));
    }
}

#[test]
fn a_swap_to_or_from_other_policies_or_quanta_is_refused_and_changes_nothing() {
    let refused = |cpu: &mut Cpu, to: &PolicySpec| {
        let gsi = &mut LocalDispatcher::new(&mut cpu.d, cpu.now);
        cpu.a.swap_group(gsi, 0, to).expect_err("it does not suit").to_string()
    };
    let mut cpu = Cpu::new(&shared("sfq", 10, &[1, 3]), &[FOREVER; 2]);
    cpu.run(50);
    assert!(refused(&mut cpu, &policy("edf")).contains("its tasks have weights"));
    assert!(refused(&mut cpu, &by_weight("wfq", 20)).contains("its quantum is 10 ns"));
    cpu.run(400);
    assert_eq!([0, 1].map(|n| cpu.total(n)), [100, 300]);
    let mut cpu = Cpu::new(&set("rm", vec![task("a", 10, 4)]), &[&[4]]);
    cpu.run(10);
    assert!(refused(&mut cpu, &policy("wfq")).contains("its tasks have no weights"));
    cpu.run(40);
    assert_eq!(cpu.total(0), 16);
}

/// A task that is always released is not released for ever at one instant.
#[test]
fn a_dispatcher_without_room_for_a_quantum_cancels_the_release_and_continues() {
    let set = shared("sfq", 10, &[1, 1]);
    let mut a = Allocators::new(&set, DomainId(0)).unwrap();
    let mut d = Dispatcher::new(Limits { jobs: 1, ..a.limits() }).unwrap();
    a.begin(&mut LocalDispatcher::new(&mut d, 0), 0).unwrap();
    for index in 0..2 {
        let task = d.add_task(0).unwrap();
        a.add(&mut LocalDispatcher::new(&mut d, 0), index, task).unwrap();
    }
    let mut lost = Vec::new();
    for now in 0..=60 {
        d.advance(now);
        while let Some(event) = d.next_event() {
            a.handle(&mut LocalDispatcher::new(&mut d, now), &event, &mut |report| {
                if let ReleaseEvent::Ended { at, index, end: End::Cancelled, .. } = report {
                    lost.push((at, index));
                }
            });
        }
    }
    // Two times the quantum is its part of 90 % of the CPU.
    assert_eq!(lost, [(0, 1), (23, 1), (46, 1)]);
}
