//! What a CPU has promised, and to which reservations.

use punctual_service::{CpuStatus, GroupStatus, ReservationInfo};

use super::{Domain, Held};
use crate::dispatchers::DispatcherLayout;
use crate::scheduling_groups::ServiceGroup;
use crate::user::User;

impl Domain {
    /// Sum of budget / period of all groups and of all reservations outside of them, parts per
    /// million.
    pub fn reserved_ppm(&mut self, layout: &DispatcherLayout) -> u64 {
        self.forget_ended();
        let outside = self.held.values().filter(|held| held.info.group.is_none()).map(Held::ppm);
        outside.sum::<u64>() + self.groups(&layout.groups).map(ServiceGroup::ppm).sum::<u64>()
    }

    /// Those of its dispatcher; while it has none, those that the next one will have.
    pub(super) fn groups<'a>(
        &'a self,
        next: &'a [ServiceGroup],
    ) -> impl Iterator<Item = &'a ServiceGroup> {
        let groups = self.run.as_ref().map_or(next, |run| &run.groups);
        groups.iter().filter(|group| group.cpu == self.cpu)
    }

    /// What the CPU has promised, as this user may see it.
    pub fn status(
        &mut self,
        caller: &User,
        limit_ppm: u64,
        layout: &DispatcherLayout,
    ) -> CpuStatus {
        CpuStatus {
            cpu: self.cpu,
            reserved_ppm: self.reserved_ppm(layout),
            own_ppm: self.of_user_ppm(caller.uid),
            limit_ppm,
        }
    }

    /// What its groups have promised.
    pub fn list_groups(&mut self, layout: &DispatcherLayout) -> Vec<GroupStatus> {
        self.forget_ended();
        let status = |group: &ServiceGroup| GroupStatus {
            name: group.name.clone(),
            cpu: self.cpu,
            period_ns: group.period_ns,
            budget_ns: group.budget_ns,
            policy: group.policy.name().to_owned(),
            reserved_ppm: self.of_group_ppm(&group.name),
        };
        self.groups(&layout.groups).map(status).collect()
    }

    pub(super) fn of_group_ppm(&self, name: &str) -> u64 {
        let is_member = |held: &&Held| held.info.group.as_deref() == Some(name);
        self.held.values().filter(is_member).map(Held::ppm).sum()
    }

    /// The reservations that this user may see.
    pub fn list(&mut self, caller: &User) -> Vec<ReservationInfo> {
        self.forget_ended();
        let may_see = |held: &&Held| caller.is_root() || held.info.uid == caller.uid;
        self.held.values().filter(may_see).map(|held| held.info.clone()).collect()
    }

    pub(super) fn of_user_ppm(&self, uid: u32) -> u64 {
        self.held.values().filter(|held| held.info.uid == uid).map(Held::ppm).sum()
    }
}
