//! Steps that behave, conversations that come back, children, and cancels that work.

use serde_json::json;

use super::client::{Agent, Place, process, wait_for_file, wait_until};

#[test]
fn an_agent_says_what_it_can_do_and_echoes_string_ids() {
    let place = Place::new();
    let mut agent = Agent::spawn(&place, &[]);
    let greeting = agent.call("initialize", &json!({"protocolVersion": 1}));
    let result = &greeting["result"];
    assert_eq!(greeting["id"], "q1");
    assert_eq!(result["protocolVersion"], 1);
    assert_eq!(result["agentInfo"]["name"], "lanyard-scripted");
    assert_eq!(result["agentCapabilities"]["loadSession"], true);
    assert_eq!(result["agentCapabilities"]["mcpCapabilities"]["http"], true);
    let can = &result["agentCapabilities"]["sessionCapabilities"];
    assert_eq!(can, &json!({"list": {}, "fork": {}, "resume": {}, "close": {}}));
    let unknown = agent.call("session/fly", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    agent.hang_up();
    assert!(agent.exit().success());
}

#[test]
fn words_thoughts_plans_and_numbers() {
    let (mut agent, session) = Agent::session(&[]);
    let answer = agent.turn(
        &session,
        "/say one two\n/say! three four\n/think hm hm\n/chatter 3 10\n/plan a | b\n/plan-done 1\n\
         /usage 10 20 1000\n/compact 900 100\n/repeat 2 /say! again\n/stop max_tokens\n/say never",
    );
    assert_eq!(answer["result"]["stopReason"], "max_tokens");
    assert_eq!(answer["result"]["usage"], json!({"totalTokens": 30, "inputTokens": 10, "outputTokens": 20}));
    let chunks = agent.of_kind(&session, "agent_message_chunk");
    let texts: Vec<&str> = chunks.iter().map(|chunk| chunk["content"]["text"].as_str().unwrap()).collect();
    let chatter = ["00000001xx", "00000002xx", "00000003xx"];
    assert_eq!(texts[..3], ["one ", "two", "three four"]);
    assert_eq!(texts[3..6], chatter);
    assert_eq!(texts[6..], ["again", "again"]);
    assert_ne!(chunks[1]["messageId"], chunks[2]["messageId"]);
    assert_eq!(agent.of_kind(&session, "agent_thought_chunk").len(), 2);
    let plan = agent.of_kind(&session, "plan")[1];
    assert_eq!(plan["entries"][0]["status"], "completed");
    assert_eq!(plan["entries"][1]["status"], "in_progress");
    let usage = agent.of_kind(&session, "usage_update")[0];
    assert_eq!((&usage["used"], &usage["size"]), (&json!(30), &json!(1000)));
    let compacted = agent.heard.iter().find(|message| message["method"] == "_lanyard/compacted").unwrap();
    assert_eq!(compacted["params"], json!({"sessionId": session, "sizeBefore": 900, "sizeAfter": 100}));
}

#[test]
fn tools_of_its_own() {
    let (mut agent, session) = Agent::session(&[]);
    std::fs::write(agent.place.file("old.txt"), "before\n").unwrap();
    let answer = agent.turn(
        &session,
        "/tool grep {\"a\": 1}\n/tool-fail grep no luck\n/run echo out; echo err >&2; exit 3\n\
         /edit old.txt after\\n\n/edit ../out.txt no\n/look old.txt\n/run pwd\n/touch t\n/wait-file t\n/wait 1",
    );
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let tool = |at| agent.tool(&session, at);
    let (call, update) = tool(0);
    assert_eq!((&call["kind"], &call["rawInput"]), (&json!("search"), &json!({"a": 1})));
    assert_eq!(update["status"], "completed");
    assert_eq!(tool(1).1["status"], "failed");
    let (call, update) = tool(2);
    assert_eq!((&call["kind"], &update["status"]), (&json!("execute"), &json!("failed")));
    assert_eq!(update["content"][0]["content"]["text"], "out\nerr\n");
    assert_eq!(update["rawOutput"]["exitCode"], 3);
    let diff = &tool(3).1["content"][0];
    assert_eq!((&diff["oldText"], &diff["newText"]), (&json!("before\n"), &json!("after\n")));
    assert_eq!(std::fs::read_to_string(agent.place.file("old.txt")).unwrap(), "after\n");
    assert_eq!(tool(4).1["status"], "failed");
    assert_eq!(tool(5).1["content"][0]["content"]["text"], "old.txt: 1 lines, 6 bytes");
    let pwd = tool(6).1["content"][0]["content"]["text"].as_str().unwrap().trim();
    assert_eq!(std::fs::canonicalize(pwd).unwrap(), std::fs::canonicalize(agent.place.work()).unwrap());
    assert!(agent.place.file("t").exists());
}

#[test]
fn files_and_terminals_of_the_client() {
    let (mut agent, session) = Agent::session(&[]);
    let id = agent.prompt(&session, "/read a.txt\n/write b.txt new\\nlines\n/terminal make all");
    let question = agent.question("fs/read_text_file");
    assert_eq!(question["params"]["path"], json!(agent.place.file("a.txt")));
    agent.tell(&question, &json!({"content": "what is in it"}));
    let question = agent.question("fs/write_text_file");
    assert_eq!(question["params"]["content"], "new\nlines");
    agent.tell(&question, &json!({}));
    let question = agent.question("terminal/create");
    assert_eq!(
        (&question["params"]["command"], &question["params"]["args"]),
        (&json!("sh"), &json!(["-c", "make all"]))
    );
    agent.tell(&question, &json!({"terminalId": "term-1"}));
    let question = agent.question("terminal/wait_for_exit");
    agent.tell(&question, &json!({"exitCode": 0}));
    let question = agent.question("terminal/output");
    agent.tell(&question, &json!({"output": "made", "truncated": false}));
    agent.question("terminal/release");
    assert_eq!(agent.answer(&id)["result"]["stopReason"], "end_turn");
    assert_eq!(agent.tool(&session, 0).1["content"][0]["content"]["text"], "what is in it");
    assert_eq!(agent.tool(&session, 1).1["status"], "completed");
    let (_, terminal) = agent.tool(&session, 2);
    assert_eq!(
        (&terminal["content"][0]["terminalId"], &terminal["status"]),
        (&json!("term-1"), &json!("completed"))
    );
}

#[test]
fn a_client_that_offers_nothing_is_asked_for_nothing() {
    let place = Place::new();
    let mut agent = Agent::spawn(&place, &[]);
    agent.call("initialize", &json!({"protocolVersion": 1}));
    let session = agent.new_session(&json!([]));
    agent.turn(&session, "/read a\n/write a b\n/terminal ls");
    for at in 0..3 {
        assert_eq!(agent.tool(&session, at).1["status"], "failed");
    }
}

#[test]
fn permissions() {
    let (mut agent, session) = Agent::session(&[]);
    let id = agent.prompt(&session, "/ask May I?\n/ask-tool rm Remove it\n/ask And now?");
    let question = agent.question("session/request_permission");
    let kinds: Vec<_> =
        question["params"]["options"].as_array().unwrap().iter().map(|o| &o["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    agent.allow(&question, "allow_always");
    let question = agent.question("session/request_permission");
    assert_eq!(question["params"]["toolCall"]["toolCallId"], agent.tool(&session, 0).0["toolCallId"]);
    agent.allow(&question, "reject_once");
    let question = agent.question("session/request_permission");
    agent.tell(&question, &json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(agent.answer(&id)["result"]["stopReason"], "end_turn");
    let said = "permission: allow_alwayspermission: reject_oncepermission: cancelled";
    assert_eq!(agent.said(&session), said);
    assert_eq!(agent.tool(&session, 0).1["status"], "failed");
}

#[test]
fn a_conversation_comes_back_after_kill_9() {
    let (mut agent, session) = Agent::session(&[]);
    agent.turn(&session, "first prompt\n/say first words\n/tool grep");
    agent.prompt(&session, "second prompt\n/say second words\n/touch mark\n/wait-file never");
    wait_until("the mark", || agent.place.file("mark").exists());
    agent.child.kill().unwrap();
    agent.exit();

    let mut later = Agent::start(&agent.place, &[]);
    let params = json!({"sessionId": session, "cwd": agent.place.work(), "mcpServers": []});
    let refused = later.turn(&session, "/say hm");
    assert_eq!(refused["error"]["code"], -32002, "not loaded yet");
    assert!(later.call("session/load", &params).get("result").is_some());
    let kinds: Vec<_> =
        later.updates(&session).iter().map(|update| update["sessionUpdate"].clone()).collect();
    let expected = [
        "user_message_chunk",
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "user_message_chunk",
        "agent_message_chunk",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(later.said(&session), "first wordssecond words");
    later.turn(&session, "/recall");
    assert!(later.said(&session).ends_with(
        "I know 2 earlier prompts, the last: second prompt /say second words /touch mark /wait-file"
    ));
    drop(later);

    let mut resumed = Agent::start(&agent.place, &[]);
    assert!(resumed.call("session/resume", &params).get("result").is_some());
    assert!(resumed.updates(&session).is_empty(), "a resume replays nothing");
    resumed.turn(&session, "/recall");
    assert!(resumed.said(&session).starts_with("I know 3 earlier prompts"));
}

#[test]
fn sessions_are_listed_forked_and_closed() {
    let (mut agent, session) = Agent::session(&[]);
    agent.turn(&session, "the first line\n/say hello");
    let fork = json!({"sessionId": session, "cwd": agent.place.work(), "mcpServers": []});
    let forked = agent.call("session/fork", &fork)["result"]["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(forked, session);
    agent.turn(&forked, "/recall");
    assert_eq!(agent.said(&forked), "I know 1 earlier prompt: the first line /say hello");
    let listed = agent.call("session/list", &json!({}));
    let listed = listed["result"]["sessions"].as_array().unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|entry| entry["title"] == "the first line"));
    assert!(agent.call("session/close", &json!({"sessionId": session})).get("result").is_some());
    assert_eq!(agent.turn(&session, "/say hello")["error"]["code"], -32002);
    let outside = json!({"sessionId": "../x", "cwd": "/", "mcpServers": []});
    assert_eq!(agent.call("session/load", &outside)["error"]["code"], -32002);
}

#[test]
fn children_run_beside_their_parent() {
    let (mut agent, session) = Agent::session(&[]);
    // Each waits for what the other does: one after the other they would never end.
    let script = "/spawn one look around ; /touch a ; /wait-file b ; /say one is done\n\
                  /spawn two /wait-file a ; /touch b ; /spawn deep words only ; /join\n/join\n/say all home";
    assert_eq!(agent.turn(&session, script)["result"]["stopReason"], "end_turn");
    let born: Vec<_> = agent.heard.iter().filter(|message| message["method"] == "_lanyard/child").collect();
    assert_eq!(born.len(), 3);
    let params = &born[0]["params"];
    assert_eq!((&params["title"], &params["parentSessionId"]), (&json!("one"), &json!(session)));
    let one = params["sessionId"].as_str().unwrap();
    let deep = born.iter().find(|child| child["params"]["title"] == "deep").unwrap();
    assert_eq!(deep["params"]["parentSessionId"], born[1]["params"]["sessionId"]);
    assert_eq!(agent.said(one), "one is done");
    let ended = agent.heard.iter().filter(|message| message["method"] == "_lanyard/child_ended");
    assert!(ended.clone().all(|message| message["params"]["stopReason"] == "end_turn"));
    assert_eq!(ended.count(), 3);
    let said = agent.said(&session);
    assert_eq!(said, "child one: one is donechild two: child deep: done: words onlyall home");
}

#[test]
fn a_cancel_ends_commands_tools_and_children() {
    let (mut agent, session) = Agent::session(&[]);
    let script = "/spawn kid /say up ; /wait-file never\n/tool-open grep\n\
                  /run echo $$ > run.pid; sleep 600; true\n/say never";
    let id = agent.prompt(&session, script);
    let pid = wait_for_file(&agent.place.file("run.pid"));
    let born = agent.heard.iter().find(|message| message["method"] == "_lanyard/child").cloned();
    let born = born.unwrap_or_else(|| agent.question("_lanyard/child"));
    let child = born["params"]["sessionId"].as_str().unwrap().to_owned();
    agent.hears(&child, "up");
    agent.cancel(&session);
    assert_eq!(agent.answer(&id)["result"]["stopReason"], "cancelled");
    assert!(process(&pid).is_none(), "the command lives on");
    for at in 0..2 {
        assert_eq!(agent.tool(&session, at).1["status"], "failed");
    }
    let ended = agent.heard.iter().find(|message| message["method"] == "_lanyard/child_ended").unwrap();
    assert_eq!(ended["params"], json!({"sessionId": child, "stopReason": "cancelled"}));
    agent.turn(&session, "/say going on");
    assert!(agent.said(&session).ends_with("going on"));
}

#[test]
fn a_child_can_be_cancelled_alone() {
    let (mut agent, session) = Agent::session(&[]);
    let id = agent.prompt(&session, "/spawn kid /say up ; /wait-file never\n/join\n/say on we go");
    let child = agent.question("_lanyard/child")["params"]["sessionId"].as_str().unwrap().to_owned();
    agent.cancel(&child);
    assert_eq!(agent.answer(&id)["result"]["stopReason"], "end_turn");
    assert!(agent.said(&session).ends_with("on we go"));
}

#[test]
fn a_cancel_gives_up_an_open_question_and_a_second_prompt_is_refused() {
    let (mut agent, session) = Agent::session(&[]);
    let id = agent.prompt(&session, "/ask May I?");
    let question = agent.question("session/request_permission");
    assert_eq!(agent.turn(&session, "/say me too")["error"]["code"], -32600);
    agent.cancel(&session);
    assert_eq!(agent.answer(&id)["result"]["stopReason"], "cancelled");
    agent.allow(&question, "allow_once");
    agent.turn(&session, "/say going on");
    assert_eq!(agent.said(&session), "going on");
}

#[test]
fn a_script_with_a_mistake_runs_no_step() {
    let (mut agent, session) = Agent::session(&[]);
    let answer = agent.turn(&session, "/say hello\n/fly");
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["data"], "line 2 of the script: there is no step /fly");
    assert_eq!(agent.said(&session), "");
}

#[test]
fn a_prompt_without_steps_shows_the_demo_and_changes_nothing() {
    let (mut agent, session) = Agent::session(&[]);
    std::fs::write(agent.place.file("README.md"), "hello\n").unwrap();
    let id = agent.prompt(&session, "what can you do?");
    let question = agent.question("session/request_permission");
    assert_ne!(question["params"]["sessionId"], json!(session), "a subagent asks");
    agent.allow(&question, "allow_once");
    assert_eq!(agent.answer(&id)["result"]["stopReason"], "end_turn");
    assert_eq!(agent.heard.iter().filter(|message| message["method"] == "_lanyard/child_ended").count(), 2);
    assert!(agent.said(&session).contains("That is the tour"));
    assert_eq!(std::fs::read_dir(agent.place.work()).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(agent.place.file("README.md")).unwrap(), "hello\n");
}
