//! RTAI's Fig. 6: received per assigned execution time of each period. The three computing tasks of
//! the paper, and its MPEG player where there is ffmpeg.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use punctual_diagnostic::Diagnostic;
use punctual_session::results::ppm;
use punctual_session::{Execution, NamedEvent, Output, RunOptions, Session};
use punctual_taskset::{Body, TaskSet, TaskSpec};
use punctual_trace::Period;

use super::paper::{FIG_6_PERIODS, FIG_6_PLAYER_PPM, FIG_6_VIOLATIONS};
use super::result::{BudgetRow, BudgetsResult, MeasuredHost, TaskPrecision};
use super::{sets, OverheadPlan, Window};
use crate::running;

/// The paper's player has 5 ms in 20 ms, and 100 % of the CPU is assigned then; Punctual promises
/// less.
const PLAYER_PERIOD: u64 = 20_000_000;
const PLAYER_BUDGET: u64 = 3_000_000;
/// Periods left out at the beginning of each task.
const SKIPPED: u64 = 10;
/// It ends after so many times its length, and this time, although periods are missing, ns.
const LONGEST: u64 = 2;
const SLACK: u64 = 2_000_000_000;
const WHOLE: u64 = 1_000_000;

impl BudgetsResult {
    pub(super) fn new(periods: u64) -> BudgetsResult {
        BudgetsResult {
            periods,
            paper_violations: FIG_6_VIOLATIONS * periods / FIG_6_PERIODS,
            paper_player_ppm: FIG_6_PLAYER_PPM,
            rows: Vec::new(),
            player_not_possible: None,
        }
    }
}

/// How long it takes for so many periods of each task, ns.
pub(super) fn length(periods: u64, with_player: bool) -> u64 {
    let longest = if with_player { PLAYER_PERIOD } else { 4_000_000 };
    (periods + SKIPPED + 1) * longest
}

/// A clip for the player, removed when dropped.
pub struct Clip {
    directory: tempfile::TempDir,
}

impl Clip {
    /// Makes one that plays for longer than a run of `length` ns may take.
    ///
    /// # Errors
    /// Why there is no player here, in one phrase.
    pub fn make(length: u64) -> Result<Clip, String> {
        let refused = |e: std::io::Error| format!("no file for its clip can be made: {e}");
        let directory =
            tempfile::Builder::new().prefix("punctual-clip").tempdir().map_err(refused)?;
        let clip = Clip { directory };
        let seconds = length * LONGEST / 1_000_000_000 + 10;
        let made = Command::new("ffmpeg")
            .args(["-nostdin", "-loglevel", "error", "-f", "lavfi", "-i"])
            .arg(format!("testsrc=size=352x288:rate=25:duration={seconds}"))
            .args(["-c:v", "mpeg1video", "-b:v", "1M", "-y"])
            .arg(clip.path())
            .stdin(Stdio::null())
            .output();
        match made {
            Ok(done) if done.status.success() => Ok(clip),
            Ok(done) => {
                let text = String::from_utf8_lossy(&done.stderr);
                let why = text.lines().next().unwrap_or("no reason given").to_owned();
                Err(format!("ffmpeg made no clip for it ({}): {why}", done.status))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                Err("ffmpeg is not installed (package ffmpeg)".to_owned())
            }
            Err(e) => Err(format!("ffmpeg cannot be run: {e}")),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("clip.mpg")
    }
}

/// The player's task: it plays the clip in real time, to nowhere.
fn player(clip: &Path) -> TaskSpec {
    let words = ["ffmpeg", "-nostdin", "-loglevel", "error", "-re", "-i"].map(str::to_owned);
    let clip = clip.to_string_lossy().into_owned();
    let rest = ["-f", "null", "-"].map(str::to_owned);
    let argv = words.into_iter().chain([clip]).chain(rest).collect();
    TaskSpec::new("player", PLAYER_PERIOD, PLAYER_BUDGET, Body::Command(argv))
}

/// The set of Fig. 6 on this CPU.
///
/// # Errors
/// A CPU that cannot be.
pub fn set(cpu: u32, clip: Option<&Clip>) -> Result<TaskSet, Diagnostic> {
    let mut set = TaskSet::parse(&format!("cpu = {cpu}\n{}", sets::FIG_6), "fig-6")?;
    set.tasks.extend(clip.map(|clip| player(&clip.path())));
    Ok(set)
}

/// Measures the set on one host.
///
/// # Errors
/// The set cannot run. What this machine does not have is reported in the row.
pub(super) fn row(
    plan: &OverheadPlan,
    host: MeasuredHost,
    clip: Option<&Clip>,
    window: &mut Window,
) -> Result<BudgetRow, Diagnostic> {
    let row = BudgetRow {
        host,
        with_player: clip.is_some(),
        tasks: Vec::new(),
        not_possible: None,
        notes: Vec::new(),
    };
    let mut set = set(plan.cpu, clip)?;
    // It ends earlier: once every task has its periods.
    set.duration = Some(window.length.saturating_mul(LONGEST).saturating_add(SLACK));
    let specs = set.tasks.clone();
    let session = match Session::new(set, host.kind()) {
        Ok(session) => session,
        Err(why) if host == MeasuredHost::Kernel => {
            return Ok(BudgetRow { not_possible: Some(why.cause), ..row });
        }
        Err(why) => return Err(why),
    };
    // With the player the user host's own work does not fit beside: nothing is promised then, and
    // the paper's set has less room still.
    let admitted = session.admit(clip.is_some())?;
    let counts: Vec<TaskPrecision> = specs.iter().map(TaskPrecision::new).collect();
    let counts = RefCell::new(counts);
    let mut count = |event: NamedEvent| {
        if let NamedEvent::Period { period, .. } = event {
            if let Some(task) = counts.borrow_mut().get_mut(period.task as usize) {
                task.add(&period, plan.budget_periods);
            }
        }
    };
    let options = RunOptions {
        stop: plan.stop.clone(),
        output: Output::Nowhere,
        load: true,
        ..RunOptions::default()
    };
    let declared = specs.iter().map(|_| Execution::AsDeclared).collect();
    let mut poll = |since| {
        window.tick(since);
        counts.borrow().iter().any(|task| task.counted() < plan.budget_periods)
    };
    let ran = running::run(admitted, options, declared, &mut count, &mut poll)?;
    let mut counts = counts.into_inner();
    counts.iter_mut().for_each(TaskPrecision::finish);
    Ok(BudgetRow { tasks: counts, notes: ran.notes, ..row })
}

impl TaskPrecision {
    fn new(task: &TaskSpec) -> TaskPrecision {
        TaskPrecision {
            name: task.name.clone(),
            period_ns: task.period,
            budget_ns: task.budget,
            periods: 0,
            not_ready: 0,
            average_ppm: None,
            least_ppm: None,
            most_ppm: None,
            off_1_percent: 0,
            off_5_percent: 0,
            rates_ppm: Vec::new(),
        }
    }

