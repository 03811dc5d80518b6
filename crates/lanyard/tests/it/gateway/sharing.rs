//! An agent's MCP connection that its subagents use too: what is meant for the agent is not read by a subagent.

use serde_json::{Value, json};

use super::kit::{Client, Stage, until};
use super::server::Server;

/// Writes what Claude Code writes of two subagents at once. Each ends when its file appears, in the order of the prompt;
/// the turn ends with the file `over`.
const CLAUDE: &str = r#"
line() { printf '%s\n' "$1"; }
await() { while [ ! -e "$1" ]; do sleep 0.02; done; }
line '{"type":"system","subtype":"init","session_id":"nat-1","claude_code_version":"2"}'
for child in one two; do
  line '{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"tool_use","id":"toolu_'$child'","name":"Task","input":{}}],"usage":{"input_tokens":1,"output_tokens":1}},"session_id":"nat-1"}'
  line '{"type":"system","subtype":"task_started","task_type":"local_agent","tool_use_id":"toolu_'$child'","description":"'$child'","subagent_type":"explore","prompt":"look","session_id":"nat-1"}'
done
for child in $1; do
  await "end-$child"
  line '{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_'$child'","type":"tool_result","content":"done","is_error":false}]},"session_id":"nat-1","tool_use_result":{"agentId":"a","status":"completed","content":[{"type":"text","text":"done"}]}}'
done
await over
line '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"all done","stop_reason":"end_turn","session_id":"nat-1","usage":{"input_tokens":1,"output_tokens":1}}'
"#;

struct Family {
    stage: Stage,
    server: Server,
    folder: tempfile::TempDir,
    session: String,
}

impl Family {
    /// A parent at work with two subagents, which end in this order.
    fn at_work(order: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("claude.sh");
        std::fs::write(&script, CLAUDE).unwrap();
        let server = Server::start();
        let command = json!(["/bin/sh", script]);
        let agent = format!(
            "[agents.c]\ndriver = \"command\"\ncommand = {command}\n\
             per_turn = {{ output = \"claude_json\", first = [\"{{prompt}}\"] }}\n"
        );
        let stage = Stage::new(&(server.config("h", "") + &agent));
        let session = stage.session(&json!({ "agent": "c", "workspace": folder.path() }));
        let sent = stage.post(&format!("/sessions/{session}/turns"), &json!({ "prompt": order }));
        assert_eq!(sent.status, 201, "{}", sent.text());
        let family = Self { stage, server, folder, session };
        until("both subagents to work", || family.children("executing") == 2);
        family
    }

    fn children(&self, state: &str) -> usize {
        let path = format!("/api/v1/sessions?parent={}&state={state}", self.session);
        let listed = self.stage.daemon.request("GET", &path, &[], None).json();
        listed["sessions"].as_array().unwrap().len()
    }

    fn count(&self, kind: &str) -> usize {
        let log = self.stage.daemon.log_after(&self.session, 0);
        log.iter().filter(|event| event["type"] == kind).count()
    }

    fn touch(&self, name: &str) {
        std::fs::write(self.folder.path().join(name), "").unwrap();
    }

    /// A subagent comes to its end, and its parent has the result.
    fn end(&self, child: &str, nth: usize) {
        self.touch(&format!("end-{child}"));
        until("the subagent's end", || self.children("executing") == 2 - nth);
        until("its result", || self.count("tool.returned") == nth);
    }

    fn over(self) {
        self.touch("over");
        until("the end of the run", || self.count("run.ended") == 1);
    }

    fn client(&self) -> Client {
        self.stage.client(&self.session, "h")
    }

    fn call(&self, client: &Client) -> String {
        let answer = client.call("echo", &json!({ "text": "x" })).to_string();
        self.server.got();
        answer
    }

    fn notes(&self, of: &str) -> Vec<Value> {
        let path = format!("/api/v1/sessions/{}/guidance", self.session);
        let listed = self.stage.daemon.request("GET", &path, &[], None).json();
        listed[of].as_array().unwrap().clone()
    }
}

