//! The JSON Schema of task-set files, made from `format`.

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::Schema;
use serde_json::Value;

use crate::format::Set;

/// The JSON Schema (draft 7) of task-set files in TOML, as docs/task-set.schema.json has it.
#[must_use]
pub fn json_schema() -> Value {
    let settings = SchemaSettings::draft07().with_transform(without_null as fn(&mut Schema));
    let mut schema = settings.into_generator().into_root_schema_for::<Set>();
    schema.insert("title".to_owned(), "Punctual task set".into());
    schema.to_value()
}

/// An `Option` may be null in JSON, and TOML has no null: an absent key is all there is.
fn without_null(schema: &mut Schema) {
    transform_subschemas(&mut without_null, schema);
    let null =
        |schema: &Value| *schema == "null" || schema.get("type").is_some_and(|of| of == "null");
    for key in ["type", "anyOf", "enum"] {
        let Some(Value::Array(forms)) = schema.get_mut(key) else { continue };
        forms.retain(|form| !null(form) && !form.is_null());
        if let ("type" | "anyOf", [only]) = (key, &forms[..]) {
            let only = only.clone();
            schema.remove(key);
            match only {
                // The description of the key precedes that of its type.
                Value::Object(inner) => inner.into_iter().for_each(|(key, value)| {
                    schema.ensure_object().entry(key).or_insert(value);
                }),
                only => drop(schema.insert(key.to_owned(), only)),
            }
        }
    }
}
