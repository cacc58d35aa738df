//! How much of a CPU a group is sure to get: supply-bound functions (Shin and Lee 2003; Mok, Feng
//! and Chen 2001 for tables).
//!
//! A supply gives, for a length of time, the least execution time within any interval of that
//! length throughout which the group has something to execute. Two ways to ask it, both exact
//! inverses of each other: [`Supply::by`] and [`Supply::time_for`]. Lengths are ns.

use punctual_taskset::Window;

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// 1 as a rate: rates are fractions of a CPU in units of 2^-64.
pub(crate) const ONE: u128 = 1 << 64;

/// Steps that are taken to find when two supplies together have given enough.
const STEPS: u32 = 100_000;

/// A supply of execution time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Supply {
    /// A CPU of one's own.
    Whole,
    /// Nothing is sure.
    Nothing,
    /// After at most `blackout` ns without any, `budget` ns in each `period`, at once.
    Server { blackout: u64, budget: u64, period: u64 },
    /// All of the time within windows.
    Table(Table),
    /// Only when both give.
    Both(Box<Supply>, Box<Supply>),
}

/// Windows in a cycle, seen from the end of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    cycle: u64,
    /// Sum of the lengths.
    whole: u64,
    /// Start of each window and the supply before it, over two cycles.
    windows: Vec<(u64, u64)>,
    lengths: Vec<u64>,
}

impl Table {
    /// From windows that are in order, apart from each other, and within the cycle.
    pub(crate) fn new(cycle: u64, windows: &[Window]) -> Table {
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
        Table { cycle, whole: before / 2, windows: twice, lengths }
    }

    /// After which the windows come again.
    pub(crate) fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The supply from `from` to `to`, counted from the start of a cycle.
    pub(crate) fn between(&self, from: u64, to: u64) -> u64 {
        let since_start = |t: u64| t / self.cycle * self.whole + self.until(t % self.cycle);
        since_start(to).saturating_sub(since_start(from))
    }

    fn count(&self) -> usize {
        self.windows.len() / 2
    }

    /// Supply from the start of the cycle until `t`, below two cycles.
    fn until(&self, t: u64) -> u64 {
        match self.windows.partition_point(|w| w.0 < t) {
            0 => 0,
            n => self.windows[n - 1].1 + (t - self.windows[n - 1].0).min(self.lengths[n - 1]),
        }
    }

    /// When so much has been supplied since the start of the cycle, at most two cycles' worth.
    fn when(&self, amount: u64) -> u64 {
        match self.windows.partition_point(|w| w.1 < amount) {
            0 => 0,
            n => self.windows[n - 1].0 + (amount - self.windows[n - 1].1),
        }
    }

    /// The worst place to begin is the end of a window: later, the wait for the next one is shorter;
    /// earlier, the rest of the window is there as well.
    fn ends(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0..self.count()).map(|n| {
            let (start, before) = self.windows[n];
            (start + self.lengths[n], before + self.lengths[n])
        })
    }

    fn by(&self, t: u64) -> u64 {
        let (rounds, rest) = (t / self.cycle, t % self.cycle);
        let least = self.ends().map(|(end, before)| self.until(end + rest) - before).min();
        rounds * self.whole + least.unwrap_or(0)
    }

    fn time_for(&self, amount: u128) -> u64 {
        let whole = u128::from(self.whole);
        if whole == 0 {
            return NEVER;
        }
        let rounds = (amount - 1) / whole;
        let rest = ((amount - 1) % whole) as u64 + 1;
        let latest = self.ends().map(|(end, before)| self.when(before + rest) - end).max();
        saturate(rounds.saturating_mul(u128::from(self.cycle)).saturating_add(u128::from(latest.unwrap_or(0))))
    }
}

impl Supply {
    /// The least supply within any interval of `t` ns: at most `t`.
    pub(crate) fn by(&self, t: u64) -> u64 {
        match self {
            Supply::Whole => t,
            Supply::Nothing => 0,
            Supply::Server { blackout, budget, period } => {
                let y = t.saturating_sub(*blackout);
                y / period * budget + (y % period).min(*budget)
            }
            Supply::Table(table) => table.by(t),
            // What was supplied is not taken back: the most of any shorter interval. Asked for by
            // tests only, which need no more than this lower bound.
            Supply::Both(a, b) => (u128::from(a.by(t)) + u128::from(b.by(t))).saturating_sub(u128::from(t)) as u64,
        }
    }

    /// The shortest interval that is sure to supply `amount`; [`NEVER`] if none is (or none that
    /// was found in bounded time, which only an intersection can need).
    pub(crate) fn time_for(&self, amount: u128) -> u64 {
        if amount == 0 {
            return 0;
        }
        match self {
            Supply::Whole => saturate(amount),
            Supply::Nothing => NEVER,
            Supply::Server { blackout, budget, period } => {
                let (budget, period) = (u128::from(*budget), u128::from(*period));
                let rounds = (amount - 1) / budget;
                saturate(
                    rounds.saturating_mul(period).saturating_add(u128::from(*blackout) + (amount - 1) % budget + 1),
                )
            }
            Supply::Table(table) => table.time_for(amount),
            Supply::Both(a, b) => {
                let mut t = a.time_for(amount).max(b.time_for(amount));
                for _ in 0..STEPS {
                    if t == NEVER {
                        return NEVER;
                    }
                    let given = (u128::from(a.by(t)) + u128::from(b.by(t))).saturating_sub(u128::from(t));
                    if given >= amount {
                        return t;
                    }
                    // It grows by at most 1 per ns.
                    t = saturate((amount - given).saturating_add(u128::from(t)));
                }
                NEVER
            }
        }
    }

