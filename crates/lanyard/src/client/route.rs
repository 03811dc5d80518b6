//! Addresses under `/api/v1`. Parts and values are percent-encoded here and nowhere else: an alias may hold `/`, `::`,
//! blanks or any script.

use std::fmt::Display;

use lanyard_api::names::API;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but what RFC 3986 calls unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route(String);

impl Route {
    pub(crate) fn to(parts: &[&str]) -> Self {
        let mut text = API.to_owned();
        for part in parts {
            text.push('/');
            encode_into(&mut text, part);
        }
        Self(text)
    }

    /// Adds to the query; nothing when there is no value.
    pub(crate) fn with(mut self, name: &str, value: Option<impl Display>) -> Self {
        let Some(value) = value else { return self };
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(name);
        self.0.push('=');
        encode_into(&mut self.0, &value.to_string());
        self
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A part that is only dots would be read as a direction, so it is encoded too.
fn encode_into(text: &mut String, part: &str) {
    let only_dots = part.bytes().all(|byte| byte == b'.');
    let encoded = if only_dots { NON_ALPHANUMERIC } else { RESERVED };
    text.extend(utf8_percent_encode(part, encoded));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_one_part_whatever_it_holds() {
        let path = |alias: &str| Route::to(&["sessions", alias, "stop"]).as_str().to_owned();
        assert_eq!(path("sess_01m7"), "/api/v1/sessions/sess_01m7/stop");
        assert_eq!(path("ws::plan::id"), "/api/v1/sessions/ws%3A%3Aplan%3A%3Aid/stop");
        assert_eq!(path("a/b c"), "/api/v1/sessions/a%2Fb%20c/stop");
        assert_eq!(path("grün 漢"), "/api/v1/sessions/gr%C3%BCn%20%E6%BC%A2/stop");
        assert_eq!(path("50%?&#"), "/api/v1/sessions/50%25%3F%26%23/stop");
        assert_eq!(path(".."), "/api/v1/sessions/%2E%2E/stop");
        assert_eq!(path("v1..2"), "/api/v1/sessions/v1..2/stop");
    }

    #[test]
    fn a_query_holds_what_was_given() {
        let route = Route::to(&["sessions"])
            .with("text", Some("login & test+1"))
            .with("owner", None::<&str>)
            .with("limit", Some(5));
        assert_eq!(route.as_str(), "/api/v1/sessions?text=login%20%26%20test%2B1&limit=5");
    }
}
