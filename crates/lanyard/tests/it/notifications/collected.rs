//! Traces and logs at a collector that reads them with the real protobuf types.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use prost::Message as _;
use serde_json::json;

use super::kit::{Manner, Receiver, new_session, until};
use crate::support::{Daemon, Setup};

fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Any> {
    let found = attributes.iter().find(|held| held.key == key)?;
    found.value.as_ref()?.value.as_ref()
}

fn is_text(value: Option<&Any>, wanted: &str) -> bool {
    matches!(value, Some(Any::StringValue(text)) if text == wanted)
}

fn body(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[derive(Default)]
struct Collected {
    spans: Vec<opentelemetry_proto::tonic::trace::v1::Span>,
    logs: BTreeSet<String>,
    services: BTreeSet<String>,
}

impl Collected {
    fn take(&mut self, receiver: &Receiver) {
        for post in receiver.rest() {
            assert_eq!(post.header("content-type"), "application/x-protobuf");
            assert_eq!(post.header("x-key"), "a b");
            if post.path == "/v1/traces" {
                let request = ExportTraceServiceRequest::decode(&post.body[..]).expect("real protobuf");
                for part in request.resource_spans {
                    let resource = part.resource.unwrap();
                    if let Some(Any::StringValue(name)) = attribute(&resource.attributes, "service.name") {
                        self.services.insert(name.clone());
                    }
                    self.spans.extend(part.scope_spans.into_iter().flat_map(|scope| scope.spans));
                }
            } else {
                assert_eq!(post.path, "/v1/logs");
                let request = ExportLogsServiceRequest::decode(&post.body[..]).expect("real protobuf");
                let scopes = request.resource_logs.into_iter().flat_map(|part| part.scope_logs);
                for record in scopes.flat_map(|scope| scope.log_records) {
                    assert!(record.time_unix_nano > 0 && record.severity_number > 0);
                    self.logs.insert(body(record.body.as_ref()));
                }
            }
        }
    }
}

#[test]
fn requests_turns_and_logs_reach_a_collector() {
    let receiver = Receiver::start(&[Manner::Fail, Manner::Take]);
    let base = receiver.url().replace("/hook", "");
    let setup = Setup::default()
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", base)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")
        .env("OTEL_SERVICE_NAME", "lanyard-test")
        .env("OTEL_BSP_SCHEDULE_DELAY", "50");
    let daemon = Daemon::start(setup);
    let session = new_session(&daemon);
    let parent = ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let path = format!("/api/v1/sessions/{session}/turns");
    let sent = daemon.request("POST", &path, &[parent], Some(r#"{"prompt":"work"}"#));
    let turn = sent.json()["turn"].as_str().unwrap().to_owned();
    let signal = json!({"type": "turn_finished", "outcome": "completed"}).to_string();
    daemon.request("POST", &format!("/api/v1/sessions/{session}/signals"), &[], Some(&signal));
    let mut collected = Collected::default();
    until("the turn's span and the log", || {
        collected.take(&receiver);
        let turn_is_there = collected.spans.iter().any(|span| span.name == "turn");
        let request_is_there = collected.spans.iter().any(|span| span.name == "POST /sessions/{id}/turns");
        (turn_is_there && request_is_there && collected.logs.contains("ready")).then_some(())
    });
    assert_eq!(collected.services, BTreeSet::from(["lanyard-test".to_owned()]));
    let request = collected.spans.iter().find(|span| span.name == "POST /sessions/{id}/turns").unwrap();
    assert_eq!(request.trace_id[..4], [0x4b, 0xf9, 0x2f, 0x35], "it goes on with its caller's trace");
    assert_eq!(request.parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!(attribute(&request.attributes, "http.response.status_code"), Some(&Any::IntValue(201)));
    assert!(request.end_time_unix_nano >= request.start_time_unix_nano);
    let span = collected.spans.iter().find(|span| span.name == "turn").unwrap();
    assert!(is_text(attribute(&span.attributes, "lanyard.turn"), &turn));
    assert!(is_text(attribute(&span.attributes, "lanyard.turn.outcome"), "completed"));
    let bits: lanyard_core::TurnId = turn.parse().unwrap();
    assert_eq!(span.trace_id, bits.as_u128().to_be_bytes(), "found by the turn's id");
    assert!(daemon.terminate().success());
    collected.take(&receiver);
    assert!(collected.logs.contains("ended"), "the last words go out too: {:?}", collected.logs);
}

/// Off by default; and what cannot be done is said, and keeps nobody from working.
#[test]
fn without_an_endpoint_nothing_is_sent_and_a_wrong_one_is_said() {
    let receiver = Receiver::start(&[Manner::Take]);
    let base = receiver.url().replace("/hook", "");
    let setup = Setup::default()
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", base)
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        .env("OTEL_BSP_SCHEDULE_DELAY", "20");
    let daemon = Daemon::start(setup);
    new_session(&daemon);
    assert!(daemon.stderr().contains("only http/protobuf is spoken"), "{}", daemon.stderr());
    assert!(daemon.terminate().success());
    assert!(receiver.rest().is_empty());
}
