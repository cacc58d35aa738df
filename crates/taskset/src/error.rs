//! The errors of files and sets.

use std::ops::Range;

use punctual_diagnostic::{Diagnostic, Place, Position};

/// An error of the file as a whole, or of a set that came from no file.
pub(crate) fn whole(file: &str, cause: impl Into<String>, help: impl Into<String>) -> Diagnostic {
    Diagnostic::usage(cause, help).at(Place { name: file.to_owned(), position: None })
}

/// An error at a stretch of `text` (bytes; both ends are moved to character boundaries).
pub(crate) fn at(
    file: &str,
    text: &str,
    span: &Range<usize>,
    cause: impl Into<String>,
    help: impl Into<String>,
) -> Diagnostic {
    let place = Place { name: file.to_owned(), position: Some(Position::of(text, span)) };
    Diagnostic::usage(cause, help).in_text(place, text)
}
