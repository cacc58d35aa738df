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
//! of a deadline up to t. QPA goes down from a bound: what t demands is supplied by t' <= t, so that
//! all lengths from t' to t are good, and it goes on at t'. The first t that is not good is the
//! longest; a task whose deadline is longer has no interval to miss it in, for an interval that
//! ends at a missed deadline is at least as long as that deadline.
//!
//! What the host itself takes (`interference.rs`) is in B(t) and h(t), for lengths from the
//! shortest deadline on: a shorter interval has no whole job. It is ceil((t + jitter) / T) times
//! its amount, for a release that is due later interrupts as well (Jeffay and Stone 1993).
//!
//! Whoever keeps his budget while he has nothing to execute can crowd it before his deadline:
//! within t, floor(t / T) whole budgets and another one at 1 ns per ns. A task that is cut to its
//! bandwidth when it wakes adds C / D per ns instead (revised CBS rule).

use std::collections::HashMap;

use num_bigint::BigUint;

use crate::contender::{Contender, PutOff};
use crate::effort::{Effort, Exhausted};
use crate::hyperperiod::lcm;
use crate::interference::Interference;
use crate::supply::{Supply, NEVER, ONE};
use crate::utilization::{Ppm, Utilization, WHOLE};

/// How one releases demand; times are ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    /// All of the budget `first` after the release, then each period.
    Step { first: u64, period: u64 },
    /// In proportion to the time up to the deadline.
    Slope { deadline: u64, period: u64, budget: u64 },
    /// As fast as the CPU goes.
    Crowd { period: u64, budget: u64 },
    /// The host's own execution: `jitter` late at most, then each period.
    Host { period: u64, jitter: u64 },
}

impl Shape {
    fn of(c: &Contender, period: u64) -> Shape {
        match c.put_off {
            PutOff::Never => Shape::Step { first: c.deadline.saturating_sub(c.jitter), period },
            PutOff::Cut if c.jitter == 0 => Shape::Slope { deadline: c.deadline, period, budget: c.cost() },
            PutOff::Cut | PutOff::Keeps => Shape::Crowd { period, budget: c.cost() },
        }
    }

    /// The demand of `sum` ns in all within t.
    fn within(&self, sum: u128, t: u64) -> u128 {
        match *self {
            Shape::Step { first, period } if t >= first => u128::from((t - first) / period + 1) * sum,
            Shape::Step { .. } => 0,
            Shape::Slope { deadline, period, .. } => {
                let part = sum * u128::from((t % period).min(deadline));
                u128::from(t / period) * sum + part.div_ceil(u128::from(deadline))
            }
            // Each of `sum / budget` equal ones adds 1 ns per ns.
            Shape::Crowd { period, budget } => {
                let each = u128::from(budget.max(1));
                u128::from(t / period) * sum + u128::from(t % period).min(each) * (sum / each)
            }
            Shape::Host { period, jitter } => u128::from(t.saturating_add(jitter).div_ceil(period)) * sum,
        }
    }

    /// The last length below t at which the demand jumps or bends.
    fn bend_below(&self, t: u64) -> Option<u64> {
        let last = t.checked_sub(1)?;
        let from = |first: u64, period: u64| Some(last.checked_sub(first)? / period * period + first);
        match *self {
            Shape::Step { first, period } => from(first, period),
            Shape::Slope { deadline, period, .. } => from(0, period).max(from(deadline.min(period), period)),
            Shape::Crowd { period, budget } => from(0, period).max(from(budget.min(period), period)),
            Shape::Host { period, jitter } => from((period + 1 - jitter % period) % period, period),
        }
    }

    /// How far its demand may be above its utilization times t.
    fn excess(&self, sum: u128) -> u128 {
        let part = |of: u64, whole: u64| (sum * u128::from(of)).div_ceil(u128::from(whole.max(1)));
        match *self {
            Shape::Step { first, period } => part(period.saturating_sub(first), period),
            Shape::Slope { deadline, period, .. } => part(period.saturating_sub(deadline), period) + 1,
            Shape::Crowd { period, budget } => part(period.saturating_sub(budget), period),
            Shape::Host { period, jitter } => sum + part(jitter, period),
        }
    }

