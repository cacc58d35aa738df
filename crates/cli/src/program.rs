//! The name of the program: `punctual`, or that of a program with policies of its own, which has
//! the same command line.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

use clap::CommandFactory;

use crate::args::Cli;

/// What texts call the program.
const NAME: &str = "punctual";

static CALLED: OnceLock<String> = OnceLock::new();

/// Takes the name from the first word of the command line.
pub fn set_name(first: Option<&OsString>) {
    let file = first.and_then(|path| Path::new(path).file_name()?.to_str());
    if let Some(name) = file.filter(|name| name.chars().all(punctual_diagnostic::is_printable)) {
        let _ = CALLED.set(name.to_owned());
    }
}

/// The name of the program.
pub fn name() -> &'static str {
    CALLED.get().map_or(NAME, String::as_str)
}

/// The command line under the name of the program.
pub fn command() -> clap::Command {
    let command = Cli::command();
    match name() {
        NAME => command,
        name => command.name(name).bin_name(name).version(concat!(
            "(punctual ",
            env!("CARGO_PKG_VERSION"),
            ")"
        )),
    }
}

/// A text of help with the name of the program in its command lines: `punctual SUBCOMMAND` and
/// `punctual --OPTION`.
pub fn in_text(text: &str) -> Cow<'_, str> {
    match name() {
        NAME => Cow::Borrowed(text),
        name => Cow::Owned(renamed(text, name)),
    }
}

fn renamed(text: &str, name: &str) -> String {
    let command = Cli::command();
    let subcommands: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let is_command = |rest: &str| {
        let Some(rest) = rest.strip_prefix(' ') else { return false };
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let word = &rest[..end.unwrap_or(rest.len())];
        word.starts_with("--") || subcommands.contains(&word)
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(NAME) {
        let (before, after) = (&rest[..at], &rest[at + NAME.len()..]);
        out.push_str(before);
        // Not a part of a path or of a longer word.
        let begins = !out.ends_with(|c: char| c.is_alphanumeric() || "-_./".contains(c));
        out.push_str(if begins && is_command(after) { name } else { NAME });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_of_a_text_have_the_name_of_the_program() {
        let cases = [
            ("see punctual doctor", "see mine doctor"),
            ("`punctual run --trace`; punctual --help", "`mine run --trace`; mine --help"),
            (
                "Usage: punctual run A\n       punctual run B",
                "Usage: mine run A\n       mine run B",
            ),
            ("ubuntu-punctual run", "ubuntu-punctual run"),
            ("./punctual run", "./punctual run"),
            ("start punctual from a domain cgroup", "start punctual from a domain cgroup"),
            ("punctual runs", "punctual runs"),
            ("/run/punctual", "/run/punctual"),
            ("punctual", "punctual"),
        ];
        for (text, wanted) in cases {
            assert_eq!(renamed(text, "mine"), wanted);
        }
    }
}
