//! Sending in batches. A collector that is away delays no other part; what it misses is dropped when the queue is full.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::http::{HeaderValue, StatusCode, header};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

use super::wire::text_attribute;
use super::{Line, Telemetry};

/// Spans or records in one post.
const BATCH: usize = 512;

impl Telemetry {
    /// Runs until the daemon ends.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut failing = false;
        loop {
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(self.settings.interval) => {}
            }
            match self.send_all().await {
                Ok(()) => failing = false,
                // Said once, until it works again.
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(error, "traces or logs cannot be sent to the collector");
                }
                Err(_) => {}
            }
            self.say_dropped();
        }
    }

    /// What is left, at the end.
    pub(crate) async fn last_words(&self) {
        if let Err(error) = self.send_all().await {
            tracing::warn!(error, "the last traces or logs cannot be sent to the collector");
        }
    }

    async fn send_all(&self) -> Result<(), String> {
        if let Some(traces) = &self.traces {
            self.send(traces, |spans| self.encode_spans(spans)).await?;
        }
        if let Some(logs) = &self.logs {
            self.send(logs, |records| self.encode_logs(records)).await?;
        }
        Ok(())
    }

    async fn send<T: Clone>(&self, line: &Line<T>, encode: impl Fn(Vec<T>) -> Vec<u8>) -> Result<(), String> {
        loop {
            let batch = line.take(BATCH);
            if batch.is_empty() {
                return Ok(());
            }
            let mut headers = self.settings.headers.clone();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
            let body = encode(batch.clone());
            let posted = line.address.post(headers, body.into(), self.settings.timeout).await;
            match posted {
                Ok(status) if status.is_success() => {}
                Ok(status) if is_passing(status) => {
                    line.put_back(batch);
                    return Err(format!("the collector answered {status}"));
                }
                Ok(status) => {
                    line.dropped.fetch_add(batch.len() as u64, Ordering::Relaxed);
                    return Err(format!("the collector refused them with {status}"));
                }
                Err(why) => {
                    line.put_back(batch);
                    return Err(why);
                }
            }
        }
    }

    fn say_dropped(&self) {
        let dropped = |count: Option<u64>| count.unwrap_or_default();
        let spans = dropped(self.traces.as_ref().map(|line| line.dropped.swap(0, Ordering::Relaxed)));
        let records = dropped(self.logs.as_ref().map(|line| line.dropped.swap(0, Ordering::Relaxed)));
        if spans + records > 0 {
            tracing::warn!(spans, records, "traces or logs were dropped");
        }
    }

    fn resource(&self) -> Resource {
        let attributes = self.settings.resource.iter().map(|(key, value)| text_attribute(key, value));
        Resource { attributes: attributes.collect(), ..Resource::default() }
    }

    fn encode_spans(&self, spans: Vec<Span>) -> Vec<u8> {
        let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans, ..ScopeSpans::default() }];
        let resource_spans =
            vec![ResourceSpans { resource: Some(self.resource()), scope_spans, ..ResourceSpans::default() }];
        ExportTraceServiceRequest { resource_spans }.encode_to_vec()
    }

    fn encode_logs(&self, log_records: Vec<LogRecord>) -> Vec<u8> {
        let scope_logs = vec![ScopeLogs { scope: Some(scope()), log_records, ..ScopeLogs::default() }];
        let resource_logs =
            vec![ResourceLogs { resource: Some(self.resource()), scope_logs, ..ResourceLogs::default() }];
        ExportLogsServiceRequest { resource_logs }.encode_to_vec()
    }
}

fn scope() -> InstrumentationScope {
    let (name, version) = ("lanyard".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    InstrumentationScope { name, version, ..InstrumentationScope::default() }
}

/// Whether trying again may help (OTLP 1.x).
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}
