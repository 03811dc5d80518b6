//! The OpenAPI document, made from the route table and the types it names.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::api::routes::{Route, table};
use crate::api::types::{Problem, StreamAsk};
use crate::auth::Access;

/// The document served at `/api/v1/openapi.json` and committed as `schema/openapi.json`.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<Problem>();
    // The events of a log are described although no route names their type.
    generator.subschema_for::<lanyard_core::session::Envelope>();
    // And what a client sends over a WebSocket.
    generator.subschema_for::<StreamAsk>();
    let mut paths = Map::new();
    for route in table() {
        let body = route.body.map(|schema| schema(&mut generator));
        let answer = route.answers.1.map(|schema| schema(&mut generator));
        let operation = operation(&route, body.map(Value::from), answer.map(Value::from), problem.as_value());
        let path = paths.entry(format!("{}{}", route.base, route.path)).or_insert_with(|| json!({}));
        path[route.method] = operation;
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Lanyard", "version": env!("CARGO_PKG_VERSION") },
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
            "schemas": generator.take_definitions(true),
        },
    });
    // The same text whatever order a build keeps keys in.
    document.sort_all_objects();
    document
}

fn operation(route: &Route, body: Option<Value>, answer: Option<Value>, problem: &Value) -> Value {
    let mut answers = Map::new();
    let description = match route.answers.0 {
        201 => "Created.",
        202 => "Accepted.",
        204 => "Done; there is nothing to say.",
        _ => "The answer.",
    };
    let mut answered = json!({ "description": description });
    if let Some(schema) = answer {
        let kind = if route.streams { "text/event-stream" } else { "application/json" };
        answered["content"] = json!({ kind: { "schema": schema } });
    }
    if route.name == "list_events" {
        answered["content"]["text/event-stream"] = json!({ "schema": { "type": "string" } });
    }
    answers.insert(route.answers.0.to_string(), answered);
    answers.insert(
        "default".to_owned(),
        json!({
            "description": "A refusal.",
            "content": { "application/problem+json": { "schema": problem } },
        }),
    );
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.summary,
        "x-access": access(route.access),
        "parameters": parameters(route),
        "responses": answers,
    });
    if route.access == Access::Anyone {
        operation["security"] = json!([]);
    }
    if let Some(schema) = body {
        operation["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let text = json!({ "type": "string" });
    let in_path = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": text }));
    let narrowing: &[&str] = if route.path.contains("{id}") { &["workspace", "plan"] } else { &[] };
    let in_query = narrowing
        .iter()
        .chain(route.query)
        .map(|name| json!({ "name": name, "in": "query", "schema": text }));
    let mut parameters: Vec<Value> = in_path.chain(in_query).collect();
    if route.body.is_some() {
        parameters.push(json!({ "name": "Idempotency-Key", "in": "header", "schema": text }));
    }
    if ["list_events", "attach"].contains(&route.name) {
        parameters.push(json!({ "name": "Last-Event-ID", "in": "header", "schema": text }));
    }
    parameters
}

const fn access(access: Access) -> &'static str {
    match access {
        Access::Look => "operator, observer, the session's agent or its host",
        Access::LookAll => "operator, observer",
        Access::Own | Access::Message => "operator, the session's agent",
        Access::Call => "operator, the session's agent or its host",
        Access::Known => "every token",
        Access::Operate => "operator",
        Access::Anyone => "anyone",
    }
}
