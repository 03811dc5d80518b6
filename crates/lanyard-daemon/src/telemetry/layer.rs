//! The daemon's own log as records. What the sending itself has to say stays at home, or it would never end.

use std::fmt::Debug;
use std::sync::Arc;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::Telemetry;
use super::wire::{attribute, text, text_attribute};
use lanyard_base::clock;

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
        let (number, name) = match *about.level() {
            Level::ERROR => (SeverityNumber::Error, "ERROR"),
            Level::WARN => (SeverityNumber::Warn, "WARN"),
            Level::INFO => (SeverityNumber::Info, "INFO"),
            Level::DEBUG => (SeverityNumber::Debug, "DEBUG"),
            Level::TRACE => (SeverityNumber::Trace, "TRACE"),
        };
        let mut fields = Fields::default();
        event.record(&mut fields);
        fields.attributes.push(text_attribute("code.namespace", about.target()));
        let now = clock::unix_nanos();
        self.0.put_log(LogRecord {
            time_unix_nano: now,
            severity_number: number.into(),
            severity_text: name.to_owned(),
            body: Some(text(fields.message)),
            attributes: fields.attributes,
            observed_time_unix_nano: now,
            ..LogRecord::default()
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
            self.attributes.push(text_attribute(field.name(), format!("{value:?}")));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.attributes.push(text_attribute(field.name(), value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.attributes.push(attribute(field.name(), Value::IntValue(value)));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let value =
            i64::try_from(value).map_or_else(|_| Value::StringValue(value.to_string()), Value::IntValue);
        self.attributes.push(attribute(field.name(), value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.attributes.push(attribute(field.name(), Value::DoubleValue(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.attributes.push(attribute(field.name(), Value::BoolValue(value)));
    }
}
