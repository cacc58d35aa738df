//! The figures as text, in rt-exec's manner.

use punctual_doctor::Machine;
use punctual_report::grid::{grid, Column};
use punctual_taskset::fmt_ns;

use super::figures::{DeterminismRun, TaskFigures};
use super::kinds::RealTimePolicy;

/// The header line and the table, each line with its line break, as wide as `width` permits.
#[must_use]
pub fn figures_table(run: &DeterminismRun, width: usize) -> String {
    let column = |head, expendable, show: &dyn Fn(&TaskFigures) -> String| {
        Column::new("", head, expendable).cells(run.tasks.iter().map(show))
    };
    let columns = vec![
        column("task", 0, &|t| t.name.clone()),
        // Aligned left, as wide as its heading.
        column("type", 0, &|t| format!("{:4}", t.kind.name())),
        column("pr", 2, &|t| t.priority.to_string()),
        column("", 2, &|t| if t.policy == RealTimePolicy::Fifo { "F" } else { "R" }.to_owned()),
        column("cycles", 3, &|t| t.cycles.to_string()),
        column("late", 0, &|t| t.late.to_string()),
        column("spare", 4, &|t| us(Some(t.spare_ns).filter(|_| t.cycles > 0))),
        column("current", 1, &|t| us(Some(t.current_ns).filter(|_| t.cycles > 0))),
        column("best", 0, &|t| us(t.best_ns)),
        column("worst", 0, &|t| us(t.worst_ns)),
        column("determ", 0, &|t| us(t.determinism_ns)),
    ];
    header(run, width) + &grid(columns, width, false)
}

/// Tenths of microseconds: what the table's times are in.
fn us(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| format!("{}.{}", ns / 1_000, ns / 100 % 10))
}

/// rt-exec's header: run time, clock mode, work, CPU, page faults, heart beat; broken into lines
/// that fit.
fn header(run: &DeterminismRun, width: usize) -> String {
    let CpuParts { now, average, max } = percents(run);
    let work = match run.work == run.work_asked {
        true => format!("Work:{}", run.work),
        false => format!("Work:{} (of {})", run.work, run.work_asked),
    };
    let parts = [
        format!("Run {}", run_time(run.duration_ns)),
        run.clock_mode.clone(),
        work,
        format!("CPU:{now:02} Avg:{average:02} Max:{max:02}"),
        format!("Pg:{}", run.page_faults),
        format!("Beat:{}Hz", run.rate_hz),
        "(us)".to_owned(),
    ];
    let (mut text, mut used) = (String::new(), 0);
    for part in parts {
        let gap = match used {
            0 => "",
            _ if used + 2 + part.len() <= width => "  ",
            _ => "\n",
        };
        used = if gap == "\n" { part.len() } else { used + gap.len() + part.len() };
        text += gap;
        text += &part;
    }
    text + "\n"
}

struct CpuParts {
    now: u64,
    average: u64,
    max: u64,
}

fn percents(run: &DeterminismRun) -> CpuParts {
    let percent = |ppm: u64| ppm / 10_000;
    let cpu = run.cpu_use;
    CpuParts {
        now: percent(cpu.now_ppm),
        average: percent(cpu.average_ppm),
        max: percent(cpu.max_ppm),
    }
}

/// `hh:mm:ss:mmm`.
fn run_time(ns: u64) -> String {
    let ms = ns / 1_000_000;
    let seconds = ms / 1_000;
    format!("{:02}:{:02}:{:02}:{:03}", seconds / 3_600, seconds / 60 % 60, seconds % 60, ms % 1_000)
}

/// One line of progress, without a line break.
#[must_use]
pub fn figures_line(run: &DeterminismRun) -> String {
    let late: u64 = run.tasks.iter().map(|t| t.late).sum();
    let worst = run
        .least_deterministic()
        .map(|t| format!("; determinism {} ({})", about(t.determinism_ns), t.name));
    format!(
        "{} at {} Hz: {late} late{}",
        run_time(run.duration_ns),
        run.rate_hz,
        worst.unwrap_or_default()
    )
}

fn about(ns: Option<u64>) -> String {
    format!("{} us", us(ns))
}

/// What a reader wants to know first, in one sentence.
#[must_use]
pub fn verdict(runs: &[DeterminismRun]) -> String {
    let worst = runs.iter().filter_map(|run| Some((run, run.least_deterministic()?)));
    let Some((run, task)) = worst.max_by_key(|(_, task)| task.determinism_ns) else {
        return "No cycle was measured: run it for longer.".to_owned();
    };
    let tasks = || runs.iter().flat_map(|run| &run.tasks);
    let (cycles, late) =
        tasks().fold((0, 0), |(cycles, late), t| (cycles + t.cycles, late + t.late));
    let late = match late {
        0 => format!("none of {cycles} cycles was late"),
        n => format!("{n} of {cycles} cycles {} late", if n == 1 { "was" } else { "were" }),
    };
    format!(
        "Latencies differ by up to {} ({}, {}, at {} Hz), and {late}.",
        about(task.determinism_ns),
        task.name,
        task.kind.name(),
        run.rate_hz
    )
}

