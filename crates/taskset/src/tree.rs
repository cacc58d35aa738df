//! What scheduling groups and budget groups have in common: names, parents without cycles, domains.
//!
//! Members are known by their index, in file order. A parent may stand anywhere in the file.

use std::collections::HashMap;

use crate::checks::{MOST_BUDGET_GROUPS, MOST_GROUPS, MOST_LEVELS};
use crate::cpus;
use crate::duration::quote;
use crate::explain::nearest;
use crate::problems::Problems;
use crate::value::{At, Span};
use crate::{DomainId, DomainSpec};

/// One of the two kinds of tree.
pub(crate) struct Kind {
    /// How a member is called, which with `_` for its blanks is its key.
    pub(crate) called: &'static str,
    /// The most members.
    pub(crate) most: usize,
    /// The most levels below the top.
    pub(crate) levels: usize,
}

/// Group 0, which no file names, is the first level.
pub(crate) const GROUPS: Kind =
    Kind { called: "group", most: MOST_GROUPS, levels: MOST_LEVELS - 1 };

/// Budget groups without a parent are the first level.
pub(crate) const BUDGET_GROUPS: Kind =
    Kind { called: "budget group", most: MOST_BUDGET_GROUPS, levels: MOST_LEVELS };

impl Kind {
    pub(crate) fn key(&self) -> String {
        self.called.replace(' ', "_")
    }
}

/// What a tree needs of a member.
pub(crate) struct Member {
    pub(crate) at: Span,
    pub(crate) name: Option<At<String>>,
    pub(crate) parent: Option<At<String>>,
    /// That of the CPU it names itself, if that is one of the set's.
    pub(crate) domain: Option<DomainId>,
    /// Whether it names a CPU, even one that is at fault.
    pub(crate) names_cpu: bool,
}

/// All members of one kind, their parents and domains found.
pub(crate) struct Tree<'d> {
    kind: &'static Kind,
    /// Those of the set; `None` when they are at fault.
    of_the_set: Option<&'d [DomainSpec]>,
    names: HashMap<String, usize>,
    /// The parent of each; `None` for the top.
    pub(crate) parents: Vec<Option<usize>>,
    /// The domain of each: its own, its parent's or the only one; `None` when that is at fault.
    pub(crate) domains: Vec<Option<DomainId>>,
}

