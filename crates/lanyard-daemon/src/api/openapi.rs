//! The OpenAPI document, made from the route table and the types it names.

use lanyard_api::types::{Problem, StreamAsk};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::api::parameters::parameters;
use crate::api::routes::{ApiRoute, table};
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
        let parameters = parameters(&route, &mut generator);
        let (body, answer) = (body.map(Value::from), answer.map(Value::from));
        let operation = operation(&route, &parameters, body, answer, problem.as_value());
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

fn operation(
    route: &ApiRoute,
    parameters: &[Value],
    body: Option<Value>,
    answer: Option<Value>,
    problem: &Value,
) -> Value {
    let mut answers = Map::new();
    let description = match route.answers.0 {
        201 => "Created.",
        202 => "Accepted.",
        204 => "Done; there is nothing to say.",
        _ => "The answer.",
    };
    let mut answered = json!({ "description": description });
    if let Some(schema) = answer {
        answered["content"] = json!({ kind_of(route): { "schema": schema } });
    }
    match route.name {
        "list_events" | "mcp_message" => {
            answered["content"]["text/event-stream"] = json!({ "schema": { "type": "string" } });
        }
        "get_attachment" => answered["content"] = json!({ "*/*": { "schema": binary() } }),
        "metrics" => answered["content"] = json!({ "text/plain": { "schema": { "type": "string" } } }),
        "start_turn" => {
            let mut repeat = answered.clone();
            repeat["description"] = "The message was sent before; this is what became of it.".into();
            answers.insert("200".to_owned(), repeat);
        }
        _ => {}
    }
    if route.name == "mcp_message" {
        answers.insert("202".to_owned(), json!({ "description": "Taken; there is no answer to it." }));
    }
    if route.streams {
        let upgraded = json!({ "description": "The connection is a WebSocket from here on." });
        answers.insert("101".to_owned(), upgraded);
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
        "parameters": parameters,
        "responses": answers,
    });
    if route.access == Access::Anyone {
        operation["security"] = json!([]);
    }
    if let Some(schema) = body {
        operation["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
    }
    if route.name == "upload_attachment" {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/octet-stream": { "schema": binary() } } });
    }
    operation
}

/// Content of any kind.
fn binary() -> Value {
    json!({ "type": "string", "format": "binary" })
}

fn kind_of(route: &ApiRoute) -> &'static str {
    match route.name {
        "export_memory" => "application/x-ndjson",
        "mcp_listen" => "text/event-stream",
        _ if route.streams => "text/event-stream",
        _ => "application/json",
    }
}

const fn access(access: Access) -> &'static str {
    match access {
        Access::Look => "operator, observer, the session's agent or its host",
        Access::Shared => "operator, observer, the reader of a share link, the session's agent or its host",
        Access::LookAll => "operator, observer",
        Access::Own | Access::Message => "operator, the session's agent",
        Access::Call => "operator, the session's agent or its host",
        Access::Known => "every token",
        Access::Operate => "operator",
        Access::Anyone => "anyone",
    }
}
