//! Words of people on their way to an agent, in the answers to its calls.

use serde_json::{Value, json};

use super::kit::{Client, Stage};
use super::program;
use super::server::Server;

fn texts(answer: &Value) -> Vec<String> {
    let blocks = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    blocks.iter().map(|block| block["text"].as_str().unwrap().to_owned()).collect()
}

/// S0-45: guidance stands in front of the next answer, whatever kind of server gives it, and the one after is clean.
#[test]
fn guidance_comes_with_the_next_answer_alone() {
    let server = Server::start();
    let stage = Stage::new(&(server.config("h", "") + &program::config("p", "")));
    let session = stage.session(&json!({}));
    let mut program = stage.client(&session, "p");
    program.greet("somebody");
    let address = stage.client(&session, "h");
    let guide = |text: &str| {
        let made = stage.post(&format!("/sessions/{session}/guidance"), &json!({ "text": text }));
        assert_eq!(made.status, 201, "{}", made.text());
    };
    let clients: [(&Client, &str); 3] = [(&program, "echo"), (&address, "echo"), (&address, "stream")];
    for (client, tool) in clients {
        guide("use tabs");
        guide("and spaces");
        let all = texts(&client.call(tool, &json!({})));
        assert!(all[0].starts_with("📝 USER GUIDANCE (injected by user):\n"), "{all:?}");
        assert!(all[0].find("use tabs") < all[0].find("and spaces"), "{all:?}");
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(texts(&client.call(tool, &json!({}))).len(), 1);
    }
}

/// S0-43, S0-B05: the stop rises with each call; from level 2 on the tool is not run. Other sessions notice nothing.
#[test]
fn a_stop_rises_from_call_to_call_and_holds() {
    let server = Server::start();
    let stage = Stage::new(&server.config("h", ""));
    let (session, other) = (stage.session(&json!({})), stage.session(&json!({})));
    let (client, beside) = (stage.client(&session, "h"), stage.client(&other, "h"));
    client.call("echo", &json!({}));
    server.got();
    let stopped = stage.post(&format!("/sessions/{session}/stop"), &json!({"reason": "enough"}));
    assert_eq!(stopped.status, 202, "{}", stopped.text());
    let first = client.call("echo", &json!({}));
    assert!(texts(&first)[0].starts_with("⚠️ SESSION STOP REQUESTED\n"), "{first}");
    assert_eq!(texts(&first).len(), 2);
    server.got();
    let second = client.call("echo", &json!({}));
    assert!(texts(&second)[0].starts_with("🛑 SESSION STOP — IMMEDIATE\n"), "{second}");
    for _ in 0..2 {
        let last = client.call("echo", &json!({}));
        assert!(texts(&last)[0].starts_with("❌ SESSION TERMINATED\n"), "{last}");
        assert_eq!((last["result"]["isError"].as_bool(), texts(&last).len()), (Some(true), 1));
    }
    assert!(server.got_nothing(), "a tool ran although it was stopped");
    assert!(texts(&beside.call("echo", &json!({})))[0].starts_with("echo"));
}
