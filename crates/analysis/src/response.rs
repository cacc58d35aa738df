//! Response-time analysis for fixed priorities (Joseph and Pandya 1986; Audsley et al. 1993 for
//! jitter and blocking), on any supply.
//!
//! The response is the least w with
//!
//! ```text
//! supply(w) >= C + B + S + sum over the more important j of ceil((w + delay_j) / T_j) * C_j
//! ```
//!
//! and jitter on top. Deadlines are at most the periods, so that one job of a task is looked at:
//! the first after all were released at once. Equal priorities go by arrival, then by the order of
//! the file: of each equal one at most one job can be ahead, and that of a task that stands later
//! in the file must have arrived at least 1 ns before.

use std::collections::HashMap;

use crate::contender::{Contender, Fit, Outcome, PutOff};
use crate::effort::{Effort, Exhausted};
use crate::interference::Interference;
use crate::sleepers;
use crate::supply::{Supply, NEVER};

/// Who may go before: budgets summed by period and delay, for sets have few different ones.
#[derive(Default, Clone)]
struct Before {
    terms: Vec<(u64, u64, u128)>,
    place: HashMap<(u64, u64), usize>,
    /// Somebody whose releases nothing bounds.
    unbounded: bool,
    /// Somebody's execution may be put off: the delay is an estimate.
    estimated: bool,
}

impl Before {
    /// The host's own execution goes before all.
    fn new(host: &Interference) -> Before {
        let terms = host.terms.iter().map(|t| (t.period, t.jitter, t.amount)).collect::<Vec<_>>();
        let place = terms.iter().enumerate().map(|(n, t)| ((t.0, t.1), n)).collect();
        Before { terms, place, ..Before::default() }
    }

    fn add(&mut self, c: &Contender) {
        self.estimated |= c.put_off != PutOff::Never;
        let Some(period) = c.period else {
            self.unbounded = true;
            return;
        };
        let at = *self.place.entry((period, c.delay())).or_insert_with(|| {
            self.terms.push((period, c.delay(), 0));
            self.terms.len() - 1
        });
        self.terms[at].2 += u128::from(c.cost());
    }

    /// Their greatest demand within `w`.
    fn demand(&self, w: u64) -> u128 {
        self.terms.iter().map(|&(period, delay, budget)| u128::from((w + delay).div_ceil(period)) * budget).sum()
    }

    /// The least w that supplies `own` and them, leaving out `but`'s part in them; `None` above
    /// `limit`. `from`: a lower bound of it, and what they demand within that.
    fn least(
        &self,
        own: u128,
        but: Option<&Contender>,
        supply: &Supply,
        (from, limit): (From, u64),
        effort: &mut Effort,
    ) -> Result<Option<u64>, Exhausted> {
        if self.unbounded {
            return Ok(None);
        }
        let left_out = but.map_or(0, |c| c.demand(from.w));
        let mut w = supply.time_for(own + from.demand.saturating_sub(left_out)).max(from.w);
        loop {
            if w > limit || w == NEVER {
                return Ok(None);
            }
            effort.spend(self.terms.len() + supply.terms())?;
            let left_out = but.map_or(0, |c| c.demand(w));
            let next = supply.time_for(own + self.demand(w) - left_out);
            if next <= w {
                return Ok(Some(w));
            }
            w = next;
        }
    }
}

/// What is known of the less important ones: they take `w` at least, and within that those before
/// them demand so much.
#[derive(Clone, Copy, Default)]
struct From {
    w: u64,
    demand: u128,
}

