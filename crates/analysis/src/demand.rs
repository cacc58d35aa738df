//! Processor demand for EDF (Baruah, Rosier and Howell 1990), by Quick Processor-demand Analysis
//! (Zhang and Burns 2009), on any supply.
//!
//! A set fits if for every length t from the shortest deadline on
//!
//! ```text
//! h(t) + B(t) <= supply(t)
//! ```
//!
//! where h(t) is the execution that can be released and due within t, and B(t) the longest blocking
//! of a deadline up to t. QPA descends from an upper bound: what t demands is supplied within
//! t' <= t, so that all lengths from t' to t pass, and the search continues at t'. The first t that
//! fails is the longest. A task with a longer deadline misses none: an interval that ends at a
//! missed deadline is at least as long as that deadline.
//!
//! What the host takes (`interference.rs`) is in B(t) and h(t) for lengths from the shortest
//! deadline on, since a shorter interval contains no whole job. It is ceil((t + jitter) / T) times
//! its amount, because a release that is due later interrupts as well (Jeffay and Stone 1993).
//!
//! A task that keeps its budget while it has nothing to execute can execute all of it just before
//! its deadline: within t, floor(t / T) whole budgets and another one at 1 ns per ns. A task that
//! is cut to its bandwidth at its wake-up adds C / D per ns instead (revised CBS rule).

use indexmap::IndexMap;
use num_bigint::BigUint;

use crate::analysed_task::AnalysedTask;
use crate::demand_shape::DemandShape;
use crate::hyperperiod::lcm;
use crate::interference::Interference;
use crate::step_limit::{fixed_point, Exhausted, StepLimit};
use crate::supply::{Supply, NEVER, ONE};
use crate::utilization::{Ppm, Utilization, WHOLE};

/// The length from which on a supply exceeds a demand, ns.
pub(crate) enum Crossover {
    At(u64),
    /// It exceeds 63 bits.
    TooFar,
    /// The supply does not grow faster than the demand.
    Never,
}

/// The demand of a group under EDF.
pub(crate) struct Demand {
    /// Tasks of equal shape, with the sum of their costs.
    pub(crate) parts: IndexMap<DemandShape, u128>,
    /// Each deadline with the longest blocking of any up to it, in order.
    blocking: Vec<(u64, u64)>,
    /// The longest jitter.
    jitter: u64,
    /// The longest deadline.
    pub(crate) longest: u64,
    /// What the host takes counts from this length on.
    host_from: u64,
    host_blocking: u64,
    utilization: Utilization,
    /// Whether some demand rises between bends.
    pub(crate) rises: bool,
    /// Whether some demand rises between bends at less than 1 ns per ns.
    slopes: bool,
}

impl Demand {
    /// `None` where the releases of a member are unbounded.
    pub(crate) fn new(members: &[AnalysedTask], host: &Interference) -> Option<Demand> {
        let mut parts: IndexMap<DemandShape, u128> = IndexMap::new();
        let mut blocking: Vec<(u64, u64)> = Vec::new();
        for m in members {
            *parts.entry(DemandShape::of(m, m.period?)).or_default() += u128::from(m.cost());
            if m.blocking > 0 {
                blocking.push((m.deadline.saturating_sub(m.jitter), m.blocking));
            }
        }
        blocking.sort_unstable();
        let mut most = 0;
        for (_, longest) in &mut blocking {
            most = most.max(*longest);
            *longest = most;
        }
        let host_parts = host.terms.iter();
        parts
            .extend(host_parts.map(|(&(period, jitter), &amount)| {
                (DemandShape::Host { period, jitter }, amount)
            }));
        let own = members.iter().filter_map(|m| Some((u128::from(m.cost()), m.period?)));
        let utilization = Utilization::sum_wide(
            own.chain(host.terms.iter().map(|(term, &amount)| (amount, term.0))),
        );
        // A budget that is kept may be demanded within any length, and delayed by the host in it.
        let kept = parts.keys().any(|shape| matches!(shape, DemandShape::Burst { .. }));
        let shortest =
            members.iter().map(|m| m.deadline.saturating_sub(m.jitter)).min().unwrap_or(0);
        let slopes = parts.keys().any(|shape| matches!(shape, DemandShape::Slope { .. }));
        Some(Demand {
            rises: kept || slopes,
            slopes,
            parts,
            blocking,
            jitter: members.iter().map(|m| m.jitter).max().unwrap_or(0),
            longest: members.iter().map(|m| m.deadline).max().unwrap_or(0),
            host_from: if kept { 1 } else { shortest.max(1) },
            host_blocking: host.blocking,
            utilization,
        })
    }

