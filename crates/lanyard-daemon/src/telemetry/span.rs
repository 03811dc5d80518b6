//! Spans: one per request of the API, and one per turn, from its start to its end in the log.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use lanyard_core::Timestamp;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as SpanStatus;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};

use super::Telemetry;
use super::wire::{attribute, text_attribute};
use lanyard_base::clock;
use lanyard_engine::engine::TurnSpan;

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct RequestSpan {
    telemetry: Arc<Telemetry>,
    span: Span,
}

impl RequestSpan {
    pub(crate) fn begin(telemetry: Arc<Telemetry>, method: &str, path: &str, headers: &HeaderMap) -> Self {
        let (method, bits) = (method.to_ascii_uppercase(), clock::bits());
        let parent = headers.get("traceparent").and_then(|value| value.to_str().ok()).and_then(parent);
        let (trace_id, parent_span_id) = parent.unwrap_or_else(|| (bits.to_be_bytes().to_vec(), Vec::new()));
        let span = Span {
            trace_id,
            span_id: clock::bits().to_be_bytes()[..8].to_vec(),
            parent_span_id,
            name: format!("{method} {path}"),
            kind: SpanKind::Server.into(),
            start_time_unix_nano: clock::unix_nanos(),
            attributes: vec![
                text_attribute("http.request.method", method),
                text_attribute("http.route", path),
            ],
            ..Span::default()
        };
        Self { telemetry, span }
    }

    pub(crate) fn end(mut self, status: StatusCode, code: Option<&str>) {
        let span = &mut self.span;
        span.end_time_unix_nano = clock::unix_nanos();
        span.attributes.push(attribute("http.response.status_code", Value::IntValue(status.as_u16().into())));
        if let Some(code) = code {
            span.attributes.push(text_attribute("error.type", code));
        }
        if status.is_server_error() {
            span.status =
                Some(Status { message: code.unwrap_or_default().to_owned(), code: SpanStatus::Error.into() });
        }
        self.telemetry.put_span(self.span);
    }
}

/// The trace and the span a caller names (W3C Trace Context).
fn parent(text: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut parts = text.split('-');
    let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    if version.len() != 2 || version == "ff" || trace.len() != 32 || span.len() != 16 {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
    Some((trace.to_be_bytes().to_vec(), span.to_be_bytes().to_vec()))
}

impl Telemetry {
    /// The log has the end of a turn. Its trace has the bits of the turn's id, so that it can be found by it.
    pub(crate) fn turn_ended(&self, turn: &TurnSpan) {
        let nanos = |at: Timestamp| at.as_millis().max(0).unsigned_abs().saturating_mul(1_000_000);
        let trace_id = turn.turn.as_u128().to_be_bytes();
        let mut attributes = vec![
            text_attribute("lanyard.session", turn.session.to_string()),
            text_attribute("lanyard.turn", turn.turn.to_string()),
            text_attribute("lanyard.turn.outcome", turn.how),
        ];
        attributes.extend(turn.agent.as_ref().map(|agent| text_attribute("lanyard.agent", agent)));
        let failed = turn.how != "completed";
        self.put_span(Span {
            trace_id: trace_id.to_vec(),
            span_id: trace_id[8..].to_vec(),
            name: "turn".to_owned(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: nanos(turn.began),
            end_time_unix_nano: nanos(turn.ended),
            attributes,
            status: failed.then(|| Status { message: turn.how.to_owned(), code: SpanStatus::Error.into() }),
            ..Span::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::parent;

    #[test]
    fn a_callers_trace_is_gone_on_with_when_it_is_one() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let (trace, span) = parent(good).unwrap();
        assert_eq!((trace.len(), span.len(), trace[0], span[1]), (16, 8, 0x4b, 0xf0));
        for bad in [
            "",
            "00-1-2-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473x-00f067aa0ba902b7-01",
        ] {
            assert_eq!(parent(bad), None, "{bad}");
        }
    }
}
