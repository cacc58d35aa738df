//! The findings as text: the verdict, then a line each, worst first; verbose, beneath each that
//! is not good its cause, effect and help.

use crate::finding::{Finding, Severity};
use anstyle::{AnsiColor, Style};
use std::fmt::Write;

const WIDTH: usize = 100;
const INDENT: usize = 10;
const ORDER: [Severity; 5] =
    [Severity::Obstacle, Severity::Warning, Severity::Unknown, Severity::Info, Severity::Good];

/// How findings are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FindingsView {
    /// With ANSI escapes.
    pub color: bool,
    /// With cause, effect and help.
    pub verbose: bool,
}

/// The verdict, a line for each finding, and details if they are wanted.
pub fn render(findings: &[Finding], view: &FindingsView) -> String {
    let mut out = format!("{}\n\n", headline(findings));
    let title_width = findings.iter().map(|f| f.title.chars().count()).max().unwrap_or(0).min(36);
    for verdict in ORDER {
        for f in findings.iter().filter(|f| f.verdict == verdict) {
            row(&mut out, f, title_width, view);
            if view.verbose && verdict != Severity::Good {
                details(&mut out, f);
            }
        }
    }
    if findings.iter().any(|f| f.verdict != Severity::Good) {
        out.push_str(if view.verbose {
            "\nHelp is for a root shell (sudo -s). Each finding by name: docs/doctor.md.\n"
        } else {
            "\nCause, effect and help of each: punctual doctor --verbose.\n"
        });
    }
    out
}

/// In one sentence: `The user host can work here, with weaker guarantees: 2 warnings, 20 good.`
pub fn headline(findings: &[Finding]) -> String {
    let any = |verdict| findings.iter().any(|f| f.verdict == verdict);
    let verdict = if any(Severity::Obstacle) {
        "The user host cannot work here"
    } else if any(Severity::Warning) {
        "The user host can work here, with weaker guarantees"
    } else {
        "The user host can work here"
    };
    let counts = ORDER.into_iter().filter_map(|v| {
        let n = findings.iter().filter(|f| f.verdict == v).count();
        let plural =
            if n == 1 || matches!(v, Severity::Good | Severity::Unknown) { "" } else { "s" };
        (n > 0).then(|| format!("{n} {}{plural}", word(v)))
    });
    format!("{verdict}: {}.", counts.collect::<Vec<_>>().join(", "))
}

fn word(verdict: Severity) -> &'static str {
    match verdict {
        Severity::Obstacle => "obstacle",
        Severity::Warning => "warning",
        Severity::Unknown => "unknown",
        Severity::Info => "note",
        Severity::Good => "good",
    }
}

fn style(verdict: Severity) -> Style {
    match verdict {
        Severity::Obstacle => AnsiColor::Red.on_default().bold(),
        Severity::Warning => AnsiColor::Yellow.on_default(),
        Severity::Unknown => AnsiColor::Magenta.on_default(),
        Severity::Info | Severity::Good => Style::new(),
    }
}

/// A finding in one line: why it is so if that is not good and not printed beneath, and else what
/// was read.
fn row(out: &mut String, f: &Finding, title_width: usize, view: &FindingsView) {
    let style = if view.color { style(f.verdict) } else { Style::new() };
    let label = if f.verdict == Severity::Obstacle { "OBSTACLE" } else { word(f.verdict) };
    let value = match f.value.first() {
        _ if !view.verbose && !f.cause.is_empty() => clean(&f.cause),
        Some(v) => clean(&v.read),
        None => "-".into(),
    };
    let room = WIDTH.saturating_sub(INDENT + title_width + 2);
    let _ = writeln!(
        out,
        "{style}{label:<INDENT$}{style:#}{:<title_width$}  {}",
        clean(&f.title),
        shorten(&value, room)
    );
}

fn details(out: &mut String, f: &Finding) {
    wrapped(out, "name", &f.id);
    for v in &f.value {
        wrapped(out, "read", &format!("{}: {}", clean(&v.from), shorten(&clean(&v.read), 150)));
    }
    wrapped(out, "cause", &f.cause);
    wrapped(out, "effect", &f.effect);
    for (i, command) in f.help.iter().enumerate() {
        let label = if i == 0 { "help" } else { "" };
        let _ = writeln!(out, "{:INDENT$}{label:<8}{}", "", clean(command));
    }
}

/// What a file holds must not move the reader's cursor.
fn clean(text: &str) -> String {
    if text.is_empty() {
        return "(empty)".into();
    }
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn shorten(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.into();
    }
    let mut short: String = text.chars().take(room.saturating_sub(3)).collect();
    short.push_str("...");
    short
}

fn wrapped(out: &mut String, label: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    let text = clean(text);
    let mut line = format!("{:INDENT$}{label:<8}", "");
    let margin = INDENT + 8;
    let mut used = margin;
    for word in text.split_whitespace() {
        let n = word.chars().count();
        if used > margin && used + 1 + n > WIDTH {
            let _ = writeln!(out, "{line}");
            line = " ".repeat(margin);
            used = margin;
        }
        if used > margin {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += n;
    }
    let _ = writeln!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{exit_code, Evidence};

    #[test]
    fn worst_first_with_details_beneath_if_wanted() {
        let findings =
            [
                Finding::about("a", "Alpha").saw(&Evidence::new("/a", "1")).good("fine"),
                Finding::about("b", "Beta")
                    .saw(&Evidence::new("/b", "bad\x1b[2J\nvalue"))
                    .obstacle("why", "so", ["echo 1 > /b"]),
            ];
        let verbose = FindingsView { color: false, verbose: true };
        assert_eq!(
            render(&findings, &verbose),
            "The user host cannot work here: 1 obstacle, 1 good.\n\
             \n\
             OBSTACLE  Beta   bad [2J value\n\
             \x20         name    b\n\
             \x20         read    /b: bad [2J value\n\
             \x20         cause   why\n\
             \x20         effect  so\n\
             \x20         help    echo 1 > /b\n\
             good      Alpha  1\n\
             \n\
             Help is for a root shell (sudo -s). Each finding by name: docs/doctor.md.\n"
        );
        let short = render(&findings, &FindingsView::default());
        assert_eq!(
            short.lines().skip(2).collect::<Vec<_>>(),
            [
                "OBSTACLE  Beta   why",
                "good      Alpha  1",
                "",
                "Cause, effect and help of each: punctual doctor --verbose."
            ]
        );
        let color = FindingsView { color: true, ..verbose };
        assert!(render(&findings, &color).contains("\x1b[1m\x1b[31mOBSTACLE"));
        assert_eq!(exit_code(&findings), 4);
        assert_eq!(exit_code(&findings[..1]), 0);
        assert_eq!(headline(&findings[..1]), "The user host can work here: 1 good.");
    }
}
