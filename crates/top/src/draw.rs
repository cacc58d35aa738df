//! The view on a terminal: CPUs, the table of tasks and groups, and a line of keys.

use punctual_report::units::time;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Clear, Paragraph, Row as TableRow, Table, TableState};
use ratatui::Frame;

use crate::view::{Mode, Row, TopView};

/// Columns of a bar.
const BAR: usize = 10;
/// CPUs that get a line of their own.
const MOST_CPUS: usize = 8;
/// From so many columns of the terminal on, a column of the table is shown.
const COLUMNS: [(u16, &str, u16); 8] = [
    (0, "task", 12),
    (0, "budget used", 17),
    (0, "missed", 7),
    (60, "budget", 9),
    (60, "period", 9),
    (80, "latency p99", 11),
    (100, "response p99", 12),
    (120, "periods", 9),
];
const KEYS: &str = "q quit  </> order  r reverse  / filter  p pause  b budget  h help";
const HELP: &[&str] = &[
    "Up, Down    another task",
    "<, >        what tasks are ordered by",
    "r           the other way round",
    "/           show tasks with this text in their name",
    "p           pause: the run continues, the figures stand",
    "b, Enter    another budget for the task, from its next release on",
    "q, Escape   leave; the run is not touched",
    "",
    "budget used: of the budgets assigned since the last figures",
];

/// Draws the view. `color`: else only bold and reversed text.
pub fn draw(frame: &mut Frame, view: &TopView, color: bool) {
    let cpus = view.cpus();
    let lines = cpus.len().min(MOST_CPUS) as u16;
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(lines),
        Constraint::Min(1),
        Constraint::Length(1),
    ]);
    let [head, top, table, foot] = areas.areas(frame.area());
    let alarm = view.snapshot.results.totals.missed > 0;
    frame.render_widget(
        Paragraph::new(view.headline()).style(bad(alarm, color).add_modifier(Modifier::BOLD)),
        head,
    );
    let bars = cpus.iter().take(MOST_CPUS).map(|&(cpu, promised, used)| {
        Line::from(format!(
            "CPU {cpu:<3} {} {} % of {} % used",
            bar(used),
            used / 10_000,
            promised / 10_000
        ))
    });
    frame.render_widget(Paragraph::new(bars.collect::<Vec<_>>()), top);
    draw_table(frame, view, table, color);
    frame.render_widget(footer(view), foot);
    if view.mode == Mode::Help {
        let area = table.intersection(Rect { height: HELP.len() as u16, ..table });
        frame.render_widget(Clear, area);
        frame.render_widget(
            Paragraph::new(HELP.iter().map(|l| Line::from(*l)).collect::<Vec<_>>()),
            area,
        );
    }
}

fn draw_table(frame: &mut Frame, view: &TopView, area: Rect, color: bool) {
    let shown: Vec<&(u16, &str, u16)> =
        COLUMNS.iter().filter(|(from, ..)| area.width >= *from).collect();
    let rows = view.rows();
    let cursor = rows
        .iter()
        .position(|row| matches!(row, Row::Task { place, .. } if Some(*place) == view.cursor));
    let cells = |row: &Row| -> (Vec<String>, bool) {
        match row {
            Row::Group { index, depth } => (of_group(view, *index, *depth), false),
            Row::Task { place, depth } => {
                let missed =
                    view.snapshot.results.tasks.get(*place).is_some_and(|task| task.misses > 0);
                (of_task(view, *place, *depth), missed)
            }
        }
    };
    let lines = rows.iter().map(|row| {
        let (mut texts, missed) = cells(row);
        texts.truncate(shown.len());
        let style = match row {
            Row::Group { .. } => Style::new().add_modifier(Modifier::BOLD),
            Row::Task { .. } => bad(missed, color),
        };
        TableRow::new(texts.into_iter().map(Cell::from)).style(style)
    });
    let widths = shown.iter().enumerate().map(|(at, (_, _, width))| match at {
        0 => Constraint::Min(*width),
        _ => Constraint::Length(*width),
    });
    let header = TableRow::new(shown.iter().map(|(_, title, _)| *title))
        .style(Style::new().add_modifier(Modifier::UNDERLINED));
    let table = Table::new(lines, widths)
        .header(header)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    // The table scrolls so that the cursor's line is seen.
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(cursor));
}

