//! What is offered to an agent beside its prompt, and what it may be asked for.

use serde_json::{Value, json};

use super::kit::{Stage, Talk};

/// An MCP server of a few lines: greets, and says who was called.
const SERVER: &str = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
    *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18"}}';;
    *'"method":"tools/call"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'$WHO' was called"}]}}';;
  esac
done"#;

fn returned(talk: &Talk<'_>) -> Vec<Value> {
    talk.all("tool.returned").iter().map(|event| event["data"]["content"].clone()).collect()
}

/// Servers of the config reach every agent; its own go before those of the same name.
#[test]
fn mcp_servers_of_the_config_are_offered() {
    let server = |who: &str| {
        let command = serde_json::to_string(&["sh", "-c", SERVER]).unwrap();
        format!("command = {command}\nenv = {{ WHO = \"{who}\" }}\n")
    };
    let own = format!("[agents.a.mcp.files]\n{}", server("its own"));
    let all = format!("[mcp.files]\n{}[mcp.notes]\n{}", server("everyone's"), server("the notes"));
    let stage = Stage::with(&[], &(own + &all));
    let mut talk = stage.talk();
    talk.ask("/mcp files read {}\n/mcp notes read {}");
    assert_eq!(returned(&talk), ["its own was called", "the notes was called"]);
}

#[test]
fn an_agent_that_cannot_compact_says_so_and_one_that_is_not_there_cannot_be_asked() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    let refused = |talk: &Talk<'_>| {
        let answer = talk.post("compact", &json!({}));
        assert_eq!(answer.status, 409, "{}", answer.text());
        answer.json()["code"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused(&talk), "agent_not_running");
    talk.ask("/say hello");
    assert_eq!(refused(&talk), "compact_not_offered");
}
