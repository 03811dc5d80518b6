//! The secret a webhook is signed with. Read when it is needed, so that it can be changed while the daemon runs, and
//! never shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lanyard_api::config::Webhook;
use ring::hmac;

/// What stands before a secret that is given in base64.
const ENCODED: &str = "whsec_";
/// Largest file a secret is read from.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

pub(super) struct Secret(hmac::Key);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// The webhook's, where it has one; or why it cannot be had.
    pub(super) fn of(webhook: &Webhook) -> Result<Option<Self>, String> {
        let text = match (&webhook.secret_env, &webhook.secret_file) {
            (None, None) => return Ok(None),
            (Some(name), _) => std::env::var(name)
                .map_err(|_| format!("the variable {name}, which is to hold its secret, is not set"))?,
            (None, Some(path)) => {
                let unreadable = |error: std::io::Error| {
                    format!("its secret in {} cannot be read: {error}", path.display())
                };
                if std::fs::metadata(path).map_err(unreadable)?.len() > SECRET_BYTES_MAX {
                    return Err(format!("its secret in {} is too large", path.display()));
                }
                std::fs::read_to_string(path).map_err(unreadable)?
            }
        };
        let text = text.trim();
        if text.is_empty() {
            return Err("its secret is empty".to_owned());
        }
        Ok(Some(Self::new(text)))
    }

    fn new(text: &str) -> Self {
        let decoded = text.strip_prefix(ENCODED).and_then(|rest| STANDARD.decode(rest).ok());
        let bytes = decoded.unwrap_or_else(|| text.as_bytes().to_vec());
        Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
    }

    /// The signature of a message with this id and time (Standard Webhooks 1.0).
    pub(super) fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(format!("{id}.{seconds}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_signature_is_the_one_others_make() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
