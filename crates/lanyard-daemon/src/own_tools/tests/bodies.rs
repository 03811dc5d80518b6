//! The OpenAPI document against the routes, for the bodies of requests: a body that the document calls valid is not
//! refused for its form, and one that it calls invalid is.

use axum::http::Response;

use super::document::{filled, resolved};
use super::*;

/// How deep a schema that refers to itself is followed.
const DEPTH_MAX: usize = 6;
/// Routes whose valid requests end the daemon, write a file or halt all that follows.
const LEFT_OUT: [&str; 3] = ["/api/v1/shutdown", "/api/v1/backup", "/api/v1/halt"];
/// What a body of the wrong form is refused with. A choice that is given as a number reads as no JSON at all.
const REFUSED: [&str; 2] = ["body_invalid", "json_malformed"];

/// Values of a schema: one for each choice it leaves.
fn values(document: &Value, schema: &Value, depth: usize) -> Vec<Value> {
    if let (true, Some(shared)) = (schema["$ref"].is_string(), schema["properties"].as_object()) {
        let own = values(document, resolved(document, schema), depth);
        return own.into_iter().map(|value| with_shared(document, value, shared, schema, depth)).collect();
    }
    let schema = resolved(document, schema);
    if depth == 0 || schema == &json!(true) {
        return vec![json!({})];
    }
    if let Some(value) = schema.get("const") {
        return vec![value.clone()];
    }
    if let Some(all) = schema["enum"].as_array() {
        return all.clone();
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[choice].as_array() {
            let of = |one: &Value| {
                let own = values(document, one, depth);
                let Some(shared) = schema["properties"].as_object() else { return own };
                own.into_iter().map(|value| with_shared(document, value, shared, schema, depth)).collect()
            };
            return choices.iter().flat_map(of).collect();
        }
    }
    if let Some(all) = schema["allOf"].as_array() {
        return all.first().map_or(vec![json!({})], |first| values(document, first, depth));
    }
    kinds(schema).iter().flat_map(|kind| of_kind(document, schema, kind, depth)).collect()
}

/// The members that a schema with choices asks for beside them.
fn with_shared(
    document: &Value,
    mut value: Value,
    shared: &serde_json::Map<String, Value>,
    schema: &Value,
    depth: usize,
) -> Value {
    for (name, member) in shared.iter().filter(|(name, _)| is_required(schema, name)) {
        value[name] = values(document, member, depth - 1).remove(0);
    }
    value
}

fn kinds(schema: &Value) -> Vec<String> {
    match &schema["type"] {
        Value::String(kind) => vec![kind.clone()],
        Value::Array(all) => all.iter().map(|kind| kind.as_str().unwrap().to_owned()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec!["object".to_owned()],
    }
}

fn of_kind(document: &Value, schema: &Value, kind: &str, depth: usize) -> Vec<Value> {
    match kind {
        "null" => vec![Value::Null],
        "boolean" => vec![json!(true), json!(false)],
        "integer" | "number" => vec![json!(schema["minimum"].as_i64().unwrap_or(1))],
        "string" => match (schema["pattern"].as_str(), schema["format"].as_str()) {
            (_, Some("date-time")) => vec![json!("2026-11-15T08:00:00Z")],
            (Some("^[0-9a-f]{64}$"), _) => vec![json!("0a".repeat(32))],
            (Some(pattern), _) => {
                let prefix = pattern.trim_start_matches(['^', '(']).split(['_', '|']).next().unwrap();
                vec![json!(format!("{prefix}_00000000000000000000000001"))]
            }
            (None, _) => vec![json!("x")],
        },
        "array" => {
            let one = values(document, &schema["items"], depth - 1).into_iter().next();
            vec![json!([]), Value::Array(one.into_iter().collect())]
        }
        _ => objects(document, schema, depth),
    }
}

/// The least object, and one more for each value of each of its members.
fn objects(document: &Value, schema: &Value, depth: usize) -> Vec<Value> {
    let none = serde_json::Map::new();
    let members = schema["properties"].as_object().unwrap_or(&none);
    let mut least = json!({});
    for (name, member) in members.iter().filter(|(name, _)| is_required(schema, name)) {
        least[name] = values(document, member, depth - 1).remove(0);
    }
    let mut all = vec![least.clone()];
    for (name, member) in members {
        for value in values(document, member, depth - 1) {
            let mut one = least.clone();
            one[name] = value;
            all.push(one);
        }
    }
    all
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|all| all.iter().any(|held| held == name))
}

/// Bodies that the schema of an object calls invalid: a member missing, of another kind, or unknown.
fn wrong(document: &Value, schema: &Value) -> Vec<Value> {
    let schema = resolved(document, schema);
    let Some(members) = schema["properties"].as_object().filter(|_| schema["type"] == "object") else {
        return vec![json!([]), json!(7)];
    };
    let least = objects(document, schema, DEPTH_MAX).remove(0);
    let mut all = vec![json!("text"), json!(7)];
    for name in members.keys() {
        if is_required(schema, name) {
            let mut one = least.clone();
            one.as_object_mut().unwrap().remove(name);
            all.push(one);
        }
    }
    for (name, member) in members {
        let member = resolved(document, member);
        let of = kinds(member);
        let plain = member["type"].is_string() || member["type"].is_array();
        for (kind, value) in
            [("object", json!({ "no": "such" })), ("string", json!("x")), ("integer", json!(7))]
        {
            let fits = of.iter().any(|held| held == kind || (held == "number" && kind == "integer"));
            if plain && !fits {
                let mut one = least.clone();
                one[name] = value;
                all.push(one);
            }
        }
    }
    if schema["additionalProperties"] == false {
        let mut one = least;
        one["nobody-knows-it"] = json!(1);
        all.push(one);
    }
    all
}

/// Whether a refusal is about the form of a body.
fn is_form(said: &str) -> bool {
    REFUSED.iter().any(|code| said.starts_with(code))
}

async fn told(answer: Response<axum::body::Body>) -> (u16, String) {
    let status = answer.status().as_u16();
    if answer.status().is_success() {
        return (status, String::new());
    }
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    (status, format!("{} {}", body["code"].as_str().unwrap_or_default(), body["title"]))
}

/// FND-K13.
#[tokio::test(flavor = "multi_thread")]
async fn fnd_k13_openapi_bodies_are_taken_and_refused_as_the_document_says() {
    let room = Room::new();
    let document = crate::api::document();
    let (mut taken, mut refused, mut against) = (0, 0, Vec::new());
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if !schema.is_object() || LEFT_OUT.contains(&path.as_str()) {
                continue;
            }
            // One that a request before it may have ended would hide the form of the next.
            let session = room.hub(None).await;
            let at = filled(&document, path, operation, session);
            for body in values(&document, schema, DEPTH_MAX) {
                let (status, said) = told(room.sent(method, &at, &[], &body.to_string()).await).await;
                if is_form(&said) || status >= 500 && status != 503 {
                    against
                        .push(format!("{method} {path}: {body} is valid, and was answered {status} {said}"));
                }
                taken += 1;
            }
            for body in wrong(&document, schema) {
                let (status, said) = told(room.sent(method, &at, &[], &body.to_string()).await).await;
                // What is in the address comes first.
                if !is_form(&said) && !matches!(status, 404 | 410) {
                    against.push(format!(
                        "{method} {path}: {body} is invalid, and was answered {status} {said}"
                    ));
                }
                refused += usize::from(is_form(&said));
            }
        }
    }
    assert!(against.is_empty(), "{against:#?}");
    assert!(taken > 400 && refused > 200, "only {taken} and {refused} requests");
    room.close().await;
}
