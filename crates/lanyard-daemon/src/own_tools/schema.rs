//! Schemas of arguments in the plainest form there is: clients and models differ in what they take beyond one flat object
//! of plain types. So nothing is referenced, nothing is nullable, and a choice is an `enum` whose values are explained
//! in the description.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::own_tools::names;

/// What a tool says of itself beside its schema.
pub(super) struct About {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) reads_only: bool,
    /// It can end something that cannot be taken back.
    pub(super) destructive: bool,
}

pub(super) fn tool<T: JsonSchema>(about: &About) -> Value {
    let mut input = schema::<T>();
    names::declare(about.name, &mut input);
    json!({
        "name": about.name,
        "title": about.title,
        "description": about.description,
        "inputSchema": input,
        "annotations": {
            "title": about.title,
            "readOnlyHint": about.reads_only,
            "destructiveHint": about.destructive,
            "idempotentHint": about.reads_only,
            "openWorldHint": false,
        },
    })
}

fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut schema);
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("title");
        fields.remove("description");
        fields.insert("additionalProperties".to_owned(), true.into());
    }
    schema
}

fn plain(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(choice) = choice(fields) {
                *fields = choice;
            }
            without_null(fields);
            for name in ["format", "default", "minimum"] {
                // A field of that name holds a schema, the keyword does not.
                if fields.get(name).is_some_and(|value| !value.is_object()) {
                    fields.remove(name);
                }
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `anyOf: [X, null]` is X, and `type: [x, null]` is x: what is left out is left out.
fn without_null(fields: &mut Map<String, Value>) {
    if let Some(inner) = fields.get("anyOf").and_then(only_beside_null).cloned() {
        fields.remove("anyOf");
        for (name, value) in choice(&inner).unwrap_or(inner) {
            let ours = fields.get(&name).and_then(Value::as_str).filter(|_| name == "description");
            // What the field is for comes first, then what the type says of itself.
            let value = match (ours, value.as_str()) {
                (Some(ours), Some(theirs)) => format!("{ours}\n{theirs}").into(),
                (Some(_) | None, _) => value,
            };
            fields.insert(name, value);
        }
    }
    let only = fields.get_mut("type").and_then(Value::as_array_mut).and_then(|kinds| {
        kinds.retain(|kind| kind != "null");
        if kinds.len() == 1 { kinds.pop() } else { None }
    });
    if let Some(only) = only {
        fields.insert("type".to_owned(), only);
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

fn only_beside_null(any: &Value) -> Option<&Map<String, Value>> {
    let is_null = |value: &&Value| value["type"] == "null";
    let (nulls, others): (Vec<&Value>, Vec<&Value>) = any.as_array()?.iter().partition(is_null);
    match (nulls.as_slice(), others.as_slice()) {
        ([_], [only]) => only.as_object(),
        (_, _) => None,
    }
}

/// A choice of constants, each with its description, as one `enum`.
fn choice(fields: &Map<String, Value>) -> Option<Map<String, Value>> {
    let options = fields.get("oneOf")?.as_array()?;
    let mut values = Vec::new();
    let mut lines: Vec<String> =
        fields.get("description").and_then(Value::as_str).map(str::to_owned).into_iter().collect();
    for option in options {
        let described = option.get("description").and_then(Value::as_str);
        let consts = match (option.get("const"), option.get("enum").and_then(Value::as_array)) {
            (Some(only), _) => vec![only.clone()],
            (None, Some(several)) => several.clone(),
            (None, None) => return None,
        };
        for value in consts {
            if let (Some(text), Some(name)) = (described, value.as_str()) {
                lines.push(format!("- `{name}`: {}", text.replace('\n', " ")));
            }
            values.push(value);
        }
    }
    let mut plain = Map::new();
    plain.insert("type".to_owned(), "string".into());
    if !lines.is_empty() {
        plain.insert("description".to_owned(), lines.join("\n").into());
    }
    plain.insert("enum".to_owned(), values.into());
    Some(plain)
}
