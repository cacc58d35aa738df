//! Where in a file an error is.

use std::fmt;
use std::ops::Range;

/// Where an error is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as the user named it, or `command line`.
    pub name: String,
    /// Where in the file; `None` for the file as a whole.
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

impl Position {
    /// A stretch of `text` in bytes. Both ends move back to the beginning of a character.
    #[must_use]
    pub fn of(text: &str, span: &Range<usize>) -> Position {
        let boundary = |at: usize| {
            let at = at.min(text.len());
            (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
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
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.position {
            Some(at) => write!(f, ":{}:{}", at.line, at.column),
            None => Ok(()),
        }
    }
}
