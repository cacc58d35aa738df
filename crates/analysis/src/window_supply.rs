//! The supply-bound function of windows that repeat (Mok, Feng and Chen 2001). Times are ns.

use punctual_taskset::Window;

use crate::supply::{saturate, NEVER};

/// Windows in a cycle: all of the time within them is supplied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WindowSupply {
    cycle: u64,
    /// The supply of one cycle.
    whole: u64,
    /// Start of each window and the supply before it, over two cycles.
    windows: Vec<(u64, u64)>,
    lengths: Vec<u64>,
}

impl WindowSupply {
    /// From windows that are in order, disjoint, and within the cycle.
    pub(crate) fn new(cycle: u64, windows: &[Window]) -> WindowSupply {
        let mut merged: Vec<Window> = Vec::with_capacity(windows.len());
        for window in windows {
            match merged.last_mut() {
                Some(last) if last.start + last.length >= window.start => {
                    last.length = window.start + window.length - last.start;
                }
                _ => merged.push(*window),
            }
        }
        let mut before = 0;
        let mut twice = Vec::with_capacity(2 * merged.len());
        let mut lengths = Vec::with_capacity(2 * merged.len());
        for round in 0..2 {
            for window in &merged {
                twice.push((round * cycle + window.start, before));
                lengths.push(window.length);
                before += window.length;
            }
        }
        WindowSupply { cycle, whole: before / 2, windows: twice, lengths }
    }

    /// After how long the windows repeat.
    pub(crate) fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The supply of one cycle.
    pub(crate) fn whole(&self) -> u64 {
        self.whole
    }

    /// The supply from `from` to `to`, both counted from the start of a cycle.
    pub(crate) fn between(&self, from: u64, to: u64) -> u64 {
        let since_start = |t: u64| t / self.cycle * self.whole + self.until(t % self.cycle);
        since_start(to).saturating_sub(since_start(from))
    }

    /// How many windows a cycle has.
    pub(crate) fn count(&self) -> usize {
        self.windows.len() / 2
    }

    /// Supply from the start of the cycle until `t`, below two cycles.
    fn until(&self, t: u64) -> u64 {
        match self.windows.partition_point(|w| w.0 < t) {
            0 => 0,
            n => self.windows[n - 1].1 + (t - self.windows[n - 1].0).min(self.lengths[n - 1]),
        }
    }

    /// When `amount` has been supplied since the start of the cycle, at most two cycles' worth.
    fn when(&self, amount: u64) -> u64 {
        match self.windows.partition_point(|w| w.1 < amount) {
            0 => 0,
            n => self.windows[n - 1].0 + (amount - self.windows[n - 1].1),
        }
    }

    /// The end of each window and the supply until then. The worst interval begins at such an end:
    /// one that begins later waits less for the next window, one that begins earlier has the rest
    /// of the window as well.
    fn ends(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0..self.count()).map(|n| {
            let (start, before) = self.windows[n];
            (start + self.lengths[n], before + self.lengths[n])
        })
    }

    /// The least supply within any interval of `t`.
    pub(crate) fn by(&self, t: u64) -> u64 {
        let (rounds, rest) = (t / self.cycle, t % self.cycle);
        let least = self.ends().map(|(end, before)| self.until(end + rest) - before).min();
        rounds * self.whole + least.unwrap_or(0)
    }

    /// The shortest interval that is sure to supply `amount`, at least 1.
    pub(crate) fn time_for(&self, amount: u128) -> u64 {
        let whole = u128::from(self.whole);
        if whole == 0 {
            return NEVER;
        }
        let rounds = (amount - 1) / whole;
        let rest = ((amount - 1) % whole) as u64 + 1;
        let latest = self.ends().map(|(end, before)| self.when(before + rest) - end).max();
        saturate(
            rounds
                .saturating_mul(u128::from(self.cycle))
                .saturating_add(u128::from(latest.unwrap_or(0))),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slot by slot, from every start.
    fn slots(cycle: u64, windows: &[(u64, u64)], t: u64) -> u64 {
        let open = |at: u64| windows.iter().any(|w| (w.0..w.0 + w.1).contains(&(at % cycle)));
        (0..cycle).map(|from| (from..from + t).filter(|&at| open(at)).count() as u64).min().unwrap()
    }

    #[test]
    fn windows_supply_what_counting_slots_from_every_start_finds() {
        for windows in [
            &[(0, 5)][..],
            &[(2, 1), (5, 3)],
            &[(0, 1), (1, 2), (9, 1)],
            &[(3, 1), (6, 1), (8, 2)],
            &[(0, 10)],
        ] {
            let list: Vec<Window> =
                windows.iter().map(|&(start, length)| Window { start, length }).collect();
            let supply = WindowSupply::new(10, &list);
            for t in 0..45 {
                assert_eq!(supply.by(t), slots(10, windows, t), "{windows:?} in {t}");
            }
        }
    }
}
