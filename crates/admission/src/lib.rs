//! Does it fit: the tests a task set passes before it may start.
//!
//! One test so far: the budgets of each CPU are at most [`LIMIT`] of it. Necessary for every
//! policy, and sufficient for EDF with deadlines equal to periods. Tests for deadlines shorter than
//! periods and for fixed priorities (response times, processor demand) will stand beside it, a file
//! each, and [`admit`] will ask them in turn.
//!
//! All arithmetic is on exact fractions: a set is refused for one nanosecond too many.

mod utilization;
mod verdict;

use punctual_taskset::TaskSet;

use utilization::Utilization;
pub use utilization::{Ppm, WHOLE};
pub use verdict::{CpuLoad, Cure, Over, Refusal, Verdict};

/// The most of a CPU that is ever promised, 90 %. The rest keeps the dispatcher, the kernel's own
/// threads and ordinary programs running; it is below the kernel's limit for real time, 95 %.
pub const LIMIT: Ppm = Ppm(900_000);

/// Whether each CPU of a set can keep what the set promises on it.
///
/// # Errors
/// The budgets on one or more CPUs are more than [`LIMIT`] of it: all such CPUs, each with the
/// least change that would make it fit.
pub fn admit(set: &TaskSet) -> Result<Verdict, Refusal> {
    let mut cpus = Vec::new();
    let mut over = Vec::new();
    for (cpu, tasks) in by_cpu(set) {
        let utilization = Utilization::sum(
            tasks
                .iter()
                .map(|&task| (set.tasks[task].budget, set.tasks[task].period)),
        );
        let load = CpuLoad {
            cpu,
            tasks: tasks.len(),
            utilization: utilization.ppm(),
        };
        cpus.push(load);
        if let Some(excess) = utilization.above(LIMIT) {
            over.push(Over {
                load,
                excess: excess.ppm(),
                cure: cure(set, &tasks, &utilization, &excess),
            });
        }
    }
    if over.is_empty() {
        Ok(Verdict { cpus })
    } else {
        Err(Refusal { cpus, over })
    }
}

/// The tasks of each CPU, as indices: the set's CPUs in its order, and after them any that only a
/// task names (no file can, a program might).
fn by_cpu(set: &TaskSet) -> Vec<(u32, Vec<usize>)> {
    let mut cpus: Vec<(u32, Vec<usize>)> = set.cpus.iter().map(|&cpu| (cpu, Vec::new())).collect();
    let mut place: std::collections::HashMap<u32, usize> = set
        .cpus
        .iter()
        .enumerate()
        .map(|(index, &cpu)| (cpu, index))
        .collect();
    for (index, task) in set.tasks.iter().enumerate() {
        let at = *place.entry(task.cpu).or_insert_with(|| {
            cpus.push((task.cpu, Vec::new()));
            cpus.len() - 1
        });
        cpus[at].1.push(index);
    }
    cpus
}

/// The least change: one budget, of the task that loses the smallest part of its own by it, which
/// is the one with the largest utilization. Of equals the one with the longest period, which feels
/// a cut least; then the first. If even that task cannot spare it, all of them together.
fn cure(set: &TaskSet, tasks: &[usize], all: &Utilization, excess: &Utilization) -> Cure {
    let share = |index: usize| {
        let task = &set.tasks[index];
        (u128::from(task.budget), u128::from(task.period))
    };
    let largest = tasks.iter().copied().reduce(|best, next| {
        let ((b1, p1), (b2, p2)) = (share(best), share(next));
        // Products of two 64-bit numbers: exact.
        if (b2 * p1, p2) > (b1 * p2, p1) {
            next
        } else {
            best
        }
    });
    let lowered = largest.and_then(|index| {
        let task = &set.tasks[index];
        let to = task.budget.checked_sub(excess.of(task.period))?;
        (to > 0).then(|| Cure::Lower {
            task: index,
            name: task.name.clone(),
            line: task.line,
            from: task.budget,
            to,
        })
    });
    lowered.unwrap_or_else(|| Cure::Scale {
        to: all.factor_to(LIMIT),
    })
}