    /// How many terms a question costs.
    pub(crate) fn terms(&self) -> usize {
        match self {
            Supply::Whole | Supply::Nothing | Supply::Server { .. } => 1,
            Supply::Table(table) => 1 + table.count(),
            Supply::Both(a, b) => 4 * (a.terms() + b.terms()),
        }
    }

    /// A line below it: `by(t) >= rate * t - deficit`, the rate in units of 2^-64, rounded down.
    pub(crate) fn line(&self) -> (u128, u128) {
        match self {
            Supply::Whole => (ONE, 0),
            Supply::Nothing => (0, 0),
            Supply::Server { blackout, budget, period } => {
                let rate = (u128::from(*budget) << 64) / u128::from(*period);
                (rate, u128::from(*blackout).min(u128::from(*blackout) * u128::from(*budget) / u128::from(*period) + 1))
            }
            Supply::Table(table) => {
                ((u128::from(table.whole) << 64) / u128::from(table.cycle), u128::from(table.whole))
            }
            Supply::Both(a, b) => {
                let ((rate_a, less_a), (rate_b, less_b)) = (a.line(), b.line());
                ((rate_a + rate_b).saturating_sub(ONE), less_a + less_b)
            }
        }
    }

    /// Both at once.
    pub(crate) fn and(self, other: Supply) -> Supply {
        match (self, other) {
            (Supply::Whole, other) | (other, Supply::Whole) => other,
            (Supply::Nothing, _) | (_, Supply::Nothing) => Supply::Nothing,
            (a, b) => Supply::Both(Box::new(a), Box::new(b)),
        }
    }
}

fn saturate(t: u128) -> u64 {
    u64::try_from(t).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(cycle: u64, windows: &[(u64, u64)]) -> Table {
        let windows: Vec<Window> = windows.iter().map(|&(start, length)| Window { start, length }).collect();
        Table::new(cycle, &windows)
    }

    /// Slot by slot, from every start.
    fn slots(cycle: u64, windows: &[(u64, u64)], t: u64) -> u64 {
        let open = |at: u64| windows.iter().any(|w| (w.0..w.0 + w.1).contains(&(at % cycle)));
        (0..cycle).map(|from| (from..from + t).filter(|&at| open(at)).count() as u64).min().unwrap()
    }

    #[test]
    fn a_table_supplies_what_counting_slots_from_every_start_finds() {
        for windows in
            [&[(0, 5)][..], &[(2, 1), (5, 3)], &[(0, 1), (1, 2), (9, 1)], &[(3, 1), (6, 1), (8, 2)], &[(0, 10)]]
        {
            let table = table(10, windows);
            for t in 0..45 {
                assert_eq!(table.by(t), slots(10, windows, t), "{windows:?} in {t}");
            }
        }
    }

    #[test]
    fn the_time_for_an_amount_is_the_first_in_which_it_is_supplied() {
        let server = Supply::Server { blackout: 7, budget: 3, period: 10 };
        let table = Supply::Table(table(10, &[(2, 1), (5, 3)]));
        let both = Supply::Server { blackout: 0, budget: 8, period: 10 }.and(Supply::Server {
            blackout: 2,
            budget: 9,
            period: 10,
        });
        for supply in [Supply::Whole, server, table, both] {
            for amount in 1..40u64 {
                let t = supply.time_for(u128::from(amount));
                assert!(supply.by(t) >= amount, "{supply:?} {amount}");
                assert!((0..t).all(|earlier| supply.by(earlier) < amount), "{supply:?} {amount}");
            }
        }
    }

    #[test]
    fn the_line_lies_below_the_supply() {
        let server = Supply::Server { blackout: 13, budget: 3, period: 10 };
        for supply in [server.clone(), Supply::Table(table(10, &[(2, 1), (5, 3)])), server.and(Supply::Whole)] {
            let (rate, deficit) = supply.line();
            for t in 0..500u64 {
                assert!(u128::from(supply.by(t)) + deficit >= (rate * u128::from(t)) >> 64, "{supply:?} at {t}");
            }
        }
    }

    #[test]
    fn the_periodic_resource_of_shin_and_lee_has_a_blackout_of_twice_the_gap() {
        // Their example: 3 in every 5; nothing for 2 * (5 - 3), then 3 at once.
        let supply = Supply::Server { blackout: 4, budget: 3, period: 5 };
        assert_eq!([0, 4, 5, 7, 9, 10].map(|t| supply.by(t)), [0, 0, 1, 3, 3, 4]);
    }

    #[test]
    fn the_greatest_numbers_do_not_overflow() {
        let most = 1 << 62;
        let server = Supply::Server { blackout: most, budget: most, period: most };
        assert_eq!(server.time_for(u128::MAX >> 2), NEVER);
        assert_eq!(Supply::Table(table(most, &[(0, 1)])).time_for(u128::MAX >> 3), NEVER);
    }
}
