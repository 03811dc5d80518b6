//! A notification as a post: its body in one of three forms, and the headers that name, date, sign and number it.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lanyard_api::config::BodyKind;
use lanyard_core::Timestamp;
use lanyard_core::notification::{Notification, NotificationDelivery, Severity};
use serde_json::json;

use crate::notifications::secret::Secret;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
/// Which try this is: from 2 on, the same delivery may have arrived before.
const ATTEMPT: HeaderName = HeaderName::from_static("lanyard-attempt");

pub(super) fn post(
    kind: BodyKind,
    held: &Notification,
    delivery: &NotificationDelivery,
    secret: Option<&Secret>,
    now: Timestamp,
) -> (HeaderMap, Bytes) {
    let mut headers = HeaderMap::new();
    let body = match kind {
        BodyKind::Json => {
            json!({ "delivery": delivery.id, "attempt": delivery.attempts, "notification": held }).to_string()
        }
        BodyKind::Slack => json!({ "text": slack(held) }).to_string(),
        BodyKind::Ntfy => {
            let (priority, tag) = match held.severity {
                Severity::Info => ("3", "information_source"),
                Severity::Warning => ("4", "warning"),
                Severity::Critical => ("5", "rotating_light"),
            };
            set(&mut headers, HeaderName::from_static("title"), &ascii(&held.title));
            set(&mut headers, HeaderName::from_static("priority"), priority);
            set(&mut headers, HeaderName::from_static("tags"), tag);
            if held.text.is_empty() { held.title.clone() } else { held.text.clone() }
        }
    };
    let content = match kind {
        BodyKind::Json | BodyKind::Slack => "application/json",
        BodyKind::Ntfy => "text/plain; charset=utf-8",
    };
    let (id, seconds) = (delivery.id.to_string(), now.as_millis().div_euclid(1_000));
    set(&mut headers, header::CONTENT_TYPE, content);
    set(&mut headers, header::USER_AGENT, concat!("lanyard/", env!("CARGO_PKG_VERSION")));
    set(&mut headers, ID, &id);
    set(&mut headers, TIMESTAMP, &seconds.to_string());
    set(&mut headers, ATTEMPT, &delivery.attempts.to_string());
    if let Some(secret) = secret {
        set(&mut headers, SIGNATURE, &secret.sign(&id, seconds, body.as_bytes()));
    }
    (headers, body.into())
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // All of them are visible ASCII.
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// The three characters by which Slack tells its own marks: an agent's words must not call a whole channel.
fn slack(held: &Notification) -> String {
    let plain = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let title = format!("[{}] {}", held.severity.as_str(), plain(&held.title));
    if held.text.is_empty() { title } else { format!("{title}\n{}", plain(&held.text)) }
}

/// A header takes ASCII only; anything else in the form mail has for it.
fn ascii(text: &str) -> String {
    if text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        return text.to_owned();
    }
    format!("=?UTF-8?B?{}?=", STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use lanyard_core::notification::{NewNotification, NotificationKind};
    use lanyard_core::{DeliveryId, NotificationId};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_794_729_600_000);

    fn posted(kind: BodyKind) -> (HeaderMap, String) {
        let new = NewNotification {
            kind: NotificationKind::GateWaiting,
            severity: Severity::Warning,
            key: "gate:1".to_owned(),
            title: "Asked: <!channel> ö".to_owned(),
            text: "a & b".to_owned(),
            session: None,
            subject: None,
            lasts: true,
        };
        let held = new.made(NotificationId::from_u128(1), NOW, 1);
        let mut delivery = NotificationDelivery::new(DeliveryId::from_u128(2), held.id, "x".to_owned(), NOW);
        delivery.attempts = 2;
        let (headers, body) = post(kind, &held, &delivery, None, NOW);
        (headers, String::from_utf8(body.to_vec()).unwrap())
    }

    #[test]
    fn each_receiver_gets_its_form_and_every_try_its_number() {
        let (headers, body) = posted(BodyKind::Slack);
        assert_eq!(body, r#"{"text":"[warning] Asked: &lt;!channel&gt; ö\na &amp; b"}"#);
        assert_eq!(headers["lanyard-attempt"], "2");
        assert_eq!(headers["webhook-timestamp"], "1794729600");
        assert!(headers["webhook-id"].to_str().unwrap().starts_with("dlv_"));
        assert!(!headers.contains_key("webhook-signature"), "no secret, no signature");
        let (headers, body) = posted(BodyKind::Ntfy);
        assert_eq!((body.as_str(), &headers["priority"]), ("a & b", &HeaderValue::from_static("4")));
        assert_eq!(headers["title"], "=?UTF-8?B?QXNrZWQ6IDwhY2hhbm5lbD4gw7Y=?=");
        let (_, body) = posted(BodyKind::Json);
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["notification"]["kind"], "gate_waiting");
        assert_eq!(body["attempt"], 2);
    }
}
