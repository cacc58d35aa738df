//! The error of a text that is not TOML. The parser reports what it met; people need to know what
//! to write, so the mistakes that are made most are recognised here.

use crate::duration::{parse_duration, quote};
use crate::explain::Explained;

/// The first syntax error of a text, as a diagnostic.
pub(crate) fn explain(text: &str, error: &toml::de::Error) -> Explained {
    let at = error.span().unwrap_or(0..0);
    let said = error.message();
    // The parser ends its message with what it would have taken instead.
    let (what, wanted) = match said.split_once(", expected ") {
        Some((what, wanted)) => (what, Some(wanted)),
        None => (said, None),
    };
    let (cause, help) = match recognise(text, &at, said) {
        Some((cause, help)) => (cause.to_owned(), help),
        None => (
            what.replace('\n', " "),
            match wanted {
                Some(wanted) => format!("write {wanted} here"),
                None => "correct it as the TOML format (https://toml.io) has it".to_owned(),
            },
        ),
    };
    Explained { at, whose: String::new(), cause: format!("not valid TOML: {cause}"), help }
}

/// The mistakes that people make, each with its cause and help.
fn recognise(
    text: &str,
    span: &std::ops::Range<usize>,
    said: &str,
) -> Option<(&'static str, String)> {
    let say = |cause, help: &str| Some((cause, help.to_owned()));
    if said.contains("duplicate key") {
        return say(
            "a key is given twice",
            "keep one of the two; tasks are repeated by [[task]], in double brackets",
        );
    }
    if said.contains("recurs") {
        return say("lists or tables are nested too deeply", "nest them less deeply");
    }
    if said.contains("carriage return") {
        return say(
            "a carriage return stands without its line feed",
            "end lines as Unix or Windows does, by LF or CR LF",
        );
    }
    let start =
        (0..=span.start.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let here = text[start..].chars().next();
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    if here == Some('{') && start == line_start {
        return say(
            "it looks like JSON",
            "name it .json if it is rt-app's, else write it as TOML: cpu = 1, [[task]] before each \
             task",
        );
    }
    if here.is_some_and(|c| c.is_control() && c != '\n' && c != '\r') {
        return say(
            "there is a control character",
            "remove it, or write it as \\u and four hexadecimal digits inside quotes",
        );
    }
    let line = text[line_start..].lines().next().unwrap_or("");
    if said.contains("basic string, expected `\"`") {
        return say("a text in quotes does not end", "close it with \"");
    }
    let (_, value) = line.split_once('=')?;
    let value = value.split('#').next().unwrap_or("").trim();
    if value.is_empty() {
        return say("a key has no value", "write a value after the equals sign");
    }
    let unquoted = "a text is not in quotes";
    if parse_duration(value).is_ok() {
        return Some((unquoted, format!("write {}", quote(value))));
    }
    let bent = |c| ('\u{2018}'..='\u{201f}').contains(&c);
    if value.starts_with(bent) {
        let inner = value.trim_matches(bent);
        return Some((
            "a text is in typographic quotes",
            format!("use straight ones: {}", quote(inner)),
        ));
    }
    let bare = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    if value.starts_with(char::is_alphabetic) && value.chars().all(bare) {
        return Some((unquoted, format!("write {}", quote(value))));
    }
    None
}