/// The responses of all contenders under fixed priorities, in their order. `synchronous`: whether
/// all that are strictly periodic can be released at one instant. `host`: what the host itself
/// takes.
pub(crate) fn responses(
    contenders: &[Contender],
    supply: &Supply,
    synchronous: bool,
    host: &Interference,
    effort: &mut Effort,
) -> Vec<Outcome> {
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(contenders[i].rank));
    let mut outcomes = vec![Outcome::UNKNOWN; contenders.len()];
    let mut before = Before::new(host);
    // The less important, the longer the response: where one level ended the next one begins.
    let mut from = From::default();
    let mut late = false;
    let longest = contenders.iter().filter_map(|c| c.period).max().unwrap_or(0);
    for level in order.chunk_by(|&a, &b| contenders[a].rank == contenders[b].rank) {
        let peers: Vec<&Contender> = level.iter().map(|&i| &contenders[i]).collect();
        let ties = Ties::new(&peers, &before, supply, host, effort);
        if let Ok(ties) = ties {
            for (&i, &ahead) in level.iter().zip(&ties.ahead) {
                let q = Question { c: &contenders[i], ahead, synchronous, host, from };
                let mut outcome = judge(&q, &before, &ties, supply, effort).unwrap_or(Outcome::UNKNOWN);
                outcome.exact &= !late;
                outcome.reached &= !late;
                // Who is late executes less than its budget, for it ends at its deadline: what comes
                // after it may be better off than this.
                late |= outcome.fit != Fit::Yes;
                outcomes[i] = outcome;
            }
        }
        for peer in peers {
            before.add(peer);
        }
        let done = match level {
            [i] if contenders[*i].is_plain() => outcomes[*i].response.map(|r| r - contenders[*i].jitter),
            _ => None,
        };
        let w = match done {
            Some(w) => Ok(Some(w)),
            None => before.least(1, None, supply, (from, longest), effort),
        };
        from.w = match w {
            Ok(Some(w)) => w,
            // Nobody of the rest can be done within any period.
            Ok(None) => longest.saturating_add(1),
            Err(Exhausted) => from.w,
        };
        let cost = effort.spend(before.terms.len());
        from.demand = if cost.is_ok() && from.w <= longest { before.demand(from.w) } else { 0 };
    }
    outcomes
}

/// What is common to all of one priority.
struct Ties {
    /// Whether at most one job of each equal one can be ahead: they all are done before any of them
    /// is released again.
    once: bool,
    /// For each: the budgets of those that may be ahead when released at the same instant, and of
    /// those that are ahead only if released before.
    ahead: Vec<(u128, u128)>,
    /// The more important ones and all of this priority; `None` where it is not needed.
    with_peers: Option<Before>,
    /// Some peer is released on a grid: that it comes just before another is not sure to happen.
    gridded: bool,
    /// Which of two goes first when they are released together is known.
    placed: bool,
}

impl Ties {
    fn new(
        peers: &[&Contender],
        before: &Before,
        supply: &Supply,
        host: &Interference,
        effort: &mut Effort,
    ) -> Result<Ties, Exhausted> {
        let mut ties = Ties { once: true, ahead: vec![(0, 0)], with_peers: None, gridded: false, placed: true };
        if peers.len() == 1 {
            return Ok(ties);
        }
        let all: u128 = peers.iter().map(|p| u128::from(p.cost())).sum();
        let soonest = peers.iter().map(|p| p.period.map_or(0, |t| t.saturating_sub(p.delay()))).min().unwrap_or(0);
        let simple = peers.iter().all(|p| p.sleep == 0 && p.blocking == 0 && p.wet.is_none());
        ties.once = simple && {
            let all = all + u128::from(host.blocking);
            before.least(all, None, supply, (From::default(), soonest), effort)?.is_some()
        };
        ties.placed = peers.iter().all(|p| p.place.is_some());
        ties.gridded = peers.iter().any(|p| p.start.is_some());
        if !ties.once || peers.iter().any(|p| p.put_off != PutOff::Never) {
            effort.spend(before.terms.len() + peers.len())?;
            let mut with = before.clone();
            peers.iter().for_each(|p| with.add(p));
            ties.with_peers = Some(with);
        }
        ties.ahead = ahead(peers, all);
        Ok(ties)
    }
}

