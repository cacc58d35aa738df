//! What is wrong with a task set: a place, a cause and a cure, as one value.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::duration::printable;

/// The one thing that is wrong with a task set: the first in file order (a text that is not TOML
/// at all has its first syntax error, before anything else).
///
/// Prints as one line, `set.toml:7:10: task "servo": budget 2 ms is more than its period 1 ms;
/// make the budget at most the period`. [`TaskSetError::snippet`] shows it under the line itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {cause}; {cure}")]
pub struct TaskSetError {
    /// Where it is.
    pub place: Place,
    /// What is wrong, in one line.
    pub cause: String,
    /// What would be right, in one line.
    pub cure: String,
    /// The whole text, for the snippet; `None` where there is no text.
    text: Option<Arc<str>>,
}

/// Where an error is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as the user named it, or `command line`.
    pub file: String,
    /// Where in the file; `None` when it is the file as a whole.
    pub position: Option<Position>,
}

/// A stretch of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// First byte, counted after a byte order mark if there is one.
    pub offset: u32,
    /// Length in bytes; may be 0.
    pub len: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match &self.position {
            Some(at) => write!(f, ":{}:{}", at.line, at.column),
            None => Ok(()),
        }
    }
}

impl TaskSetError {
    /// An error of the file as a whole, or of a set that came from no file.
    pub(crate) fn whole(file: &str, cause: impl Into<String>, cure: impl Into<String>) -> Self {
        TaskSetError {
            place: Place { file: file.to_owned(), position: None },
            cause: cause.into(),
            cure: cure.into(),
            text: None,
        }
    }

    /// An error at a stretch of `text` (bytes; both ends are moved to character boundaries).
    pub(crate) fn at(
        file: &str,
        text: &str,
        span: &Range<usize>,
        cause: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        TaskSetError {
            place: Place { file: file.to_owned(), position: Some(position(text, span)) },
            text: Some(Arc::from(text)),
            ..TaskSetError::whole(file, cause, cure)
        }
    }

    /// The line, from 1, where there is one.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        self.place.position.map(|at| at.line)
    }

    /// The same as a [`miette::Diagnostic`]: the cause, the line with the place underlined, and the
    /// cure as its help.
    #[must_use]
    pub fn snippet(self) -> Snippet {
        let text = shown(self.text.as_deref().unwrap_or(""));
        let source_text = miette::NamedSource::new(&self.place.file, text);
        Snippet { error: self, source_text }
    }
}

/// A [`TaskSetError`] as miette shows it, with the line it is about.
#[derive(Debug, thiserror::Error)]
#[error("{}", error.cause)]
pub struct Snippet {
    error: TaskSetError,
    source_text: miette::NamedSource<String>,
}

impl miette::Diagnostic for Snippet {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.error.cure))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.error.text.as_ref()?;
        Some(&self.source_text)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        let at = self.error.place.position?;
        let span = (at.offset as usize, at.len as usize);
        let label = miette::LabeledSpan::new_with_span(Some("here".to_owned()), span);
        Some(Box::new(std::iter::once(label)))
    }
}

/// The text with a stand-in for whatever a terminal would obey instead of showing it (escape
/// sequences, direction overrides). Each stand-in is as many bytes long, so that places stay right.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c.len_utf8() {
            _ if c == '\n' || c == '\t' || printable(c) => shown.push(c),
            // Before a line's end it moves nothing.
            1 if c == '\r' => shown.push(' '),
            1 => shown.push('?'),
            2 => shown.push('\u{bf}'),
            3 => shown.push('\u{fffd}'),
            bytes => shown.extend(std::iter::repeat_n('?', bytes)),
        }
    }
    shown
}

fn position(text: &str, span: &Range<usize>) -> Position {
    let boundary = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = boundary(span.start);
    let end = boundary(span.end).max(start);
    let before = &text[..start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    // Files are at most 4 MiB, so nothing here saturates.
    let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Position {
        line: small(before.matches('\n').count() + 1),
        column: small(before[line_start..].chars().count() + 1),
        offset: small(start),
        len: small(end - start),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn nothing_that_a_terminal_would_obey_is_shown_and_no_place_moves() {
        let text = "a = \"\u{1b}[31m\u{9b}0m\u{202e}\u{e0001}\"\r\n\tb = \u{e9}\u{65e5}";
        let shown = shown(text);
        assert_eq!(shown, "a = \"?[31m\u{bf}0m\u{fffd}????\" \n\tb = \u{e9}\u{65e5}");
        assert_eq!(shown.len(), text.len());
    }
}
