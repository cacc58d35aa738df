//! JSON with what rt-app and its workgen take beyond it: comments, a comma after the last member,
//! and the same key several times (events).

use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{parse_to_ast, ParseOptions};

use crate::duration::quote;
use crate::error;
use crate::problems::Problems;
use crate::value::Span;
use punctual_diagnostic::Diagnostic;

/// rt-app's files have four levels; a parser that goes down by recursion needs some limit.
const DEEPEST: usize = 32;

/// The value that a text holds.
pub(super) fn parse<'t>(text: &'t str, file: &str) -> Result<Value<'t>, Diagnostic> {
    let refuse = |at: &Span, cause: &str, help: &str| {
        Err(error::at(file, text, at, format!("not valid JSON: {cause}"), help))
    };
    if let Some(at) = too_deep(text) {
        return refuse(
            &(at..at + 1),
            "lists or objects are nested too deeply",
            "nest them less deeply",
        );
    }
    let options = ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: true,
    };
    match parse_to_ast(text, &Default::default(), &options) {
        Ok(parsed) => match parsed.value {
            Some(value) => Ok(value),
            None => {
                refuse(&(0..0), "the file is empty", "describe the tasks, as rt-app's examples do")
            }
        },
        Err(error) => {
            let range = error.range();
            let cause = error.kind().to_string();
            let cause = cause
                .chars()
                .next()
                .map_or(String::new(), |c| c.to_lowercase().chain(cause.chars().skip(1)).collect());
            let help = match error.kind() {
                ParseErrorKind::ExpectedColonAfterObjectKey => {
                    "write a colon and a value: the keys that rt-app's workgen lets stand alone \
                     take \"\""
                }
                _ if !text.trim_start().starts_with(['{', '/']) => {
                    "end the file's name in .toml if it is TOML; .json is for rt-app's"
                }
                _ => "correct it as JSON (https://json.org) has it",
            };
            refuse(&(range.start..range.end), &cause, help)
        }
    }
}

/// Where a text is nested too deeply: brackets outside strings and comments.
fn too_deep(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += 2;
                while at < bytes.len() && !bytes[at..].starts_with(b"*/") {
                    at += 1;
                }
                at += 1;
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > DEEPEST {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// An object being read, and where it is: in the text, and as a path of keys.
pub(super) struct Object<'a, 't> {
    pub(super) members: &'a [ObjectProp<'t>],
    pub(super) at: Span,
    pub(super) path: String,
}

/// One member of an object.
#[derive(Clone, Copy)]
pub(super) struct Member<'a, 't> {
    pub(super) key: &'a str,
    pub(super) prop: &'a ObjectProp<'t>,
}

impl<'a, 't> Member<'a, 't> {
    pub(super) fn value(&self) -> &'a Value<'t> {
        &self.prop.value
    }

    /// The place of the value.
    pub(super) fn at(&self) -> Span {
        span(self.value())
    }

    /// The place of key and value.
    pub(super) fn whole(&self) -> Span {
        self.prop.range.start..self.prop.range.end
    }
}

impl<'a, 't> Object<'a, 't> {
    /// All members, in the order of the text.
    pub(super) fn members(&self) -> impl Iterator<Item = Member<'a, 't>> + 'a {
        let members = self.members;
        members.iter().map(|prop| Member { key: prop.name.as_str(), prop })
    }

    /// The path of a member.
    pub(super) fn path(&self, key: &str) -> String {
        // A long key is not worth a long line.
        let key: String = quote(key).trim_matches('"').to_owned();
        if self.path.is_empty() {
            return key;
        }
        format!("{}.{key}", self.path)
    }

    /// The one member of that key; a second one is a problem.
    pub(super) fn get(&self, key: &str, problems: &mut Problems<'_>) -> Option<Member<'a, 't>> {
        let mut found = self.members().filter(|member| member.key == key);
        let first = found.next()?;
        if let Some(second) = found.next() {
            problems.add(&second.whole(), || {
                (format!("{} is given twice", self.path(key)), "keep one of the two".to_owned())
            });
        }
        Some(first)
    }

    /// An object within this one.
    pub(super) fn object(
        &self,
        member: Member<'a, 't>,
        problems: &mut Problems<'_>,
    ) -> Option<Object<'a, 't>> {
        match member.value() {
            Value::Object(object) => Some(Object {
                members: &object.properties,
                at: member.whole(),
                path: self.path(member.key),
            }),
            _ => {
                self.wrong(member, "an object", "write { ... }", problems);
                None
            }
        }
    }

    pub(super) fn string(&self, key: &str, problems: &mut Problems<'_>) -> Option<(Span, &'a str)> {
        let member = self.get(key, problems)?;
        match member.value() {
            Value::StringLit(text) => Some((member.at(), text.value.as_ref())),
            _ => {
                self.wrong(member, "a string", "put it in quotes", problems);
                None
            }
        }
    }

    /// An integer of the range (both ends are in it).
    pub(super) fn integer(
        &self,
        key: &str,
        least: i64,
        most: i64,
        problems: &mut Problems<'_>,
    ) -> Option<i64> {
        self.integer_of(self.get(key, problems)?, least, most, problems)
    }

    pub(super) fn integer_of(
        &self,
        member: Member<'a, 't>,
        least: i64,
        most: i64,
        problems: &mut Problems<'_>,
    ) -> Option<i64> {
        self.integer_in(member.key, member.value(), least, most, problems)
    }

    /// The same for a value in a list under `key`.
    pub(super) fn integer_in(
        &self,
        key: &str,
        value: &Value<'_>,
        least: i64,
        most: i64,
        problems: &mut Problems<'_>,
    ) -> Option<i64> {
        let number = match value {
            Value::NumberLit(number) => {
                number.value.parse::<i64>().ok().filter(|n| (least..=most).contains(n))
            }
            _ => None,
        };
        if number.is_none() {
            problems.add(&span(value), || {
                let cause = match value {
                    Value::NumberLit(number) => {
                        let number = quote(number.value);
                        format!("{} {} is out of range", self.path(key), number.trim_matches('"'))
                    }
                    other => format!("{} is {}, not a whole number", self.path(key), kind(other)),
                };
                (cause, format!("write a whole number from {least} to {most}"))
            });
        }
        number
    }

    fn wrong(&self, member: Member<'_, '_>, wanted: &str, help: &str, problems: &mut Problems<'_>) {
        problems.add(&member.at(), || {
            let cause =
                format!("{} is {}, not {wanted}", self.path(member.key), kind(member.value()));
            (cause, help.to_owned())
        });
    }
}

/// How a value's type is called in a message.
fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a string",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "a truth value",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::NullKeyword(_) => "null",
    }
}

/// The place of a value.
pub(super) fn span(value: &Value<'_>) -> Span {
    use jsonc_parser::common::Ranged;
    let range = value.range();
    range.start..range.end
}
