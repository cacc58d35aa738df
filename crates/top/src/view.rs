//! What is shown of a running set, and what a key does to it; it knows no terminal.

use punctual_report::units::{percent, time};
use punctual_session::results::{GroupKind, TaskResult};
use punctual_taskset::parse_duration;

use crate::protocol::Snapshot;

/// What the tasks of a group are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortKey {
    /// Their order in the set's file.
    File,
    Name,
    Period,
    Budget,
    Used,
    Missed,
    Latency,
    Response,
}

impl SortKey {
    pub const ALL: [SortKey; 8] = [
        SortKey::File,
        SortKey::Name,
        SortKey::Period,
        SortKey::Budget,
        SortKey::Used,
        SortKey::Missed,
        SortKey::Latency,
        SortKey::Response,
    ];

    pub fn title(self) -> &'static str {
        match self {
            SortKey::File => "file order",
            SortKey::Name => "task",
            SortKey::Period => "period",
            SortKey::Budget => "budget",
            SortKey::Used => "budget used",
            SortKey::Missed => "missed",
            SortKey::Latency => "latency p99",
            SortKey::Response => "response p99",
        }
    }
}

/// A key, as far as it does something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    Left,
    Right,
    Enter,
    Escape,
    Backspace,
    Character(char),
}

/// What the caller has to do for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Nothing,
    Quit,
    /// Ask for another budget of the task at this place, ns.
    ChangeBudget {
        place: usize,
        budget_ns: u64,
    },
}

/// What the keys are read for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    Table,
    Help,
    /// Text of a filter.
    Filter,
    /// Text of another budget, for the task at this place.
    Budget {
        place: usize,
        text: String,
    },
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A group, by its index in the results.
    Group { index: usize, depth: usize },
    /// A task, by its place in the set.
    Task { place: usize, depth: usize },
}

/// The state of the view.
#[derive(Debug)]
pub struct TopView {
    /// The latest figures, and those before them.
    pub snapshot: Snapshot,
    before: Option<Snapshot>,
    pub order: SortKey,
    pub descending: bool,
    pub filter: String,
    pub paused: bool,
    /// The place of the task under the cursor.
    pub cursor: Option<usize>,
    pub mode: Mode,
    /// What the last action came to.
    pub message: String,
}

impl TopView {
    #[must_use]
    pub fn new(snapshot: Snapshot) -> TopView {
        let cursor = (!snapshot.results.tasks.is_empty()).then_some(0);
        TopView {
            snapshot,
            before: None,
            order: SortKey::File,
            descending: false,
            filter: String::new(),
            paused: false,
            cursor,
            mode: Mode::Table,
            message: String::new(),
        }
    }

    /// Takes new figures.
    pub fn update(&mut self, snapshot: Snapshot) {
        self.before = Some(std::mem::replace(&mut self.snapshot, snapshot));
    }

    /// Parts per million of the budgets assigned since the figures before that the task executed;
    /// since the start where none was. `None` without any.
    #[must_use]
    pub fn used_ppm(&self, place: usize) -> Option<u64> {
        let now = self.snapshot.results.tasks.get(place)?;
        let before = self.before.as_ref().and_then(|b| b.results.tasks.get(place));
        let since = before.map_or((0, 0), |b| (b.received_ns, b.assigned_ns));
        let recent =
            (now.received_ns.saturating_sub(since.0), now.assigned_ns.saturating_sub(since.1));
        let (received, assigned) =
            if recent.1 > 0 { recent } else { (now.received_ns, now.assigned_ns) };
        (assigned > 0).then(|| (u128::from(received) * 1_000_000 / u128::from(assigned)) as u64)
    }

