//! Signing a browser in, and who is calling.

use lanyard_core::policy::Overlong;
use lanyard_core::{ActorKind, SessionId, Timestamp, TokenId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewSignInLink {
    /// What the browser may do; `operator` when left out.
    pub role: SignInRole,
    /// Whose browser it is, as lists and logs show it; `browser` when left out.
    pub name: Option<String>,
}

/// What people may do with a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignInRole {
    /// Everything.
    #[default]
    Operator,
    /// Look and not touch.
    Observer,
}

impl From<SignInRole> for ActorKind {
    fn from(role: SignInRole) -> Self {
        match role {
            SignInRole::Operator => Self::Operator,
            SignInRole::Observer => Self::Observer,
        }
    }
}

/// A link that signs one browser in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SignInLink {
    /// Its code stands behind `#`, which browsers neither send nor log.
    pub url: String,
    pub role: SignInRole,
    /// It is good until then, and once.
    pub expires_at: Timestamp,
}

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// What stands behind `#` in the link.
    pub code: String,
}

impl std::fmt::Debug for SignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignIn").finish_non_exhaustive()
    }
}

/// The browser is signed in; the cookie beside this is its token.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SignedIn {
    pub role: ActorKind,
    pub name: String,
    /// The session that a share link leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// Who is calling.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Me {
    pub role: ActorKind,
    pub name: String,
    /// The token's id, where it is one that can be revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The one session that the token is for, with those below it where it is an observer's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The end of a share link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    pub limits: MyLimits,
    /// The daemon's version.
    pub version: String,
    /// The daemon's clock.
    pub now: Timestamp,
}

/// Bounds and waits a page shows before they are met.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct MyLimits {
    /// Characters of one piece of guidance.
    pub guidance_chars: usize,
    /// What becomes of guidance with more of them.
    pub overlong: Overlong,
    /// Pieces of guidance that may wait in one session.
    pub guidance_pending: usize,
    /// Characters of the words beside the answer to a flow's gate.
    pub flow_guidance_chars: usize,
    /// Messages that may wait in one session's inbox.
    pub inbox_turns: usize,
    /// How deep a family of sessions may be.
    pub depth: u32,
    /// Milliseconds a stop waits at level 1 before it rises to 2.
    pub stop_graceful_ms: u64,
    /// Milliseconds a stop waits at level 2 before it rises to 3.
    pub stop_immediate_ms: u64,
    /// Milliseconds a writer may be away before anyone may take its place.
    pub writer_lapse_ms: u64,
    /// Milliseconds a writer has to deny a wish to take over.
    pub writer_deny_ms: u64,
}
