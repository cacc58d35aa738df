//! Scheduling groups: their tree, the path above a job, and selection.

use punctual_dispatcher::{For, Refusal, Standing};

use super::{Model, ModelJob};

impl Model {
    /// Levels from a group up to one without parent, which has depth 1.
    fn depth(&self, group: u32) -> u32 {
        match self.groups[group as usize].parent {
            Some(parent) => 1 + self.depth(parent),
            None => 1,
        }
    }

    /// Levels from a group down to its deepest descendant.
    fn height(&self, group: u32) -> u32 {
        let children =
            (0..self.limits.groups).filter(|g| self.groups[*g as usize].parent == Some(group));
        1 + children.map(|g| self.height(g)).max().unwrap_or(0)
    }

    fn is_above(&self, ancestor: u32, group: u32) -> bool {
        ancestor == group
            || self.groups[group as usize].parent.is_some_and(|p| self.is_above(ancestor, p))
    }

    /// Whether a server job in `parent` may serve `group`.
    pub(super) fn check_parent(&self, group: u32, parent: u32) -> Result<(), Refusal> {
        let fits = match self.groups[group as usize].parent {
            Some(fixed) => fixed == parent,
            None => {
                !self.is_above(group, parent)
                    && self.depth(parent) + self.height(group) <= self.limits.depth
            }
        };
        if fits {
            Ok(())
        } else {
            Err(Refusal::Tree)
        }
    }

    fn is_ready(job: &ModelJob) -> bool {
        job.standing == Standing::Ready
    }

    /// The server job that stands for `group` in its parent.
    fn server_of(&self, group: u32) -> Option<&ModelJob> {
        let begun =
            |j: &&ModelJob| j.attr.serves == For::Group(group) && j.standing != Standing::Waiting;
        self.jobs.iter().filter(begun).min_by(|a, b| {
            let readiness = Model::is_ready(b).cmp(&Model::is_ready(a));
            readiness.then_with(|| self.compare(a.attr.group, a, b))
        })
    }

    /// From the job upwards, and whether it reaches group 0.
    pub fn path(&self, id: u64) -> (Vec<u64>, bool) {
        let job = self.job(id).expect("it is there");
        let mut path = vec![id];
        if job.attr.group == 0 {
            return (path, true);
        }
        match self.server_of(job.attr.group) {
            Some(server) => {
                let (above, reaches) = self.path(server.id);
                path.extend(above);
                (path, reaches)
            }
            None => (path, false),
        }
    }

    /// The ready members of a group, best first.
    fn queue(&self, group: u32) -> Vec<&ModelJob> {
        let is_segment = |j: &ModelJob| matches!(j.attr.serves, For::Budget(_));
        let mut queue: Vec<_> = self
            .jobs
            .iter()
            .filter(|j| j.attr.group == group && Model::is_ready(j) && !is_segment(j))
            .collect();
        queue.sort_by(|a, b| self.compare(group, a, b));
        queue
    }

    /// From `group` down to the best job that executes none of the tasks that are asleep.
    fn best_below(&self, group: u32, asleep: &[u32]) -> Option<Vec<u64>> {
        for job in self.queue(group) {
            match job.attr.serves {
                For::Task(task) if asleep.contains(&self.executed(task.0)) => {}
                For::Task(_) => return Some(vec![job.id]),
                For::Group(served) => {
                    if let Some(below) = self.best_below(served, asleep) {
                        return Some([vec![job.id], below].concat());
                    }
                }
                For::Budget(_) => unreachable!("segments stand in no queue"),
            }
        }
        None
    }

    /// The paths to the selected job and to those that would follow it if its task slept, and so
    /// on; at most `most`.
    pub fn ranked(&self, most: usize) -> Vec<Vec<u64>> {
        let mut asleep = Vec::new();
        let mut ranked = Vec::new();
        while ranked.len() < most {
            let Some(path) = self.best_below(0, &asleep) else { break };
            let last = path.last().and_then(|id| self.job(*id)).expect("it was found");
            asleep.extend(last.task().map(|task| self.executed(task)));
            ranked.push(path);
        }
        ranked
    }
}
