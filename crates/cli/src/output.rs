//! What the command prints besides results, and its exit codes.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use miette::{GraphicalReportHandler, GraphicalTheme};
use punctual_diagnostic::Diagnostic;

/// Exit codes (design, 5); those of errors are [`punctual_diagnostic::Kind`]'s.
pub const MISSED: u8 = 1;
pub const INTERRUPTED: u8 = 130;

/// Prints an error, once, and returns its exit code.
pub fn report(error: Diagnostic, json: bool) -> ExitCode {
    let code = error.exit_code();
    if json {
        let document = serde_json::json!({ "version": 1, "error": error.to_json() });
        print_line(&mut std::io::stdout(), &format!("{document:#}"));
    } else {
        print_line(&mut std::io::stderr(), &text(error));
    }
    ExitCode::from(code)
}

/// With the line of the file, if the error is in one.
fn text(error: Diagnostic) -> String {
    let place = error.place().map_or_else(String::new, |place| format!("{place}: "));
    let plain = format!("punctual: {place}{}\n  help: {}", error.cause, error.help);
    if error.place().is_none_or(|place| place.position.is_none()) {
        return plain;
    }
    let theme =
        if std::io::stderr().is_terminal() { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(100);
    let mut text = String::new();
    match handler.render_report(&mut text, &error.snippet()) {
        Ok(()) => text.trim_end().to_owned(),
        Err(_) => plain,
    }
}

/// Prints a line. A closed pipe (`| head -1`) is no failure.
pub fn print_line(to: &mut dyn Write, line: &str) {
    let _ = writeln!(to, "{line}");
    let _ = to.flush();
}

/// Prints results on standard output.
///
/// # Errors
/// They cannot be written. A closed pipe (`| head -1`) is no failure.
pub fn print(text: &str) -> Result<(), Diagnostic> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Diagnostic::machine(
            format!("the results cannot be written: {e}"),
            "free some room, or write them elsewhere",
        )),
        _ => Ok(()),
    }
}
