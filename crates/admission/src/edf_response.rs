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

fn busy_period(contenders: &[Contender], effort: &mut Effort) -> Result<u64, Exhausted> {
    let mut length: u128 = 1;
    loop {
        effort.spend(contenders.len())?;
        let t = u64::try_from(length).map_err(|_| Exhausted)?;
        let next = contenders.iter().map(|c| u128::from(t.div_ceil(period(c))) * u128::from(c.budget)).sum();
        if next <= length {
            return Ok(t);
        }
        length = next;
    }
}

fn response_of(i: usize, contenders: &[Contender], busy: u64, effort: &mut Effort) -> Result<u64, Exhausted> {
    let own = &contenders[i];
    let mut releases: Vec<u64> = Vec::new();
    for c in contenders {
        let mut a = u128::from(c.deadline);
        let least = u128::from(own.deadline);
        if a < least {
            a += (least - a).div_ceil(u128::from(period(c))) * u128::from(period(c));
        }
        while a - least < u128::from(busy) {
            effort.spend(1)?;
            releases.push((a - least) as u64);
            a += u128::from(period(c));
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
    let due = u128::from(a) + u128::from(own.deadline);
    let mine = u128::from(a / period(own) + 1) * u128::from(own.budget);
    let mut w: u128 = 1;
    loop {
        effort.spend(contenders.len())?;
        let others =
            contenders.iter().enumerate().filter(|(j, c)| *j != i && u128::from(c.deadline) <= due).map(|(_, c)| {
                let t = u128::from(period(c));
                let urgent = (due - u128::from(c.deadline)) / t + 1;
                urgent.min(w.div_ceil(t)) * u128::from(c.budget)
            });
        let next = mine + others.sum::<u128>();
        if next <= w {
            return u64::try_from(w).map_err(|_| Exhausted);
        }
        w = next;
    }
}