/// See [`Ties::ahead`]. Peers stand in file order, for the sort by rank was stable.
fn ahead(peers: &[&Contender], all: u128) -> Vec<(u128, u128)> {
    let anywhere: u128 = peers.iter().filter(|p| p.place.is_none()).map(|p| u128::from(p.cost())).sum();
    let mut grids: HashMap<(u64, u64), u128> = HashMap::new();
    for p in peers.iter().filter(|p| p.place.is_some()) {
        if let Some(grid) = p.grid() {
            *grids.entry(grid).or_default() += u128::from(p.cost());
        }
    }
    let mut earlier = anywhere;
    let place = |p: &&Contender| {
        let own = u128::from(p.cost());
        if p.place.is_none() {
            return (all - own, 0);
        }
        let mut later = all - earlier - own;
        if let Some(rest) = p.grid().and_then(|grid| grids.get_mut(&grid)) {
            // Those of one grid that stand later are never ahead.
            *rest -= own;
            later -= *rest;
        }
        let here = (earlier, later);
        earlier += own;
        here
    };
    peers.iter().map(place).collect()
}

/// One of a level.
struct Question<'a> {
    c: &'a Contender,
    ahead: (u128, u128),
    synchronous: bool,
    host: &'a Interference,
    from: From,
}

fn judge(
    q: &Question<'_>,
    before: &Before,
    ties: &Ties,
    group: &Supply,
    effort: &mut Effort,
) -> Result<Outcome, Exhausted> {
    let c = q.c;
    let Some(period) = c.period else { return Ok(Outcome::LATE) };
    let supply = c.supply(group);
    // It may be blocked again each time it wakes. Who sleeps last has the CPU once more to end.
    let wakes = c.stretches.len().saturating_sub(1) as u128;
    let blocking = u128::from(c.blocking) + u128::from(q.host.blocking);
    let own = u128::from(c.cost()) + blocking * (1 + wakes) + u128::from(c.sleep);
    let own = own + u128::from(c.stretches.last().is_some_and(|s| s.spin == 0));
    let range = (q.from, period.saturating_sub(c.jitter));
    let mut exact = q.synchronous && supply == Supply::Whole && c.blocking == 0 && c.put_off == PutOff::Never;
    exact &= q.host.is_none();
    exact &= !before.unbounded && !before.estimated;
    let (at_once, sooner) = q.ahead;
    exact &= ties.placed;
    let w = if ties.once && c.put_off == PutOff::Never {
        let together = before.least(own + at_once, None, &supply, range, effort)?;
        if sooner == 0 {
            together
        } else {
            let range = (q.from, range.1.saturating_add(1));
            let after = before.least(own + at_once + sooner, None, &supply, range, effort)?.map(|w| w - 1);
            exact &= after == together || !ties.gridded;
            together.zip(after).map(|(a, b)| a.max(b))
        }
    } else {
        // Whoever is equal counts as more important.
        exact = false;
        let (ahead, but) = ties.with_peers.as_ref().map_or((before, None), |all| (all, Some(c)));
        let at_once = ahead.least(own, but, &supply, range, effort)?;
        if supply == Supply::Whole || c.stretches.is_empty() {
            at_once
        } else {
            // While it sleeps its group may be idle, and have to wait anew for what it is served: each
            // stretch is a busy interval of its own.
            let mut sum = Some(0u64);
            for stretch in &c.stretches {
                let own = u128::from(stretch.spin.max(1)) + blocking;
                let w = ahead.least(own, but, &supply, range, effort)?;
                sum = sum.zip(w).map(|(sum, w)| sum.saturating_add(w).saturating_add(stretch.after));
            }
            let in_time = |w: Option<u64>| w.is_some_and(|w| w <= c.deadline.saturating_sub(c.jitter));
            if in_time(at_once) && !in_time(sum) && c.wet.is_none() {
                return Ok(Outcome {
                    response: sum.map(|w| w.saturating_add(c.jitter)),
                    ..Outcome::asleep(sleepers::UNSERVED)
                });
            }
            sum
        }
    };
    let response = w.map(|w| w.saturating_add(c.jitter));
    let fit = if response.is_some_and(|r| r <= c.deadline) { Fit::Yes } else { Fit::No };
    Ok(Outcome { fit, response, exact, reached: exact, asleep: None, promotion: None })
}
