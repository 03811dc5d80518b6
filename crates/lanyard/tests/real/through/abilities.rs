//! One test for each row of the table of agents that no other chapter shows. What an agent says that it can do must work;
//! what it cannot do must be named by the daemon, with the reason, and be refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::cases::{Case, Family, Hooked};
use super::kit::{AFTER, GREETING, HELD, Kit};
use crate::agents::Rights;
use crate::model::{Exchange, Role, Step, marker};
use crate::peer::PATIENCE;
use crate::support::{head, read_head};

/// A red point as a PNG, larger than what agents take for broken.
const PICTURE: &[u8] = include_bytes!("../../../../../editors/vscode/media/lanyard.png");
/// The beginning of any PNG in base64.
const PNG: &str = "iVBORw0KGgo";
/// Its output is not in its own text.
const COMMAND: &str = "printf SHELL-%s 42";
const OUTPUT: &str = "SHELL-42";
/// The command that every agent which takes commands is given, by its name.
const MINE: &str = "mine";

/// The first words of an answer are seen before the answer is over.
pub(super) fn partial(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    let stream = follow(&kit, &session);
    let turn = kit.begin(&session, "hold");
    kit.is_held("hold");
    let first = HELD.split(' ').next().unwrap();
    let seen = first_words(stream, first);
    kit.model.release("hold");
    kit.completed(&session, &turn);
    assert_eq!(seen, case.partial, "{}", kit.told(&session));
    kit.say("partial", if seen { "ok" } else { "not offered" });
}

