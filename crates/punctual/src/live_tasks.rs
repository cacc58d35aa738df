//! The tasks of a run that have not ended, and the shares of others that are still in use.
//!
//! A task may have used up its budget when it ends, or gets a smaller one. So its share is kept
//! until its next release would have come; else another task could use it once more in the same
//! period, at the cost of the others. A task that does not fit beside the shares that are kept has
//! its first release when enough of them have ended, and is no hindrance to others until then.
//!
//! SCHED_DEADLINE keeps a bandwidth until the zero-lag time, which is no later (Linux,
//! Documentation/scheduler/sched-deadline.rst, 2.2); that is enough for EDF alone.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use punctual_taskset::{next_release, release_after, DomainId, TaskSpec};

use crate::handle::Completion;

/// They have names and places, and neither is another one's.
#[derive(Default)]
pub(crate) struct LiveTasks {
    by_place: BTreeMap<usize, LiveTask>,
    places: HashMap<Arc<str>, usize>,
    kept: Vec<KeptShare>,
}

/// A task that has not ended.
pub(crate) struct LiveTask {
    pub spec: TaskSpec,
    pub completion: Arc<dyn Completion>,
    /// One of its releases, or the first one, which is to come; CLOCK_MONOTONIC ns. `None`: none is
    /// known.
    released: Option<u64>,
}

impl LiveTask {
    /// Its first release after `now`, or later; ns.
    fn next_release(&self, now: u64) -> u64 {
        release_after(self.released, self.spec.period, now)
    }

    fn is_released_by(&self, time: u64) -> bool {
        self.released.is_none_or(|release| release <= time)
    }
}

/// What a task had until a change, or its end.
struct KeptShare {
    /// Of the task.
    place: usize,
    spec: TaskSpec,
    /// CLOCK_MONOTONIC, ns.
    until: u64,
}

impl LiveTasks {
    /// `first`: its first release, if that is known.
    pub fn insert(
        &mut self,
        place: usize,
        spec: TaskSpec,
        completion: Arc<dyn Completion>,
        first: Option<u64>,
    ) {
        self.places.insert(spec.name.as_str().into(), place);
        self.by_place.insert(place, LiveTask { spec, completion, released: first });
    }

    pub fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    pub fn contains(&self, place: usize) -> bool {
        self.by_place.contains_key(&place)
    }

