//! The admission test that a policy of the program brings.

use punctual_taskset::{GroupDemand, MemberDemand};

use crate::analysed_task::{AnalysedTask, Deferral, Entity, Outcome};
use crate::group_test::GroupTest;
use crate::hierarchy::Hierarchy;
use crate::interference::Interference;
use crate::members::OwnTest;
use crate::results::Test;
use crate::supply::{Supply, NEVER};

impl Hierarchy<'_> {
    /// A member whose response the test bounds by its deadline fits.
    pub(crate) fn test_by_own(
        &self,
        test: OwnTest,
        members: Vec<AnalysedTask>,
        supply: &Supply,
        host: &Interference,
    ) -> GroupTest {
        let demands: Vec<MemberDemand<'_>> = members.iter().map(|m| self.demand_of(m)).collect();
        let time_for = |execution| {
            Some(host.time_for(u128::from(execution), supply)).filter(|&time| time != NEVER)
        };
        let responses = (test.0)(&GroupDemand { members: &demands, supply: &time_for });
        let outcome = |(place, m): (usize, &AnalysedTask)| {
            let response = responses.get(place).copied().flatten();
            match response {
                // A budget group may hold it back, of which the test knows nothing.
                Some(response) if response <= m.deadline && m.limited_by.is_none() => {
                    Outcome::within(response, false)
                }
                _ => Outcome { response, ..Outcome::LATE },
            }
        };
        let outcomes = members.iter().enumerate().map(outcome).collect();
        GroupTest { members, outcomes, test: Test::Own, failure: None }
    }

    fn demand_of(&self, member: &AnalysedTask) -> MemberDemand<'_> {
        let (name, priority) = match member.entity {
            Entity::Task(index) | Entity::Unguaranteed(index) => {
                let task = &self.set.tasks[index];
                (&task.name, task.priority)
            }
            Entity::Server(index) => {
                let group = &self.set.groups[index];
                (&group.name, group.priority)
            }
        };
        MemberDemand {
            name,
            budget: member.cost(),
            period: member.period,
            deadline: member.deadline,
            jitter: member.jitter,
            blocking: member.blocking,
            priority,
            suspends: member.deferral != Deferral::Never,
        }
    }
}
