//! Figures of alternating windows, and what is made of them.

use serde_json::{json, Value};

/// One figure of each of several windows.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    sorted: Vec<f64>,
}

impl Spread {
    /// Of these figures.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = figures.into_iter().filter(|f| f.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        Spread { sorted }
    }

    /// Window by window, `a` in terms of `b`.
    pub fn ratios(a: &[f64], b: &[f64]) -> Spread {
        Spread::of(a.iter().zip(b).map(|(a, b)| a / b))
    }

    /// The middle one, or the mean of both.
    pub fn median(&self) -> f64 {
        match self.sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => self.sorted[n / 2],
            n => (self.sorted[n / 2 - 1] + self.sorted[n / 2]) / 2.0,
        }
    }

    fn least(&self) -> f64 {
        self.sorted.first().copied().unwrap_or(f64::NAN)
    }

    fn most(&self) -> f64 {
        self.sorted.last().copied().unwrap_or(f64::NAN)
    }

    /// Median and range, for people; each figure divided by `unit`.
    pub fn show(&self, unit: f64, digits: usize) -> String {
        format!(
            "{:.digits$} ({:.digits$}..{:.digits$})",
            self.median() / unit,
            self.least() / unit,
            self.most() / unit
        )
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({ "median": self.median(), "min": self.least(), "max": self.most(),
            "windows": self.sorted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_ratios_is_not_the_ratio_of_medians() {
        let ratios = Spread::ratios(&[1.0, 20.0, 3.0], &[1.0, 10.0, 6.0]);
        assert_eq!((ratios.median(), ratios.least(), ratios.most()), (1.0, 0.5, 2.0));
        assert_eq!(Spread::of([4.0, 2.0]).median(), 3.0);
    }
}
