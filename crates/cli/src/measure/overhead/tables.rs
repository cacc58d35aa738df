//! The parts as tables, each with the paper's figures beneath ours, in time and in cycles.

use punctual_measure::cycles::MeasuredTime;
use punctual_measure::overhead::paper::PaperTasks;
use punctual_measure::overhead::{
    BudgetRow, BudgetsResult, DecisionsResult, DispatcherBuild, EventsResult, OverheadResult,
    SquareWaveResult, SwitchCost, TaskPrecision,
};
use punctual_report::grid::{grid, paint, wrap, Column, Ink};
use punctual_report::units::{count, grouped, percent};
use punctual_report::View;

/// us with one digit.
pub fn us(ns: u64) -> String {
    let tenths = (ns + 50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// us with two digits, for what is far below one.
fn fine(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e3)
}

fn cycles(time: MeasuredTime) -> String {
    time.cycles.map_or_else(|| "-".to_owned(), grouped)
}

/// A row of a table: its name, and times of which some are unknown.
struct Row {
    name: String,
    times: Vec<Option<MeasuredTime>>,
}

const TIME: &str = "us";
const CYCLES: &str = "cycles";

/// Rows with these columns of times, in us and in cycles.
fn times(rows: &[Row], heads: &[&str], show: fn(u64) -> String, view: &View) -> String {
    let column = |group, place: usize, show: &dyn Fn(MeasuredTime) -> String| {
        let cells = rows.iter().map(|row| row.times[place].map_or("-".to_owned(), show));
        Column::new(group, heads[place], 0).cells(cells.collect::<Vec<_>>())
    };
    let mut columns = vec![Column::new("", "", 0).cells(rows.iter().map(|row| row.name.clone()))];
    columns.extend((0..heads.len()).map(|place| column(TIME, place, &|time| show(time.ns))));
    columns.extend((0..heads.len()).map(|place| column(CYCLES, place, &cycles)));
    grid(columns, view.width, view.color)
}

/// All parts that were measured.
pub fn parts(result: &OverheadResult, view: &View) -> String {
    let mut text = String::new();
    let mut part = |title: &str, lines: String| {
        let title = paint(title, Ink::Plain, view.color);
        text += &format!("\n{}{lines}", wrap(&title, 0, view.width));
    };
    if let Some(events) = &result.events {
        part(
            "Events: time that tasks of 2 ms/1 ms and 5 ms/1 ms lose at each switch (RTAI, Tables \
            2 and 3)",
            events_table(events, view),
        );
    }
    if let Some(decisions) = &result.decisions {
        part(
            "Decisions: one decision of the dispatcher (RED-Linux, Table 5)",
            decisions_table(decisions, view),
        );
    }
    if let Some(budgets) = &result.budgets {
        part(
            "Budgets: received per assigned execution time of each period (RTAI, Fig. 6)",
            budgets_table(budgets, view),
        );
    }
    if let Some(wave) = &result.square_wave {
        part(
            "Square wave: lateness of edges each 100 us (RT-Linux, section 2)",
            wave_table(wave, view),
        );
    }
    text.push('\n');
    text
}

/// Beneath a table, once.
fn note(text: &mut String, line: &str, view: &View) {
    let lines = wrap(line, 2, view.width);
    if !text.contains(&lines) {
        text.push_str(&lines);
    }
}

fn events_table(events: &EventsResult, view: &View) -> String {
    let mut rows = Vec::new();
    for row in &events.rows {
        let name = format!("{}, {}", row.host.title(), row.tasks.title());
        if row.not_possible.is_none() {
            rows.push(Row { name, times: vec![row.average, row.p50, row.max] });
        }
        if let Some(cost) = row.dispatcher {
            let name = "  of it the handler".to_owned();
            let times = vec![Some(cost.handler_average), None, Some(cost.handler_max)];
            rows.push(Row { name, times });
            let name = "  the dispatcher's CPU time".to_owned();
            rows.push(Row { name, times: vec![Some(cost.cpu_average), None, None] });
        }
    }
    for row in &events.paper {
        let tasks = match row.tasks {
            PaperTasks::Rtai => "Table 2, RTAI tasks",
            PaperTasks::Lxrt => "Table 3, LXRT tasks",
        };
        let name = format!("{tasks}, {}", row.cpu);
        rows.push(Row { name, times: vec![Some(row.average), None, Some(row.max)] });
    }
    let mut text = times(&rows, &["average", "p50", "max"], us, view);
    for row in &events.rows {
        let name = format!("{}, {}", row.host.title(), row.tasks.title());
        if let Some(why) = &row.not_possible {
            note(&mut text, &format!("{name}: not measured: {why}."), view);
        }
        row.notes.iter().for_each(|line| note(&mut text, &format!("{name}: {line}."), view));
    }
    text
}

fn decisions_table(decisions: &DecisionsResult, view: &View) -> String {
    let mut rows = Vec::new();
    for row in &decisions.rows {
        let jobs = count(row.jobs.into(), "job");
        let name = match row.build {
            DispatcherBuild::Native => jobs,
            DispatcherBuild::Bpf => {
                format!("{jobs}, as BPF, means of {}", grouped(row.decisions_each.into()))
            }
        };
        rows.push(Row { name, times: vec![Some(row.min), Some(row.average), Some(row.max)] });
    }
    for row in &decisions.paper {
        let name = format!("Table 5, {}, {}", count(row.jobs.into(), "job"), decisions.paper_cpu);
        rows.push(Row { name, times: vec![Some(row.min), Some(row.average), Some(row.max)] });
    }
    let mut text = times(&rows, &["min", "average", "max"], fine, view);
    if let Some(why) = &decisions.bpf_not_possible {
        note(&mut text, &format!("As BPF: not measured: {why}."), view);
    }
    decisions.notes.iter().for_each(|line| note(&mut text, &format!("{line}."), view));
    text
}

fn budgets_table(budgets: &BudgetsResult, view: &View) -> String {
    let title = |row: &BudgetRow, task: &TaskPrecision| {
        let player = if row.with_player { " with player" } else { "" };
        format!("{}{player}: {}", row.host.title(), task.name)
    };
    let tasks: Vec<(&BudgetRow, &TaskPrecision)> =
        budgets.rows.iter().flat_map(|row| row.tasks.iter().map(move |task| (row, task))).collect();
    let cells = |show: &dyn Fn(&TaskPrecision) -> String| {
        tasks.iter().map(|(_, task)| show(task)).collect::<Vec<_>>()
    };
    let share = |ppm: Option<u64>| ppm.map_or("-".to_owned(), percent);
    const RATE: &str = "budget rate (%)";
    const OFF: &str = "periods off";
    let column = |group, head, show: &dyn Fn(&TaskPrecision) -> String| {
        Column::new(group, head, 0).cells(cells(show))
    };
    let names = tasks.iter().map(|(row, task)| title(row, task));
    let columns = vec![
        Column::new("", "", 0).cells(names),
        column("", "periods", &|t| t.periods.to_string()),
        column(RATE, "least", &|t| share(t.least_ppm)),
        column(RATE, "average", &|t| share(t.average_ppm)),
        column(RATE, "most", &|t| share(t.most_ppm)),
        column(OFF, ">1 %", &|t| t.off_1_percent.to_string()),
        column(OFF, ">5 %", &|t| t.off_5_percent.to_string()),
    ];
    let mut text = grid(columns, view.width, view.color);
    let paper = format!(
        "Paper: at most 3 of 500 periods of a computing task, and about {} % of the player's, were \
         violations. It gives no bound; ours is 5 %, because its own overhead is more than that of \
         its smallest budget.",
        budgets.paper_player_ppm / 10_000
    );
    note(&mut text, &paper, view);
    if let Some(why) = &budgets.player_not_possible {
        note(&mut text, &format!("Without the player: {why}."), view);
    }
    for row in &budgets.rows {
        if let Some(why) = &row.not_possible {
            note(&mut text, &format!("{}: not measured: {why}.", row.host.title()), view);
        }
        let idle = row.tasks.iter().filter(|task| task.not_ready > 0);
        for task in idle {
            let (name, periods) = (title(row, task), task.not_ready);
            let line = format!("{name}: in {periods} periods it did not want its whole budget.");
            note(&mut text, &line, view);
        }
        row.notes.iter().for_each(|line| {
            note(&mut text, &format!("{}: {line}.", row.host.title()), view);
        });
    }
    text
}

fn wave_table(wave: &SquareWaveResult, view: &View) -> String {
    let measured: Vec<_> = wave.rows.iter().filter(|row| row.lateness.is_some()).collect();
    let name = |host: &str, tasks: u32, load: &str| {
        format!("{host}, {tasks} {}, {load}", if tasks == 1 { "task" } else { "tasks" })
    };
    const LATE: &str = "late (us)";
    const VARIATION: &str = "variation";
    let late = |head, expendable, of: fn(&punctual_measure::distribution::LatencySpread) -> u64| {
        let cells = measured.iter().map(|row| row.lateness.map_or("-".into(), |s| us(of(&s))));
        Column::new(LATE, head, expendable).cells(cells.chain(["-".to_owned()]).collect::<Vec<_>>())
    };
    let skipped = measured.iter().map(|row| row.skipped.to_string());
    let of_all = |show: &dyn Fn(MeasuredTime) -> String| {
        let ours = measured.iter().map(|row| row.variation.map_or("-".into(), show));
        ours.chain([show(wave.paper_variation)]).collect::<Vec<_>>()
    };
    let names = measured.iter().map(|row| name(row.host.title(), row.tasks, row.load.title()));
    let paper = format!("paper, 1 and 2 tasks, all three, {}", wave.paper_cpu);
    let columns = vec![
        Column::new("", "", 0).cells(names.chain([paper])),
        late("min", 2, |s| s.min_ns),
        late("p50", 1, |s| s.p50_ns),
        late("p99", 1, |s| s.p99_ns),
        late("max", 2, |s| s.max_ns),
        Column::new("", "skipped", 3).cells(skipped.chain(["-".to_owned()])),
        Column::new(VARIATION, "us", 0).cells(of_all(&|time| us(time.ns))),
        Column::new(VARIATION, "cycles", 0).cells(of_all(&cycles)),
    ];
    let mut text = grid(columns, view.width, view.color);
    if let Some(SwitchCost { min, average, .. }) = wave.switch {
        let line = format!(
            "A switch between SCHED_FIFO threads with its system call: {} us, {} cycles on \
            average; \
             {} at least. The paper's: {} cycles, calculated for a 486.",
            fine(average.ns),
            cycles(average),
            cycles(min),
            wave.paper_switch_cycles
        );
        note(&mut text, &line, view);
    }
    for row in &wave.rows {
        let name = name(row.host.title(), row.tasks, row.load.title());
        if let Some(why) = &row.not_possible {
            note(&mut text, &format!("{name}: not measured: {why}."), view);
        }
        row.notes.iter().for_each(|line| note(&mut text, &format!("{name}: {line}."), view));
    }
    text
}

/// What it ran on, in one sentence.
pub fn machine(result: &OverheadResult) -> String {
    let machine = &result.machine;
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let cycles = match result.cycle_khz {
        Some(khz) => format!("cycles are ticks of {}.{:03} MHz", khz / 1_000, khz % 1_000),
        None => "cycles are not known".to_owned(),
    };
    format!(
        "Machine: {}{}, Linux {} ({}), CPU {}; {cycles}. The papers' cycles are of their clock \
        rates.",
        or(&machine.cpu_model),
        if machine.virtual_machine == Some(true) { " (virtual)" } else { "" },
        or(&machine.kernel),
        or(&machine.preemption),
        result.cpu,
    )
}
