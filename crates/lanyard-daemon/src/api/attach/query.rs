//! What a client asks for when it attaches, checked.

use axum::http::{HeaderMap, StatusCode, Uri};
use lanyard_api::config::{Features, Switch};
use lanyard_api::types::AttachMode;
use lanyard_core::ConnectionId;
use serde::Deserialize;

use crate::api::context::query;
use crate::api::directory::last_event_id;
use crate::problem::Problem;

/// Events that are played back before the stream goes on live.
pub(in crate::api) const LAST_MAX: u64 = 10_000;
/// Longest name of a client or channel.
const NAME_CHARS_MAX: usize = 64;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Query {
    mode: Option<AttachMode>,
    after: Option<u64>,
    last: Option<u64>,
    client: Option<String>,
    channel: Option<String>,
    connection: Option<ConnectionId>,
    write: bool,
    /// Read by the guard.
    #[serde(rename = "workspace")]
    _workspace: Option<String>,
    #[serde(rename = "plan")]
    _plan: Option<String>,
}

/// Where the stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum Begin {
    Tail,
    Full,
    After(u64),
    Last(u64),
}

#[derive(Debug)]
pub(in crate::api) struct Attach {
    pub(in crate::api) begin: Begin,
    pub(in crate::api) client: Option<String>,
    pub(in crate::api) channel: Option<String>,
    pub(in crate::api) connection: Option<ConnectionId>,
    pub(in crate::api) write: bool,
}

impl Attach {
    pub(in crate::api) fn read(uri: &Uri, headers: &HeaderMap) -> Result<Self, Problem> {
        no_token(uri)?;
        let query: Query = query(uri)?;
        let begin = match (query.mode, query.after, query.last) {
            (None | Some(AttachMode::Tail), None, None) => Begin::Tail,
            (Some(AttachMode::Full), None, None) => Begin::Full,
            (None, Some(after), None) => Begin::After(after),
            (None, None, Some(last)) if last <= LAST_MAX => Begin::Last(last),
            (None, None, Some(last)) => {
                return Err(invalid(
                    format!("`last` is {last}"),
                    &format!("use 0 to {LAST_MAX}, or `mode=full`"),
                ));
            }
            (Some(AttachMode::After | AttachMode::Last), ..) => {
                return Err(invalid("`mode` is `tail` or `full`", "send `after=SEQ` or `last=N` alone"));
            }
            _ => return Err(invalid("`mode`, `after` and `last` exclude each other", "send one")),
        };
        // Where the client left off says more than where it once began.
        let begin = last_event_id(headers)?.map_or(begin, Begin::After);
        Ok(Self {
            begin,
            client: name("client", query.client)?,
            channel: name("channel", query.channel)?,
            connection: query.connection,
            write: query.write,
        })
    }
}

impl Attach {
    /// What the switches leave of it. Whoever comes back with a position gets what it missed: that is no replay.
    pub(in crate::api) fn allowed(mut self, features: Features) -> Result<Self, Problem> {
        if features.attach == Switch::Off {
            return Err(Problem::new(
                StatusCode::CONFLICT,
                "attach_off",
                "attaching is switched off",
                "read the log with `lanyard logs`, or set `attach` to \"on\" under [features] in the config",
            ));
        }
        if features.replay == Switch::Off && !matches!(self.begin, Begin::After(_)) {
            self.begin = Begin::Tail;
        }
        Ok(self)
    }
}

impl Begin {
    pub(super) const fn mode(self) -> AttachMode {
        match self {
            Self::Tail => AttachMode::Tail,
            Self::Full => AttachMode::Full,
            Self::After(_) => AttachMode::After,
            Self::Last(_) => AttachMode::Last,
        }
    }

    /// The position before the first event that is sent.
    pub(in crate::api) fn after(self, head: u64) -> Result<u64, Problem> {
        match self {
            Self::Tail => Ok(head),
            Self::Full => Ok(0),
            Self::Last(last) => Ok(head.saturating_sub(last)),
            Self::After(after) if after <= head => Ok(after),
            Self::After(after) => Err(Problem::new(
                StatusCode::CONFLICT,
                "seq_in_future",
                format!("position {after} is past the end of the log, which is {head}"),
                format!("send `after={head}` to go on from its end"),
            )),
        }
    }
}

/// Addresses are logged and remembered; a token does not belong into one.
pub(in crate::api) fn no_token(uri: &Uri) -> Result<(), Problem> {
    let names = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split('=').next());
    if names.into_iter().any(|name| matches!(name, "token" | "access_token" | "authorization")) {
        return Err(Problem::bad_request(
            "token_in_query",
            "a token in an address is not accepted",
            "send `Authorization: Bearer …`, or the subprotocols `lanyard.v1, lanyard.token.TOKEN`",
        ));
    }
    Ok(())
}

fn name(what: &str, given: Option<String>) -> Result<Option<String>, Problem> {
    let Some(given) = given else { return Ok(None) };
    let fits = (1..=NAME_CHARS_MAX).contains(&given.chars().count()) && !given.chars().any(char::is_control);
    if fits {
        return Ok(Some(given));
    }
    Err(invalid(
        format!("`{what}` cannot be used"),
        &format!("use 1 to {NAME_CHARS_MAX} characters in one line"),
    ))
}

fn invalid(what: impl Into<String>, advice: &str) -> Problem {
    Problem::bad_request("query_invalid", what, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Attach, Problem> {
        Attach::read(&format!("/attach?{text}").parse().unwrap(), &HeaderMap::new())
    }

    #[test]
    fn one_way_to_begin_is_read_and_two_are_refused() {
        assert_eq!(read("").unwrap().begin, Begin::Tail);
        assert_eq!(read("mode=full").unwrap().begin, Begin::Full);
        assert_eq!(read("after=7&client=cli").unwrap().begin, Begin::After(7));
        assert_eq!(read("last=0").unwrap().begin, Begin::Last(0));
        for bad in [
            "mode=tail&after=1",
            "after=1&last=1",
            "mode=after",
            "mode=x",
            "after=-1",
            "last=-3",
            "last=10001",
            "after=18446744073709551616",
            "client=",
            "client=a%0Ab",
            "connection=sess_1",
            "unknown=1",
            "write=perhaps",
            "token=lyd_x",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn where_it_begins_follows_from_the_end() {
        assert_eq!(Begin::Tail.after(9).ok(), Some(9));
        assert_eq!(Begin::Last(20).after(9).ok(), Some(0));
        assert_eq!(Begin::After(9).after(9).ok(), Some(9));
        assert!(Begin::After(10).after(9).is_err());
    }
}
