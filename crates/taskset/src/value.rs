//! The values of a task-set file: their places, and the forms that each may have.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeOwned, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::{Deserialize, Serialize, Serializer};
use toml::Spanned;

use crate::duration::{fmt_ns, parse_duration};

/// A place in the text, in bytes.
pub(crate) type Span = Range<usize>;

/// Stands between the cause and the help of an error that a `Deserialize` makes.
pub(crate) const HELP: char = '\u{1f}';

/// Stands in such a cause for the key of the value.
pub(crate) const KEY: char = '\u{1e}';

/// An error with its cause and its help, which `explain` takes apart again.
pub(crate) fn fault<E: Error>(cause: impl fmt::Display, help: impl fmt::Display) -> E {
    E::custom(format_args!("{cause}{HELP}{help}"))
}

/// A value and its place in the text: 0..0 for one that was not read.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct At<T> {
    #[serde(skip)]
    pub(crate) span: Span,
    pub(crate) value: T,
}

impl<T> Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> From<T> for At<T> {
    fn from(value: T) -> Self {
        At { span: 0..0, value }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(from)?;
        Ok(At { span: spanned.span(), value: spanned.into_inner() })
    }
}

/// The place of a value that is there.
pub(crate) fn place<T>(value: &Option<At<T>>) -> Option<&Span> {
    value.as_ref().map(|found| &found.span)
}

/// A type that takes some of a value's forms: a text, a whole number, a list, a table. It refuses
/// the others by `WANTED`, which is what an error calls it.
pub(crate) trait Forms: Sized {
    const WANTED: &'static str;

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Str(text), &Self::WANTED))
    }
    fn integer<E: Error>(number: i64) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Signed(number), &Self::WANTED))
    }
    fn list<'de, A: SeqAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Seq, &Self::WANTED))
    }
    fn table<'de, A: MapAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Map, &Self::WANTED))
    }
}

/// Reads a type of several forms.
pub(crate) fn read<'de, T: Forms, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    struct AnyForm<T>(PhantomData<T>);

    impl<'de, T: Forms> Visitor<'de> for AnyForm<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(T::WANTED)
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            T::text(text)
        }
        fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
            T::integer(number)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
            T::list(list)
        }
        fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<T, A::Error> {
            T::table(table)
        }
    }

    from.deserialize_any(AnyForm(PhantomData))
}

/// Reads a type by its forms.
macro_rules! by_forms {
    ($(impl[$($generics:tt)*] $type:ty;)*) => {$(
        impl<'de, $($generics)*> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::value::read(from)
            }
        }
    )*};
}
pub(crate) use by_forms;

by_forms! {
    impl[T: DeserializeOwned] Table<T>;
    impl[T: DeserializeOwned] Word<T>;
    impl[const ZERO: bool] Time<ZERO>;
    impl[const LEAST: i64, const MOST: i64] Whole<LEAST, MOST>;
}

/// A table, and not the list of its values, which serde takes for a struct as well.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Table<T>(pub(crate) T);

impl<T: DeserializeOwned> Forms for Table<T> {
    const WANTED: &'static str = "a table";

    fn table<'de, A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(table)).map(Table)
    }
}

impl<T> Deref for Table<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// One word of an enum, and not a table that has it as a key.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub(crate) struct Word<T>(pub(crate) T);

impl<T: DeserializeOwned> Forms for Word<T> {
    const WANTED: &'static str = "a string";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        T::deserialize(text.into_deserializer()).map(Word)
    }
}

/// A duration in ns, written with its unit. Whether it may be 0 (`ZERO`) is for the schema: a check
/// refuses a 0 by what it means there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time<const ZERO: bool>(pub(crate) u64);

/// A duration that may be 0.
pub(crate) type Duration = Time<true>;

/// A duration above 0.
pub(crate) type Positive = Time<false>;

/// The ns of a duration that is there.
pub(crate) fn ns<const ZERO: bool>(time: &Option<At<Time<ZERO>>>) -> Option<u64> {
    time.as_ref().map(|time| time.0)
}

impl<const ZERO: bool> Forms for Time<ZERO> {
    const WANTED: &'static str = "a duration with its unit";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        parse_duration(text)
            .map(Time)
            .map_err(|error| fault(format_args!("{KEY} {}", error.cause), error.help))
    }
}

impl<const ZERO: bool> Serialize for Time<ZERO> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            crate::INFINITE => to.collect_str(&format_args!("{}ns", self.0)),
            ns => to.serialize_str(&fmt_ns(ns).replace(' ', "")),
        }
    }
}

/// A whole number from `LEAST` to `MOST`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Whole<const LEAST: i64, const MOST: i64>(pub(crate) i64);

impl<const LEAST: i64, const MOST: i64> Whole<LEAST, MOST> {
    /// As an unsigned number: 0 below 0.
    pub(crate) fn unsigned<T: TryFrom<i64> + Default>(self) -> T {
        T::try_from(self.0).unwrap_or_default()
    }

    /// What it is, for an error.
    pub(crate) fn limits() -> String {
        match (LEAST, MOST) {
            (i64::MIN, i64::MAX) => "a whole number of at most 64 bits, such as 10".to_owned(),
            _ => format!("a whole number from {LEAST} to {MOST}"),
        }
    }
}

impl<const LEAST: i64, const MOST: i64> Forms for Whole<LEAST, MOST> {
    const WANTED: &'static str = "a whole number";

    fn integer<E: Error>(number: i64) -> Result<Self, E> {
        let fits = Some(number).filter(|number| (LEAST..=MOST).contains(number));
        fits.map(Whole).ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &Self::WANTED))
    }
}

/// A wrapper is no type of its own in the schema; a derived one would be, with its description.
macro_rules! schema_of_the_value {
    ($($wrapper:ident)*) => {$(
        impl<T: JsonSchema> JsonSchema for $wrapper<T> {
            fn inline_schema() -> bool {
                T::inline_schema()
            }
            fn schema_name() -> Cow<'static, str> {
                T::schema_name()
            }
            fn schema_id() -> Cow<'static, str> {
                T::schema_id()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                T::json_schema(generator)
            }
        }
    )*};
}

schema_of_the_value! { At Table Word }

impl<const ZERO: bool> JsonSchema for Time<ZERO> {
    fn schema_name() -> Cow<'static, str> {
        if ZERO { "Duration" } else { "PositiveDuration" }.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        if ZERO {
            let units = [("ns", r"\.0+"), ("us", r"\.[0-9]{1,3}0*"), ("ms", r"\.[0-9]{1,6}0*")];
            let units =
                units.into_iter().chain([("s", r"\.[0-9]{1,9}0*"), ("min", r"\.[0-9]{1,11}0*")]);
            let units: Vec<String> =
                units.map(|(unit, fraction)| format!(r"({fraction})?\s*{unit}")).collect();
            return json_schema!({
                "description": "A decimal number and one of the units ns, us, ms, s, min; exact to \
                                1 ns.",
                "type": "string",
                "pattern": format!(r"^\s*[0-9]+({})\s*$", units.join("|")),
                "examples": ["250us", "1.5ms", "20ms"],
            });
        }
        json_schema!({
            "allOf": [generator.subschema_for::<Duration>()],
            "not": { "type": "string", "pattern": r"^\s*[0.]+\s*[a-z]" },
        })
    }
}

impl<const LEAST: i64, const MOST: i64> JsonSchema for Whole<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Whole{LEAST}To{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
    }
}
