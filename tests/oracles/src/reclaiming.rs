//! Random sets whose tasks reclaim the budgets that others do not use.

use punctual_taskset::{Body, Spin, TaskSet};

use crate::Random;

/// EDF with reclaiming at the top. Some tasks always want to execute.
pub fn reclaiming(mut set: TaskSet, random: &mut Random) -> TaskSet {
    set.policy.name = "edf".to_owned();
    set.policy.reclaim = true;
    for task in &mut set.tasks {
        if task.group.is_none() && random.once_in(3) {
            task.body = Body::Spin(Spin::Forever);
        }
    }
    set
}
