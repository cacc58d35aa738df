//! Random hierarchies, arrivals, overruns, swaps and leavings: every reported release ends once,
//! in order and within its budget, and no task is left out.

mod support;

use oorandom::Rand32;
use punctual_dispatcher::End;
use punctual_policies::{AllocatorOptions, Allocators, LocalDispatcher, ReleaseEvent, POLICIES};
use punctual_taskset::{
    Arrival, BudgetGroupSpec, DomainId, GroupSpec, Overrun, ServerKind, TaskSet, TaskSpec,
};
use support::{group, policy, set, task, windowed, Cpu};

struct Maker(Rand32);

impl Maker {
    fn below(&mut self, n: usize) -> usize {
        self.0.rand_range(0..n as u32) as usize
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn name(&mut self) -> &'static str {
        let periodic = POLICIES.iter().filter(|policy| !policy.info.takes_weights);
        let names: Vec<&str> = periodic.map(|policy| policy.info.name).collect();
        self.one_of(&names)
    }

    fn some(&mut self, n: usize) -> Option<usize> {
        (n > 0 && self.below(2) == 0).then(|| self.below(n))
    }

    fn group(&mut self, before: usize, nodes: usize) -> GroupSpec {
        let by = self.name();
        let kind = self.one_of(&[ServerKind::Deferrable, ServerKind::Polling]);
        let period = self.one_of(&[10, 20, 40]);
        let g = match self.below(4) {
            0 => windowed("w", by, period, &[(1, 3), (6, 4)]),
            _ => group("g", by, period, 1 + self.below(period as usize / 2) as u64, kind),
        };
        GroupSpec {
            parent: self.some(before),
            budget_group: self.some(nodes),
            priority: self.below(5) as i64,
            ..g
        }
    }

    fn task(&mut self, groups: usize, nodes: usize) -> TaskSpec {
        let period = self.one_of(&[10, 20, 40, 80]);
        let budget = 1 + self.below(period as usize / 4) as u64;
        let seed = u64::from(self.0.rand_u32());
        let arrival = match self.below(6) {
            0 => Arrival::Sporadic { longest: period * 2, seed },
            1 => Arrival::Aperiodic { mean: period, seed },
            2 => Arrival::List((0..20).map(|k| k * 7 + seed % 5).collect()),
            _ => Arrival::Periodic,
        };
        TaskSpec {
            arrival,
            offset: self.below(30) as u64,
            deadline: budget + self.below((period - budget) as usize + 1) as u64,
            priority: self.below(5) as i64,
            group: self.some(groups),
            budget_group: self.some(nodes),
            mandatory: self.some(2).map(|_| 1 + self.below(budget as usize) as u64),
            promotion: Some(0),
            overrun: self.one_of(&[
                Overrun::Carry,
                Overrun::Skip,
                Overrun::Background,
                Overrun::Signal,
            ]),
            ..task("t", period, budget)
        }
    }

    fn set(&mut self) -> TaskSet {
        let mut all = set(self.name(), Vec::new());
        let nodes = self.below(3);
        for n in 0..nodes {
            let period = self.one_of(&[10, 20]);
            let parent = self.some(n);
            all.budget_groups.push(BudgetGroupSpec {
                name: format!("n{n}"),
                parent,
                period,
                budget: 1 + self.below(period as usize) as u64,
                domain: DomainId(0),
                line: None,
            });
        }
        for n in 0..self.below(4) {
            let group = self.group(n, nodes);
            all.groups.push(group);
        }
        for _ in 0..1 + self.below(6) {
            let task = self.task(all.groups.len(), nodes);
            all.tasks.push(task);
        }
        all
    }
}

#[test]
fn every_release_ends_once_whatever_happens() {
    let mut made = 0;
    let mut ends = 0;
    let mut swaps = [0, 0];
    for seed in 0..3_000 {
        let mut m = Maker(Rand32::new(seed));
        let all = m.set();
        let options =
            AllocatorOptions { job_by_job: m.below(3) == 0, ..AllocatorOptions::default() };
        if Allocators::with(&all, DomainId(0), options).is_err() {
            continue;
        }
        made += 1;
        let demand: Vec<Vec<u64>> = all
            .tasks
            .iter()
            .map(|t| (0..9).map(|_| 1 + m.below(t.budget as usize * 3 / 2 + 1) as u64).collect())
            .collect();
        let demand: Vec<&[u64]> = demand.iter().map(Vec::as_slice).collect();
        let mut cpu = Cpu::with(&all, &demand, options);
        let mut asleep: Option<usize> = None;
        for _ in 0..40 {
            cpu.run(cpu.now + 1 + m.below(15) as u64);
            match m.below(6) {
                0 => {
                    let to = policy(m.name());
                    let group = m.below(all.groups.len() + 1) as u32;
                    let now = cpu.now;
                    let swapped =
                        cpu.a.swap_group(&mut LocalDispatcher::new(&mut cpu.d, now), group, &to);
                    swaps[usize::from(swapped.is_ok())] += 1;
                }
                1 => {
                    if let Some(i) = asleep.take().filter(|&i| !cpu.tasks[i].gone) {
                        cpu.d.task_ready(cpu.tasks[i].id, cpu.now).unwrap();
                    }
                }
                2 if asleep.is_none() => {
                    let i = m.below(cpu.tasks.len());
                    if !cpu.tasks[i].gone {
                        cpu.d.task_blocked(cpu.tasks[i].id, cpu.now).unwrap();
                        asleep = Some(i);
                    }
                }
                3 if m.below(10) == 0 => {
                    let i = m.below(cpu.tasks.len());
                    if !cpu.tasks[i].gone {
                        cpu.leave(i);
                    }
                }
                _ => {}
            }
        }
        for (index, spec) in all.tasks.iter().enumerate() {
            let all_ends = cpu.ends(index as u32);
            ends += all_ends.len();
            let cancelled = all_ends.iter().any(|e| e.2 == End::Cancelled);
            assert!(!cancelled, "seed {seed}, task {index}: {all_ends:?}");
            // A grid has no gap.
            for pair in all_ends.windows(2).filter(|_| spec.arrival == Arrival::Periodic) {
                assert_eq!(
                    pair[1].1 - pair[0].1,
                    spec.period,
                    "seed {seed}, task {index}: {pair:?}"
                );
                assert_eq!(pair[1].0 - pair[0].0, 1, "seed {seed}, task {index}: {pair:?}");
            }
            if spec.arrival == Arrival::Periodic && !cpu.tasks[index].gone {
                let released = |event: &&ReleaseEvent| match event {
                    ReleaseEvent::Released { index: i, .. } => *i == index as u32,
                    _ => false,
                };
                let releases = cpu.reported.iter().filter(released).count() as u64;
                let due = if cpu.now < spec.offset {
                    0
                } else {
                    (cpu.now - spec.offset) / spec.period + 1
                };
                assert_eq!(releases, due, "seed {seed}, task {index} at {}", cpu.now);
            }
        }
        assert!(
            !cpu.reported
                .iter()
                .any(|t| matches!(t, ReleaseEvent::Lost { .. } | ReleaseEvent::EventsLost { .. })),
            "seed {seed}"
        );
    }
    assert!(
        made > 1_000 && ends > 20_000 && swaps[0] > 100 && swaps[1] > 1_000,
        "{made} {ends} {swaps:?}"
    );
}
