//! Worst-case response times under EDF on a CPU of one's own (Spuri 1996).
//!
//! Unlike under fixed priorities the worst case need not begin with the release of the task itself:
//! all others are released at 0, the job that is judged at a, and every a at which a deadline of
//! another falls on its own is tried, up to the longest busy period. Ties are counted against the
//! job, so that the figure is a bound that is reached where the dispatcher breaks them so.

use crate::contender::Contender;
use crate::effort::{Effort, Exhausted};

/// The response of each, as far as the effort goes; `None` beyond.
///
/// For contenders with periods, without jitter, blocking or sleeps, that fit (what does not fit has
/// no bounded busy period of use).
pub(crate) fn responses(contenders: &[Contender], effort: &mut Effort) -> Vec<Option<u64>> {
    let mut found = vec![None; contenders.len()];
    let Ok(busy) = busy_period(contenders, effort) else { return found };
    for (i, response) in found.iter_mut().enumerate() {
        match response_of(i, contenders, busy, effort) {
            Ok(w) => *response = Some(w),
            Err(Exhausted) => break,
        }
    }
    found
}

fn period(c: &Contender) -> u64 {
    c.period.unwrap_or(u64::MAX)
}

/// Longer busy periods, ns, are of no use to anybody.
const LONGEST: u64 = 1 << 61;

fn busy_period(contenders: &[Contender], effort: &mut Effort) -> Result<u64, Exhausted> {
    let mut length: u64 = 1;
    loop {
        effort.spend(contenders.len())?;
        let terms = contenders.iter().map(|c| length.div_ceil(period(c)).saturating_mul(c.budget));
        let next = terms.fold(0, u64::saturating_add);
        if next >= LONGEST || contenders.iter().any(|c| c.deadline >= LONGEST) {
            return Err(Exhausted);
        }
        if next <= length {
            return Ok(length);
        }
        length = next;
    }
}

fn response_of(i: usize, contenders: &[Contender], busy: u64, effort: &mut Effort) -> Result<u64, Exhausted> {
    let own = &contenders[i];
    let mut releases: Vec<u64> = Vec::new();
    for c in contenders {
        let (mut a, step) = (u128::from(c.deadline), u128::from(period(c)));
        let least = u128::from(own.deadline);
        if a < least {
            a += (least - a).div_ceil(step) * step;
        }
        while a - least < u128::from(busy) {
            effort.spend(1)?;
            releases.push((a - least) as u64);
            a += step;
        }
    }
    releases.sort_unstable();
    releases.dedup();
    let mut worst = own.budget;
    for a in releases {
        worst = worst.max(finish(i, a, contenders, effort)?.saturating_sub(a));
    }
    Ok(worst)
}

/// When the job that is released at `a` is done, of a busy period that begins at 0.
fn finish(i: usize, a: u64, contenders: &[Contender], effort: &mut Effort) -> Result<u64, Exhausted> {
    let own = &contenders[i];
    let due = a + own.deadline;
    let mine = (a / period(own) + 1).saturating_mul(own.budget);
    let mut w: u64 = 1;
    loop {
        effort.spend(contenders.len())?;
        let mut next = mine;
        for (j, c) in contenders.iter().enumerate() {
            if j != i && c.deadline <= due {
                let urgent = (due - c.deadline) / period(c) + 1;
                next = next.saturating_add(urgent.min(w.div_ceil(period(c))).saturating_mul(c.budget));
            }
        }
        if next <= w {
            return Ok(w);
        }
        if next >= LONGEST << 1 {
            return Err(Exhausted);
        }
        w = next;
    }
}
