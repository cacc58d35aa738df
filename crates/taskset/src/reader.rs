//! Reads values out of TOML tables and collects what is wrong with them, each at its place.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::checks;
use crate::duration::{parse_duration, quote};
use crate::error;
use crate::keys::{self, nearest, Scope};
use punctual_diagnostic::Diagnostic;

/// A place in the text, in bytes.
pub(crate) type Span = Range<usize>;

/// Everything wrong with a file; only the first in file order is kept.
pub(crate) struct Problems<'t> {
    file: &'t str,
    text: &'t str,
    first: Option<(Span, String, String)>,
    count: usize,
}

impl<'t> Problems<'t> {
    pub(crate) fn new(file: &'t str, text: &'t str) -> Self {
        Problems { file, text, first: None, count: 0 }
    }

    /// Notes a problem. The texts are made only if it is the first in the file so far: a large file
    /// may have as many problems as it has lines.
    pub(crate) fn add(&mut self, at: &Span, texts: impl FnOnce() -> (String, String)) {
        self.count += 1;
        let earlier = match &self.first {
            Some((first, _, _)) => at.start < first.start,
            None => true,
        };
        if earlier {
            let (cause, help) = texts();
            self.first = Some((at.clone(), cause, help));
        }
    }

    /// How many there are so far.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The line of `other`, from 1, for a problem at `at` that mentions it. Counted only if the
    /// problem would be the first so far, like its texts.
    pub(crate) fn line_if_first(&self, at: &Span, other: &Span) -> usize {
        if self.first.as_ref().is_some_and(|(first, _, _)| first.start <= at.start) {
            return 0;
        }
        let before = self.text.get(..other.start).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }

