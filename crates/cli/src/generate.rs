//! Shell completions and man pages, from the command line's own description.

use std::path::Path;

use punctual_diagnostic::Diagnostic;

use crate::args::{Completions, Man};
use crate::output::Outcome;
use crate::program;

/// `punctual completions SHELL`: the script, on standard output.
pub fn completions(args: &Completions) -> Result<Outcome<()>, Diagnostic> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program::command(), program::name(), &mut script);
    Ok(done(String::from_utf8_lossy(&script).into_owned()))
}

/// `punctual man DIR`: a page for the command and one for each subcommand.
pub fn man(args: &Man) -> Result<Outcome<()>, Diagnostic> {
    let failed = |dir: &Path, e: std::io::Error| {
        Diagnostic::usage(format!("{}: {e}", dir.display()), "name a directory that can be written")
    };
    clap_mangen::generate_to(program::command(), &args.directory)
        .map_err(|e| failed(&args.directory, e))?;
    Ok(done(String::new()))
}

fn done(text: String) -> Outcome<()> {
    Outcome { verdict: String::new(), ok: true, code: 0, result: (), text, error: None }
}
