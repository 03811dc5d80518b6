//! Addresses under `/api/v1`. Parts and values are percent-encoded here and nowhere else: an alias may hold `/`, `::`,
//! blanks or any script.

use std::fmt::Display;
use std::ops::Range;

use lanyard_api::names::API;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::names::{WantedName, kinds_of};

/// All but what RFC 3986 calls unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    text: String,
    /// The part that is a name and no id yet.
    named: Option<(WantedName, Range<usize>)>,
}

impl Route {
    #[must_use]
    pub fn to(parts: &[&str]) -> Self {
        let (mut text, mut named) = (API.to_owned(), None);
        for (at, part) in parts.iter().enumerate() {
            text.push('/');
            let start = text.len();
            encode_into(&mut text, part);
            if at == 1
                && let Some(kinds) = kinds_of(parts[0], part)
            {
                named = Some((WantedName::of(kinds, part), start..text.len()));
            }
        }
        Self { text, named }
    }

    /// Adds to the query; nothing when there is no value.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<impl Display>) -> Self {
        let Some(value) = value else { return self };
        let value = value.to_string();
        self.text.push(if self.text.contains('?') { '&' } else { '?' });
        self.text.push_str(name);
        self.text.push('=');
        encode_into(&mut self.text, &value);
        match (name, &mut self.named) {
            ("workspace", Some((wanted, _))) => wanted.workspace = Some(value),
            ("plan", Some((wanted, _))) => wanted.plan = Some(value),
            (_, _) => {}
        }
        self
    }

    /// The name in it that has to be looked up.
    #[must_use]
    pub fn wanted(&self) -> Option<&WantedName> {
        self.named.as_ref().map(|(wanted, _)| wanted)
    }

    /// The same address with an id in the place of the name.
    #[must_use]
    pub fn resolved(&self, id: &str) -> Self {
        let mut text = self.text.clone();
        if let Some((_, place)) = &self.named {
            let mut encoded = String::new();
            encode_into(&mut encoded, id);
            text.replace_range(place.clone(), &encoded);
        }
        Self { text, named: None }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl WantedName {
    /// The address that answers what the name means.
    #[must_use]
    pub fn route(&self) -> Route {
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.as_str()).collect();
        let here = (self.name == ".").then(|| std::fs::canonicalize(".").ok()).flatten();
        Route::to(&["ids"])
            .with("name", Some(&self.name))
            .with("kind", Some(kinds.join(",")))
            .with("workspace", self.workspace.as_ref())
            .with("plan", self.plan.as_ref())
            .with("here", here.as_deref().and_then(std::path::Path::to_str))
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

    #[test]
    fn a_name_gives_way_to_its_id_and_a_whole_id_is_none() {
        let id = "sess_01m7f3gs00fqqr28t5cy4tqkff";
        let route =
            Route::to(&["sessions", "a/b", "stop"]).with("workspace", Some("/x")).with("now", Some("true"));
        let wanted = route.wanted().unwrap();
        assert_eq!((wanted.name.as_str(), wanted.workspace.as_deref()), ("a/b", Some("/x")));
        assert_eq!(
            route.resolved(id).as_str(),
            format!("/api/v1/sessions/{id}/stop?workspace=%2Fx&now=true")
        );
        for parts in [
            ["sessions", id],
            ["sessions", "bulk"],
            ["plans", "import"],
            ["tasks", "orchestrator:/task_x"],
            ["agents", "demo"],
        ] {
            assert_eq!(Route::to(&parts).wanted(), None, "{parts:?}");
        }
    }
}
