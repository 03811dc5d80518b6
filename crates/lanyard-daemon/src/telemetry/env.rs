//! The standard variables of OpenTelemetry, as far as they are followed. What is asked for and cannot be done is an
//! error, so that a wrong variable does not lose traces in silence.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

/// What is sent where, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) traces: Option<String>,
    pub(super) logs: Option<String>,
    pub(super) headers: HeaderMap,
    pub(super) timeout: Duration,
    pub(super) interval: Duration,
    /// Attributes of the resource: the service's name and whatever else was given.
    pub(super) resource: Vec<(String, String)>,
}

impl Settings {
    /// Nothing when no endpoint is set, or when it is switched off.
    pub(super) fn read(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let get =
            |name: &str| get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        if get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let base = get("OTEL_EXPORTER_OTLP_ENDPOINT");
        let of = |signal: &str, path: &str| -> Result<Option<String>, String> {
            match get(&format!("OTEL_{signal}_EXPORTER")).as_deref() {
                None | Some("otlp") => {}
                Some("none") => return Ok(None),
                Some(other) => {
                    return Err(format!("OTEL_{signal}_EXPORTER is `{other}`; otlp and none are known"));
                }
            }
            // The one for both gets a path; the one for a signal is taken as it is.
            let own = get(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"));
            Ok(own.or_else(|| base.as_ref().map(|base| format!("{}{path}", base.trim_end_matches('/')))))
        };
        let (traces, logs) = (of("TRACES", "/v1/traces")?, of("LOGS", "/v1/logs")?);
        if traces.is_none() && logs.is_none() {
            return Ok(None);
        }
        match get("OTEL_EXPORTER_OTLP_PROTOCOL").as_deref() {
            None | Some("http/protobuf") => {}
            Some(other) => {
                return Err(format!(
                    "OTEL_EXPORTER_OTLP_PROTOCOL is `{other}`; only http/protobuf is spoken"
                ));
            }
        }
        let millis = |name: &str, default: u64| match get(name) {
            None => Ok(Duration::from_millis(default)),
            Some(text) => {
                let number = text.parse::<u64>().ok().filter(|ms| *ms > 0);
                number
                    .map(Duration::from_millis)
                    .ok_or_else(|| format!("{name} is `{text}`, not milliseconds"))
            }
        };
        Ok(Some(Self {
            traces,
            logs,
            headers: headers(get("OTEL_EXPORTER_OTLP_HEADERS").as_deref().unwrap_or_default())?,
            timeout: millis("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000)?,
            interval: millis("OTEL_BSP_SCHEDULE_DELAY", 5_000)?,
            resource: resource(get("OTEL_SERVICE_NAME"), get("OTEL_RESOURCE_ATTRIBUTES").as_deref()),
        }))
    }
}

/// `name=value,name=value`, values percent-encoded. They may be secrets and are not repeated.
fn headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs(text) {
        let name: HeaderName =
            name.parse().map_err(|_| format!("OTEL_EXPORTER_OTLP_HEADERS: `{name}` is no header"))?;
        let wrong = || format!("OTEL_EXPORTER_OTLP_HEADERS: the value of `{name}` cannot be sent");
        let mut value = HeaderValue::from_str(&value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn resource(name: Option<String>, attributes: Option<&str>) -> Vec<(String, String)> {
    let mut resource: Vec<(String, String)> = pairs(attributes.unwrap_or_default()).collect();
    let named = resource.iter().position(|(key, _)| key == "service.name");
    match (name, named) {
        (Some(name), Some(at)) => resource[at].1 = name,
        (Some(name), None) => resource.push(("service.name".to_owned(), name)),
        (None, Some(_)) => {}
        (None, None) => resource.push(("service.name".to_owned(), "lanyard".to_owned())),
    }
    resource.push(("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
    resource
}

fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let split = text.split(',').filter_map(|pair| pair.split_once('='));
    split.map(|(name, value)| {
        let value = percent_decode_str(value.trim()).decode_utf8_lossy().into_owned();
        (name.trim().to_owned(), value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        Settings::read(|name| {
            set.iter().find(|(held, _)| *held == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn it_is_off_unless_an_endpoint_is_named() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("OTEL_SERVICE_NAME", "x")]), Ok(None));
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");
        assert_eq!(read(&[base, ("OTEL_SDK_DISABLED", "true")]), Ok(None));
        let on = read(&[base]).unwrap().unwrap();
        assert_eq!(on.traces.as_deref(), Some("http://127.0.0.1:4318/v1/traces"));
        assert_eq!(on.logs.as_deref(), Some("http://127.0.0.1:4318/v1/logs"));
        assert_eq!(on.resource[0], ("service.name".to_owned(), "lanyard".to_owned()));
        let own = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://logs.test/in");
        let some = read(&[base, own, ("OTEL_TRACES_EXPORTER", "none")]).unwrap().unwrap();
        assert_eq!((some.traces, some.logs.as_deref()), (None, Some("http://logs.test/in")));
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        let error = |set| read(&[base, set]).unwrap_err();
        assert!(error(("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")).contains("http/protobuf"));
        assert!(error(("OTEL_LOGS_EXPORTER", "console")).contains("console"));
        assert!(error(("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")).contains("soon"));
        assert!(!error(("OTEL_EXPORTER_OTLP_HEADERS", "x=a%0Ab")).contains("a\nb"), "not repeated");
    }

    #[test]
    fn headers_and_attributes_are_decoded() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        let set = [
            base,
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20k, x-b = 2"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,host.name=h"),
        ];
        let read = read(&set).unwrap().unwrap();
        assert_eq!(
            (&read.headers["authorization"], &read.headers["x-b"]),
            (&"Bearer k".parse().unwrap(), &"2".parse().unwrap())
        );
        assert_eq!(read.resource[0].1, "a");
        assert!(!format!("{read:?}").contains("Bearer"), "a header may be a secret");
    }
}
