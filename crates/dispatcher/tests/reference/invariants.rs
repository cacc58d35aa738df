//! The invariants of the design (section 3), checked from the outside: on what the real dispatcher
//! says and what it was given.

use punctual_dispatcher::{For, JobId, Limits, Standing};

use crate::model::{Model, ModelEvent, ModelJob};
use crate::pair::Pair;

impl Pair {
    fn real_standing(&self, job: &ModelJob) -> Option<Standing> {
        self.real.standing(self.names.job(job.id))
    }

    /// Whether selection, going down from group 0, can come to this group.
    fn is_served(&self, group: u32) -> bool {
        group == 0
            || self.model.jobs.iter().any(|j| {
                j.attr.serves == For::Group(group)
                    && self.real_standing(j) == Some(Standing::Ready)
                    && self.is_served(j.attr.group)
            })
    }

    /// Invariants 1 and 2.
    pub fn check_selection(&self, selected: Option<JobId>) {
        let Some(selected) = selected else {
            for job in &self.model.jobs {
                let ready =
                    job.task().is_some() && self.real_standing(job) == Some(Standing::Ready);
                assert!(
                    !ready || !self.is_served(job.attr.group),
                    "the CPU idles and {job:?} waits for it"
                );
            }
            return;
        };
        if !self.fresh {
            return;
        }
        let now = self.now;
        for id in self.real.path(0) {
            let job =
                self.names.model_job(id).and_then(|id| self.model.job(id)).expect("it is there");
            assert!(
                job.attr.start <= now && now < job.attr.finish,
                "outside its window at {now}: {job:?}"
            );
            assert!(self.real.remaining(id) > 0, "beyond its budget: {job:?}");
            for node in self.model.chain(job.attr.budget_group) {
                let pays = |j: &&ModelJob| {
                    j.attr.serves == For::Budget(node)
                        && self.real_standing(j) == Some(Standing::Open)
                        && (j.attr.start <= now && now < j.attr.finish)
                        && self.real.remaining(self.names.job(j.id)) > 0
                };
                assert!(
                    self.model.jobs.iter().any(|j| pays(&j)),
                    "no segment of node {node} is charged for {job:?}"
                );
            }
        }
        assert!(self.real.allowance(selected) > 0, "beyond a budget above it");
    }
}

/// Invariants 3 and 4: the charges at every level of both trees, and the jobs that ended.
#[derive(Clone)]
pub struct Ledger {
    /// Charged on paths through each group, and to each node.
    groups: Vec<u128>,
    nodes: Vec<u128>,
    /// Used by those that have ended: members of each group, segments of each node.
    ended_groups: Vec<u128>,
    ended_nodes: Vec<u128>,
    /// Where jobs stand, by their numbers, and whether they have ended: group or node.
    places: Vec<(For, u32, bool)>,
}

impl Ledger {
    pub fn new(limits: &Limits) -> Ledger {
        let groups = vec![0; limits.groups as usize];
        let nodes = vec![0; limits.budget_groups as usize + 1];
        let places = vec![(For::Group(0), 0, true)];
        Ledger {
            groups: groups.clone(),
            nodes: nodes.clone(),
            ended_groups: groups,
            ended_nodes: nodes,
            places,
        }
    }

    /// Before `ran` is charged to a job.
    pub fn charge(&mut self, model: &Model, id: u64, ran: u64) {
        let Some(job) = model.job(id) else { return };
        let (path, _) = model.path(id);
        if let For::Budget(node) = job.attr.serves {
            self.nodes[node as usize] += u128::from(ran);
        } else {
            for id in &path {
                let group = model.job(*id).expect("it is there").attr.group;
                self.groups[group as usize] += u128::from(ran);
            }
        }
        for node in model.nodes_above(&path) {
            if model.current(node).is_some() {
                self.nodes[node as usize] += u128::from(ran);
            }
        }
    }

    /// Records the ends in `events`: each job ends once.
    pub fn ended(&mut self, events: &[ModelEvent]) {
        for event in events {
            let (ModelEvent::Ended { job, used, .. }
            | ModelEvent::WindowEnded { job, used, .. }
            | ModelEvent::SegmentEnded { job, used, .. }) = event
            else {
                continue;
            };
            if let Some((serves, group, ended)) = self.places.get_mut(*job as usize) {
                assert!(!*ended, "job {job} ended twice");
                *ended = true;
                match serves {
                    For::Budget(node) => self.ended_nodes[*node as usize] += u128::from(*used),
                    _ => self.ended_groups[*group as usize] += u128::from(*used),
                }
            } else {
                // It ended in the call that made it.
                assert_eq!(*used, 0, "job {job} was never there");
            }
        }
    }

    /// Remembers where the jobs stand that are there now.
    fn register(&mut self, model: &Model) {
        for job in &model.jobs {
            if self.places.len() <= job.id as usize {
                self.places.resize(job.id as usize, (For::Group(0), 0, true));
                self.places.push((job.attr.serves, job.attr.group, false));
            }
        }
    }
}

impl Pair {
    /// Time executed = time charged, at every level of both trees.
    pub fn check_ledger(&mut self) {
        self.ledger.register(&self.model);
        let mut groups = self.ledger.ended_groups.clone();
        let mut nodes = self.ledger.ended_nodes.clone();
        for job in &self.model.jobs {
            let used = u128::from(self.real.used(self.names.job(job.id)));
            match job.attr.serves {
                For::Budget(node) => nodes[node as usize] += used,
                _ => groups[job.attr.group as usize] += used,
            }
        }
        assert_eq!(
            groups, self.ledger.groups,
            "used by the members of each group, and charged to it"
        );
        assert_eq!(
            nodes, self.ledger.nodes,
            "used by the segments of each node, and charged to it"
        );
    }
}
