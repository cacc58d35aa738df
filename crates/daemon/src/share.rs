//! Parts of a CPU, in parts per million.

/// All of a CPU.
pub const ALL_PPM: u64 = 1_000_000;

/// What a dispatcher admits at most.
pub const MOST_PPM: u64 = 900_000;

/// budget / period, rounded up.
pub fn ppm(budget_ns: u64, period_ns: u64) -> u64 {
    let ppm = (u128::from(budget_ns) * u128::from(ALL_PPM)).div_ceil(u128::from(period_ns.max(1)));
    u64::try_from(ppm).unwrap_or(u64::MAX)
}