fn of_task(view: &TopView, place: usize, depth: usize) -> Vec<String> {
    let task = &view.snapshot.results.tasks[place];
    let p99 = |spread: Option<punctual_session::results::TimeSpread>| {
        spread.map_or("-".to_owned(), |s| time(s.p99_ns))
    };
    let ended = if view.snapshot.places[place].alive { "" } else { " (ended)" };
    vec![
        format!("{:indent$}{}{ended}", "", task.name, indent = 2 * depth),
        view.used_ppm(place)
            .map_or("-".to_owned(), |ppm| format!("{} {:>4} %", bar(ppm), ppm / 10_000)),
        task.misses.to_string(),
        time(task.budget_ns),
        time(task.period_ns),
        p99(task.release_latency),
        p99(task.response_time),
        task.periods.to_string(),
    ]
}

fn of_group(view: &TopView, index: usize, depth: usize) -> Vec<String> {
    let group = &view.snapshot.results.groups[index];
    let used =
        (u128::from(group.received_ppm) * 1_000_000 / u128::from(group.assigned_ppm.max(1))) as u64;
    vec![
        format!("{:indent$}{}", "", group.name, indent = 2 * depth),
        format!("{} {:>4} %", bar(used), used / 10_000),
        String::new(),
        time(group.budget_ns),
        time(group.period_ns),
        String::new(),
        String::new(),
        String::new(),
    ]
}

fn footer(view: &TopView) -> Line<'static> {
    let prompt = |label: String, text: &str| {
        Line::from(vec![
            Span::raw(label),
            Span::raw(text.to_owned()),
            Span::styled(" ", Modifier::REVERSED),
        ])
    };
    match &view.mode {
        Mode::Filter => prompt("filter: ".to_owned(), &view.filter),
        Mode::Budget { place, text } if view.message.is_empty() => {
            prompt(format!("budget for {}: ", view.snapshot.results.tasks[*place].name), text)
        }
        _ if !view.message.is_empty() => Line::from(view.message.clone()),
        _ => {
            let mut state = String::new();
            if view.paused {
                state += "PAUSED  ";
            }
            if !view.filter.is_empty() {
                state += &format!("filter {:?}  ", view.filter);
            }
            let order = format!(
                "by {}{}  ",
                view.order.title(),
                if view.descending { ", reversed" } else { "" }
            );
            Line::from(format!("{state}{order}{KEYS}"))
        }
    }
}

/// A bar of [`BAR`] columns; more than all of it fills the bar.
fn bar(ppm: u64) -> String {
    let filled = ((ppm * BAR as u64 + 500_000) / 1_000_000).min(BAR as u64) as usize;
    format!("{}{}", "#".repeat(filled), ".".repeat(BAR - filled))
}

fn bad(bad: bool, color: bool) -> Style {
    match (bad, color) {
        (true, true) => Style::new().fg(Color::Red),
        (true, false) => Style::new().add_modifier(Modifier::BOLD),
        (false, _) => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::snapshot;
    use crate::view::Key;
    use ratatui::backend::TestBackend;
    use ratatui::Terminal;

    fn screen(view: &TopView, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view, true)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn forty_columns_show_tasks_bars_and_misses() {
        let text = screen(&TopView::new(snapshot()), 40, 10);
        for expected in
            ["CPU 1   ##........ 20 % of 40 % used", "servo", "#####.....   50 %", "  inner"]
        {
            assert!(text.contains(expected), "{expected:?} is not in\n{text}");
        }
        assert!(!text.contains("latency"), "{text}");
    }

    #[test]
    fn a_wide_terminal_shows_all_columns_and_a_small_one_does_not_fail() {
        let text = screen(&TopView::new(snapshot()), 130, 12);
        for (_, title, _) in COLUMNS {
            assert!(text.contains(title), "{title:?} is not in\n{text}");
        }
        for (width, height) in [(1, 1), (5, 2), (40, 3)] {
            screen(&TopView::new(snapshot()), width, height);
        }
    }

    #[test]
    fn the_prompt_shows_what_is_typed_and_why_it_is_no_time() {
        let mut view = TopView::new(snapshot());
        view.press(Key::Character('b'));
        view.press(Key::Character('x'));
        assert!(screen(&view, 80, 10).contains("budget for servo: x"));
        view.press(Key::Enter);
        assert!(screen(&view, 80, 10).contains("\"x\" is no time"));
    }
}
