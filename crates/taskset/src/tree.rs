//! What scheduling groups and budget groups have in common: names, parents without cycles, CPUs.
//!
//! Members are known by their index, in file order. A parent may stand anywhere in the file.

use std::collections::HashMap;

use crate::checks::{MOST_BUDGET_GROUPS, MOST_GROUPS, MOST_LEVELS};
use crate::cpus;
use crate::duration::quote;
use crate::keys::nearest;
use crate::reader::{Problems, Span};

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
pub(crate) const GROUPS: Kind = Kind { called: "group", most: MOST_GROUPS, levels: MOST_LEVELS - 1 };

/// Budget groups without a parent are the first level.
pub(crate) const BUDGET_GROUPS: Kind = Kind { called: "budget group", most: MOST_BUDGET_GROUPS, levels: MOST_LEVELS };

impl Kind {
    pub(crate) fn key(&self) -> String {
        self.called.replace(' ', "_")
    }
}

/// What a tree needs to know of a member.
pub(crate) struct Member {
    pub(crate) at: Span,
    /// How its messages begin.
    pub(crate) whose: String,
    pub(crate) name: Option<(Span, String)>,
    pub(crate) parent: Option<(Span, String)>,
    pub(crate) cpu: Option<(Span, u32)>,
    /// Whether it says which CPU, even one that is at fault.
    pub(crate) says_cpu: bool,
}

/// All members of one kind, their parents and CPUs found.
pub(crate) struct Tree {
    kind: &'static Kind,
    names: HashMap<String, usize>,
    /// The parent of each; `None` for the top.
    pub(crate) parents: Vec<Option<usize>>,
    /// The CPU of each: its own, its parent's or the only one; `None` when that is at fault.
    pub(crate) cpus: Vec<Option<u32>>,
}

impl Tree {
    /// Finds out parents and CPUs, and says what is wrong with them.
    pub(crate) fn build(
        kind: &'static Kind,
        members: &[Member],
        cpus: Option<&[u32]>,
        problems: &mut Problems<'_>,
    ) -> Tree {
        let mut tree =
            Tree { kind, names: HashMap::new(), parents: vec![None; members.len()], cpus: vec![None; members.len()] };
        if let Some(beyond) = members.get(kind.most) {
            problems.add(&beyond.at, || {
                let cause = format!("the set has {} {}s, more than {}", members.len(), kind.called, kind.most);
                (cause, "merge some of them, or make several sets of it".to_owned())
            });
            // No more is said of so many: what follows looks at each pair of ancestors.
            return tree;
        }
        tree.name(members, problems);
        for (index, member) in members.iter().enumerate() {
            if let Some((at, name)) = &member.parent {
                tree.parents[index] = tree.find(&member.whose, "parent", at, name, problems);
            }
        }
        tree.break_cycles(members, problems);
        tree.measure(members, problems);
        tree.place(members, cpus, problems);
        tree
    }

    fn name(&mut self, members: &[Member], problems: &mut Problems<'_>) {
        for (index, member) in members.iter().enumerate() {
            let Some((at, name)) = &member.name else { continue };
            let Some(first) = self.names.get(name).copied() else {
                self.names.insert(name.clone(), index);
                continue;
            };
            let line = problems.line_if_first(at, &members[first].at);
            problems.add(at, || {
                let kind = self.kind.called;
                let cause = format!("name {} is taken by the {kind} on line {line}", quote(name));
                (cause, format!("give each {kind} a name of its own"))
            });
        }
    }

    /// The member that a key of `whose` names.
    pub(crate) fn find(
        &self,
        whose: &str,
        key: &str,
        at: &Span,
        name: &str,
        problems: &mut Problems<'_>,
    ) -> Option<usize> {
        if let Some(index) = self.names.get(name) {
            return Some(*index);
        }
        // With too many members nobody has been named; that is the problem then.
        if self.names.is_empty() && !self.parents.is_empty() {
            return None;
        }
        problems.add(at, || {
            let cause = format!("{whose}there is no {} {}", self.kind.called, quote(name));
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
        while let Some(parent) = self.parents[cycle[cycle.len() - 1]].filter(|&parent| parent != on_it) {
            cycle.push(parent);
        }
        let first = (0..cycle.len()).min_by_key(|&n| cycle[n]).unwrap_or(0);
        cycle.rotate_left(first);
        let head = cycle[0];
        let kind = self.kind.called;
        if let Some((at, _)) = &members[head].parent {
            problems.add(at, || {
                let mut names: Vec<String> = cycle
                    .iter()
                    .take(8)
                    .map(|&n| members[n].name.as_ref().map_or(String::new(), |n| quote(&n.1)))
                    .collect();
                if cycle.len() > names.len() {
                    names.push("...".to_owned());
                }
                names.push(names[0].clone());
                let cause = if cycle.len() == 1 {
                    format!("{}it is its own parent", members[head].whose)
                } else {
                    format!("{}its parents lead back to it: {}", members[head].whose, names.join(" -> "))
                };
                (cause, format!("remove one parent: the {kind} without one is at the top"))
            });
        }
        self.parents[head] = None;
    }

    fn measure(&self, members: &[Member], problems: &mut Problems<'_>) {
        for (index, member) in members.iter().enumerate() {
            let levels = self.ancestors(index).count();
            if let (true, Some((at, _))) = (levels > self.kind.levels, &member.parent) {
                problems.add(at, || {
                    let kind = self.kind.called;
                    let (most, top) =
                        if self.kind.levels < MOST_LEVELS { (MOST_LEVELS, " with the top") } else { (MOST_LEVELS, "") };
                    let levels = levels + most - self.kind.levels;
                    let cause = format!("{}the {kind}s are {levels} levels deep{top}, more than {most}", member.whose);
                    (cause, "give it a parent that is nearer to the top".to_owned())
                });
            }
        }
    }

    /// A member and all above it.
    fn ancestors(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(index), |&index| self.parents[index])
    }

    /// The CPU of each: whoever names none is on its parent's, or on the only one of the set.
    fn place(&mut self, members: &[Member], cpus: Option<&[u32]>, problems: &mut Problems<'_>) {
        for (index, member) in members.iter().enumerate() {
            let named = self.ancestors(index).find_map(|index| members[index].cpu.as_ref());
            self.cpus[index] = match (named, cpus) {
                (Some((_, cpu)), _) => Some(*cpu),
                (None, Some([only])) => Some(*only),
                (None, _) => None,
            };
            if let (None, Some((cause, help)), false) =
                (named, cpus::unnamed(cpus), member.says_cpu || member.parent.is_some())
            {
                problems.add(&member.at, || (format!("{}{cause}", member.whose), help));
            }
        }
        for (index, member) in members.iter().enumerate() {
            if let (Some(parent), Some((at, _))) = (self.parents[index], &member.parent) {
                self.same_cpu(&member.whose, at, parent, self.cpus[index], problems);
            }
        }
    }

    /// Refuses whoever names a member on another CPU: there is one dispatcher for each.
    pub(crate) fn same_cpu(
        &self,
        whose: &str,
        at: &Span,
        member: usize,
        cpu: Option<u32>,
        problems: &mut Problems<'_>,
    ) {
        if let (Some(there), Some(here)) = (self.cpus[member], cpu) {
            if there != here {
                problems.add(at, || {
                    let kind = self.kind.called;
                    let cause = format!("{whose}it is on CPU {here}, and this {kind} on CPU {there}");
                    (cause, format!("give both the same cpu, or name a {kind} of CPU {here}"))
                });
            }
        }
    }
}
