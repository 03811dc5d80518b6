//! The OpenAPI document against the routes: what it calls valid is not refused for its form, and what comes back is what
//! it names.

use axum::http::{Request as HttpRequest, Response, header};
use tower::ServiceExt;

use super::*;

/// An id of any kind, behind its prefix.
const ID: &str = "00000000000000000000000001";

impl Room {
    pub(super) async fn sent(
        &self,
        method: &str,
        uri: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<axum::body::Body> {
        let mut request = HttpRequest::builder()
            .method(method.to_uppercase().as_str())
            .uri(uri)
            .header("authorization", "Bearer operator")
            .header("content-type", "application/json")
            .extension(crate::server::Via::Socket);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(axum::body::Body::from(body.to_owned())).unwrap();
        crate::api::router(&self.app).oneshot(request).await.unwrap()
    }
}

/// What a schema refers to.
pub(super) fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(path) => document.pointer(path.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// Values of a schema, its bounds among them.
fn samples(document: &Value, schema: &Value) -> Vec<String> {
    let schema = resolved(document, schema);
    let texts = |values: &Value| -> Vec<String> {
        values.as_array().unwrap().iter().map(|value| value.as_str().unwrap().to_owned()).collect()
    };
    if schema["enum"].is_array() {
        return texts(&schema["enum"]);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let one = |choice: &Value| match choice["const"].as_str() {
            Some(value) => vec![value.to_owned()],
            None => texts(&choice["enum"]),
        };
        return choices.iter().flat_map(one).collect();
    }
    match schema["type"].as_str() {
        Some("boolean") => vec!["true".to_owned(), "false".to_owned()],
        Some("integer") => {
            let bound = |name: &str| {
                schema[name].as_u64().unwrap_or_else(|| panic!("no {name}: {schema}")).to_string()
            };
            vec![bound("minimum"), bound("maximum")]
        }
        Some("string") => match (schema["pattern"].as_str(), schema["format"].as_str()) {
            (_, Some("date-time")) => vec!["2026-11-15T08:00:00Z".to_owned()],
            (Some(pattern), _) => patterned(pattern),
            (None, _) => vec!["x".to_owned()],
        },
        _ => panic!("a parameter of a form the test does not know: {schema}"),
    }
}

/// Texts a pattern of the document lets through.
fn patterned(pattern: &str) -> Vec<String> {
    let prefix = pattern.trim_start_matches('^').split("_[0-7]").next().unwrap();
    match pattern {
        "^[!-~]{1,200}$" => vec!["!".to_owned(), "~".repeat(200)],
        "^~?/" => vec!["/".to_owned(), "~/".to_owned()],
        r"^\P{Cc}*$" => vec!["x".to_owned(), "é".repeat(10)],
        // Cursors that only a listing of the same words takes.
        r"^[0-9a-f]{1,15}\.[0-9a-f]{8}$" | r"^[0-9a-f]{1,15}\.[0-9a-f]{1,4}\.[0-9a-f]{8}$" => Vec::new(),
        "^[0-9a-f]{64}$" => vec!["0a".repeat(32)],
        _ if pattern.contains(r"\.[0-9]{1,15}$") => {
            let id = format!("sess_{ID}");
            vec![if prefix.starts_with("-?") { format!("1.{id}.1") } else { format!("{id}.1") }]
        }
        r"^-?[0-9]{1,15}\.[0-9A-Za-z][0-9A-Za-z_-]{0,127}$" => {
            vec!["-1.a".to_owned(), format!("{}.{}", "9".repeat(15), "z".repeat(128))]
        }
        _ if prefix.starts_with('(') => {
            // One of several words, or ids that begin with one; also all of them, separated by commas.
            let end = if pattern.contains("_[0-7]") { format!("_{ID}") } else { String::new() };
            let words = prefix.trim_start_matches('(').split(')').next().unwrap().split('|');
            let mut all: Vec<String> = words.map(|word| format!("{word}{end}")).collect();
            all.push(all.join(","));
            all
        }
        _ => vec![format!("{prefix}_{ID}"), format!("{prefix}_7{}", "z".repeat(25))],
    }
}

/// The route with its places filled in: this session, and ids of nothing at all.
pub(super) fn filled(document: &Value, path: &str, operation: &Value, session: SessionId) -> String {
    let parameters = operation["parameters"].as_array().unwrap();
    parameters.iter().filter(|parameter| parameter["in"] == "path").fold(
        path.to_owned(),
        |path, parameter| {
            let name = parameter["name"].as_str().unwrap();
            let value = match name {
                "id" => session.to_string(),
                _ => samples(document, &parameter["schema"]).remove(0),
            };
            path.replace(&format!("{{{name}}}"), &value)
        },
    )
}

/// Whether the document names the status and the kind of an answer.
fn is_named(operation: &Value, status: u16, kind: Option<&str>) -> bool {
    let answers = &operation["responses"];
    let named = &answers[status.to_string()];
    let named = if named.is_null() && status >= 400 { &answers["default"] } else { named };
    let Some(contents) = named["content"].as_object() else { return !named.is_null() };
    kind.is_some_and(|kind| contents.contains_key(kind.split(';').next().unwrap()))
}

/// FND-K13. Each value that the document calls valid is taken by every route that only looks, and each answer has a status
/// and a kind that the document names.
#[tokio::test(flavor = "multi_thread")]
async fn fnd_k13_openapi_what_the_document_allows_is_not_refused_for_its_form() {
    let room = Room::new();
    let session = room.hub(None).await;
    let document = crate::api::document();
    let (mut sent, mut refused) = (0, Vec::new());
    for (path, operations) in document["paths"].as_object().unwrap() {
        let Some(operation) = operations.get("get").filter(|_| path.starts_with("/api/v1/")) else {
            continue;
        };
        let at = filled(&document, path, operation, session);
        let is_required = |parameter: &&Value| parameter["in"] == "query" && parameter["required"] == true;
        let required = operation["parameters"].as_array().unwrap().iter().filter(is_required);
        let required: Vec<String> = required
            .map(|parameter| {
                let value = samples(&document, &parameter["schema"]).remove(0);
                format!("{}={}&", parameter["name"].as_str().unwrap(), encoded(&value))
            })
            .collect();
        let required = required.concat();
        let mut uris = vec![format!("{at}?{required}")];
        for parameter in operation["parameters"].as_array().unwrap() {
            let name = parameter["name"].as_str().unwrap();
            let mut values = samples(&document, &parameter["schema"]);
            // The longest wait is a long one.
            values.truncate(if name == "wait_ms" { 1 } else { usize::MAX });
            match parameter["in"].as_str().unwrap() {
                "query" if is_required(&parameter) => {
                    uris.extend(values.iter().map(|value| format!("{at}?{name}={}", encoded(value))));
                }
                "query" => {
                    let uri = |value: &String| format!("{at}?{required}{name}={}", encoded(value));
                    uris.extend(values.iter().map(uri));
                }
                "path" if name != "id" => {
                    let first = values.first().cloned().unwrap_or_default();
                    uris.extend(
                        values.iter().map(|value| at.replace(&format!("/{first}"), &format!("/{value}"))),
                    );
                }
                _ => {}
            }
        }
        for uri in uris {
            let answer = room.sent("get", &uri, &[], "").await;
            let status = answer.status().as_u16();
            let kind =
                answer.headers().get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap().to_owned());
            if !is_named(operation, status, kind.as_deref()) {
                refused.push(format!("{uri}: {status} {kind:?} is not in the document"));
            }
            if status == 400 || status == 422 {
                let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
                let body = String::from_utf8_lossy(&body).into_owned();
                // A position that this log has not reached, or a zone that this machine does not know: their form is right.
                let known = ["position_ahead_of_log", "seq_in_future", "time_zone_unknown"];
                if !known.iter().any(|code| body.contains(code)) {
                    refused.push(format!("{uri}: {status} {body}"));
                }
            }
            sent += 1;
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(sent > 200, "only {sent} requests");
    room.close().await;
}

/// FND-K13. The form of `Idempotency-Key` is the one the document gives.
#[tokio::test(flavor = "multi_thread")]
async fn fnd_k13_openapi_the_form_of_keys_is_told() {
    let room = Room::new();
    let document = crate::api::document();
    let operation = &document["paths"]["/api/v1/memory"]["post"];
    let parameters = operation["parameters"].as_array().unwrap();
    let key = parameters.iter().find(|parameter| parameter["name"] == "Idempotency-Key").unwrap();
    for value in samples(&document, &key["schema"]) {
        let body = json!({ "text": format!("under a key of {}", value.len()) }).to_string();
        let answer = room.sent("post", "/api/v1/memory", &[("idempotency-key", &value)], &body).await;
        assert_eq!(answer.status().as_u16(), 201, "{value}");
    }
    for value in ["", "a b", &"x".repeat(201)] {
        let answer =
            room.sent("post", "/api/v1/memory", &[("idempotency-key", value)], r#"{"text":"x"}"#).await;
        assert_eq!(answer.status().as_u16(), 400, "{value}");
    }
    room.close().await;
}

/// FND-K13. A message that is sent twice is answered with a status that the document names.
#[tokio::test(flavor = "multi_thread")]
async fn fnd_k13_openapi_names_the_answer_to_a_repeat() {
    let room = Room::new();
    let session = room.hub(None).await;
    let document = crate::api::document();
    let operation = &document["paths"]["/api/v1/sessions/{id}/turns"]["post"];
    let body = json!({ "prompt": "go", "client_turn_id": "one" }).to_string();
    for expected in [201, 200] {
        let answer = room.sent("post", &format!("/api/v1/sessions/{session}/turns"), &[], &body).await;
        let status = answer.status().as_u16();
        assert_eq!(status, expected);
        assert!(is_named(operation, status, Some("application/json")), "{status}");
    }
    room.close().await;
}

fn encoded(value: &str) -> String {
    let byte = |byte: u8| match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'-' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(byte).collect()
}
