//! The value at a stretch of a file's text: the keys that lead to it, and the task or group that it
//! is in.

use toml::de::{DeTable, DeValue};

use crate::checks;
use crate::duration::quote;
use crate::value::Span;

/// A step on the way to a value.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    Key(&'a str),
    Item(usize),
}

/// A value at a stretch of the text, or one whose key is there.
pub(super) struct Found<'a, 'i> {
    pub(super) top: &'a DeTable<'i>,
    pub(super) path: Vec<Part<'a>>,
    /// The place of the innermost key.
    pub(super) key: Span,
    pub(super) value: &'a DeValue<'i>,
}

impl<'a, 'i> Found<'a, 'i> {
    /// All of them, the outer ones first.
    pub(super) fn all(top: &'a DeTable<'i>, at: &Span) -> Vec<Found<'a, 'i>> {
        let mut found = Vec::new();
        let mut rest: Vec<_> = top
            .iter()
            .map(|(key, value)| (vec![Part::Key(key.get_ref())], key.span(), value))
            .collect();
        while let Some((path, key, value)) = rest.pop() {
            let below = |part| [&path[..], &[part]].concat();
            match value.get_ref() {
                DeValue::Table(table) => {
                    rest.extend(
                        table.iter().map(|(key, value)| {
                            (below(Part::Key(key.get_ref())), key.span(), value)
                        }),
                    );
                }
                DeValue::Array(list) => {
                    rest.extend(
                        list.iter()
                            .enumerate()
                            .map(|(n, value)| (below(Part::Item(n)), key.clone(), value)),
                    );
                }
                _ => {}
            }
            let of_key = matches!(path.last(), Some(Part::Key(_)));
            // A problem may be at a part of a string.
            let inside = value.get_ref().is_str()
                && value.span().start <= at.start
                && at.end <= value.span().end;
            if inside || value.span() == *at || (of_key && key == *at) {
                found.push(Found { top, path, key, value: value.get_ref() });
            }
        }
        found
    }

    /// `task "servo": ` or `task 3: ` for what is in a task, a group or a budget group.
    pub(super) fn whose(&self) -> String {
        let [Part::Key(key @ ("task" | "group" | "budget_group")), Part::Item(number), rest @ ..] =
            &self.path[..]
        else {
            return String::new();
        };
        let called = key.replace('_', " ");
        let table = self
            .top
            .get(*key)
            .and_then(|list| list.get_ref().as_array()?.get(*number)?.get_ref().as_table());
        let Some(table) = table else { return String::new() };
        let name = table.get("name").and_then(|name| name.get_ref().as_str());
        match name.filter(|name| checks::name(&called, name).is_ok()) {
            // The name itself, where it is another's as well, is no help to find it.
            Some(name) if !matches!(rest, [Part::Key("name")]) => {
                format!("{called} {}: ", quote(name))
            }
            _ => format!("{called} {}: ", number + 1),
        }
    }

    /// The innermost key, and the number in its list.
    pub(super) fn key(&self) -> (&'a str, Option<usize>) {
        match self.path[..] {
            [.., Part::Key(key)] => (key, None),
            [.., Part::Key(key), Part::Item(number)] => (key, Some(number)),
            [.., Part::Key(key), Part::Item(number), Part::Item(_)] => (key, Some(number)),
            _ => ("", None),
        }
    }

    /// How the value is called.
    pub(super) fn name(&self) -> &'a str {
        match self.path[..] {
            [.., Part::Item(_), Part::Item(1)] => "the weight",
            _ => self.key().0,
        }
    }
}