/// FND-R2: the parent is guided while its subagents make the calls, in both orders of their ends. Nothing is carried
/// before the last of them is done, and only the parent's own later call acknowledges.
#[test]
fn fnd_r2_words_for_the_parent_wait_until_no_subagent_shares_its_connection() {
    for order in [["one", "two"], ["two", "one"]] {
        let family = Family::at_work(&order.join(" "));
        let client = family.client();
        let told = json!({ "text": "for the parent alone" });
        let sent = family.stage.post(&format!("/sessions/{}/guidance", family.session), &told);
        assert_eq!(sent.status, 201, "{}", sent.text());
        for (nth, child) in order.into_iter().enumerate() {
            for _ in 0..2 {
                let answer = family.call(&client);
                assert!(!answer.contains("for the parent"), "{answer}");
            }
            assert_eq!(family.notes("waiting")[0]["status"], "pending");
            family.end(child, nth + 1);
        }
        let answer = family.call(&client);
        assert!(answer.contains("for the parent alone"), "{answer}");
        assert_eq!(family.notes("waiting")[0]["status"], "delivered");
        family.call(&client);
        assert_eq!(family.notes("settled")[0]["status"], "acknowledged");
        let log = family.stage.daemon.log_after(&family.session, 0);
        let uncertain = log.iter().filter(|event| event["data"]["uncertain"] == true).count();
        assert_eq!(uncertain, 4, "each of the subagents' calls is recorded as uncertain");
        family.over();
    }
}

/// FND-R2: a stop of the parent alone is neither told to its subagents nor raised by their calls.
#[test]
fn fnd_r2_a_stop_of_the_parent_is_not_told_to_its_subagent() {
    let family = Family::at_work("one two");
    let client = family.client();
    for _ in 0..2 {
        family.call(&client);
    }
    let stop = json!({ "reason": "enough" });
    let stopped = family.stage.post(&format!("/sessions/{}/stop", family.session), &stop);
    assert_eq!(stopped.status, 202, "{}", stopped.text());
    until("the end of the run", || family.count("run.ended") == 1);
    assert_eq!(family.count("stop.applied"), 0);
}

/// FND-R2: one who names itself is sure of its caller, also while subagents work.
#[test]
fn fnd_r2_a_call_that_names_its_session_carries_its_words() {
    let family = Family::at_work("one two");
    let client = family.client();
    let told = json!({ "text": "for the parent alone" });
    assert_eq!(family.stage.post(&format!("/sessions/{}/guidance", family.session), &told).status, 201);
    assert!(!family.call(&client).contains("for the parent"));
    let named = client.call("echo", &json!({ "_session_id": family.session })).to_string();
    assert!(named.contains("for the parent alone"), "{named}");
    assert!(!family.call(&client).contains("SESSION"));
    assert_eq!(
        family.notes("waiting")[0]["status"],
        "delivered",
        "a call of unknown origin acknowledges nothing"
    );
    client.call("echo", &json!({ "_session_id": family.session }));
    assert_eq!(family.notes("settled")[0]["status"], "acknowledged");
    family.touch("end-one");
    family.touch("end-two");
    family.over();
}

/// FND-R2: a thread of Codex that Lanyard has not seen yet is a subagent's, and not its parent's.
#[test]
fn fnd_r2_a_thread_that_is_not_known_yet_is_not_the_parent() {
    let server = Server::start();
    let stage = Stage::new(&server.config("h", ""));
    let session = stage.session(&json!({ "source": "external" }));
    let client = stage.client(&session, "h");
    let told = json!({ "text": "for the parent alone" });
    assert_eq!(stage.post(&format!("/sessions/{session}/guidance"), &told).status, 201);
    let of = |thread: &str| {
        let params = json!({
            "name": "echo", "arguments": {}, "_meta": { "threadId": thread, "sessionId": "main" },
        });
        client.request(7, "tools/call", &params).to_string()
    };
    assert!(!of("sub").contains("for the parent"));
    assert!(of("main").contains("for the parent"));
}
