//! The display during a run: a table redrawn in place, or plain lines without a terminal; and
//! warnings.

use punctual_report::{live, plain_line};
use punctual_session::results::Results;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const LIVE_EVERY: Duration = Duration::from_millis(500);
const LINE_EVERY: Duration = Duration::from_secs(2);

enum Kind {
    /// Redrawn; so many lines stand there now.
    Table(usize),
    Lines,
    Nothing,
}

/// The display: a table that is redrawn, or a line without a line break.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Table,
    Line,
}

pub struct Screen {
    kind: Kind,
    shown: Instant,
}

impl Screen {
    /// `own_terminal`: no command writes to it, so that a table can be redrawn.
    pub fn new(quiet: bool, own_terminal: bool) -> Screen {
        let kind = if quiet {
            Kind::Nothing
        } else if own_terminal && std::io::stderr().is_terminal() {
            Kind::Table(0)
        } else {
            Kind::Lines
        };
        Screen { kind, shown: Instant::now() }
    }

    /// Shows progress when it is time to; `results` is only asked then.
    pub fn tick(&mut self, results: impl FnOnce() -> Results) {
        self.show(|form| match form {
            Form::Table => live(&results()),
            Form::Line => plain_line(&results()),
        });
    }

    /// Shows what `draw` makes, when it is time to: it is only asked then.
    pub fn show(&mut self, draw: impl FnOnce(Form) -> String) {
        let every = match self.kind {
            Kind::Table(_) => LIVE_EVERY,
            Kind::Lines => LINE_EVERY,
            Kind::Nothing => return,
        };
        if self.shown.elapsed() < every {
            return;
        }
        self.shown = Instant::now();
        match &mut self.kind {
            Kind::Table(lines) => {
                let table = draw(Form::Table);
                // What has scrolled away cannot be redrawn.
                let room = terminal_size::terminal_size()
                    .map_or(usize::MAX, |(_, rows)| usize::from(rows.0));
                let table: String =
                    table.split_inclusive('\n').take(room.saturating_sub(1)).collect();
                let up = if *lines > 0 { format!("\x1b[{lines}A\x1b[J") } else { String::new() };
                *lines = table.lines().count();
                write(&format!("{up}{table}"));
            }
            Kind::Lines => write(&format!("{}\n", draw(Form::Line))),
            Kind::Nothing => {}
        }
    }

    /// A line of progress, above whatever is redrawn.
    pub fn print_line(&mut self, line: &str) {
        if !matches!(self.kind, Kind::Nothing) {
            self.warn(line);
        }
    }

    /// A line that is shown even without progress.
    pub fn warn(&mut self, line: &str) {
        self.clear();
        write(&format!("{line}\n"));
    }

    /// Takes away what was redrawn; the final table comes next.
    pub fn clear(&mut self) {
        if let Kind::Table(lines) = &mut self.kind {
            if *lines > 0 {
                write(&format!("\x1b[{lines}A\x1b[J"));
                *lines = 0;
            }
        }
    }
}

/// A terminal that is gone is no reason to stop a run.
fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