    /// Per CPU of the run: its number, and in parts per million what its tasks are promised, and
    /// what of it they use.
    #[must_use]
    pub fn cpus(&self) -> Vec<(u32, u64, u64)> {
        let of_cpu = |cpu: u32| {
            let places = self.snapshot.places.iter().enumerate();
            let mine = places
                .filter(|(_, at)| at.alive && at.cpus.first() == Some(&cpu))
                .map(|(place, _)| place);
            mine.fold((0, 0), |(promised, used), place| {
                let Some(task) = self.snapshot.results.tasks.get(place) else {
                    return (promised, used);
                };
                let share = (u128::from(task.budget_ns) * 1_000_000
                    / u128::from(task.period_ns.max(1))) as u64;
                (promised + share, used + share * self.used_ppm(place).unwrap_or(0) / 1_000_000)
            })
        };
        self.snapshot.results.cpus.iter().map(|&cpu| (cpu, of_cpu(cpu).0, of_cpu(cpu).1)).collect()
    }

    /// The lines of the table: groups as a tree, in each its tasks in the order chosen.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        self.add_rows(None, 0, &mut rows);
        rows
    }

    fn add_rows(&self, group: Option<&str>, depth: usize, rows: &mut Vec<Row>) {
        let tasks = &self.snapshot.results.tasks;
        let places = self.snapshot.places.iter().enumerate();
        let mut members: Vec<usize> = places
            .filter(|(place, at)| {
                at.group.as_deref() == group && tasks.get(*place).is_some_and(|t| self.is_shown(t))
            })
            .map(|(place, _)| place)
            .collect();
        members.sort_by(|&a, &b| {
            let by = self.compare(a, b);
            if self.descending {
                by.reverse()
            } else {
                by
            }
        });
        rows.extend(members.into_iter().map(|place| Row::Task { place, depth }));
        for (index, child) in self.snapshot.results.groups.iter().enumerate() {
            // A chain of parents is finite: groups are a tree.
            if child.kind == GroupKind::Group && child.parent.as_deref() == group {
                let at = rows.len();
                self.add_rows(Some(&child.name), depth + 1, rows);
                // A filter hides groups without a task that it shows.
                if rows.len() > at || self.filter.is_empty() {
                    rows.insert(at, Row::Group { index, depth });
                }
            }
        }
    }

    fn is_shown(&self, task: &TaskResult) -> bool {
        task.name.to_lowercase().contains(&self.filter.to_lowercase())
    }

    fn compare(&self, a: usize, b: usize) -> std::cmp::Ordering {
        let (s, t) = (&self.snapshot.results.tasks[a], &self.snapshot.results.tasks[b]);
        match self.order {
            SortKey::File => a.cmp(&b),
            SortKey::Name => s.name.cmp(&t.name),
            SortKey::Period => s.period_ns.cmp(&t.period_ns),
            SortKey::Budget => s.budget_ns.cmp(&t.budget_ns),
            SortKey::Used => self.used_ppm(a).cmp(&self.used_ppm(b)),
            SortKey::Missed => s.misses.cmp(&t.misses),
            SortKey::Latency => {
                s.release_latency.map(|l| l.p99_ns).cmp(&t.release_latency.map(|l| l.p99_ns))
            }
            SortKey::Response => {
                s.response_time.map(|l| l.p99_ns).cmp(&t.response_time.map(|l| l.p99_ns))
            }
        }
        .then(a.cmp(&b))
    }

    /// What a key does.
    pub fn press(&mut self, key: Key) -> Action {
        match std::mem::replace(&mut self.mode, Mode::Table) {
            Mode::Table => return self.press_in_table(key),
            Mode::Help => {}
            Mode::Filter => match key {
                Key::Enter => {}
                Key::Escape => self.filter.clear(),
                _ => {
                    edit(&mut self.filter, key);
                    self.mode = Mode::Filter;
                }
            },
            Mode::Budget { place, mut text } => match key {
                Key::Enter => return self.other_budget(place, text),
                Key::Escape => {}
                _ => {
                    edit(&mut text, key);
                    self.mode = Mode::Budget { place, text };
                }
            },
        }
        Action::Nothing
    }

    fn press_in_table(&mut self, key: Key) -> Action {
        self.message.clear();
        match key {
            Key::Escape | Key::Character('q') => return Action::Quit,
            Key::Up | Key::Character('k') => self.move_cursor(false),
            Key::Down | Key::Character('j') => self.move_cursor(true),
            Key::Left | Key::Character('<') => self.choose_order(SortKey::ALL.len() - 1),
            Key::Right | Key::Character('>') => self.choose_order(1),
            Key::Character('r') => self.descending = !self.descending,
            Key::Character('/') => self.mode = Mode::Filter,
            Key::Character('p' | ' ') => self.paused = !self.paused,
            Key::Character('h' | '?') => self.mode = Mode::Help,
            Key::Character('b') | Key::Enter => {
                if let Some(place) = self.cursor {
                    self.mode = Mode::Budget { place, text: String::new() };
                }
            }
            Key::Backspace | Key::Character(_) => {}
        }
        Action::Nothing
    }

    fn other_budget(&mut self, place: usize, text: String) -> Action {
        match parse_duration(text.trim()) {
            Ok(budget_ns) => Action::ChangeBudget { place, budget_ns },
            Err(e) => {
                self.message = format!("{text:?} is no time: {e}");
                self.mode = Mode::Budget { place, text };
                Action::Nothing
            }
        }
    }

    fn choose_order(&mut self, by: usize) {
        let at = SortKey::ALL.iter().position(|&c| c == self.order).unwrap_or(0);
        self.order = SortKey::ALL[(at + by) % SortKey::ALL.len()];
    }

    fn move_cursor(&mut self, down: bool) {
        let shown: Vec<usize> = self
            .rows()
            .iter()
            .filter_map(|row| if let Row::Task { place, .. } = row { Some(*place) } else { None })
            .collect();
        let at = shown.iter().position(|&place| Some(place) == self.cursor);
        let to = match (at, down) {
            (None, _) => 0,
            (Some(at), true) => (at + 1).min(shown.len() - 1),
            (Some(at), false) => at.saturating_sub(1),
        };
        self.cursor = shown.get(to).copied();
    }

    /// The table as text, for where there is no terminal.
    #[must_use]
    pub fn plain(&self) -> String {
        let mut text = format!("{}\n", self.headline());
        for row in self.rows() {
            text += &match row {
                Row::Group { index, depth } => {
                    let group = &self.snapshot.results.groups[index];
                    format!(
                        "{:depth$}{}: {} % of {} % used\n",
                        "",
                        group.name,
                        percent(group.received_ppm),
                        percent(group.assigned_ppm),
                        depth = 2 * depth
                    )
                }
                Row::Task { place, depth } => {
                    let task = &self.snapshot.results.tasks[place];
                    format!(
                        "{:depth$}{}: {} in {}, {} used, {} of {} periods missed\n",
                        "",
                        task.name,
                        time(task.budget_ns),
                        time(task.period_ns),
                        self.used_ppm(place)
                            .map_or("-".to_owned(), |ppm| format!("{} %", percent(ppm))),
                        task.misses,
                        task.periods,
                        depth = 2 * depth
                    )
                }
            };
        }
        text
    }

    /// What runs, and how it goes, in one line.
    #[must_use]
    pub fn headline(&self) -> String {
        let Snapshot { what, pid, results, .. } = &self.snapshot;
        let verdict = match (results.totals.missed, results.totals.unreported) {
            (0, 0) => "all deadlines met".to_owned(),
            (missed, 0) => format!("{missed} MISSED"),
            (missed, unreported) => format!("{missed} MISSED, {unreported} unreported"),
        };
        let ran = punctual_report::units::duration(results.duration_ns);
        format!("{verdict}: {what} (process {pid}), {}, {ran}", results.policy)
    }
}

fn edit(text: &mut String, key: Key) {
    match key {
        Key::Backspace => drop(text.pop()),
        // A name or a time is never longer.
        Key::Character(c) if text.len() < 64 => text.push(c),
        _ => {}
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
pub(crate) mod tests;
