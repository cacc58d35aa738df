//! What a subcommand came to: its verdict, what it prints, and its exit code.

use std::io::Write;
use std::process::ExitCode;

use clap::ColorChoice;
use miette::{GraphicalReportHandler, GraphicalTheme};
use punctual_diagnostic::{Diagnostic, Kind};
use punctual_report::{Envelope, ErrorInfo, View, SCHEMA};
use serde::Serialize;

use crate::args::{Command, Run};
use crate::args_measure::Instrument;
use crate::args_policy::PolicyAction;
use crate::args_profile::Profile;
use crate::args_role::RoleAction;
use crate::program;

/// Exit codes (design, 5); those of errors are [`punctual_diagnostic::Kind`]'s.
pub const MISSED: u8 = 1;
/// A command that `--duration` ended, as timeout(1) has it.
pub const TIMED_OUT: u8 = 124;
/// As env(1) and timeout(1) have them, for `run ... -- COMMAND`.
pub const PUNCTUAL_FAILED: u8 = 125;
const CANNOT_INVOKE: u8 = 126;
const NOT_FOUND: u8 = 127;
pub const INTERRUPTED: u8 = 130;

/// Columns where there is no terminal.
const WIDTH: usize = 110;

/// What a subcommand came to.
pub(crate) struct Outcome<T> {
    /// In one sentence.
    pub verdict: String,
    /// Whether that is good.
    pub ok: bool,
    pub code: u8,
    /// For programs, in the envelope.
    pub result: T,
    /// For people, the verdict first, with ANSI escapes; not printed with `--json`.
    pub text: String,
    /// Why it was ended, although it has results.
    pub error: Option<Diagnostic>,
}

/// The subcommand, as far as output and exit codes depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    pub name: &'static str,
    pub json: bool,
    /// `run` or `profile`, with `-- COMMAND`: the exit code is the command's.
    pub wraps: bool,
    /// Standard output is the command's: results go to standard error.
    pub to_error: bool,
}

impl Caller {
    pub fn of(command: &Command) -> Caller {
        let caller = |name, json| Caller { name, json, wraps: false, to_error: false };
        match command {
            Command::Run(run) => Caller::of_run(run),
            Command::Sim(sim) => caller("sim", sim.json),
            Command::Check(check) => caller("check", check.json),
            Command::Trace(trace) => {
                let (name, json) = crate::trace::caller(trace);
                caller(name, json)
            }
            Command::Doctor(doctor) => caller("doctor", doctor.json),
            Command::Top(top) => caller("top", top.json),
            Command::Reload(reload) => caller("reload", reload.json),
            Command::Serve(serve) => caller("serve", serve.json),
            Command::Report(report) => caller("report", report.json),
            Command::Profile(profile) => Caller::of_profile(profile),
            Command::Measure(measure) => match &measure.instrument {
                Instrument::Determinism(args) => caller("measure determinism", args.json),
                Instrument::Latency(args) => caller("measure latency", args.json),
                Instrument::Overhead(args) => caller("measure overhead", args.json),
                Instrument::Spinner(_) => caller("measure spinner", false),
            },
            Command::Policy(policy) => match &policy.action {
                PolicyAction::List(list) => caller("policy", list.json),
                PolicyAction::Show(show) => caller("policy", show.json),
                PolicyAction::New(_) | PolicyAction::Header => caller("policy", false),
            },
            Command::Role(role) => match &role.action {
                RoleAction::List(list) => caller("role", list.json),
                RoleAction::Show(show) => caller("role", show.json),
            },
            Command::Fifo(fifo) => caller("fifo", fifo.action.json()),
            Command::Lock(lock) => caller("lock", lock.action.json()),
            Command::Clean(clean) => caller("clean", clean.json),
            Command::Completions(_) => caller("completions", false),
            Command::Man(_) => caller("man", false),
        }
    }

    pub fn of_run(run: &Run) -> Caller {
        let to_error = run.file.is_none() && !run.json;
        Caller { name: "run", json: run.json, wraps: run.wraps(), to_error }
    }

    pub fn of_profile(profile: &Profile) -> Caller {
        let wraps = profile.pid.is_none();
        Caller { name: "profile", json: profile.json, wraps, to_error: wraps && !profile.json }
    }

