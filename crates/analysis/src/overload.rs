//! The change that brings a domain within its capacity, where it is too full and nothing else is
//! wrong.

use punctual_taskset::{DomainId, ServerSpec, TaskSet};

use crate::capacity::Capacity;
use crate::change::{Change, ChangeTarget, Help, Quantity};
use crate::domain_utilization::DomainUtilization;
use crate::interference::{self, TableLoad};
use crate::utilization::Ppm;

/// The least change that brings a domain within its capacity: of one budget, that of the task or
/// server with the largest utilization, which loses the smallest part of it. Of equals the one with
/// the longest period, which a cut affects least; then the first. Where that budget is too small,
/// all budgets together. `None`: the domain is within its capacity.
pub(crate) fn for_overload(
    set: &TaskSet,
    domain: DomainId,
    capacity: &Capacity,
    utilization: &DomainUtilization,
    tables: &[TableLoad],
) -> Option<Help> {
    let host = interference::share(set, domain, &capacity.costs, tables);
    let over = utilization.exact.above(capacity.limit);
    let together = utilization.exact.clone().plus_all(vec![host.clone()]).above(capacity.total);
    let excess =
        [over, together].into_iter().flatten().reduce(|a, b| if b.exceeds(&a) { b } else { a })?;
    // The part of the host does not depend on budgets.
    let limit = Ppm(capacity.limit.0.min(capacity.total.0.saturating_sub(host.ppm().0)));
    let tasks =
        set.tasks.iter().enumerate().filter(|(_, t)| t.domain == domain && t.group.is_none());
    let tasks = tasks.map(|(n, t)| (ChangeTarget::Task, n, t.budget, t.period));
    let groups =
        set.groups.iter().enumerate().filter(|(_, g)| g.domain == domain && g.parent.is_none());
    let groups = groups.filter_map(|(n, g)| match &g.server {
        ServerSpec::Periodic { period, budget, .. } if utilization.server_counts[n] => {
            Some((ChangeTarget::Group, n, *budget, *period))
        }
        _ => None,
    });
    let largest = tasks.chain(groups).reduce(|best, next| {
        let (b1, p1) = (u128::from(best.2), u128::from(best.3));
        let (b2, p2) = (u128::from(next.2), u128::from(next.3));
        // Exact: products of two 64-bit numbers.
        if (b2 * p1, p2) > (b1 * p2, p1) {
            next
        } else {
            best
        }
    });
    let lowered = largest.and_then(|(target, index, budget, period)| {
        let to = budget.checked_sub(excess.of(period)).filter(|&to| to > 0)?;
        Some(Help::Change(Change::new(set, target, index, Quantity::Budget, budget, to)))
    });
    Some(lowered.unwrap_or_else(|| match utilization.exact.factor_to(limit) {
        Ppm(0) => Help::Unknown,
        to => Help::Scale { to },
    }))
}