    /// The first problem as an error; `None` when all is well.
    pub(crate) fn into_error(self) -> Option<Diagnostic> {
        let (at, cause, help) = self.first?;
        Some(error::at(self.file, self.text, &at, cause, help))
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

/// A value of a table that has been found: its key's place, its own, and itself.
pub(crate) struct Found<'a, 'i> {
    pub(crate) key: Span,
    pub(crate) at: Span,
    pub(crate) value: &'a DeValue<'i>,
}

/// One table being read. `scope` says which keys it takes, `whose` begins its messages
/// (`task "servo": `, or nothing).
pub(crate) struct Table<'a, 'i> {
    pub(crate) entries: &'a DeTable<'i>,
    pub(crate) at: Span,
    pub(crate) scope: Scope,
    pub(crate) whose: String,
}

impl<'a, 'i> Table<'a, 'i> {
    /// Refuses every key that this kind of table does not take.
    pub(crate) fn check_keys(&self, problems: &mut Problems<'_>) {
        for key in self.entries.keys() {
            if let Some((cause, help)) = keys::refuse(self.scope, key.get_ref()) {
                problems.add(&key.span(), || (format!("{}{cause}", self.whose), help));
            }
        }
    }

    /// The value of a key, if it is there.
    pub(crate) fn get(&self, key: &str) -> Option<Found<'a, 'i>> {
        let (key, value) = self.entries.get_key_value(key)?;
        Some(Found { key: key.span(), at: value.span(), value: value.get_ref() })
    }

    /// Notes a problem with one of this table's values.
    pub(crate) fn fault(
        &self,
        problems: &mut Problems<'_>,
        at: &Span,
        cause: impl AsRef<str>,
        help: impl Into<String>,
    ) {
        problems.add(at, || (format!("{}{}", self.whose, cause.as_ref()), help.into()));
    }

    /// A value of the wrong type.
    pub(crate) fn wrong_type(
        &self,
        problems: &mut Problems<'_>,
        key: &str,
        found: &Found<'_, '_>,
        wanted: &str,
        help: impl Into<String>,
    ) {
        let cause = format!("{key} is {}, not {wanted}", kind(found.value));
        self.fault(problems, &found.at, cause, help);
    }

    /// A duration, in ns; `None` when it is absent or at fault.
    pub(crate) fn duration(&self, problems: &mut Problems<'_>, key: &str) -> Option<u64> {
        let found = self.get(key)?;
        self.duration_of(problems, key, &found)
    }

    /// The same for a value that has been found already.
    pub(crate) fn duration_of(&self, problems: &mut Problems<'_>, key: &str, found: &Found<'_, '_>) -> Option<u64> {
        let number = match found.value {
            DeValue::String(text) => {
                return match parse_duration(text) {
                    Ok(ns) => Some(ns),
                    Err(error) => {
                        let cause = format!("{key} {}", error.cause);
                        self.fault(problems, &found.at, cause, error.help);
                        None
                    }
                };
            }
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => "1",
        };
        let example = format!("{number}ms");
        let example = match parse_duration(&example) {
            Ok(_) => example.as_str(),
            Err(_) => "1ms",
        };
        let wanted = "a duration with its unit";
        let help = format!("write it in quotes with one of ns, us, ms, s, min: \"{example}\"");
        self.wrong_type(problems, key, found, wanted, help);
        None
    }

    /// The name of `what` (a task, a group); `None` when it is absent or at fault.
    pub(crate) fn name(&self, what: &str, problems: &mut Problems<'_>) -> Option<(Span, String)> {
        let (at, name) = self.string(problems, "name", "servo")?;
        match checks::name(what, name) {
            Ok(()) => Some((at, name.to_owned())),
            Err((cause, help)) => {
                self.fault(problems, &at, cause, help);
                None
            }
        }
    }

    /// Reports the first of these keys that is absent, at the head of the table: key, what it is, help.
    pub(crate) fn missing(&self, required: &[(&str, &str, &str)], problems: &mut Problems<'_>) -> bool {
        for (key, what, help) in required {
            if self.get(key).is_none() {
                self.fault(problems, &self.at, format!("it lacks {what}"), *help);
                return true;
            }
        }
        false
    }

    /// A string; `None` when it is absent or something else.
    pub(crate) fn string(&self, problems: &mut Problems<'_>, key: &str, example: &str) -> Option<(Span, &'a str)> {
        let found = self.get(key)?;
        if let DeValue::String(text) = found.value {
            return Some((found.at, text.as_ref()));
        }
        let help = format!("write it in quotes, such as {key} = \"{example}\"");
        self.wrong_type(problems, key, &found, "a string", help);
        None
    }

    /// One of these words, whose meanings stand beside them; the default if there is none, or another.
    pub(crate) fn one_of<T: Copy + Default>(
        &self,
        problems: &mut Problems<'_>,
        key: &str,
        what: &str,
        known: &[(&str, T)],
    ) -> T {
        let Some((at, word)) = self.string(problems, key, known[0].0) else { return T::default() };
        if let Some((_, meaning)) = known.iter().find(|(name, _)| *name == word) {
            return *meaning;
        }
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let quoted: Vec<String> = names.iter().map(|name| quote(name)).collect();
        let help = match (nearest(&word.to_lowercase(), &names), &quoted[..]) {
            (Some(near), _) => format!("did you mean {}?", quote(near)),
            (None, [one, other]) => format!("use {one} or {other}"),
            (None, many) => format!("use one of {}", many.join(", ")),
        };
        self.fault(problems, &at, format!("unknown {what} {}", quote(word)), help);
        T::default()
    }

    /// The seed of a generator, 0 when it is absent; `None` when it is at fault.
    pub(crate) fn seed(&self, problems: &mut Problems<'_>) -> Option<u64> {
        match self.get("seed") {
            Some(_) => self.integer(problems, "seed", 0..=i64::MAX).map(i64::unsigned_abs),
            None => Some(0),
        }
    }

    /// An integer within `range`; `None` when it is absent or at fault.
    pub(crate) fn integer<T>(
        &self,
        problems: &mut Problems<'_>,
        key: &str,
        range: std::ops::RangeInclusive<T>,
    ) -> Option<T>
    where
        T: Copy + Into<i128> + TryFrom<i128> + std::fmt::Display,
    {
        let found = self.get(key)?;
        self.integer_of(problems, key, &found, range)
    }

    /// The same for a value that has been found already.
    pub(crate) fn integer_of<T>(
        &self,
        problems: &mut Problems<'_>,
        key: &str,
        found: &Found<'_, '_>,
        range: std::ops::RangeInclusive<T>,
    ) -> Option<T>
    where
        T: Copy + Into<i128> + TryFrom<i128> + std::fmt::Display,
    {
        let (least, most) = (*range.start(), *range.end());
        let limits = if least.into() == i128::from(i64::MIN) {
            "a whole number of at most 64 bits, such as 10".to_owned()
        } else {
            format!("a whole number from {least} to {most}")
        };
        let DeValue::Integer(number) = found.value else {
            self.wrong_type(
                problems,
                key,
                found,
                "a whole number",
                match found.value {
                    DeValue::String(text) if text.parse::<i64>().is_ok() => {
                        format!("remove the quotes: {}", text)
                    }
                    _ => format!("write {limits}"),
                },
            );
            return None;
        };
        let value = i128::from_str_radix(number.as_str(), number.radix())
            .ok()
            .filter(|value| (least.into()..=most.into()).contains(value))
            .and_then(|value| T::try_from(value).ok());
        if value.is_none() {
            let text = quote(&number.to_string());
            let text = text.trim_matches('"');
            let cause = format!("{key} {text} is out of range");
            self.fault(problems, &found.at, cause, format!("write {limits}"));
        }
        value
    }
}

/// How a value's type is called in a message.
pub(crate) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a bare number",
        DeValue::Float(_) => "a bare number with decimals",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
