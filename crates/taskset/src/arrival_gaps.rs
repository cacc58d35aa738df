//! The times between the releases of an aperiodic task.
//!
//! The generator belongs to what a task set means: the same seed gives the same arrivals on every
//! machine and every host, and to the analysis. It uses integers only.

use oorandom::Rand64;

/// Exponentially distributed times, ns.
pub struct ArrivalGaps {
    mean: u64,
    random: Rand64,
}

/// Not the numbers that execution times of the same seed are drawn from.
const ARRIVALS: u128 = 1 << 96;

impl ArrivalGaps {
    /// Of this mean, ns. The first is the time from the task's start to its first release.
    #[must_use]
    pub fn new(mean: u64, seed: u64) -> ArrivalGaps {
        ArrivalGaps { mean, random: ArrivalGaps::numbers(seed) }
    }

    /// The numbers from which arrivals with this seed are drawn.
    #[must_use]
    pub fn numbers(seed: u64) -> Rand64 {
        Rand64::new(u128::from(seed) | ARRIVALS)
    }

    /// The next one. Not an iterator: there is no end.
    pub fn draw(&mut self) -> u64 {
        exponential(self.mean, self.random.rand_u64())
    }
}

/// `mean * -ln(x / 2^64)`, rounded down: exponentially distributed for an evenly distributed `x`
/// (0 counts as 1). The logarithm has 32 binary digits after the point.
fn exponential(mean: u64, x: u64) -> u64 {
    /// ln 2 in 64 binary digits.
    const LN_2: u128 = 0xB172_17F7_D1CF_79AB;
    let x = x.max(1);
    let zeros = x.leading_zeros();
    let mut mantissa = u128::from(x << zeros);
    let mut log = u64::from(63 - zeros);
    for _ in 0..32 {
        // Squaring doubles the logarithm of the mantissa, which is in 1 .. 2. The next binary digit
        // is 1 if the square is at least 2; halving the square then subtracts that digit.
        mantissa = (mantissa * mantissa) >> 63;
        let digit = (mantissa >> 64) as u64;
        mantissa >>= digit;
        log = log << 1 | digit;
    }
    let bits = (64u128 << 32) - u128::from(log);
    let doublings = ((u128::from(mean) * bits) >> 32).min(u64::MAX.into());
    ((doublings * LN_2) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithm_is_exact_at_powers_of_two_and_close_between() {
        assert_eq!(exponential(1_000_000, 1 << 63), 693_147); // ln 2
        assert_eq!(exponential(1_000_000, 1 << 62), 1_386_294); // 2 ln 2
        assert_eq!(exponential(1_000_000, u64::MAX), 0);
        assert_eq!(exponential(1_000_000, 0), 44_361_419); // 64 ln 2
        assert_eq!(exponential(1_000_000, 0x5E2D_58D8_B3BC_DF1B), 1_000_000 - 1);
        // 1/e, rounded down
    }
}