    fn period(&self) -> u64 {
        match *self {
            Shape::Step { period, .. }
            | Shape::Slope { period, .. }
            | Shape::Crowd { period, .. }
            | Shape::Host { period, .. } => period,
        }
    }
}

/// From which length on a supply is ahead of a demand.
enum Ahead {
    From(u64),
    /// From one on that is beyond all numbers.
    TooFar,
    /// It is not the faster one.
    Never,
}

/// How far the search for the least slack has come down.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descent {
    /// The next bend; `None`: all were seen.
    next: Option<u64>,
    /// The least slack so far.
    least: u64,
}

/// The demand of a group under EDF.
pub(crate) struct Demand {
    parts: Vec<(Shape, u128)>,
    /// Deadline and the longest blocking of any up to it, in order.
    blocking: Vec<(u64, u64)>,
    /// Jitter, longest of any.
    jitter: u64,
    longest: u64,
    /// The host's part in it counts from this length on.
    host_from: u64,
    host_blocking: u64,
    utilization: Utilization,
    /// Some demand rises between bends; some of that at less than 1 ns per ns.
    rises: bool,
    slopes: bool,
}

impl Demand {
    /// `None` where nothing bounds how often somebody is released.
    pub(crate) fn new(contenders: &[Contender], host: &Interference) -> Option<Demand> {
        let mut parts: Vec<(Shape, u128)> = Vec::new();
        let mut place: HashMap<Shape, usize> = HashMap::new();
        let mut blocking: Vec<(u64, u64)> = Vec::new();
        for c in contenders {
            let shape = Shape::of(c, c.period?);
            let at = *place.entry(shape).or_insert_with(|| {
                parts.push((shape, 0));
                parts.len() - 1
            });
            parts[at].1 += u128::from(c.cost());
            if c.blocking > 0 {
                blocking.push((c.deadline.saturating_sub(c.jitter), c.blocking));
            }
        }
        blocking.sort_unstable();
        let mut most = 0;
        for (_, longest) in &mut blocking {
            most = most.max(*longest);
            *longest = most;
        }
        parts.extend(host.terms.iter().map(|t| (Shape::Host { period: t.period, jitter: t.jitter }, t.amount)));
        let own = contenders.iter().filter_map(|c| Some((u128::from(c.cost()), c.period?)));
        let utilization = Utilization::sum_wide(own.chain(host.terms.iter().map(|t| (t.amount, t.period))));
        // A budget that is kept may be wanted within any time, and be kept from it by the host.
        let kept = parts.iter().any(|(shape, _)| matches!(shape, Shape::Crowd { .. }));
        let shortest = contenders.iter().map(|c| c.deadline.saturating_sub(c.jitter)).min().unwrap_or(0);
        let rises = parts.iter().any(|(shape, _)| matches!(shape, Shape::Slope { .. } | Shape::Crowd { .. }));
        let slopes = parts.iter().any(|(shape, _)| matches!(shape, Shape::Slope { .. }));
        Some(Demand {
            rises,
            slopes,
            parts,
            blocking,
            jitter: contenders.iter().map(|c| c.jitter).max().unwrap_or(0),
            longest: contenders.iter().map(|c| c.deadline).max().unwrap_or(0),
            host_from: if kept { 1 } else { shortest.max(1) },
            host_blocking: host.blocking,
            utilization,
        })
    }

    /// Execution that can be due within t, and blocking.
    fn within(&self, t: u64) -> u128 {
        self.within_from(t, self.host_from)
    }

    fn within_from(&self, t: u64, host_from: u64) -> u128 {
        let host = t >= host_from;
        let blocking = match self.blocking.partition_point(|b| b.0 <= t) {
            0 => 0,
            n => self.blocking[n - 1].1,
        };
        let counts = |shape: &Shape| host || !matches!(shape, Shape::Host { .. });
        let parts = self.parts.iter().filter(|(shape, _)| counts(shape)).map(|(shape, sum)| shape.within(*sum, t));
        parts.sum::<u128>() + u128::from(blocking) + u128::from(if host { self.host_blocking } else { 0 })
    }

