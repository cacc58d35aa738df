//! The test of one group's members, by fixed priorities or under EDF.

use crate::analysed_task::{AnalysedTask, DeadlineMet, Deferral, Entity, Outcome};
use crate::demand::Demand;
use crate::hierarchy::Hierarchy;
use crate::interference::Interference;
use crate::members::Policy;
use crate::promotion::promote;
use crate::results::Test;
use crate::step_limit::{self, StepLimit};
use crate::supply::{Supply, NEVER};
use crate::{edf_response, offset_demand, reclaiming, response, self_suspension};

/// The members of a group with their outcomes.
pub(crate) struct GroupTest {
    pub(crate) members: Vec<AnalysedTask>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) test: Test,
    /// Under EDF: the longest interval whose demand is not sure to be supplied, ns.
    pub(crate) failure: Option<u64>,
}

impl GroupTest {
    /// No member is sure to meet its deadline.
    pub(crate) fn all_late(members: Vec<AnalysedTask>) -> GroupTest {
        GroupTest {
            outcomes: vec![Outcome::LATE; members.len()],
            members,
            test: Test::None,
            failure: None,
        }
    }

    /// The demand test has this outcome for all members.
    fn no_demand(members: Vec<AnalysedTask>, outcome: Outcome) -> GroupTest {
        let outcomes = vec![outcome; members.len()];
        GroupTest { members, outcomes, test: Test::ProcessorDemand, failure: Some(NEVER) }
    }
}

impl Hierarchy<'_> {
    /// Response-time analysis.
    pub(crate) fn test_by_priority(
        &mut self,
        policy: Policy<'_>,
        members: Vec<AnalysedTask>,
        supply: &Supply,
        host: &Interference,
    ) -> GroupTest {
        let mut outcomes =
            response::responses(&members, supply, synchronous(&members), host, &mut self.steps);
        if policy == Policy::Dual {
            for (m, outcome) in members.iter().zip(&mut outcomes) {
                if let Entity::Task(index) = m.entity {
                    promote(self.set.tasks[index].promotion, m, outcome);
                }
            }
        }
        let test = match policy {
            Policy::Imprecise => Test::MandatoryPart,
            Policy::Dual => Test::Promotion,
            _ => Test::ResponseTime,
        };
        GroupTest { members, outcomes, test, failure: None }
    }

    /// Processor demand, where tasks reclaim the budgets of others: then a response can take until
    /// the deadline.
    pub(crate) fn test_reclaiming(
        &mut self,
        members: Vec<AnalysedTask>,
        supply: &Supply,
        host: &Interference,
    ) -> GroupTest {
        let mut test = self.test_by_deadline(members, supply, host);
        for (m, outcome) in test.members.iter().zip(&mut test.outcomes) {
            if !m.segments.is_empty() {
                *outcome = Outcome::suspension_fault(reclaiming::SUSPENDS_ITSELF);
            } else if outcome.met == DeadlineMet::Yes {
                *outcome = Outcome::within(m.deadline, false);
            }
        }
        test
    }

    /// Processor demand; where it refuses within windows, the test of each job; and bounds of the
    /// responses.
    pub(crate) fn test_by_deadline(
        &mut self,
        members: Vec<AnalysedTask>,
        supply: &Supply,
        host: &Interference,
    ) -> GroupTest {
        let Some(demand) = Demand::new(&members, host) else {
            return GroupTest::no_demand(members, Outcome::LATE);
        };
        let Ok(failure) = demand.longest_failure(supply, &mut self.steps) else {
            return GroupTest::no_demand(members, Outcome::UNKNOWN);
        };
        let as_released =
            |m: &AnalysedTask| m.deferral == Deferral::Never && m.blocking == 0 && !m.early;
        let plain = members.iter().all(as_released) && *supply == Supply::Whole;
        let exact = plain && host.is_none() && synchronous(&members);
        let mut outcomes = Vec::with_capacity(members.len());
        for m in &members {
            let failure = match &m.limited_by {
                None => Ok(failure),
                Some(_) => demand.longest_failure(&m.supply(supply), &mut self.steps),
            };
            outcomes.push(match failure {
                Ok(failure) if m.deadline.saturating_sub(m.jitter) > failure => {
                    Outcome::within(m.deadline, exact)
                }
                Ok(_) => Outcome { exact, ..Outcome::LATE },
                Err(_) => Outcome::UNKNOWN,
            });
        }
        if outcomes.iter().any(|o| o.met != DeadlineMet::Yes) {
            self.test_jobs(&members, supply, host, &mut outcomes);
        }
        let simple = failure == 0 && members.iter().all(|m| m.limited_by.is_none());
        if simple {
            self.bound_responses(&members, &demand, supply, &mut outcomes);
        }
        if plain && simple && host.is_none() && members.iter().all(|m| m.jitter == 0) {
            let responses = edf_response::responses(&members, &mut self.figures);
            for ((m, outcome), response) in members.iter().zip(&mut outcomes).zip(responses) {
                if let (Some(response), Entity::Task(_)) = (response, m.entity) {
                    *outcome = Outcome { response: Some(response), reached: exact, ..*outcome };
                }
            }
        }
        if members.iter().any(|m| !m.segments.is_empty()) {
            let whole = *supply == Supply::Whole && failure == 0;
            self_suspension::test_edf(&members, &demand, whole, &mut outcomes, &mut self.steps);
        }
        GroupTest { members, outcomes, test: Test::ProcessorDemand, failure: Some(failure) }
    }

    /// Within windows: each job where it lies in the table.
    fn test_jobs(
        &mut self,
        members: &[AnalysedTask],
        supply: &Supply,
        host: &Interference,
        outcomes: &mut [Outcome],
    ) {
        let Supply::Windows(windows) = supply else { return };
        let Ok(Some(in_time)) = offset_demand::in_time(members, windows, host, &mut self.steps)
        else {
            return;
        };
        let exact = host.is_none() && members.iter().all(|m| m.deferral == Deferral::Never);
        for ((m, outcome), in_time) in members.iter().zip(outcomes).zip(in_time) {
            let late = Outcome { exact, ..Outcome::LATE };
            *outcome = if in_time { Outcome::within(m.deadline, exact) } else { late };
        }
    }

    /// Bounds from the slack. With servers they are always computed, since what the servers supply
    /// depends on them: the verdict must not depend on whether figures are wanted.
    fn bound_responses(
        &self,
        members: &[AnalysedTask],
        demand: &Demand,
        supply: &Supply,
        outcomes: &mut [Outcome],
    ) {
        let servers = members.iter().any(|m| matches!(m.entity, Entity::Server(_)));
        if servers || self.figures.left() > 0 {
            let bounds = demand.responses(members, supply, &mut StepLimit::new(step_limit::BOUNDS));
            for (outcome, bound) in outcomes.iter_mut().zip(bounds.unwrap_or_default()) {
                outcome.response = Some(bound);
            }
        }
    }
}

/// Whether all strictly periodic members have the same offset.
fn synchronous(members: &[AnalysedTask]) -> bool {
    let mut offsets = members.iter().filter_map(|m| m.offset);
    let first = offsets.next();
    offsets.all(|offset| Some(offset) == first)
}
