//! Collects what is wrong with a file, each at its place, and keeps the first.

use crate::error;
use crate::value::Span;
use punctual_diagnostic::Diagnostic;

/// Something wrong with a value, or with its key.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) at: Span,
    /// Whether the key of the value at `at` is meant.
    pub(crate) of_key: bool,
    pub(crate) cause: String,
    pub(crate) help: String,
}

/// Everything wrong with a file; only the first in file order is kept.
pub(crate) struct Problems<'t> {
    text: &'t str,
    first: Option<Problem>,
    count: usize,
}

impl<'t> Problems<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Problems { text, first: None, count: 0 }
    }

    /// Notes a problem. The texts are made only if it is the first in the file so far: a large file
    /// may have as many problems as it has lines.
    pub(crate) fn add<C: Into<String>, H: Into<String>>(
        &mut self,
        at: &Span,
        texts: impl FnOnce() -> (C, H),
    ) {
        self.count += 1;
        if self.first.as_ref().is_none_or(|first| at.start < first.at.start) {
            let (cause, help) = texts();
            self.first = Some(Problem {
                at: at.clone(),
                of_key: false,
                cause: cause.into(),
                help: help.into(),
            });
        }
    }

    /// Notes a problem of a value.
    pub(crate) fn fault(&mut self, at: &Span, cause: impl Into<String>, help: impl Into<String>) {
        self.add(at, || (cause, help));
    }

    /// Notes a problem of a value's key.
    pub(crate) fn fault_of_key(
        &mut self,
        at: &Span,
        cause: impl Into<String>,
        help: impl Into<String>,
    ) {
        let earlier = self.first.as_ref().is_none_or(|first| at.start < first.at.start);
        self.fault(at, cause, help);
        if let (true, Some(first)) = (earlier, &mut self.first) {
            first.of_key = true;
        }
    }

    /// Refuses a second one of several forms, at its key; the help lists the form to keep. The
    /// first one that is given.
    pub(crate) fn one_of<'f>(
        &mut self,
        forms: &[(&'f str, Option<&Span>)],
        help: &str,
    ) -> Option<&'f str> {
        let mut given: Vec<_> = forms.iter().filter_map(|(key, at)| Some(((*at)?, *key))).collect();
        given.sort_by_key(|(at, _)| at.start);
        if let [(_, first), (at, second), ..] = given[..] {
            self.fault_of_key(at, format!("{second} is given, and {first} as well"), help);
            return None;
        }
        given.first().map(|(_, key)| *key)
    }

    /// Reports the first of these keys that is absent, at the head of its table: whether it is
    /// there, what it is, help.
    pub(crate) fn missing(&mut self, head: &Span, required: &[(bool, &str, &str)]) -> bool {
        let absent = required.iter().find(|(given, _, _)| !given);
        if let Some((_, what, help)) = absent {
            self.add(head, || (format!("it lacks {what}"), *help));
        }
        absent.is_some()
    }

    /// The place of a part, in bytes, of the string at `whole`; `whole` where the file writes it
    /// with escapes.
    pub(crate) fn part(&self, whole: &Span, string: &str, part: &Span) -> Span {
        let written = self.text.get(whole.clone()).unwrap_or("");
        match written.find(string).filter(|_| !string.is_empty()) {
            Some(begin) => whole.start + begin + part.start..whole.start + begin + part.end,
            None => whole.clone(),
        }
    }

    /// How many there are so far.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The line of `other`, from 1, for a problem at `at` that mentions it. Counted only if the
    /// problem would be the first so far, like its texts.
    pub(crate) fn line_if_first(&self, at: &Span, other: &Span) -> usize {
        if self.first.as_ref().is_some_and(|first| first.at.start <= at.start) {
            return 0;
        }
        let before = self.text.get(..other.start).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }

    /// The first problem; `None` when all is well.
    pub(crate) fn into_first(self) -> Option<Problem> {
        self.first
    }

    /// The first problem as an error of `file`.
    pub(crate) fn into_error(self, file: &str) -> Option<Diagnostic> {
        let Problem { at, cause, help, .. } = self.first?;
        Some(error::at(file, self.text, &at, cause, help))
    }
}

/// Counts lines on the way through a text: places asked for in file order cost one pass in all.
pub(crate) struct Lines<'t> {
    text: &'t str,
    offset: usize,
    line: u32,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Lines { text, offset: 0, line: 1 }
    }

    /// The line of a byte, from 1.
    pub(crate) fn at(&mut self, offset: usize) -> u32 {
        if offset < self.offset {
            *self = Lines::new(self.text);
        }
        let between = self.text.as_bytes().get(self.offset..offset);
        let newlines = between.map_or(0, |bytes| bytes.iter().filter(|&&b| b == b'\n').count());
        // A file has at most 4 Mi lines.
        self.line += u32::try_from(newlines).unwrap_or(0);
        self.offset = offset;
        self.line
    }
}