    /// Execution that can be due within t, and blocking.
    pub(crate) fn within(&self, t: u64) -> u128 {
        self.within_from(t, self.host_from)
    }

    /// As [`within`](Demand::within), with what the host takes from `host_from` on.
    pub(crate) fn within_from(&self, t: u64, host_from: u64) -> u128 {
        let host = t >= host_from;
        let blocking = match self.blocking.partition_point(|b| b.0 <= t) {
            0 => 0,
            n => self.blocking[n - 1].1,
        };
        let counts = |shape: &DemandShape| host || !matches!(shape, DemandShape::Host { .. });
        let parts = self
            .parts
            .iter()
            .filter(|(shape, _)| counts(shape))
            .map(|(shape, sum)| shape.within(*sum, t));
        parts.sum::<u128>()
            + u128::from(blocking)
            + u128::from(if host { self.host_blocking } else { 0 })
    }

    /// The last length below t at which the demand jumps or bends.
    pub(crate) fn bend_below(&self, t: u64) -> Option<u64> {
        let blocking =
            self.blocking.partition_point(|b| b.0 < t).checked_sub(1).map(|n| self.blocking[n].0);
        let host = Some(self.host_from).filter(|&from| from < t && self.has_host());
        self.parts.keys().filter_map(|shape| shape.bend_below(t)).max().max(blocking).max(host)
    }

    fn has_host(&self) -> bool {
        self.host_blocking > 0
            || self.parts.keys().any(|shape| matches!(shape, DemandShape::Host { .. }))
    }

    /// Implicit deadlines, and nothing that delays (Liu and Layland 1973; servers: Abeni and
    /// Buttazzo 1998).
    fn utilization_decides(&self) -> bool {
        self.longest_blocking() == 0
            && self.parts.keys().all(DemandShape::is_bounded_by_utilization)
    }

    fn longest_blocking(&self) -> u128 {
        self.blocking.last().map_or(0, |b| u128::from(b.1)) + u128::from(self.host_blocking)
    }

    /// The longest length whose demand is not sure to be supplied: 0 if there is none, [`NEVER`]
    /// if they are unbounded. Where demand rises between bends the result may be too long, by less
    /// than the distance of two bends; it is never too short.
    pub(crate) fn longest_failure(
        &self,
        supply: &Supply,
        steps: &mut StepLimit,
    ) -> Result<u64, Exhausted> {
        if *supply == Supply::Whole && self.utilization_decides() {
            let overloaded = self.utilization.above(Ppm(WHOLE)).is_some();
            return Ok(if overloaded { NEVER } else { 0 });
        }
        let Some(horizon) = self.horizon(supply, steps)? else { return Ok(NEVER) };
        let cost = self.parts.len() + supply.terms();
        let Some(mut t) = self.bend_below(horizon.saturating_add(1)) else { return Ok(0) };
        // All lengths from here on pass.
        let mut good = horizon.saturating_add(1);
        loop {
            steps.spend(cost)?;
            let enough = supply.time_for(self.within(t));
            if enough > t {
                let until = if self.rises { good } else { good.min(enough) };
                return Ok(until - 1);
            }
            good = enough;
            if enough < t {
                t = enough;
                continue;
            }
            if t == 0 {
                return Ok(0);
            }
            // Exactly enough: the supply rises just before t, so that a shorter length fails
            // unless the demand rises as fast.
            steps.spend(2 * cost)?;
            if supply.time_for(self.within(t - 1)) > t - 1 {
                return Ok(t - 1);
            }
            if self.slopes {
                // The demand is rounded: it may rise by 1 in this ns and by 0 in the one before.
                t -= 1;
                good = t;
                continue;
            }
            // No length above the next bend is worse.
            match self.bend_below(t) {
                Some(bend) => t = bend,
                None => return Ok(0),
            }
        }
    }

