//! Times of several runs side by side: what `assets/charts.js` and `svg.rs` draw alike.

use punctual_session::results::{TaskResult, TimeSpread};
use serde::Serialize;

use crate::{measured, Page};

/// One picture: for each name a line and a mark of each series.
#[derive(Debug, Serialize)]
pub(crate) struct Spreads {
    /// The element that it is drawn in, and the name of its SVG.
    pub id: String,
    /// What it shows, as text.
    pub caption: String,
    /// Tasks, kinds or workloads.
    pub names: Vec<String>,
    /// A colour and a shape for each.
    pub series: Vec<Series>,
}

/// The times of one run.
#[derive(Debug, Serialize)]
pub(crate) struct Series {
    pub title: String,
    /// In the order of the names; `None` where it has none.
    pub spreads: Vec<Option<Spread>>,
}

/// A line and a mark, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Spread {
    pub from: u64,
    pub to: u64,
    pub mark: u64,
}

/// Times by the name of what has them.
type NamedSpreads = Vec<(String, Option<Spread>)>;

impl From<TimeSpread> for Spread {
    fn from(times: TimeSpread) -> Spread {
        Spread { from: times.median_ns, to: times.p99_ns, mark: times.worst_ns }
    }
}

impl Spreads {
    /// Of what each series, a title and spreads by name, has; names are in the order of their
    /// first appearance. `None` if there is nothing to draw.
    pub fn new(id: &str, caption: &str, series: Vec<(String, NamedSpreads)>) -> Option<Spreads> {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in series.iter().flat_map(|(_, of)| of) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let spread = |of: &[(String, Option<Spread>)], name: &String| {
            of.iter().find(|(of, _)| of == name).and_then(|(_, spread)| *spread)
        };
        let series: Vec<Series> = series
            .into_iter()
            .map(|(title, of)| Series {
                title,
                spreads: names.iter().map(|name| spread(&of, name)).collect(),
            })
            .collect();
        let is_drawn = series.iter().any(|series| series.spreads.iter().any(Option::is_some));
        is_drawn.then(|| Spreads { id: id.to_owned(), caption: caption.to_owned(), names, series })
    }
}

impl Page {
    /// All pictures that compare: of several runs by task, of measurements by kind and workload.
    pub(crate) fn spreads(&self) -> Vec<Spreads> {
        let of_runs = |id, what: &str, times: fn(&TaskResult) -> Option<TimeSpread>| {
            if self.runs.len() < 2 {
                return None;
            }
            let series = self.runs.iter().map(|run| {
                let tasks = match run.results.not_possible {
                    None => &run.results.tasks[..],
                    Some(_) => &[],
                };
                let spreads =
                    tasks.iter().map(|task| (task.name.clone(), times(task).map(Spread::from)));
                (run.title.clone(), spreads.collect())
            });
            let caption =
                format!("{what}: median to 99th percentile, and the longest, per task and run");
            Spreads::new(id, &caption, series.collect())
        };
        let response = of_runs("compare-response_time", "Response", |task| task.response_time);
        let latency = of_runs("compare-release_latency", "Latency", |task| task.release_latency);
        response.into_iter().chain(latency).chain(measured::spreads(&self.measurements)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_series_are_joined_and_what_one_lacks_is_none() {
        let spread = |ns| Some(Spread { from: ns, to: ns, mark: ns });
        let series = vec![
            ("a".to_owned(), vec![("x".to_owned(), spread(1))]),
            ("b".to_owned(), vec![("y".to_owned(), spread(2)), ("x".to_owned(), None)]),
        ];
        let spreads = Spreads::new("id", "caption", series).expect("there are times");
        assert_eq!(spreads.names, ["x", "y"]);
        assert_eq!(spreads.series[0].spreads, [spread(1), None]);
        assert_eq!(spreads.series[1].spreads, [None, spread(2)]);
        let empty = vec![("a".to_owned(), vec![("x".to_owned(), None)])];
        assert!(Spreads::new("id", "caption", empty).is_none());
    }
}
