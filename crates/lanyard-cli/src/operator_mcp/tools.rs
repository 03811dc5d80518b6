//! The table of tools: what each does, who may use it, and how it is announced.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

use super::ServedRole;
use super::arguments::{
    AnswerApproval, FindSession, GuideSession, ListSessions, NoArguments, OfSession, ReadTranscript,
    SendMessage, StartSession, StopSession,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperatorTool {
    ListSessions,
    FindSession,
    GetSession,
    ReadTranscript,
    ListApprovals,
    ListAgents,
    StartSession,
    SendMessage,
    GuideSession,
    StopSession,
    AnswerApproval,
}

/// What a tool does to what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touch {
    Reads,
    Adds,
    /// It can end work, or let an agent do what cannot be taken back.
    Destroys,
}

impl OperatorTool {
    const ALL: [Self; 11] = [
        Self::ListSessions,
        Self::FindSession,
        Self::GetSession,
        Self::ReadTranscript,
        Self::ListApprovals,
        Self::ListAgents,
        Self::StartSession,
        Self::SendMessage,
        Self::GuideSession,
        Self::StopSession,
        Self::AnswerApproval,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::ListSessions => "list_sessions",
            Self::FindSession => "find_session",
            Self::GetSession => "get_session",
            Self::ReadTranscript => "read_transcript",
            Self::ListApprovals => "list_approvals",
            Self::ListAgents => "list_agents",
            Self::StartSession => "start_session",
            Self::SendMessage => "send_message",
            Self::GuideSession => "guide_session",
            Self::StopSession => "stop_session",
            Self::AnswerApproval => "answer_approval",
        }
    }

    const fn about(self) -> &'static str {
        match self {
            Self::ListSessions => "List sessions of coding agents, newest first, with state and folder.",
            Self::FindSession => {
                "Find the session of a name: an id or a part of it, an alias, a title. Several answers are candidates."
            }
            Self::GetSession => {
                "Show one session: state, agent, folder, running turn, usage, what it waits for."
            }
            Self::ReadTranscript => {
                "Read a page of a session's log: messages, thoughts, tool calls with their results, and what happened \
                 around them. Without `after` the newest page."
            }
            Self::ListApprovals => "List the approvals that agents wait for, with their options.",
            Self::ListAgents => "List the agents that sessions can be started with.",
            Self::StartSession => {
                "Start a session: an agent works on the prompt in the folder, also after this assistant has ended."
            }
            Self::SendMessage => {
                "Send a message to a session's agent. While a turn runs it waits, unless said otherwise."
            }
            Self::GuideSession => {
                "Give short guidance to a running agent; it reads it with its next tool call."
            }
            Self::StopSession => {
                "Stop a session, its running turn, or its whole family. Repeated, it insists."
            }
            Self::AnswerApproval => "Answer an approval. Allowing lets the agent do what it asked for.",
        }
    }

    const fn touch(self) -> Touch {
        match self {
            Self::ListSessions
            | Self::FindSession
            | Self::GetSession
            | Self::ReadTranscript
            | Self::ListApprovals
            | Self::ListAgents => Touch::Reads,
            Self::StartSession | Self::GuideSession => Touch::Adds,
            // A message can take the place of the running turn.
            Self::SendMessage | Self::StopSession | Self::AnswerApproval => Touch::Destroys,
        }
    }

    fn schema(self) -> Value {
        match self {
            Self::ListSessions => of::<ListSessions>(),
            Self::FindSession => of::<FindSession>(),
            Self::GetSession => of::<OfSession>(),
            Self::ReadTranscript => of::<ReadTranscript>(),
            Self::ListApprovals | Self::ListAgents => of::<NoArguments>(),
            Self::StartSession => of::<StartSession>(),
            Self::SendMessage => of::<SendMessage>(),
            Self::GuideSession => of::<GuideSession>(),
            Self::StopSession => of::<StopSession>(),
            Self::AnswerApproval => of::<AnswerApproval>(),
        }
    }

    fn is_for(self, role: ServedRole) -> bool {
        role == ServedRole::Operator || self.touch() == Touch::Reads
    }

    fn announced(self) -> Value {
        let touch = self.touch();
        json!({
            "name": self.name(),
            "description": self.about(),
            "inputSchema": self.schema(),
            "annotations": {
                "readOnlyHint": touch == Touch::Reads,
                "destructiveHint": touch == Touch::Destroys,
                "openWorldHint": false,
            },
        })
    }
}

/// The tools of a role, as `tools/list` has them.
pub(super) fn list(role: ServedRole) -> Vec<Value> {
    OperatorTool::ALL.into_iter().filter(|tool| tool.is_for(role)).map(OperatorTool::announced).collect()
}

pub(super) fn find(role: ServedRole, name: &str) -> Option<OperatorTool> {
    OperatorTool::ALL.into_iter().find(|tool| tool.name() == name && tool.is_for(role))
}

/// A schema without references: some assistants do not follow them.
fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("title");
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observer_is_offered_what_only_looks() {
        let offered = list(ServedRole::Observer);
        assert_eq!(offered.len(), 6);
        assert!(offered.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true));
        assert!(find(ServedRole::Observer, "stop_session").is_none());
        assert_eq!(list(ServedRole::Operator).len(), OperatorTool::ALL.len());
    }

    #[test]
    fn every_tool_is_announced_with_a_whole_schema_and_what_it_touches() {
        for tool in list(ServedRole::Operator) {
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "{tool:#}");
            assert_eq!(schema["additionalProperties"], false, "{tool:#}");
            assert!(!schema.to_string().contains("$ref"), "{tool:#}");
        }
        let stop = OperatorTool::StopSession.announced();
        assert_eq!(stop["annotations"]["destructiveHint"], true);
        assert_eq!(stop["inputSchema"]["required"], json!(["session", "reason"]));
    }
}