impl<'d> Tree<'d> {
    /// Finds parents and domains, and reports what is wrong with them.
    pub(crate) fn build(
        kind: &'static Kind,
        members: &[Member],
        of_the_set: Option<&'d [DomainSpec]>,
        problems: &mut Problems<'_>,
    ) -> Tree<'d> {
        let (parents, domains) = (vec![None; members.len()], vec![None; members.len()]);
        let mut tree = Tree { kind, of_the_set, names: HashMap::new(), parents, domains };
        if let Some(beyond) = members.get(kind.most) {
            problems.add(&beyond.at, || {
                let cause = format!(
                    "the set has {} {}s, more than {}",
                    members.len(),
                    kind.called,
                    kind.most
                );
                (cause, "merge some of them, or make several sets of it".to_owned())
            });
            // No more is said of so many: what follows looks at each pair of ancestors.
            return tree;
        }
        tree.name(members, problems);
        for (index, member) in members.iter().enumerate() {
            if let Some(parent) = &member.parent {
                tree.parents[index] = tree.find("parent", parent, problems);
            }
        }
        tree.break_cycles(members, problems);
        tree.measure(members, problems);
        tree.place(members, problems);
        tree
    }

    fn name(&mut self, members: &[Member], problems: &mut Problems<'_>) {
        for (index, member) in members.iter().enumerate() {
            let Some(name) = &member.name else { continue };
            let Some(first) = self.names.get(&name.value).copied() else {
                self.names.insert(name.value.clone(), index);
                continue;
            };
            let line = problems.line_if_first(&name.span, &members[first].at);
            problems.add(&name.span, || {
                let kind = self.kind.called;
                let cause = format!("name {} is taken by the {kind} on line {line}", quote(name));
                (cause, format!("give each {kind} a name of its own"))
            });
        }
    }

    /// The member that the value of `key` names.
    pub(crate) fn find(
        &self,
        key: &str,
        name: &At<String>,
        problems: &mut Problems<'_>,
    ) -> Option<usize> {
        if let Some(index) = self.names.get(&name.value) {
            return Some(*index);
        }
        // With too many members none is named; that is the problem then.
        if self.names.is_empty() && !self.parents.is_empty() {
            return None;
        }
        problems.add(&name.span, || {
            let cause = format!("there is no {} {}", self.kind.called, quote(name));
            // The nearest first in the alphabet, not in a hash table.
            let mut known: Vec<&str> = self.names.keys().map(String::as_str).collect();
            known.sort_unstable();
            let help = match nearest(name, &known) {
                Some(near) => format!("did you mean {}?", quote(near)),
                None => format!("add a [[{}]] of that name, or remove {key}", self.kind.key()),
            };
            (cause, help)
        });
        None
    }

    /// Refuses each cycle once, at its first member in the file, and cuts it there.
    fn break_cycles(&mut self, members: &[Member], problems: &mut Problems<'_>) {
        // The walk on which a member was first met.
        let mut met = vec![usize::MAX; members.len()];
        for walk in 0..members.len() {
            let mut here = Some(walk);
            while let Some(index) = here {
                if met[index] == walk {
                    self.refuse_cycle(index, members, problems);
                    break;
                }
                if met[index] != usize::MAX {
                    break;
                }
                met[index] = walk;
                here = self.parents[index];
            }
        }
    }

    fn refuse_cycle(&mut self, on_it: usize, members: &[Member], problems: &mut Problems<'_>) {
        let mut cycle = vec![on_it];
        while let Some(parent) =
            self.parents[cycle[cycle.len() - 1]].filter(|&parent| parent != on_it)
        {
            cycle.push(parent);
        }
        let first = (0..cycle.len()).min_by_key(|&n| cycle[n]).unwrap_or(0);
        cycle.rotate_left(first);
        let head = cycle[0];
        let kind = self.kind.called;
        if let Some(parent) = &members[head].parent {
            problems.add(&parent.span, || {
                let mut names: Vec<String> = cycle
                    .iter()
                    .take(8)
                    .map(|&n| members[n].name.as_ref().map_or(String::new(), |name| quote(name)))
                    .collect();
                if cycle.len() > names.len() {
                    names.push("...".to_owned());
                }
                names.push(names[0].clone());
                let cause = if cycle.len() == 1 {
                    "it is its own parent".to_owned()
                } else {
                    format!("its parents lead back to it: {}", names.join(" -> "))
                };
                (cause, format!("remove one parent: the {kind} without one is at the top"))
            });
        }
        self.parents[head] = None;
    }

    fn measure(&self, members: &[Member], problems: &mut Problems<'_>) {
        for (index, member) in members.iter().enumerate() {
            let levels = self.ancestors(index).count();
            if let (true, Some(parent)) = (levels > self.kind.levels, &member.parent) {
                problems.add(&parent.span, || {
                    let kind = self.kind.called;
                    let (most, top) = if self.kind.levels < MOST_LEVELS {
                        (MOST_LEVELS, " with the top")
                    } else {
                        (MOST_LEVELS, "")
                    };
                    let levels = levels + most - self.kind.levels;
                    let cause =
                        format!("the {kind}s are {levels} levels deep{top}, more than {most}");
                    (cause, "give it a parent that is nearer to the top".to_owned())
                });
            }
        }
    }

    /// A member and all above it.
    fn ancestors(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(index), |&index| self.parents[index])
    }

    /// The domain of each: its own, else its parent's, else the only one of the set.
    fn place(&mut self, members: &[Member], problems: &mut Problems<'_>) {
        for (index, member) in members.iter().enumerate() {
            let named = self.ancestors(index).find_map(|index| members[index].domain);
            self.domains[index] = named.or(cpus::only(self.of_the_set));
            if named.is_none() && !member.names_cpu && member.parent.is_none() {
                cpus::refuse_unnamed(self.of_the_set, &member.at, problems);
            }
        }
        for (index, member) in members.iter().enumerate() {
            if let (Some(parent), Some(found)) = (self.parents[index], &member.parent) {
                self.same_domain(&found.span, parent, self.domains[index], problems);
            }
        }
    }

    /// Refuses a reference to a member of another domain: each has a dispatcher of its own.
    pub(crate) fn same_domain(
        &self,
        at: &Span,
        member: usize,
        domain: Option<DomainId>,
        problems: &mut Problems<'_>,
    ) {
        let (Some(there), Some(here)) = (self.domains[member], domain) else { return };
        if there == here {
            return;
        }
        let Some([here, there]) =
            self.of_the_set.map(|all| [here, there].map(|id| &all[id.0 as usize]))
        else {
            return;
        };
        problems.add(at, || {
            let kind = self.kind.called;
            let cause = format!("it is on {here}, and this {kind} on {there}");
            (cause, format!("give both the same cpu, or name a {kind} of {here}"))
        });
    }
}
