//! The work of a cycle, and how much of it fits.

use punctual_diagnostic::Diagnostic;
use punctual_sys::clock::monotonic_ns;

use super::kinds::TASKS;

/// Words of a task's data: 64 cache lines.
const WORDS: usize = 512;
/// Words that a unit reads, changes and writes: a cache line.
const LINE: usize = 8;

/// What a release costs besides its work, ns: the timer or the call, the switch there and the one
/// back. Several times what any measured machine takes.
const RELEASE_NS: u64 = 12_000;
/// The share of the CPU that all tasks may use, ppm: well below the 95 % at which the kernel
/// throttles real-time threads.
const MOST_PPM: u64 = 700_000;

/// A task's data, on which it works.
pub struct Data([u64; WORDS]);

impl Data {
    pub fn new() -> Data {
        Data([1; WORDS])
    }

    /// Does so many units: each a chain of a cache line's words, which no compiler shortens.
    #[inline(never)]
    pub fn work(&mut self, units: u32) {
        let mut mixed = u64::from(units);
        for unit in 0..units as usize {
            let first = unit * LINE % WORDS;
            for word in &mut self.0[first..first + LINE] {
                mixed = mixed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(*word);
                *word = mixed;
            }
        }
        std::hint::black_box(&mut self.0);
    }
}

/// What so many units take, ns: the median of some tens, so that neither a cold cache nor a
/// neighbour decides.
pub fn cost(units: u32) -> u64 {
    let mut data = Data::new();
    let mut times = [0; 41];
    for time in &mut times {
        let begin = monotonic_ns();
        data.work(units);
        *time = monotonic_ns() - begin;
    }
    times.sort_unstable();
    times[times.len() / 2]
}

/// Task cycles in a thousand seconds at a heart beat, Hz.
fn cycles(rate: u32) -> u64 {
    TASKS.iter().map(|task| 1_000 * u64::from(rate) / u64::from(task.every)).sum()
}

/// The units of `asked`, which take `cost` ns, that fit with the releases at a heart beat, Hz.
///
/// # Errors
/// Not admitted: the releases alone would use too much of the CPU.
pub fn admit(rate: u32, asked: u32, cost: u64) -> Result<u32, Diagnostic> {
    // CPU time in a thousand seconds, ns.
    let most = MOST_PPM * 1_000_000;
    let releases = cycles(rate) + 1_000 * u64::from(rate);
    let taken = releases.saturating_mul(RELEASE_NS);
    if taken > most {
        let greatest = u64::from(rate) * most / taken;
        return Err(Diagnostic::not_admitted(
            format!(
                "at {rate} Hz the releases alone may take {} % of the CPU, and all tasks may use \
                 {} %",
                taken / 10_000_000_000,
                MOST_PPM / 10_000
            ),
            format!("choose a --rate of at most {greatest} Hz"),
        ));
    }
    let wanted = cycles(rate).saturating_mul(cost);
    if wanted <= most - taken {
        return Ok(asked);
    }
    let fits = u128::from(asked) * u128::from(most - taken) / u128::from(wanted);
    Ok(u32::try_from(fits).unwrap_or(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_fits_stays_and_other_work_is_scaled_down_to_the_bound() {
        assert_eq!(admit(1_000, 200, 5_000), Ok(200));
        let units = admit(1_000, 200, 500_000).unwrap();
        assert!((1..200).contains(&units), "{units}");
        // What is scaled down fits, and a few units more do not.
        assert_eq!(admit(1_000, units, 500_000 * u64::from(units) / 200), Ok(units));
        assert!(admit(1_000, units + 2, 500_000 * (u64::from(units) + 2) / 200).unwrap() <= units);
    }

    #[test]
    fn a_rate_whose_releases_do_not_fit_is_refused_with_the_greatest_that_does() {
        let refused = admit(1_000_000, 0, 0).unwrap_err();
        assert_eq!(refused.kind, punctual_diagnostic::Kind::NotAdmitted);
        let words: Vec<&str> = refused.help.split(' ').collect();
        let greatest: u32 = words[words.len() - 2].parse().unwrap();
        assert!(admit(greatest, 0, 0).is_ok() && admit(greatest + 4, 0, 0).is_err(), "{greatest}");
    }

    #[test]
    fn more_work_takes_longer() {
        assert!(cost(20_000) > cost(20));
    }
}