/// The machine in one line: kernel, preemption model, tick, clock source, processor, isolation and
/// throttling, as far as they are known.
#[must_use]
pub fn machine_line(machine: &Machine, cpu: u32) -> String {
    let unknown = || "?".to_owned();
    let throttling = match (machine.rt_runtime_us, machine.rt_period_us) {
        (Some(-1), _) => "not throttled".to_owned(),
        (Some(runtime), Some(period)) => {
            format!("throttled at {} of {}", time(runtime), time(period))
        }
        _ => "throttling unknown".to_owned(),
    };
    let isolated =
        if machine.isolated_cpus.contains(&(cpu as usize)) { "isolated" } else { "not isolated" };
    format!(
        "Linux {}, preemption {}, HZ {}, clock {}; {}{}; CPU {cpu} of {} ({isolated}); real time \
         {throttling}\n",
        machine.kernel.clone().unwrap_or_else(unknown),
        machine.preemption.clone().unwrap_or_else(unknown),
        machine.hz.map_or_else(unknown, |hz| hz.to_string()),
        machine.clock_source.clone().unwrap_or_else(unknown),
        machine.cpu_model.as_ref().unwrap_or(&machine.arch),
        if machine.virtual_machine == Some(true) { " (virtual)" } else { "" },
        machine.cpus.len(),
    )
}

fn time(us: i64) -> String {
    fmt_ns(u64::try_from(us).unwrap_or(0) * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::determinism::figures::CpuUse;
    use crate::determinism::kinds::ReleaseKind;

    fn task(name: &str, best: Option<u64>, worst: Option<u64>) -> TaskFigures {
        TaskFigures {
            name: name.to_owned(),
            kind: ReleaseKind::Sem,
            primitive: ReleaseKind::Sem.primitive().to_owned(),
            policy: RealTimePolicy::Rr,
            priority: 23,
            period_ns: 1_000_000,
            cycles: best.map_or(0, |_| 463_732),
            late: 0,
            spare_ns: 993_000,
            current_ns: 15_000,
            best_ns: best,
            worst_ns: worst,
            determinism_ns: best.zip(worst).map(|(best, worst)| worst - best),
        }
    }

    fn run() -> DeterminismRun {
        DeterminismRun {
            rate_hz: 1_000,
            cpu: 1,
            duration_ns: 463_731_000_000,
            clock_mode: "Posix-hrt".to_owned(),
            work: 90,
            work_asked: 200,
            work_ns: 3_000,
            cpu_use: CpuUse { now_ppm: 241_000, average_ppm: 245_000, max_ppm: 269_000 },
            page_faults: 0,
            tasks: vec![task("task5", Some(3_000), Some(311_000)), task("task6", None, None)],
        }
    }

    #[test]
    fn the_table_has_the_header_and_a_line_for_each_task() {
        let text = figures_table(&run(), 100);
        let header = "Run 00:07:43:731  Posix-hrt  Work:90 (of 200)  CPU:24 Avg:24 Max:26  Pg:0  \
                      Beat:1000Hz  (us)";
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], header);
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let task5 =
            ["task5", "sem", "23", "R", "463732", "0", "993.0", "15.0", "3.0", "311.0", "308.0"];
        assert_eq!(words(lines[2]), task5);
        assert_eq!(
            words(lines[3])[4..],
            ["0", "0", "-", "-", "-", "-", "-"],
            "nothing was measured of it"
        );
    }

    #[test]
    fn names_and_types_are_aligned_left_and_numbers_right() {
        let text = figures_table(&run(), 100);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let want = [
            "task   type  pr     cycles  late  spare  current  best  worst  determ",
            "task5  sem   23  R  463732     0  993.0     15.0   3.0  311.0   308.0",
            "task6  sem   23  R       0     0      -        -     -      -       -",
        ];
        assert_eq!(lines, want);
    }

    #[test]
    fn a_narrow_terminal_keeps_the_columns_that_answer_the_question() {
        let text = figures_table(&run(), 40);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        for head in ["task", "type", "late", "best", "worst", "determ"] {
            assert!(text.contains(head), "{head}: {text}");
        }
        assert!(!text.contains("spare"), "{text}");
    }

    #[test]
    fn the_verdict_names_the_least_deterministic_task() {
        let text = verdict(&[run()]);
        assert_eq!(
            text,
            "Latencies differ by up to 308.0 us (task5, sem, at 1000 Hz), and none of 463732 \
             cycles was late."
        );
        assert_eq!(verdict(&[]), "No cycle was measured: run it for longer.");
    }
}
