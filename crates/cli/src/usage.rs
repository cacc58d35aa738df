//! A command line that clap refuses: printed as clap does, or in the envelope; and its exit code.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use punctual_diagnostic::Diagnostic;

use crate::output::Caller;
use crate::program;

/// Prints it and returns the exit code; 0 where help or the version was asked for.
pub fn report(error: &clap::Error, words: &[OsString]) -> ExitCode {
    let caller = caller(words);
    if !error.use_stderr() {
        let _ = print(&mut anstream::stdout(), error);
        return ExitCode::SUCCESS;
    }
    let refusal = diagnostic(error, caller.name);
    if caller.json {
        return ExitCode::from(caller.report(&refusal));
    }
    let _ = print(&mut anstream::stderr(), error);
    ExitCode::from(caller.code(&refusal))
}

/// As `clap` prints it, with the name of the program.
fn print(to: &mut dyn Write, error: &clap::Error) -> std::io::Result<()> {
    let text = error.render().ansi().to_string();
    to.write_all(program::in_text(&text).as_bytes())?;
    to.flush()
}

/// The subcommand, as far as it can be recognised: what follows `--` is another program's.
pub fn caller(words: &[OsString]) -> Caller {
    let end = words.iter().position(|word| word == "--");
    let own = &words[..end.unwrap_or(words.len())];
    let names = ["run", "sim", "check", "doctor", "measure", "role", "fifo", "lock", "clean"];
    let name = own
        .iter()
        .skip(1)
        .find_map(|word| names.into_iter().find(|name| word == name))
        .unwrap_or("punctual");
    let instrument = |word: &str| own.iter().any(|own| own == word);
    let name = match name {
        "measure" if instrument("latency") => "measure latency",
        "measure" if instrument("overhead") => "measure overhead",
        name => name,
    };
    let wraps = name == "run" && end.is_some();
    Caller { name, json: own.iter().any(|word| word == "--json"), wraps, to_error: wraps }
}

/// Its first paragraph is the cause.
fn diagnostic(error: &clap::Error, name: &str) -> Diagnostic {
    let text = error.render().to_string();
    let cause = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let cause = cause.split_whitespace().collect::<Vec<_>>().join(" ");
    let subcommand = if name == "punctual" { String::new() } else { format!("{name} ") };
    Diagnostic::usage(cause, format!("see punctual {subcommand}--help"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_after_the_separator_are_the_command_s() {
        let of = |line: &str| caller(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        let run = of("punctual run --period 1 -- check --json");
        assert_eq!((run.name, run.json, run.wraps), ("run", false, true));
        let check = of("punctual check --json x");
        assert_eq!((check.name, check.json, check.wraps), ("check", true, false));
        let measure = of("punctual measure latency --json --cpu x");
        assert_eq!((measure.name, measure.json), ("measure latency", true));
        assert_eq!(of("punctual measure overhead --cpu x").name, "measure overhead");
        assert_eq!(of("punctual walk").name, "punctual");
    }
}
