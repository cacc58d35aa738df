//! `--require FIGURE=TIME`: what a measurement must keep for the command to succeed.

use punctual_taskset::{fmt_ns, parse_duration};

/// An upper bound of a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The name of the figure.
    pub figure: String,
    /// The greatest value that is accepted, ns.
    pub limit_ns: u64,
}

impl Requirement {
    /// Reads `FIGURE=TIME`, such as `worst=100us`, of one of `figures`.
    ///
    /// # Errors
    /// One line of cause and help: no `=`, a figure that is none of them, or no time.
    pub fn parse(text: &str, figures: &[&str]) -> Result<Requirement, String> {
        let (figure, time) = text
            .split_once('=')
            .ok_or_else(|| format!("write a figure and its bound, such as {}=100us", figures[0]))?;
        if !figures.contains(&figure) {
            return Err(format!("there is no figure \"{figure}\"; choose one of {}", figures.join(", ")));
        }
        let limit_ns = parse_duration(time).map_err(|e| e.to_string())?;
        Ok(Requirement { figure: figure.to_owned(), limit_ns })
    }

    /// Why `value`, ns, of `what` does not keep it; `None` where it does.
    #[must_use]
    pub fn broken_by(&self, value: u64, what: &str) -> Option<String> {
        let Requirement { figure, limit_ns } = self;
        (value > *limit_ns).then(|| format!("{figure} {} of {what} exceeds {}", fmt_ns(value), fmt_ns(*limit_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_is_a_known_figure_and_a_time() {
        let parse = |text| Requirement::parse(text, &["worst", "determinism"]);
        let worst = parse("worst=100us").unwrap();
        assert_eq!((worst.figure.as_str(), worst.limit_ns), ("worst", 100_000));
        assert!(parse("worst").unwrap_err().contains("worst=100us"));
        assert!(parse("p99=1us").unwrap_err().contains("choose one of worst, determinism"));
        assert!(parse("worst=100").is_err());
    }

    #[test]
    fn the_bound_itself_is_kept() {
        let worst = Requirement { figure: "worst".to_owned(), limit_ns: 1_000 };
        assert_eq!(worst.broken_by(1_000, "task1"), None);
        assert!(worst.broken_by(1_001, "task1").is_some_and(|why| why.contains("task1")));
    }
}