    /// In the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &LiveTask)> {
        self.by_place.iter().map(|(&place, task)| (place, task))
    }

    pub fn specs(&self) -> impl Iterator<Item = &TaskSpec> {
        self.by_place.values().map(|task| &task.spec)
    }

    /// The task at this place.
    pub fn spec(&self, place: usize) -> Option<&TaskSpec> {
        self.by_place.get(&place).map(|task| &task.spec)
    }

    /// With their places.
    pub fn placed(&self) -> Vec<(usize, TaskSpec)> {
        self.iter().map(|(place, task)| (place, task.spec.clone())).collect()
    }

    /// A task had a release then.
    pub fn released(&mut self, name: &str, at: u64) {
        let task = self.places.get(name).and_then(|place| self.by_place.get_mut(place));
        task.into_iter().for_each(|task| task.released = Some(at));
    }

    /// A task has ended, by `now`.
    pub fn end(&mut self, name: &str, now: u64) -> Option<LiveTask> {
        let place = self.places.remove(name)?;
        let task = self.by_place.remove(&place)?;
        if task.is_released_by(now) {
            self.keep(place, task.spec.clone(), task.next_release(now), now);
        }
        Some(task)
    }

    /// Without keeping anything.
    pub fn take_all(&mut self) -> impl Iterator<Item = LiveTask> {
        self.places.clear();
        std::mem::take(&mut self.by_place).into_values()
    }

    /// The task at this place has other parameters from its next release on.
    pub fn change(&mut self, place: usize, spec: TaskSpec, now: u64) {
        let Some(task) = self.by_place.get_mut(&place) else { return };
        let until = task.next_release(now);
        let before = std::mem::replace(&mut task.spec, spec);
        self.keep(place, before, until, now);
    }

    fn keep(&mut self, place: usize, spec: TaskSpec, until: u64, now: u64) {
        self.kept.retain(|kept| kept.until > now);
        // What is kept already is of the release in progress.
        if !self.kept.iter().any(|kept| kept.place == place) {
            self.kept.push(KeptShare { place, spec, until });
        }
    }

    /// When the task at this place has its next release.
    pub fn next_release_of(&self, place: usize, now: u64) -> u64 {
        self.by_place.get(&place).map_or(now, |task| task.next_release(now))
    }

    /// The shares of a domain that are kept beyond `time`.
    fn kept(&self, domain: DomainId, time: u64) -> impl Iterator<Item = &KeptShare> {
        self.kept.iter().filter(move |kept| kept.spec.domain == domain && kept.until > time)
    }

    /// When the last share of a domain ends that is kept beyond `time`; `None`: none is.
    pub fn kept_until(&self, domain: DomainId, time: u64) -> Option<u64> {
        self.kept(domain, time).map(|kept| kept.until).max()
    }

    /// All that must fit together from `time` on, beside what must anyway: while shares of this
    /// domain are kept, and tasks have their first releases.
    pub fn combinations(&self, domain: DomainId, time: u64) -> Vec<Vec<(usize, TaskSpec)>> {
        let ends = self.ends(domain, time);
        let first = self.by_place.values().filter_map(|task| task.released);
        let mut last_before = BTreeMap::new();
        for time in std::iter::once(time).chain(first.filter(|&first| first > time)) {
            // Between two ends the last one has all tasks of those before it.
            let latest =
                last_before.entry(ends.partition_point(|&end| end <= time)).or_insert(time);
            *latest = time.max(*latest);
        }
        let while_kept = last_before.range(..ends.len()).map(|(_, &time)| time);
        while_kept.map(|time| self.at(domain, time)).collect()
    }

    /// When the shares of a domain end that are kept beyond `time`, in order.
    fn ends(&self, domain: DomainId, time: u64) -> Vec<u64> {
        let mut ends: Vec<u64> = self.kept(domain, time).map(|kept| kept.until).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// What has, or keeps, a share at `time`, by places.
    fn at(&self, domain: DomainId, time: u64) -> Vec<(usize, TaskSpec)> {
        let of = |place| self.kept(domain, time).find(|kept| kept.place == place);
        let alive = self.iter().filter(|(_, task)| task.is_released_by(time));
        let alive = alive
            .map(|(place, task)| (place, of(place).map_or(&task.spec, |kept| &kept.spec).clone()));
        let ended = self.kept(domain, time).filter(|kept| !self.contains(kept.place));
        let ended = ended.map(|KeptShare { place, spec, .. }| {
            // Another task may have its name by now.
            (*place, TaskSpec { name: format!("ended#{place}"), ..spec.clone() })
        });
        alive.chain(ended).collect()
    }

    /// The first time from `soonest` on at which a task of this domain fits beside the shares that
    /// are kept. `fits`: whether it does beside these tasks.
    pub fn first_fit(
        &self,
        domain: DomainId,
        soonest: u64,
        fits: impl Fn(Vec<TaskSpec>) -> bool,
    ) -> u64 {
        let specs = |placed: Vec<(usize, TaskSpec)>| placed.into_iter().map(|(_, spec)| spec);
        let fits_from = |time: u64| {
            let mut together = self.combinations(domain, time).into_iter();
            together.all(|placed| fits(specs(placed).collect()))
        };
        if fits_from(soonest) {
            return soonest;
        }
        // What fits once fits beside fewer, too; beside none at the last end.
        let ends = self.ends(domain, soonest);
        ends.get(ends.partition_point(|&end| !fits_from(end))).copied().unwrap_or(soonest)
    }
}

/// The first release of a task that may have it at `soonest`: then, or at a whole number of periods
/// from the one that was requested.
pub(crate) fn delayed(requested: Option<u64>, period: u64, soonest: u64) -> u64 {
    requested.map_or(soonest, |first| next_release(first, period, soonest))
}

#[cfg(test)]
mod tests;
