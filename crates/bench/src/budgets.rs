//! Budget received: the three compute-bound tasks of the RTAI paper's Fig. 6, beside a
//! background load.

use crate::windows::Spread;
use crate::{tools, Bench, Failure, Part, Verdict};
use punctual_measure::overhead::sets::FIG_6;
use serde_json::{json, Value};

/// One task over all windows.
#[derive(Default)]
struct Sums {
    periods: f64,
    off_1: f64,
    off_5: f64,
    late: f64,
    late_off_5: f64,
    stalled: f64,
    received: f64,
    assigned: f64,
    /// Of each window, ppm.
    off_5_of: Vec<f64>,
}

impl Sums {
    fn add(&mut self, task: &Value) {
        let of = |v: &Value| v.as_f64().unwrap_or(0.0);
        let budget = &task["budget_received"];
        self.periods += of(&budget["periods"]);
        self.off_1 += of(&budget["off_1_percent"]);
        self.off_5 += of(&budget["off_5_percent"]);
        self.late += of(&task["late_wakeups"]["periods"]);
        self.late_off_5 += of(&task["late_wakeups"]["off_5_percent"]);
        self.stalled += of(&task["stalled"]["periods"]);
        self.received += of(&task["received_ns"]);
        self.assigned += of(&task["assigned_ns"]);
        self.off_5_of.push(of(&budget["off_5_percent_ppm"]));
    }

    fn off_5_spread(&self) -> Spread {
        Spread::of(self.off_5_of.iter().copied())
    }
}

struct Column {
    title: &'static str,
    tasks: Vec<(String, Sums)>,
    load: Vec<f64>,
    not_possible: Option<String>,
}

impl Column {
    fn new(title: &'static str) -> Column {
        Column { title, tasks: Vec::new(), load: Vec::new(), not_possible: None }
    }

    fn add(&mut self, run: &Value) {
        if let Some(reason) = run["not_possible"]["reason"].as_str() {
            self.not_possible = Some(reason.to_owned());
            return;
        }
        let tasks = run["tasks"].as_array().map_or(&[][..], Vec::as_slice);
        for (i, task) in tasks.iter().enumerate() {
            if self.tasks.len() <= i {
                self.tasks.push((task["name"].as_str().unwrap_or("?").to_owned(), Sums::default()));
            }
            self.tasks[i].1.add(task);
        }
        self.load.extend(run["load"]["share_ppm"].as_f64());
    }

    fn print(&self) {
        println!("  {}", self.title);
        if let Some(reason) = &self.not_possible {
            println!("    not possible: {reason}");
        }
        for (name, s) in &self.tasks {
            let [off_1, off_5] = [s.off_1, s.off_5].map(|off| 100.0 * off / s.periods);
            let (off_5_of, late) =
                (s.off_5_spread().show(1e4, 3), format!("{} / {}", s.late, s.late_off_5));
            let (periods, share) = (s.periods, 100.0 * s.received / s.assigned);
            println!(
                "    {name:<12} {periods:>8} {off_1:>9.3} {off_5:>9.3} {off_5_of:>24} {late:>12} \
                 {share:>12.4}"
            );
        }
        if !self.load.is_empty() {
            println!(
                "    background load: {} % of the CPU",
                Spread::of(self.load.iter().copied()).show(1e4, 2)
            );
        }
    }

    fn json(&self) -> Value {
        let tasks: serde_json::Map<String, Value> = self
            .tasks
            .iter()
            .map(|(name, s)| {
                let figures = json!({
                    "periods": s.periods, "off_1_percent": s.off_1, "off_5_percent": s.off_5,
                    "woken_late": s.late, "woken_late_off_5_percent": s.late_off_5,
                    "stalled": s.stalled, "received_ns": s.received, "assigned_ns": s.assigned,
                    "off_5_percent_ppm": s.off_5_spread().json(),
                });
                (name.clone(), figures)
            })
            .collect();
        json!({ "tasks": tasks, "load_share_ppm": Spread::of(self.load.iter().copied()).json(),
            "not_possible": self.not_possible })
    }
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let duration = if bench.quick { "2s" } else { "5s" };
    let set = format!("cpu = {}\n{FIG_6}", bench.cpu);
    let mut columns = [Column::new("Punctual"), Column::new("SCHED_DEADLINE")];
    for n in 0..bench.windows {
        tools::progress(&format!("budgets: window {} of {}", n + 1, bench.windows));
        let results = tools::punctual(
            bench,
            &set,
            &["--load", "--compare", "deadline", "--duration", duration],
        )?;
        for (column, run) in columns.iter_mut().zip([&results, &results["baselines"][0]]) {
            column.add(run);
        }
    }
    tools::progress("");
    println!(
        "Budget received, {} windows of {duration}: RTAI's Fig. 6 without its player, a background \
         process beside",
        bench.windows
    );
    println!(
        "    {:<12} {:>8} {:>9} {:>9} {:>24} {:>12} {:>12}",
        "", "periods", ">1 %", ">5 %", ">5 %, per window", "late / >5 %", "long run %"
    );
    columns.iter().for_each(Column::print);
    println!();
    let mut verdicts = Vec::new();
    for (name, s) in &columns[0].tasks {
        let off = 100.0 * s.off_5 / s.periods;
        let long = 100.0 * s.received / s.assigned;
        verdicts.push(Verdict::new(
            format!("periods off by more than 5 %, {name}"),
            "0.6 %",
            format!("{off:.3} % of {}", s.periods),
            off <= 0.6,
        ));
        verdicts.push(Verdict::new(
            format!("long-run share, {name}"),
            "100 +- 0.1 %",
            format!("{long:.4} %"),
            (long - 100.0).abs() <= 0.1,
        ));
    }
    Ok(Part {
        figures: json!({ "punctual": columns[0].json(), "deadline": columns[1].json() }),
        verdicts,
    })
}