    fn counted(&self) -> u64 {
        self.periods + self.not_ready
    }

    /// One more period, until there are `most` in all.
    fn add(&mut self, period: &Period, most: u64) {
        if period.number < SKIPPED || self.counted() >= most {
            return;
        }
        if !period.ready_throughout {
            self.not_ready += 1;
            return;
        }
        let rate = ppm(period.received, period.assigned);
        let off = rate.abs_diff(WHOLE);
        self.periods += 1;
        self.off_1_percent += u64::from(off > WHOLE / 100);
        self.off_5_percent += u64::from(off > WHOLE / 20);
        self.rates_ppm.push(rate);
    }

    fn finish(&mut self) {
        let rates = &self.rates_ppm;
        self.least_ppm = rates.iter().min().copied();
        self.most_ppm = rates.iter().max().copied();
        let sum: u128 = rates.iter().map(|&rate| u128::from(rate)).sum();
        self.average_ppm = (!rates.is_empty())
            .then(|| u64::try_from(sum / rates.len() as u128).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_and_short_periods_count_and_those_without_demand_do_not() {
        let mut task = TaskPrecision::new(&TaskSpec::new("t", 4_000, 1_000, Body::Pid(1)));
        let mut add = |number, received, ready_throughout| {
            let unjudged = Period::unjudged(0, number, number * 4_000, 0, 1_000);
            let woken_late = number % 2 == 0;
            task.add(&Period { received, ready_throughout, woken_late, ..unjudged }, 5);
        };
        add(SKIPPED - 1, 0, true);
        for (number, received) in [1_000, 1_010, 1_011, 949].into_iter().enumerate() {
            add(SKIPPED + number as u64, received, true);
        }
        add(SKIPPED + 4, 10, false);
        add(SKIPPED + 5, 0, true);
        task.finish();
        assert_eq!((task.periods, task.not_ready), (4, 1), "five periods in all");
        assert_eq!((task.off_1_percent, task.off_5_percent), (2, 1), "the bound itself is kept");
        assert_eq!((task.least_ppm, task.most_ppm), (Some(949_000), Some(1_011_000)));
        assert_eq!(task.average_ppm, Some(992_500));
    }
}
