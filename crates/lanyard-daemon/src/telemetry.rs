//! Traces and logs for a collector, over OTLP (HTTP with protobuf). Off unless the standard variables of OpenTelemetry
//! name an endpoint; then each request of the API and each turn is a span, and the daemon's log goes out as records.
//!
//! Nothing waits for a collector: what does not fit into the queue is dropped and counted.

mod env;
mod export;
mod layer;
mod span;
mod wire;

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::sync::Notify;

use crate::outward::Address;
use env::Settings;

pub use layer::LogLayer;
pub(crate) use span::RequestSpan;

/// Spans, and records, that may wait to be sent.
const QUEUE_MAX: usize = 2_048;

/// Where spans and records go.
pub struct Telemetry {
    settings: Settings,
    traces: Option<Line<Span>>,
    logs: Option<Line<LogRecord>>,
    wake: Notify,
}

/// One of the two ways out.
struct Line<T> {
    address: Address,
    queue: Mutex<VecDeque<T>>,
    dropped: AtomicU64,
}

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Its headers may hold a key.
        let (traces, logs) = (self.traces.is_some(), self.logs.is_some());
        f.debug_struct("Telemetry").field("traces", &traces).field("logs", &logs).finish_non_exhaustive()
    }
}

impl<T> Line<T> {
    fn new(url: &str) -> Result<Self, String> {
        let address = Address::new(url, None).map_err(|what| format!("`{url}`: {what}"))?;
        Ok(Self { address, queue: Mutex::default(), dropped: AtomicU64::new(0) })
    }

    fn put(&self, item: T) {
        let mut queue = self.queue.lock();
        if queue.len() < QUEUE_MAX {
            queue.push_back(item);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take(&self, max: usize) -> Vec<T> {
        let mut queue = self.queue.lock();
        let count = queue.len().min(max);
        queue.drain(..count).collect()
    }

    /// What could not be sent waits again, in front, as far as there is room.
    fn put_back(&self, items: Vec<T>) {
        let mut queue = self.queue.lock();
        for item in items.into_iter().rev() {
            if queue.len() < QUEUE_MAX {
                queue.push_front(item);
            } else {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Telemetry {
    /// As the environment says; nothing where it says nothing. A sentence of what is wrong with it is an error.
    pub fn from_env() -> Result<Option<Arc<Self>>, String> {
        let Some(settings) = Settings::read(|name| std::env::var(name).ok())? else { return Ok(None) };
        let traces = settings.traces.as_deref().map(Line::new).transpose()?;
        let logs = settings.logs.as_deref().map(Line::new).transpose()?;
        Ok(Some(Arc::new(Self { settings, traces, logs, wake: Notify::new() })))
    }

    fn put_span(&self, span: Span) {
        if let Some(traces) = &self.traces {
            traces.put(span);
        }
    }

    fn put_log(&self, record: LogRecord) {
        if let Some(logs) = &self.logs {
            logs.put(record);
        }
    }
}
