//! Shows a running set on a terminal until it ends or the user leaves.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use punctual_diagnostic::Diagnostic;
use punctual_report::units::time;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::client::Client;
use crate::draw::draw;
use crate::view::{Action, Key, TopView};

/// How soon a signal is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Shows the set, with new figures each `every`, until the run ends, the user leaves, or `stop` is
/// set. The terminal is restored in every case, after a panic too. Returns whether the run ended.
///
/// # Errors
/// The terminal cannot be used, or the set does not answer.
pub fn show(
    client: &mut Client,
    every: Duration,
    color: bool,
    stop: &AtomicBool,
) -> Result<bool, Diagnostic> {
    let Some(first) = client.snapshot()? else { return Ok(true) };
    let mut view = TopView::new(first);
    let mut terminal = ratatui::try_init().map_err(unusable)?;
    let ended = follow(client, every, stop, &mut view, &mut |view| {
        terminal.draw(|frame| draw(frame, view, color)).map(drop).map_err(unusable)
    });
    ratatui::restore();
    ended
}

fn follow(
    client: &mut Client,
    every: Duration,
    stop: &AtomicBool,
    view: &mut TopView,
    show: &mut dyn FnMut(&TopView) -> Result<(), Diagnostic>,
) -> Result<bool, Diagnostic> {
    let mut asked = Instant::now();
    show(view)?;
    while !stop.load(Relaxed) {
        if asked.elapsed() >= every {
            // The connection is used while paused too: the end of the run shows.
            asked = Instant::now();
            let Some(snapshot) = client.snapshot()? else { return Ok(true) };
            if !view.paused {
                view.update(snapshot);
                show(view)?;
            }
        }
        let left = every.saturating_sub(asked.elapsed()).min(LONGEST_WAIT);
        if !event::poll(left).map_err(unusable)? {
            continue;
        }
        match event::read().map_err(unusable)? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let Some(key) = known(key) else { return Ok(false) };
                match view.press(key) {
                    Action::Quit => return Ok(false),
                    Action::Nothing => {}
                    Action::ChangeBudget { place, budget_ns } => {
                        view.message = match client.change_budget(place, budget_ns) {
                            Ok(()) => format!("{} from its next release on", time(budget_ns)),
                            Err(e) => format!("{}; {}", e.cause, e.help),
                        };
                    }
                }
                show(view)?;
            }
            Event::Resize(..) => show(view)?,
            _ => {}
        }
    }
    Ok(false)
}

/// The key as the view knows it; `None` for Ctrl-C, which raw mode hands over as a key.
fn known(key: KeyEvent) -> Option<Key> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if control => return None,
        KeyCode::Char(c) if !control => Key::Character(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        // A key that does nothing.
        _ => Key::Character('\0'),
    })
}

fn unusable(error: std::io::Error) -> Diagnostic {
    Diagnostic::refused(
        "the terminal cannot be used",
        error,
        "punctual top --once prints the figures as text",
    )
}
