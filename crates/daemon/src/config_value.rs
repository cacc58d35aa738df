//! Values of the configuration that several of its parts have.

use punctual_taskset::parse_duration;

use crate::share::MOST_PPM;

/// What is wrong with a key: where, why, and what helps.
pub(crate) type WrongKey = (std::ops::Range<usize>, String, String);

/// `"12.5%"` as parts per million: more than 0 and at most 90 %, to a hundredth of a percent.
pub(crate) fn share_ppm(text: &str) -> Option<u64> {
    let number = text.strip_suffix('%')?.trim_end();
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 2 || part.len() > 2 || !digits(whole) || !digits(part) {
        return None;
    }
    let hundredths: u64 = format!("{part:0<2}").parse().ok()?;
    let ppm = whole.parse::<u64>().ok()? * 10_000 + hundredths * 100;
    (1..=MOST_PPM).contains(&ppm).then_some(ppm)
}

/// The duration that this key has, ns.
///
/// # Errors
/// It is none, with the name of the key.
pub(crate) fn duration(key: &str, text: &str) -> Result<u64, String> {
    parse_duration(text).map_err(|e| format!("{key}: {e}"))
}
