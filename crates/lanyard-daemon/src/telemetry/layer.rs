//! The daemon's own log as records. What the sending itself has to say stays at home, or it would never end.

use std::fmt::Debug;
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::Telemetry;
use super::wire::{AnyValue, KeyValue, LogRecord, Value};
use crate::clock;

/// Passes what is logged on to a collector.
#[derive(Debug)]
pub struct LogLayer(Arc<Telemetry>);

impl Telemetry {
    /// What a subscriber is given, where logs are to go out.
    #[must_use]
    pub fn layer(self: &Arc<Self>) -> Option<LogLayer> {
        self.logs.is_some().then(|| LogLayer(self.clone()))
    }
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let about = event.metadata();
        if about.target().starts_with("lanyard_daemon::telemetry") {
            return;
        }
        let (number, text) = match *about.level() {
            Level::ERROR => (17, "ERROR"),
            Level::WARN => (13, "WARN"),
            Level::INFO => (9, "INFO"),
            Level::DEBUG => (5, "DEBUG"),
            Level::TRACE => (1, "TRACE"),
        };
        let mut fields = Fields::default();
        event.record(&mut fields);
        fields.attributes.push(KeyValue::text("code.namespace", about.target()));
        let now = clock::unix_nanos();
        self.0.put_log(LogRecord {
            time_unix_nano: now,
            severity_number: number,
            severity_text: text.to_owned(),
            body: Some(AnyValue::text(fields.message)),
            attributes: fields.attributes,
            observed_time_unix_nano: now,
        });
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    attributes: Vec<KeyValue>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.attributes.push(KeyValue::text(field.name(), format!("{value:?}")));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.attributes.push(KeyValue::text(field.name(), value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.attributes.push(KeyValue::new(field.name(), Value::Int(value)));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let value = i64::try_from(value).map_or_else(|_| Value::Text(value.to_string()), Value::Int);
        self.attributes.push(KeyValue::new(field.name(), value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.attributes.push(KeyValue::new(field.name(), Value::Double(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.attributes.push(KeyValue::new(field.name(), Value::Bool(value)));
    }
}