    fn bend_below(&self, t: u64) -> Option<u64> {
        let blocking = self.blocking.partition_point(|b| b.0 < t).checked_sub(1).map(|n| self.blocking[n].0);
        let host = Some(self.host_from).filter(|&from| from < t && self.has_host());
        self.parts.iter().filter_map(|(shape, _)| shape.bend_below(t)).max().max(blocking).max(host)
    }

    fn has_host(&self) -> bool {
        self.host_blocking > 0 || self.parts.iter().any(|(shape, _)| matches!(shape, Shape::Host { .. }))
    }

    fn longest_blocking(&self) -> u128 {
        self.blocking.last().map_or(0, |b| u128::from(b.1)) + u128::from(self.host_blocking)
    }

    /// The longest length whose demand is not sure to be supplied: 0 if there is none, [`NEVER`]
    /// if there is no longest. Never too short; where demand rises between bends it may be said too
    /// long, by less than the distance of two bends.
    pub(crate) fn longest_failure(&self, supply: &Supply, effort: &mut Effort) -> Result<u64, Exhausted> {
        let Some(horizon) = self.horizon(supply, effort)? else { return Ok(NEVER) };
        let cost = self.parts.len() + supply.terms();
        let Some(mut t) = self.bend_below(horizon.saturating_add(1)) else { return Ok(0) };
        // Everything is good from here on.
        let mut good = horizon.saturating_add(1);
        loop {
            effort.spend(cost)?;
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
            // Exactly enough, so that the supply rises just before t; a little less time is not
            // enough, unless the demand rises as fast.
            effort.spend(2 * cost)?;
            if supply.time_for(self.within(t - 1)) > t - 1 {
                return Ok(t - 1);
            }
            if self.slopes {
                // Rounded up, it may rise by 1 in this ns and by nothing in the one before.
                t -= 1;
                good = t;
                continue;
            }
            // Nothing is worse before the next bend.
            match self.bend_below(t) {
                Some(bend) => t = bend,
                None => return Ok(0),
            }
        }
    }

    /// The length from which on the supply is ahead of the demand, by `by` ns at least.
    ///
    /// h(t) <= U t + K and supply(t) >= A t - G, so that it is so from (K + B + G + by) / (A - U) on.
    fn ahead_from(&self, supply: &Supply, by: u64) -> Ahead {
        let (rate, deficit) = supply.line();
        let blocking = self.longest_blocking();
        let used = self.parts.iter().map(|(shape, sum)| {
            // Rounded up in units of 2^-64; sums are of at most 2^63 tasks' budgets, so that they are
            // cut to what is far above 1.
            ((*sum).min(1 << 63) << 64).div_ceil(u128::from(shape.period()))
        });
        let used: u128 = used.map(|u| u.min(ONE * 4)).sum();
        if used >= rate {
            return Ahead::Never;
        }
        let above = self.parts.iter().map(|(shape, sum)| shape.excess(*sum)).sum::<u128>();
        let above = above + blocking + deficit + u128::from(by);
        let length = (BigUint::from(above) << 64u32) / (rate - used) + 1u8;
        match u64::try_from(&(length + self.jitter)) {
            Ok(length) if length < NEVER >> 1 => Ahead::From(length),
            _ => Ahead::TooFar,
        }
    }

    /// Bounds of the responses of all, of a set that fits; `None` where demand rises between bends,
    /// or the effort is used up.
    ///
    /// A job that is due at d and done at f executes in a busy interval [x, f] only with what is due by
    /// d: f - x is at most the time that supplies h(d - x). So it is done before its deadline by the
    /// least of t - that time over all t from its deadline on.
    pub(crate) fn responses(&self, members: &[Contender], supply: &Supply, effort: &mut Effort) -> Option<Vec<u64>> {
        let Ahead::From(length) = self.ahead_from(supply, self.longest) else { return None };
        if self.rises {
            return None;
        }
        let due = |n: usize| members[n].deadline.saturating_sub(members[n].jitter);
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_by_key(|&n| due(n));
        let mut bounds: Vec<u64> = members.iter().map(|c| c.deadline).collect();
        let mut before = self.longest;
        let mut at = self.bend_below(length.saturating_add(1));
        while let Some(t) = at {
            effort.spend(2 * self.parts.len() + supply.terms()).ok()?;
            while let Some(&n) = order.last().filter(|&&n| due(n) > t) {
                order.pop();
                bounds[n] = bounds[n].saturating_sub(before).max(members[n].budget);
            }
            before = before.min(t.checked_sub(supply.time_for(self.within(t)))?);
            at = self.bend_below(t);
        }
        for n in order {
            bounds[n] = bounds[n].saturating_sub(before).max(members[n].budget);
        }
        Some(bounds)
    }

