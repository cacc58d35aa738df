//! `--require FIGURE=TIME`: what a measurement must keep for the command to succeed.

use punctual_diagnostic::Diagnostic;
use punctual_taskset::{fmt_ns, parse_duration};
use serde::{Deserialize, Serialize};

/// An upper bound of a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        let figure = figure.trim();
        if !figures.contains(&figure) {
            return Err(format!(
                "there is no figure \"{figure}\"; choose one of {}",
                figures.join(", ")
            ));
        }
        let limit_ns = parse_duration(time.trim()).map_err(|e| e.to_string())?;
        Ok(Requirement { figure: figure.to_owned(), limit_ns })
    }

    /// Reads several, with commas between them: `p99=100us,max=1ms`.
    ///
    /// # Errors
    /// As [`parse`](Requirement::parse), of the first that is wrong.
    pub fn parse_list(text: &str, figures: &[&str]) -> Result<Vec<Requirement>, Diagnostic> {
        let help = || format!("write {}=100us, with commas between several", figures[0]);
        let read = |part: &str| {
            Requirement::parse(part, figures).map_err(|why| {
                Diagnostic::usage(format!("the requirement {part:?}: {why}"), help())
            })
        };
        text.split(',').map(read).collect()
    }

    /// Why `value`, ns, of `what` does not keep it; `None` where it does.
    #[must_use]
    pub fn broken_by(&self, value: u64, what: &str) -> Option<String> {
        let Requirement { figure, limit_ns } = self;
        (value > *limit_ns)
            .then(|| format!("{figure} {} of {what} exceeds {}", fmt_ns(value), fmt_ns(*limit_ns)))
    }
}

/// A requirement that a row of a measurement did not keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Violation {
    /// The row's workload.
    pub workload: String,
    /// The requirement.
    pub requirement: Requirement,
    /// What was measured instead, ns; `null`: nothing was.
    pub measured_ns: Option<u64>,
}

impl Violation {
    /// Judges one row, whose figures are `measured`. A row without figures keeps none.
    #[must_use]
    pub fn find(
        workload: &str,
        measured: impl Fn(&str) -> Option<u64>,
        requirements: &[Requirement],
    ) -> Vec<Violation> {
        let violation = |requirement: &Requirement| {
            let measured_ns = measured(&requirement.figure);
            let kept = measured_ns.is_some_and(|ns| ns <= requirement.limit_ns);
            (!kept).then(|| Violation {
                workload: workload.to_owned(),
                requirement: requirement.clone(),
                measured_ns,
            })
        };
        requirements.iter().filter_map(violation).collect()
    }

    /// In words: `p99 120 us of memory exceeds 100 us`.
    #[must_use]
    pub fn describe(&self) -> String {
        let Requirement { figure, limit_ns } = &self.requirement;
        let (workload, limit) = (&self.workload, fmt_ns(*limit_ns));
        match self.measured_ns.and_then(|ns| self.requirement.broken_by(ns, workload)) {
            Some(why) => why,
            None => format!(
                "nothing was measured of {workload}, so {figure} is not known to be {limit} or \
                 less"
            ),
        }
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

    #[test]
    fn a_list_is_read_and_what_was_not_measured_is_not_kept() {
        let list = Requirement::parse_list("p99=100us, max=1ms", &["p99", "max"]).unwrap();
        let found = Violation::find(
            "fork",
            |name| Some(if name == "p99" { 100_001 } else { 1_000_000 }),
            &list,
        );
        assert_eq!(found.len(), 1, "a figure at its bound keeps it: {found:?}");
        assert_eq!(
            found[0].describe(),
            format!("p99 {} of fork exceeds {}", fmt_ns(100_001), fmt_ns(100_000))
        );
        assert_eq!(Violation::find("fork", |_| None, &list).len(), 2);
        for text in ["", "p99", "p98=1ms", "p99=fast", "p99=", "max=1ms,,"] {
            let error = Requirement::parse_list(text, &["p99", "max"]).expect_err(text);
            assert_eq!(error.exit_code(), 2);
        }
    }
}
