//! The findings for people: worst first, and beneath each that is not good its cause, effect and help.

use super::finding::{Finding, Verdict};
use std::fmt::Write;

const WIDTH: usize = 100;
const INDENT: usize = 10;
const ORDER: [Verdict; 5] = [Verdict::Obstacle, Verdict::Warning, Verdict::Unknown, Verdict::Note, Verdict::Good];

/// A table, with details beneath what is not good, and a line that counts.
pub fn render(findings: &[Finding], color: bool) -> String {
    let mut out = String::new();
    let title_width = findings.iter().map(|f| f.title.chars().count()).max().unwrap_or(0).min(36);
    for verdict in ORDER {
        for f in findings.iter().filter(|f| f.verdict == verdict) {
            row(&mut out, f, title_width, color);
            if verdict != Verdict::Good {
                details(&mut out, f);
            }
        }
    }
    if findings.iter().any(|f| f.verdict != Verdict::Good && !f.help.is_empty()) {
        out.push_str("\nCures are for a root shell (sudo -s). Each finding by name: docs/doctor.md.\n");
    }
    let _ = writeln!(out, "{}", summary(findings));
    out
}

/// `1 obstacle, 2 warnings, 20 good`
pub fn summary(findings: &[Finding]) -> String {
    let counts: Vec<String> = ORDER
        .into_iter()
        .filter_map(|v| {
            let n = findings.iter().filter(|f| f.verdict == v).count();
            let plural = if n == 1 || matches!(v, Verdict::Good | Verdict::Unknown) { "" } else { "s" };
            (n > 0).then(|| format!("{n} {}{plural}", word(v)))
        })
        .collect();
    if counts.is_empty() {
        return "nothing was examined".into();
    }
    counts.join(", ")
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Obstacle => "obstacle",
        Verdict::Warning => "warning",
        Verdict::Unknown => "unknown",
        Verdict::Note => "note",
        Verdict::Good => "good",
    }
}

fn paint(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Obstacle => "\x1b[1;31m",
        Verdict::Warning => "\x1b[33m",
        Verdict::Unknown => "\x1b[35m",
        Verdict::Note => "\x1b[36m",
        Verdict::Good => "\x1b[32m",
    }
}

fn row(out: &mut String, f: &Finding, title_width: usize, color: bool) {
    let (on, off) = if color { (paint(f.verdict), "\x1b[0m") } else { ("", "") };
    let label = if f.verdict == Verdict::Obstacle { "OBSTACLE" } else { word(f.verdict) };
    let value = match f.value.first() {
        Some(v) => clean(&v.read),
        None => "-".into(),
    };
    let room = WIDTH.saturating_sub(INDENT + title_width + 2);
    let _ = writeln!(out, "{on}{label:<INDENT$}{off}{:<title_width$}  {}", clean(&f.title), shorten(&value, room));
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
    use crate::doctor::{exit_code, Reading};

    #[test]
    fn worst_first_with_details_beneath() {
        let findings = [
            Finding::about("a", "Alpha").saw(&Reading::new("/a", "1")).good("fine"),
            Finding::about("b", "Beta").saw(&Reading::new("/b", "bad\x1b[2J\nvalue")).obstacle(
                "why",
                "so",
                ["echo 1 > /b"],
            ),
        ];
        let text = render(&findings, false);
        assert_eq!(
            text,
            "OBSTACLE  Beta   bad [2J value\n\
             \x20         name    b\n\
             \x20         read    /b: bad [2J value\n\
             \x20         cause   why\n\
             \x20         effect  so\n\
             \x20         help    echo 1 > /b\n\
             good      Alpha  1\n\
             \n\
             Cures are for a root shell (sudo -s). Each finding by name: docs/doctor.md.\n\
             1 obstacle, 1 good\n"
        );
        assert!(render(&findings, true).starts_with("\x1b[1;31mOBSTACLE"));
        assert_eq!(exit_code(&findings), 4);
        assert_eq!(exit_code(&findings[..1]), 0);
        assert_eq!(summary(&[]), "nothing was examined");
    }
}