    /// The exit code of an error.
    pub fn code(self, error: &Diagnostic) -> u8 {
        match (self.wraps, error.kind, error.errno) {
            (false, ..) => error.exit_code(),
            (true, Kind::Command, Some(libc::ENOENT)) => NOT_FOUND,
            (true, Kind::Command, _) => CANNOT_INVOKE,
            (true, ..) => PUNCTUAL_FAILED,
        }
    }

    /// Prints what the subcommand came to, and returns its exit code.
    pub fn finish<T: Serialize>(self, outcome: Result<Outcome<T>, Diagnostic>) -> ExitCode {
        let written = match outcome {
            Ok(outcome) => self.print(outcome),
            Err(error) => Ok(self.report(&error)),
        };
        // The results could not be written.
        ExitCode::from(written.unwrap_or_else(|error| {
            let code = self.code(&error);
            print_line(&mut anstream::stderr(), &text(error));
            code
        }))
    }

    fn print<T: Serialize>(self, outcome: Outcome<T>) -> Result<u8, Diagnostic> {
        let Outcome { verdict, ok, code, result, text, error } = outcome;
        let text = program::in_text(&text);
        if self.json {
            let error = error.as_ref().map(ErrorInfo::from);
            write_out(&self.document(Envelope {
                ok,
                verdict,
                exit_code: code,
                result: Some(result),
                error,
                ..head()
            }))?;
            return Ok(code);
        }
        if self.to_error {
            // A closed standard error is no failure of the command.
            let _ = anstream::stderr().write_all(text.as_bytes());
        } else {
            write_out(&text)?;
        }
        Ok(error.map_or(code, |error| self.report(&error)))
    }

    /// Prints an error, once, and returns its exit code.
    pub fn report(self, error: &Diagnostic) -> u8 {
        let code = self.code(error);
        let mut error = error.clone();
        error.help = program::in_text(&error.help).into_owned();
        if self.json {
            let verdict = format!("{}.", error.cause.trim_end_matches('.'));
            let error = Some(ErrorInfo::from(&error));
            // There is no other place to report that this could not be written.
            let _ = write_out(&self.document(Envelope::<()> {
                verdict,
                exit_code: code,
                error,
                ..head()
            }));
        } else {
            print_line(&mut anstream::stderr(), &text(error));
        }
        code
    }

    fn document<T: Serialize>(self, envelope: Envelope<T>) -> String {
        let envelope = Envelope { command: self.name.to_owned(), ..envelope };
        // The types have string keys only, so that this cannot fail.
        let mut text = serde_json::to_string_pretty(&envelope).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// An envelope with nothing in it.
fn head<T>() -> Envelope<T> {
    Envelope {
        schema: SCHEMA.to_owned(),
        command: String::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ok: false,
        verdict: String::new(),
        exit_code: 0,
        result: None,
        error: None,
    }
}

/// Whether output has colours: of both streams, each for itself.
pub fn set_color(choice: ColorChoice) {
    let choice = match choice {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// As wide as the terminal. Colours are taken out where a stream has none.
pub fn view(wide: bool) -> View {
    let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0));
    View { width, color: true, wide }
}

/// An error with the line of the file, if it is in one.
fn text(error: Diagnostic) -> String {
    let place = error.place().map_or_else(String::new, |place| format!("{place}: "));
    let red = anstyle::AnsiColor::Red.on_default().bold();
    let (name, Diagnostic { cause, help, .. }) = (program::name(), &error);
    let plain = format!("{red}{name}:{red:#} {place}{cause}\n  help: {help}");
    let snippet = error.snippet();
    // Without the text that the place is in, only the plain form names it.
    if miette::Diagnostic::source_code(&snippet).is_none() {
        return plain;
    }
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode())
        .with_width(100)
        .with_links(false);
    let mut text = String::new();
    match handler.render_report(&mut text, &snippet) {
        Ok(()) => text.trim_end().to_owned(),
        Err(_) => plain,
    }
}

/// Prints a message on standard error, after the name of the program.
pub fn print_message(message: &str) {
    print_line(&mut std::io::stderr(), &format!("{}: {message}", program::name()));
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
pub fn write_out(text: &str) -> Result<(), Diagnostic> {
    let mut out = anstream::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Diagnostic::machine(
            format!("the results cannot be written: {e}"),
            "free some room, or write them elsewhere",
        )),
        _ => Ok(()),
    }
}

impl Run {
    /// `-- COMMAND`: the exit code is the command's.
    pub fn wraps(&self) -> bool {
        !self.argv.is_empty()
    }
}