    /// Where the least slack of all lengths is sought from, on a CPU of one's own; `None`: there is no
    /// such place.
    pub(crate) fn descent(&self) -> Option<Descent> {
        let Ahead::From(length) = self.ahead_from(&Supply::Whole, self.longest) else { return None };
        Some(Descent { next: self.bend_below(length.saturating_add(1)), least: self.longest })
    }

    /// The least of t - h(t) over all t from `from` on, or a little less; at most the longest deadline.
    pub(crate) fn least_slack(&self, d: &mut Descent, from: u64, effort: &mut Effort) -> Result<u64, Exhausted> {
        let slack = |t: u64| u64::try_from(u128::from(t).saturating_sub(self.within_from(t, 0))).unwrap_or(u64::MAX);
        while let Some(t) = d.next.filter(|&t| t >= from) {
            effort.spend(2 * self.parts.len())?;
            d.least = d.least.min(slack(t));
            d.next = self.bend_below(t);
        }
        effort.spend(self.parts.len())?;
        // Between bends it is a line, but for what each slope is rounded up by.
        let rounding = self.parts.iter().filter(|(shape, _)| matches!(shape, Shape::Slope { .. })).count() as u64;
        Ok(d.least.min(slack(from)).saturating_sub(rounding))
    }

    /// A length from which on everything is good; `None` if there is none.
    /// Where U is all that is supplied, the longest busy period bounds it, or the hyperperiod.
    fn horizon(&self, supply: &Supply, effort: &mut Effort) -> Result<Option<u64>, Exhausted> {
        match self.ahead_from(supply, 0) {
            Ahead::From(length) => return Ok(Some(length)),
            Ahead::TooFar => return self.busy_period(supply, effort).map(Some),
            Ahead::Never => {}
        }
        if *supply != Supply::Whole || self.utilization.above(Ppm(WHOLE)).is_some() {
            return Ok(None);
        }
        match self.hyperperiod() {
            Some(all) => Ok(Some(all)),
            None => self.busy_period(supply, effort).map(Some),
        }
    }

    /// h(t + H) = h(t) + U H: with U at most 1, nothing fails first beyond it.
    fn hyperperiod(&self) -> Option<u64> {
        let mut all: u64 = 1;
        for (shape, _) in &self.parts {
            all = lcm(all, shape.period()).filter(|&all| all < NEVER >> 2)?;
        }
        all.checked_add(self.longest)?.checked_add(self.jitter).filter(|&all| all < NEVER >> 1)
    }

    /// The longest time that all of them together can keep the CPU busy.
    fn busy_period(&self, supply: &Supply, effort: &mut Effort) -> Result<u64, Exhausted> {
        let blocking = self.longest_blocking();
        let mut length = 1;
        loop {
            effort.spend(self.parts.len() + supply.terms())?;
            let demand = self.parts.iter().map(|(shape, _)| {
                let late = match *shape {
                    Shape::Step { .. } => self.jitter,
                    Shape::Host { jitter, .. } => jitter,
                    _ => shape.period(),
                };
                u128::from(length) + u128::from(late) + u128::from(shape.period() - 1)
            });
            let demand = demand.zip(&self.parts).map(|(t, (shape, sum))| t / u128::from(shape.period()) * sum);
            let next = supply.time_for(demand.sum::<u128>() + blocking);
            if next >= NEVER >> 1 {
                return Err(Exhausted);
            }
            if next <= length {
                return Ok(length.max(self.longest));
            }
            length = next;
        }
    }
}