/// The live stream of a session.
fn follow(kit: &Kit<'_>, session: &str) -> BufReader<UnixStream> {
    let mut stream = UnixStream::connect(kit.daemon.home().join("lanyard.sock")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let bearer = format!("Bearer {}", kit.daemon.token());
    let headers =
        [("host", "localhost"), ("authorization", bearer.as_str()), ("accept", "text/event-stream")];
    let path = format!("/api/v1/sessions/{session}/attach");
    stream.write_all(head("GET", &path, &headers, None).as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    assert_eq!(read_head(&mut reader).unwrap().status, 200);
    reader
}

/// Whether the stream tells the first words before it is quiet: the model gives no more until it is released.
fn first_words(mut stream: BufReader<UnixStream>, words: &str) -> bool {
    let mut line = String::new();
    while stream.read_line(&mut line).is_ok_and(|read| read > 0) {
        let frame = line.strip_prefix("data:").and_then(|data| serde_json::from_str::<Value>(data).ok());
        let said = frame.is_some_and(|frame| {
            let text = frame["text"].as_str().or_else(|| frame["data"]["text"].as_str()).unwrap_or_default();
            matches!(frame["type"].as_str(), Some("preview" | "message")) && text.contains(words)
        });
        if said {
            return true;
        }
        line.clear();
    }
    false
}

/// What is told of a tool: its arguments, its output, and what it changed in a file.
pub(super) fn tools(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let file = kit.work.join("note.txt");
    std::fs::write(&file, "one\n").unwrap();
    let mut steps = vec![(case.shell)(COMMAND, Rights::All)];
    steps.extend((case.edit)(&file));
    steps.push(Step::text("Work done."));
    kit.model.script("work", steps);
    let session = kit.session();
    let worked = kit.turn(&session, "work");
    assert!(worked.ends_with("Work done."), "{worked}\n{}", kit.told(&session));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n", "{}", kit.told(&session));
    let all = |kinds: &[&str]| -> Vec<String> {
        let found =
            kit.log(&session).into_iter().filter(|event| kinds.iter().any(|kind| event["type"] == *kind));
        found.map(|event| event["data"].to_string()).collect()
    };
    let input = all(&["tool.called"]).iter().any(|told| told.contains("SHELL-%s"));
    let output = all(&["tool.returned"]).iter().any(|told| told.contains(OUTPUT));
    let changed = all(&["file.changed"]).iter().any(|told| told.contains("note.txt"));
    let both = |told: &String| told.contains("one") && told.contains("two") && told.contains("note.txt");
    let diff = changed || all(&["tool.called", "tool.returned"]).iter().any(both);
    assert!(input, "a call is told with what it does: {}", kit.told(&session));
    assert_eq!(output, case.tells_output, "{}", kit.told(&session));
    let told = [("input", input), ("output", output), ("diff", diff)];
    let told: Vec<&str> = told.into_iter().filter(|(_, told)| *told).map(|(name, _)| name).collect();
    kit.say("tools", &told.join(", "));
}

/// A subagent is ended alone, and its parent goes on; or the reason why not is told.
pub(super) fn child_stop(case: &Case) {
    let Family::Sessions(steps) = &case.family else {
        return Kit::new(case, Rights::All).not_offered("child stop");
    };
    let kit = Kit::new(case, Rights::All);
    kit.model.script("parent", steps.iter().cloned().chain([Step::text("Parent done.")]).collect::<Vec<_>>());
    kit.model.script("child", [case.child.clone().held()]);
    let session = kit.session();
    let turn = kit.begin(&session, "parent");
    kit.is_held("child");
    let child = kit.wait("the child's session", &session, || {
        let found = kit.get(&format!("/sessions?parent={session}"))["sessions"].clone();
        found[0]["id"].as_str().map(str::to_owned)
    });
    kit.event(&child, "the child's turn", |event| event["type"] == "turn.started");
    let reason = kit.lack(&child, "stop");
    kit.post(&format!("/sessions/{child}/stop"), &json!({ "now": true }));
    if let Some(reason) = reason {
        let blocked = kit.event(&child, "the reason", |event| event["type"] == "end.blocked");
        assert!(blocked.to_string().contains("cannot end this subagent alone"), "{reason}: {blocked}");
        kit.model.release("child");
        kit.completed(&session, &turn);
        return kit.not_offered("child stop");
    }
    kit.event(&child, "the end of the child's turn", |event| event["type"] == "turn.interrupted");
    kit.completed(&session, &turn);
    kit.ok("child stop");
}

pub(super) fn compact(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    let path = format!("/api/v1/sessions/{session}/compact");
    let lack = kit.lack(&session, "compact");
    let answer = kit.daemon.request("POST", &path, &[], Some("{}"));
    if let Some(why) = lack {
        // An agent that is run once per turn has no process between its turns.
        assert_eq!(answer.status, 409, "{}", answer.text());
        assert!(matches!(answer.code().as_str(), "compact_not_offered" | "agent_not_running"), "{why}");
        return kit.not_offered("compact");
    }
    assert_eq!(answer.status, 202, "{}", answer.text());
    kit.event(&session, "the compaction", |event| event["type"] == "context.compacted");
    assert!(kit.turn(&session, "after").ends_with(AFTER), "{}", kit.told(&session));
    kit.ok("compact");
}

/// A picture reaches the model as one, or its path does.
pub(super) fn images(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    let part = json!({ "kind": "attachment", "id": upload(&kit, PICTURE), "name": "shot.png" });
    let message = json!({ "prompt": format!("look {}", marker("after")), "parts": [part] });
    let receipt = kit.post(&format!("/sessions/{session}/turns"), &message);
    kit.completed(&session, receipt["turn"].as_str().unwrap());
    let asked = kit.answered("after", 0).body.to_string();
    if let Some(why) = kit.lack(&session, "images") {
        assert!(receipt["warnings"].to_string().contains("takes no images"), "{why}: {receipt:#}");
        let told = !asked.contains(PNG) && asked.contains("shot.png");
        assert!(told, "it is told where the picture is: {asked}");
        kit.say("images", "their path");
    } else {
        assert!(asked.contains(PNG), "the picture did not reach the model: {}", kit.told(&session));
        kit.ok("images");
    }
}

/// Has the daemon keep some content: its id.
fn upload(kit: &Kit<'_>, content: &[u8]) -> String {
    let mut stream = UnixStream::connect(kit.daemon.home().join("lanyard.sock")).unwrap();
    let (bearer, length) = (format!("Bearer {}", kit.daemon.token()), content.len().to_string());
    let headers = [
        ("host", "localhost"),
        ("authorization", bearer.as_str()),
        ("content-type", "image/png"),
        ("content-length", length.as_str()),
    ];
    stream.write_all(head("POST", "/api/v1/attachments?name=shot.png", &headers, None).as_bytes()).unwrap();
    stream.write_all(content).unwrap();
    let mut reader = BufReader::new(stream);
    let status = read_head(&mut reader).unwrap().status;
    let mut body = String::new();
    reader.read_to_string(&mut body).unwrap();
    assert!((200..300).contains(&status), "{body}");
    let kept: Value = serde_json::from_str(&body).unwrap();
    kept["id"].as_str().unwrap().to_owned()
}

/// Another model is chosen for one turn, and the model server is asked for it.
pub(super) fn models(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    let Some(other) = other(&kit, &session, "model", "models") else { return kit.not_offered("models") };
    choose(&kit, &session, "model", &other);
    // With another model an agent may offer its tools in another way, so that no step of the script is chosen; titles are
    // made by a model of their own.
    let asked = |script: &str| {
        let all = kit.model.log();
        let of_it: Vec<_> = all.iter().filter(|one| one.body.to_string().contains(&marker(script))).collect();
        let found = of_it.iter().find(|one| one.script == script).or(of_it.first());
        found.map_or_else(|| panic!("nothing was asked: {}", kit.told(&session)), |one| model_of(one))
    };
    let [first, second] = ["greet", "after"].map(asked);
    assert_ne!(first, second, "{other} was chosen: {}", kit.told(&session));
    kit.ok("models");
}

/// The model that a request names, in its body or its path.
fn model_of(asked: &Exchange) -> String {
    let path = asked.path.split("models/").nth(1).and_then(|rest| rest.split(':').next());
    asked.body["model"].as_str().or(path).unwrap_or_default().to_owned()
}

/// Another mode is chosen for one turn, and is in force in it.
pub(super) fn modes(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    let Some(other) = other(&kit, &session, "mode", "modes") else { return kit.not_offered("modes") };
    choose(&kit, &session, "mode", &other);
    let told = kit.events(&session, "run.in_force");
    assert!(told.iter().any(|event| event["data"]["mode"] == *other), "{other}: {told:#?}");
    kit.ok("modes");
}

/// Something to choose that is not in force and asks for approvals. Where nothing is offered a choice is refused.
fn other(kit: &Kit<'_>, session: &str, kind: &str, menu: &str) -> Option<String> {
    let detail = kit.get(&format!("/sessions/{session}"));
    if let Some(why) = kit.lack(session, kind) {
        let turn = json!({ "prompt": "no", "choice": { kind: "other" } });
        let path = format!("/api/v1/sessions/{session}/turns");
        let answer = kit.daemon.request("POST", &path, &[], Some(&turn.to_string()));
        assert_eq!(answer.code(), "choice_unavailable", "{why}: {}", answer.text());
        return None;
    }
    let held = [&detail["in_force"][kind], &detail["offer"][menu]["default"]];
    let items = detail["offer"][menu]["items"].as_array().cloned().unwrap_or_default();
    let fits = |item: &&Value| item["unguarded"] != true && held.iter().all(|held| **held != item["id"]);
    let found = items.iter().find(fits).unwrap_or_else(|| panic!("nothing else to choose: {detail:#}"));
    Some(found["id"].as_str().unwrap().to_owned())
}

fn choose(kit: &Kit<'_>, session: &str, kind: &str, id: &str) {
    let turn = json!({ "prompt": format!("go {}", marker("after")), "choice": { kind: id } });
    let turn = kit.post(&format!("/sessions/{session}/turns"), &turn)["turn"].as_str().unwrap().to_owned();
    kit.completed(session, &turn);
}

/// A command of the agent's own is listed and carried out: what the user's command stands for reaches the model, and a
/// built-in one does not reach it as words.
pub(super) fn commands(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    if kit.lack(&session, "commands").is_some() {
        return kit.not_offered("commands");
    }
    let offer = kit.get(&format!("/sessions/{session}"))["offer"]["commands"].clone();
    let wanted = case.built_in.unwrap_or(MINE);
    let mut names = offer.as_array().into_iter().flatten().filter_map(|command| command["name"].as_str());
    let name =
        names.find(|name| name.ends_with(wanted)).unwrap_or_else(|| panic!("no {wanted} among {offer}"));
    let words = if case.built_in.is_some() { "" } else { " and no more" };
    let turn = json!({ "prompt": format!("/{name}{words}") });
    let turn = kit.post(&format!("/sessions/{session}/turns"), &turn)["turn"].as_str().unwrap().to_owned();
    let said = kit.completed(&session, &turn);
    if case.built_in.is_some() {
        let asked = kit.model.log();
        let reached = asked.iter().any(|one| one.asked.says(Role::User, &format!("/{name}")));
        assert!(!reached && !said.is_empty(), "{said}\n{}", kit.told(&session));
        return kit.ok("commands");
    }
    assert!(said.ends_with(AFTER), "{}", kit.told(&session));
    let asked = kit.model.wait("the command", PATIENCE, |one| one.is("after", 0)).body.to_string();
    assert!(asked.contains("and no more"), "{asked}");
    kit.ok("commands");
}

/// Words come with the result of the agent's own tool, by its hook, once one of its calls came by there.
pub(super) fn by_hook(case: &Case) {
    const WORDS: &str = "Mind the gap, please.";
    let kit = Kit::new(case, Rights::All);
    kit.install_hook(case.harness);
    let held = "touch at-two; until [ -e go-two ]; do sleep 0.05; done; printf DONE-%s two";
    let steps = [(case.shell)("printf DONE-%s one", Rights::All), (case.shell)(held, Rights::All)];
    let last = [(case.shell)("printf DONE-%s three", Rights::All), Step::text("Work done.")];
    kit.model.script("work", steps.into_iter().chain(last).collect::<Vec<_>>());
    let session = kit.session();
    let turn = kit.begin(&session, "work");
    kit.wait("the second command", &session, || kit.work.join("at-two").exists().then_some(()));
    kit.post(&format!("/sessions/{session}/guidance"), &json!({ "text": WORDS }));
    std::fs::write(kit.work.join("go-two"), "").unwrap();
    kit.completed(&session, &turn);
    let delivered = kit.events(&session, "guidance.delivered");
    let by = |channel: &str| delivered.iter().any(|event| event["data"]["channel"] == channel);
    match case.hooked {
        Hooked::No => {
            assert!(!by("hook"), "{}", kit.told(&session));
            return kit.not_offered("guidance by hook");
        }
        // The quicker way is taken where there is one.
        Hooked::Steers => {
            assert!(by("steer"), "{}", kit.told(&session));
            return kit.say("guidance by hook", "steered");
        }
        Hooked::Yes => assert!(by("hook"), "{}", kit.told(&session)),
    }
    let heard = [2, 3].map(|step| kit.answered("work", step).body.to_string().contains(WORDS));
    assert!(heard[0] || heard[1], "the model never read them: {}", kit.told(&session));
    kit.ok("guidance by hook");
}

/// OpenCode's word for effort is a variant of the model: it reaches the model, and a model without it refuses it.
pub(super) fn effort(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    let send = |choice: Value| {
        let turn = json!({ "prompt": format!("go {}", marker("after")), "choice": choice });
        let turn = kit.post(&format!("/sessions/{session}/turns"), &turn);
        kit.ended(&session, turn["turn"].as_str().unwrap())
    };
    let end = send(json!({ "model": "scripted/other", "effort": "high" }));
    assert_eq!(end["data"]["outcome"], "completed", "{}", kit.told(&session));
    let asked = kit.answered("after", 0);
    assert_eq!((&asked.body["model"], &asked.body["reasoning_effort"]), (&json!("other"), &json!("high")));
    let end = send(json!({ "model": "scripted/scripted", "effort": "high" }));
    assert_eq!(end["data"]["outcome"], "failed", "{end}");
    assert!(end["data"]["reason"].to_string().contains("choice_refused"), "{end}");
    assert!(kit.turn(&session, "after").ends_with(AFTER), "{}", kit.told(&session));
    kit.ok("effort");
}
