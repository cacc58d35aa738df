//! Utilization as an exact fraction: a sum of budget / period that is not rounded before it is
//! compared.

use std::collections::BTreeMap;
use std::fmt;

use num_bigint::BigUint;

/// One million, the whole of a CPU in [`Ppm`].
pub const WHOLE: u64 = 1_000_000;

/// Parts per million of one CPU, for reports; no decision depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ppm(pub u64);

impl fmt::Display for Ppm {
    /// As a percentage with as many decimals as it needs: `90 %`, `90.0001 %`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 10_000, self.0 % 10_000);
        if rest == 0 {
            return write!(f, "{whole} %");
        }
        let rest = format!("{rest:04}");
        write!(f, "{whole}.{} %", rest.trim_end_matches('0'))
    }
}

/// A fraction of a CPU, exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Utilization {
    numerator: BigUint,
    denominator: BigUint,
}

impl Utilization {
    /// `numerator / denominator`; a denominator of 0, which no checked set has, counts as 1.
    pub(crate) fn new(numerator: impl Into<BigUint>, denominator: impl Into<BigUint>) -> Self {
        let denominator = denominator.into();
        Utilization {
            numerator: numerator.into(),
            denominator: denominator.max(BigUint::from(1u8)),
        }
    }

    /// The sum of budget / period over tasks given as (budget, period) in ns.
    ///
    /// Tasks of equal period are added first, since sets have few different periods. The remaining
    /// fractions are added in pairs, so that numerators grow evenly: 10,000 periods take some
    /// milliseconds.
    pub(crate) fn sum(tasks: impl IntoIterator<Item = (u64, u64)>) -> Self {
        Utilization::sum_wide(
            tasks.into_iter().map(|(budget, period)| (u128::from(budget), period)),
        )
    }

    /// As [`sum`](Utilization::sum), of budgets that are sums themselves.
    pub(crate) fn sum_wide(tasks: impl IntoIterator<Item = (u128, u64)>) -> Self {
        let mut by_period: BTreeMap<u64, u128> = BTreeMap::new();
        for (budget, period) in tasks {
            // A u128 holds 2^64 budgets of 2^64 ns.
            *by_period.entry(period).or_default() += budget;
        }
        let mut terms =
            by_period.into_iter().map(|(period, budget)| Utilization::new(budget, period));
        match terms.next() {
            Some(first) => first.plus_all(terms.collect()),
            None => Utilization::new(0u8, 1u8),
        }
    }

    /// The sum of this and `terms`, added in pairs.
    pub(crate) fn plus_all(self, mut terms: Vec<Utilization>) -> Utilization {
        terms.push(self);
        while terms.len() > 1 {
            terms = terms
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => a.plus(b),
                    rest => rest[0].clone(),
                })
                .collect();
        }
        terms.swap_remove(0)
    }

    /// Whether it is larger than another.
    pub(crate) fn exceeds(&self, other: &Utilization) -> bool {
        &self.numerator * &other.denominator > &other.numerator * &self.denominator
    }

    fn plus(&self, other: &Utilization) -> Utilization {
        Utilization {
            numerator: &self.numerator * &other.denominator + &other.numerator * &self.denominator,
            denominator: &self.denominator * &other.denominator,
        }
    }

    /// The excess over `limit`; `None` where there is none.
    pub(crate) fn above(&self, limit: Ppm) -> Option<Utilization> {
        let scaled = &self.numerator * WHOLE;
        let allowed = &self.denominator * limit.0;
        if scaled <= allowed {
            return None;
        }
        Some(Utilization { numerator: scaled - allowed, denominator: &self.denominator * WHOLE })
    }

    /// In parts per million, rounded up: above a whole number of ppm if and only if the fraction
    /// itself is.
    pub(crate) fn ppm(&self) -> Ppm {
        Ppm(saturate(&ceiling(&(&self.numerator * WHOLE), &self.denominator)))
    }

    /// This share of `period`, in whole ns, rounded up.
    pub(crate) fn of(&self, period: u64) -> u64 {
        saturate(&ceiling(&(&self.numerator * period), &self.denominator))
    }

    /// `limit` as a share of this, in parts per million, rounded down: the factor by which all
    /// budgets together fit the limit.
    pub(crate) fn factor_to(&self, limit: Ppm) -> Ppm {
        if self.numerator == BigUint::ZERO {
            return Ppm(WHOLE);
        }
        Ppm(saturate(&(&self.denominator * limit.0 / &self.numerator)))
    }
}

fn ceiling(numerator: &BigUint, denominator: &BigUint) -> BigUint {
    (numerator + denominator - 1u8) / denominator
}

fn saturate(number: &BigUint) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
