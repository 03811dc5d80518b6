//! Every question Codex can ask, with the replies to each of its answers.

use std::fmt::Write as _;

use expect_test::expect;
use lanyard_core::session::{GateKind, GateOption, OptionKind, Question};
use serde_json::{Value, json};

use super::Codex;
use crate::agents::driver::{Action, Answer, Begin, Driver};
use crate::agents::played::{setting, shown};

fn asked(method: &str, params: &Value) -> Question {
    let mut codex = Codex::new(setting(Begin::New));
    let mut out = Vec::new();
    codex.line(json!({ "id": 1, "method": method, "params": params }).to_string().as_bytes(), &mut out);
    match out.pop() {
        Some(Action::Asked { question, .. }) => *question,
        other => panic!("{other:?}"),
    }
}

fn questions() -> Vec<Question> {
    let place = json!({ "threadId": "t", "turnId": "u", "itemId": "i" });
    let with = |key: &str, value: Value| {
        let mut params = place.clone();
        params[key] = value;
        params
    };
    vec![
        asked(
            "item/commandExecution/requestApproval",
            &with("networkApprovalContext", json!({ "host": "h" })),
        ),
        asked(
            "item/commandExecution/requestApproval",
            &with(
                "availableDecisions",
                json!([{ "applyNetworkPolicyAmendment": { "network_policy_amendment": { "host": "h", "action": "deny" } } }]),
            ),
        ),
        asked("item/fileChange/requestApproval", &with("reason", json!("outside the workspace"))),
        asked(
            "item/permissions/requestApproval",
            &with("permissions", json!({ "network": { "enabled": true } })),
        ),
        asked("mcpServer/elicitation/request", &with("_meta", json!({ "persist": ["session"] }))),
        asked(
            "execCommandApproval",
            &json!({ "conversationId": "t", "callId": "c", "command": ["rm", "x"] }),
        ),
        asked("applyPatchApproval", &json!({ "conversationId": "t", "callId": "c", "fileChanges": {} })),
    ]
}

#[test]
fn every_kind_of_question_has_its_answers() {
    let mut text = String::new();
    for question in questions() {
        let mut out = Vec::new();
        let mut codex = Codex::new(setting(Begin::New));
        let chosen = question.options.iter().map(|option: &GateOption| Answer::Chosen {
            option: option.clone(),
            message: (option.kind == OptionKind::RejectOnce).then(|| "rather not".to_owned()),
        });
        for answer in chosen.chain([Answer::Void]) {
            codex.answer(&question, &answer, &mut out);
        }
        assert_eq!(question.kind, GateKind::Permission);
        let _ = write!(text, "{} {}\n{}", question.detail["method"], question.title, shown(&out));
    }
    expect![[r#"
        "item/commandExecution/requestApproval" Reach h
        send answer:1: {"result":{"decision":"accept"},"id":1}
        send answer:1: {"result":{"decision":"acceptForSession"},"id":1}
        send answer:1: {"result":{"decision":"decline"},"id":1}
        send steer:answer:1: {"id":"steer:answer:1","method":"turn/steer","params":{"threadId":"t","expectedTurnId":"u","input":[{"type":"text","text":"rather not"}]}}
        send answer:1: {"result":{"decision":"cancel"},"id":1}
        send answer:1: {"result":{"decision":"cancel"},"id":1}
        "item/commandExecution/requestApproval" Run a command
        send answer:1: {"result":{"decision":{"applyNetworkPolicyAmendment":{"network_policy_amendment":{"host":"h","action":"deny"}}}},"id":1}
        send answer:1: {"result":{"decision":"decline"},"id":1}
        send steer:answer:1: {"id":"steer:answer:1","method":"turn/steer","params":{"threadId":"t","expectedTurnId":"u","input":[{"type":"text","text":"rather not"}]}}
        send answer:1: {"result":{"decision":"cancel"},"id":1}
        "item/fileChange/requestApproval" outside the workspace
        send answer:1: {"result":{"decision":"accept"},"id":1}
        send answer:1: {"result":{"decision":"acceptForSession"},"id":1}
        send answer:1: {"result":{"decision":"decline"},"id":1}
        send steer:answer:1: {"id":"steer:answer:1","method":"turn/steer","params":{"threadId":"t","expectedTurnId":"u","input":[{"type":"text","text":"rather not"}]}}
        send answer:1: {"result":{"decision":"cancel"},"id":1}
        send answer:1: {"result":{"decision":"cancel"},"id":1}
        "item/permissions/requestApproval" More permissions
        send answer:1: {"result":{"permissions":{"network":{"enabled":true}},"scope":"turn"},"id":1}
        send answer:1: {"result":{"permissions":{"network":{"enabled":true}},"scope":"session"},"id":1}
        send answer:1: {"result":{"permissions":{}},"id":1}
        send steer:answer:1: {"id":"steer:answer:1","method":"turn/steer","params":{"threadId":"t","expectedTurnId":"u","input":[{"type":"text","text":"rather not"}]}}
        send answer:1: {"result":{"permissions":{}},"id":1}
        "mcpServer/elicitation/request" An MCP server asks
        send answer:1: {"result":{"action":"accept","content":{}},"id":1}
        send answer:1: {"result":{"action":"accept","content":{},"_meta":{"persist":"session"}},"id":1}
        send answer:1: {"result":{"action":"decline"},"id":1}
        send steer:answer:1: {"id":"steer:answer:1","method":"turn/steer","params":{"threadId":"t","expectedTurnId":"u","input":[{"type":"text","text":"rather not"}]}}
        send answer:1: {"result":{"action":"cancel"},"id":1}
        send answer:1: {"result":{"action":"cancel"},"id":1}
        "execCommandApproval" rm x
        send answer:1: {"result":{"decision":"approved"},"id":1}
        send answer:1: {"result":{"decision":"approved_for_session"},"id":1}
        send answer:1: {"result":{"decision":{"denied":{"rejection":"rather not"}}},"id":1}
        send answer:1: {"result":{"decision":"abort"},"id":1}
        send answer:1: {"result":{"decision":"abort"},"id":1}
        "applyPatchApproval" Change files
        send answer:1: {"result":{"decision":"approved"},"id":1}
        send answer:1: {"result":{"decision":"approved_for_session"},"id":1}
        send answer:1: {"result":{"decision":{"denied":{"rejection":"rather not"}}},"id":1}
        send answer:1: {"result":{"decision":"abort"},"id":1}
        send answer:1: {"result":{"decision":"abort"},"id":1}
    "#]].assert_eq(&text);
}
