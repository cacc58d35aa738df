//! Policies that were stopped: their groups get another one.

use punctual_taskset::{registry, PolicySpec};
use punctual_trace::PolicyStop;

use crate::{Allocators, Gsi, PolicySwap, ReleaseEvent};

impl Allocators {
    /// Gives each group whose policy was stopped another one, at this instant. A release for which
    /// it panicked is lost; others in flight end with the job that they have.
    pub(crate) fn replace_stopped(
        &mut self,
        gsi: &mut dyn Gsi,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        for group in 0..self.groups.len() as u32 {
            let at_work = &mut self.at_work[self.groups[group as usize] as usize];
            let policy = at_work.entry.info.name;
            let Some(cause) = at_work.take_stop() else { continue };
            let fallback = self.fall_back(gsi, group);
            let at = gsi.now();
            report(ReleaseEvent::PolicyStopped(PolicyStop { at, group, policy, cause, fallback }));
        }
    }

    /// What fits under another policy fits under `edf`; a sporadic server needs fixed priorities.
    fn fall_back(&mut self, gsi: &mut dyn Gsi, group: u32) -> Option<&'static str> {
        [&registry::EDF, &registry::RM].into_iter().map(|info| info.name).find(|name| {
            let mut set = self.set.clone();
            *crate::swap::spec_of(&mut set, group) = PolicySpec::named(*name);
            let prepared = PolicySwap::prepare(&self.set, &set, self.domain, self.options);
            // The dispatcher can refuse the priority of a server; the policy is another one then,
            // too.
            prepared.map(|mut swap| self.swap(gsi, &mut swap)).is_ok()
        })
    }
}
