//! The arguments of the tools. Their schemas are made of these types.

use lanyard_core::session::{Delivery, StopScope};
use schemars::JsonSchema;
use serde::Deserialize;

/// Arguments of a tool that needs none.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct NoArguments {}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ListSessions {
    /// Words that must all occur in the title, the purpose, the agent or a name.
    pub(super) text: Option<String>,
    /// Only sessions of this folder: its whole path.
    pub(super) workspace: Option<String>,
    pub(super) agent: Option<String>,
    /// `active`, `stopping`, `stopped` or `completed`.
    pub(super) status: Option<String>,
    /// Only sessions that have not ended, or ended lately.
    pub(super) live: Option<bool>,
    /// Only sessions that a person should look at.
    pub(super) attention: Option<bool>,
    /// 1 to 50; 20 when absent.
    #[schemars(range(min = 1, max = 50))]
    pub(super) limit: Option<u16>,
    /// `next` of the page before.
    pub(super) cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FindSession {
    /// An id or a part of it, an alias, a title or `last`.
    pub(super) name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfSession {
    /// The session: id, the end of an id, an alias, a title or `last`.
    pub(super) session: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadTranscript {
    /// The session: id, the end of an id, an alias, a title or `last`.
    pub(super) session: String,
    /// Begin after this position: 0 for the beginning, or `next_after` of the page before. The newest events when absent.
    #[serde(default)]
    pub(super) after: Option<u64>,
    /// Events of one page, 1 to 200; 50 when absent. A page also ends when it is long.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    pub(super) limit: Option<u16>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartSession {
    /// What the agent is to do.
    pub(super) prompt: String,
    /// The folder it works in, as a whole path on the daemon's machine.
    pub(super) workspace: String,
    /// An agent of the config; the default one when absent.
    #[serde(default)]
    pub(super) agent: Option<String>,
    #[serde(default)]
    pub(super) title: Option<String>,
    /// A name for the session, unique in its folder.
    #[serde(default)]
    pub(super) name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendMessage {
    /// The session: id, the end of an id, an alias, a title or `last`.
    pub(super) session: String,
    pub(super) prompt: String,
    /// What becomes of it while a turn runs: `queue` (default) waits, `steer` goes into the turn, `interrupt` replaces it,
    /// `reject` refuses it.
    #[serde(default)]
    pub(super) delivery: Option<Delivery>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GuideSession {
    /// The session: id, the end of an id, an alias, a title or `last`.
    pub(super) session: String,
    /// Words for the running agent, at most 500 characters.
    pub(super) text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopSession {
    /// The session: id, the end of an id, an alias, a title or `last`.
    pub(super) session: String,
    /// Why; the agent and the audit have it.
    pub(super) reason: String,
    /// The running turn, the session (default), or the session and all below it.
    #[serde(default)]
    pub(super) scope: StopScope,
    /// Nothing more is carried out, instead of asking the agent to end.
    #[serde(default)]
    pub(super) now: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerApproval {
    /// The session that asks.
    pub(super) session: String,
    /// The id of the approval, as `list_approvals` shows it.
    pub(super) approval: String,
    /// The id of one of its options, or `allow`, `always`, `deny`, `never`.
    pub(super) option: String,
    /// Words for the agent, where it takes them.
    #[serde(default)]
    pub(super) message: Option<String>,
}
