//! How much of a CPU a group is sure to receive: supply-bound functions (Shin and Lee 2003; Mok,
//! Feng and Chen 2001 for windows).
//!
//! For a length of time, the function is the least execution time within any interval of that
//! length throughout which the group has something to execute. [`Supply::by`] evaluates it, and
//! [`Supply::time_for`] its exact inverse. Lengths are ns.

use crate::window_supply::WindowSupply;

/// A time that is never reached.
pub(crate) const NEVER: u64 = u64::MAX;

/// 1 as a rate: rates are fractions of a CPU in units of 2^-64.
pub(crate) const ONE: u128 = 1 << 64;

/// Iterations to find when the intersection of two supplies has supplied an amount.
const STEPS: u32 = 100_000;

/// A supply of execution time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Supply {
    /// All of a CPU.
    Whole,
    /// Nothing is guaranteed.
    Nothing,
    /// At most `blackout` ns without any; then `budget` ns at the start of each `period`.
    Server { blackout: u64, budget: u64, period: u64 },
    /// All of the time within windows.
    Windows(WindowSupply),
    /// The time in which both supply.
    Both(Box<Supply>, Box<Supply>),
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
            Supply::Windows(windows) => windows.by(t),
            // A lower bound: exact would be the most of any shorter interval. Only tests call
            // this for an intersection.
            Supply::Both(a, b) => {
                (u128::from(a.by(t)) + u128::from(b.by(t))).saturating_sub(u128::from(t)) as u64
            }
        }
    }

    /// The shortest interval that is sure to supply `amount`; [`NEVER`] if none is, or, for an
    /// intersection, if none was found in [`STEPS`] iterations.
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
                    rounds
                        .saturating_mul(period)
                        .saturating_add(u128::from(*blackout) + (amount - 1) % budget + 1),
                )
            }
            Supply::Windows(windows) => windows.time_for(amount),
            Supply::Both(a, b) => {
                let mut t = a.time_for(amount).max(b.time_for(amount));
                for _ in 0..STEPS {
                    if t == NEVER {
                        return NEVER;
                    }
                    let given =
                        (u128::from(a.by(t)) + u128::from(b.by(t))).saturating_sub(u128::from(t));
                    if given >= amount {
                        return t;
                    }
                    // The supply grows by at most 1 per ns.
                    t = saturate((amount - given).saturating_add(u128::from(t)));
                }
                NEVER
            }
        }
    }

    /// How many steps one evaluation takes.
    pub(crate) fn terms(&self) -> usize {
        match self {
            Supply::Whole | Supply::Nothing | Supply::Server { .. } => 1,
            Supply::Windows(windows) => 1 + windows.count(),
            Supply::Both(a, b) => 4 * (a.terms() + b.terms()),
        }
    }

    /// A line below the function: `by(t) >= rate * t - deficit`, the rate in units of 2^-64,
    /// rounded down.
    pub(crate) fn line(&self) -> (u128, u128) {
        match self {
            Supply::Whole => (ONE, 0),
            Supply::Nothing => (0, 0),
            Supply::Server { blackout, budget, period } => {
                let rate = (u128::from(*budget) << 64) / u128::from(*period);
                (
                    rate,
                    u128::from(*blackout)
                        .min(u128::from(*blackout) * u128::from(*budget) / u128::from(*period) + 1),
                )
            }
            Supply::Windows(windows) => {
                let whole = u128::from(windows.whole());
                ((whole << 64) / u128::from(windows.cycle()), whole)
            }
            Supply::Both(a, b) => {
                let ((rate_a, less_a), (rate_b, less_b)) = (a.line(), b.line());
                ((rate_a + rate_b).saturating_sub(ONE), less_a + less_b)
            }
        }
    }

    /// The intersection of two supplies.
    pub(crate) fn and(self, other: Supply) -> Supply {
        match (self, other) {
            (Supply::Whole, other) | (other, Supply::Whole) => other,
            (Supply::Nothing, _) | (_, Supply::Nothing) => Supply::Nothing,
            (a, b) => Supply::Both(Box::new(a), Box::new(b)),
        }
    }
}

/// Beyond 64 bits: [`NEVER`].
pub(crate) fn saturate(t: u128) -> u64 {
    u64::try_from(t).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_taskset::Window;

    fn windows(cycle: u64, windows: &[(u64, u64)]) -> Supply {
        let windows: Vec<Window> =
            windows.iter().map(|&(start, length)| Window { start, length }).collect();
        Supply::Windows(WindowSupply::new(cycle, &windows))
    }

    #[test]
    fn the_time_for_an_amount_is_the_first_in_which_it_is_supplied() {
        let server = Supply::Server { blackout: 7, budget: 3, period: 10 };
        let windows = windows(10, &[(2, 1), (5, 3)]);
        let both = Supply::Server { blackout: 0, budget: 8, period: 10 }.and(Supply::Server {
            blackout: 2,
            budget: 9,
            period: 10,
        });
        for supply in [Supply::Whole, server, windows, both] {
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
        for supply in [server.clone(), windows(10, &[(2, 1), (5, 3)]), server.and(Supply::Whole)] {
            let (rate, deficit) = supply.line();
            for t in 0..500u64 {
                assert!(
                    u128::from(supply.by(t)) + deficit >= (rate * u128::from(t)) >> 64,
                    "{supply:?} at {t}"
                );
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
        assert_eq!(windows(most, &[(0, 1)]).time_for(u128::MAX >> 3), NEVER);
    }
}