    /// The length from which on the supply exceeds the demand by `by` ns at least.
    ///
    /// With h(t) <= U t + K and supply(t) >= A t - G this is (K + B + G + by) / (A - U).
    pub(crate) fn crossover(&self, supply: &Supply, by: u64) -> Crossover {
        let (rate, deficit) = supply.line();
        let blocking = self.longest_blocking();
        let used = self.parts.iter().map(|(shape, sum)| {
            // Rounded up, in units of 2^-64. Sums are cut to a value far above 1, so that they
            // do not overflow.
            ((*sum).min(1 << 63) << 64).div_ceil(u128::from(shape.period()))
        });
        let used: u128 = used.map(|u| u.min(ONE * 4)).sum();
        if used >= rate {
            return Crossover::Never;
        }
        let above = self.parts.iter().map(|(shape, sum)| shape.excess(*sum)).sum::<u128>();
        let above = above + blocking + deficit + u128::from(by);
        let length = (BigUint::from(above) << 64u32) / (rate - used) + 1u8;
        match u64::try_from(&(length + self.jitter)) {
            Ok(length) if length < NEVER >> 1 => Crossover::At(length),
            _ => Crossover::TooFar,
        }
    }

    /// A length from which on all lengths pass; `None` if there is none. Where the utilization is
    /// all that is supplied, the hyperperiod bounds it, or the longest busy period.
    fn horizon(&self, supply: &Supply, steps: &mut StepLimit) -> Result<Option<u64>, Exhausted> {
        match self.crossover(supply, 0) {
            Crossover::At(length) => return Ok(Some(length)),
            Crossover::TooFar => return self.busy_period(supply, steps).map(Some),
            Crossover::Never => {}
        }
        if *supply != Supply::Whole || self.utilization.above(Ppm(WHOLE)).is_some() {
            return Ok(None);
        }
        match self.hyperperiod() {
            Some(all) => Ok(Some(all)),
            None => self.busy_period(supply, steps).map(Some),
        }
    }

    /// h(t + H) = h(t) + U H: with U at most 1, no length beyond H fails first.
    fn hyperperiod(&self) -> Option<u64> {
        let mut all: u64 = 1;
        for shape in self.parts.keys() {
            all = lcm(all, shape.period()).filter(|&all| all < NEVER >> 2)?;
        }
        all.checked_add(self.longest)?.checked_add(self.jitter).filter(|&all| all < NEVER >> 1)
    }

    /// The longest time for which all members together can keep the CPU busy.
    fn busy_period(&self, supply: &Supply, steps: &mut StepLimit) -> Result<u64, Exhausted> {
        let blocking = self.longest_blocking();
        let next = |length: u64| {
            let demand = self.parts.iter().map(|(shape, sum)| {
                let late = match *shape {
                    DemandShape::Step { .. } => self.jitter,
                    DemandShape::Host { jitter, .. } => jitter,
                    _ => shape.period(),
                };
                let t = u128::from(length) + u128::from(late) + u128::from(shape.period() - 1);
                t / u128::from(shape.period()) * sum
            });
            supply.time_for(demand.sum::<u128>() + blocking)
        };
        let length =
            fixed_point(1, (NEVER >> 1) - 1, self.parts.len() + supply.terms(), steps, next)?;
        length.map(|length| length.max(self.longest)).ok_or(Exhausted)
    }
}
