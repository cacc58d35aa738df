//! Budget groups: nodes, their segments, and what they allow.

use punctual_dispatcher::{For, Refusal, Standing};

use super::{Model, ModelJob};

impl Model {
    pub(super) fn is_made(&self, node: u32) -> bool {
        self.parent_of_node(node).is_some()
    }

    /// Of a node that is made.
    pub fn parent_of_node(&self, node: u32) -> Option<u32> {
        self.nodes.get(node as usize).copied().flatten()
    }

    /// A node and all above it, upwards.
    pub fn chain(&self, node: u32) -> Vec<u32> {
        let mut chain = Vec::new();
        let mut at = node;
        while at != 0 {
            chain.push(at);
            at = self.nodes[at as usize].expect("it is made");
        }
        chain
    }

    /// Whether a segment of `node` may say that `parent` is above it.
    pub(super) fn check_node(&self, node: u32, parent: u32) -> Result<(), Refusal> {
        let fits = match self.nodes[node as usize] {
            Some(fixed) => fixed == parent,
            None => node != parent && self.chain(parent).len() < self.limits.depth as usize,
        };
        if fits {
            Ok(())
        } else {
            Err(Refusal::Tree)
        }
    }

    pub(super) fn make_node(&mut self, node: u32, parent: u32) {
        self.nodes[node as usize] = Some(parent);
    }

    /// The segment that pays: of those that are open, the one that expires first.
    pub fn current(&self, node: u32) -> Option<&ModelJob> {
        let open =
            |j: &&ModelJob| j.attr.serves == For::Budget(node) && j.standing == Standing::Open;
        self.jobs.iter().filter(open).min_by_key(|j| (j.attr.finish, j.id))
    }

    pub(super) fn is_dry(&self, node: u32) -> bool {
        self.current(node).is_none()
    }

    /// The nodes above any job of a path, each once.
    pub fn nodes_above(&self, path: &[u64]) -> Vec<u32> {
        let mut nodes = Vec::new();
        for id in path {
            for node in self.chain(self.job(*id).expect("it is there").attr.budget_group) {
                if !nodes.contains(&node) {
                    nodes.push(node);
                }
            }
        }
        nodes
    }

    /// What a job may execute before a budget on its path or above it ends.
    pub fn allowance(&self, id: u64) -> u64 {
        let (path, _) = self.path(id);
        let of_jobs = path.iter().map(|id| self.job(*id).expect("it is there").remaining);
        let of_nodes =
            self.nodes_above(&path).into_iter().map(|n| self.current(n).map_or(0, |s| s.remaining));
        of_jobs.chain(of_nodes).min().expect("the job itself")
    }
}
