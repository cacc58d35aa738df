//! cyclictest's histogram, read.

/// Median and 99th percentile of what `cyclictest -h LONGEST` printed, in its own unit (us; ns with
/// `-N`). Latencies beyond the histogram count as `longest`. `None` for a text without a histogram.
#[must_use]
pub fn percentiles(text: &str, longest: u64) -> Option<[u64; 2]> {
    let number = |s: &str| s.trim().parse::<u64>().ok();
    let mut counts: Vec<(u64, u64)> = text
        .lines()
        .filter_map(|l| l.split_once(' '))
        .filter_map(|(v, n)| Some((number(v)?, number(n)?)))
        .collect();
    let overflow = text.lines().find_map(|l| number(l.strip_prefix("# Histogram Overflows:")?));
    counts.push((longest, overflow.unwrap_or(0)));
    let total: u64 = counts.iter().map(|c| c.1).sum();
    let at = |percent: u64| {
        let mut seen = 0;
        counts.iter().find_map(|&(value, n)| {
            seen += n;
            (seen > total * percent / 100).then_some(value)
        })
    };
    Some([at(50)?, at(99)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_count_what_the_histogram_left_out() {
        let text = "# Histogram\n000010 000049\n000020 000002\n000030 000048\n# Total: 99\n\
                    # Histogram Overflows: 00001\n";
        assert_eq!(percentiles(text, 1_000_000), Some([20, 1_000_000]));
        assert_eq!(percentiles("Unable to change scheduling policy!\n", 1_000_000), None);
    }
}
