//! A diagnostic under the line that it is about.

use std::fmt;

use crate::{is_printable, Diagnostic};

/// A [`Diagnostic`] as miette shows it.
#[derive(Debug)]
pub struct Snippet {
    diagnostic: Diagnostic,
    source: miette::NamedSource<String>,
}

impl Snippet {
    pub(crate) fn new(diagnostic: Diagnostic) -> Snippet {
        let name = diagnostic.place().map_or(String::new(), |place| place.name.clone());
        let source = miette::NamedSource::new(name, printed(diagnostic.text().unwrap_or("")));
        Snippet { diagnostic, source }
    }
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diagnostic.cause)
    }
}

impl std::error::Error for Snippet {}

impl miette::Diagnostic for Snippet {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.diagnostic.help))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.diagnostic.text()?;
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        let at = self.diagnostic.place()?.position?;
        let span = (at.offset as usize, at.len as usize);
        Some(Box::new(std::iter::once(miette::LabeledSpan::new_with_span(
            Some("here".to_owned()),
            span,
        ))))
    }
}

/// The text with a substitute for each character that a terminal would interpret instead of showing
/// it (escape sequences, direction overrides). A substitute has as many bytes as the character, so
/// that places stay correct.
fn printed(text: &str) -> String {
    let mut printed = String::with_capacity(text.len());
    for c in text.chars() {
        match c.len_utf8() {
            _ if c == '\n' || c == '\t' || is_printable(c) => printed.push(c),
            // Before a line's end it moves nothing.
            1 if c == '\r' => printed.push(' '),
            1 => printed.push('?'),
            2 => printed.push('\u{bf}'),
            3 => printed.push('\u{fffd}'),
            bytes => printed.extend(std::iter::repeat_n('?', bytes)),
        }
    }
    printed
}

#[cfg(test)]
mod tests {
    use super::printed;

    #[test]
    fn no_control_character_is_printed_and_every_place_stays() {
        let text = "a = \"\u{1b}[31m\u{9b}0m\u{202e}\u{e0001}\"\r\n\tb = \u{e9}\u{65e5}";
        let printed = printed(text);
        assert_eq!(printed, "a = \"?[31m\u{bf}0m\u{fffd}????\" \n\tb = \u{e9}\u{65e5}");
        assert_eq!(printed.len(), text.len());
    }
}
