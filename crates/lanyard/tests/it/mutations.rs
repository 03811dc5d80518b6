//! Every change over HTTP is somebody's, has a reason where one was given, and can be repeated under its key (FND-H1). The
//! routes come from the daemon's own table: a new one is checked before anyone thinks of it.

use lanyard_daemon::api::{ApiRoute, Recorded, table};
use serde_json::{Value, json};

use crate::support::{Answer, Daemon, Setup, binary};

/// Changes that end the daemon, or go to programs outside.
const LEFT_OUT: [&str; 4] = ["shutdown", "check_agent", "check_mcp", "mcp_address"];

/// A daemon with one of everything that can be changed.
struct Stage {
    daemon: Daemon,
    session: String,
    plan: String,
}

impl Stage {
    fn new() -> Self {
        let program = binary().display().to_string();
        let command = [&*program, "scripted-agent", "--otherwise", "/say noted"];
        let command = serde_json::to_string(&command).unwrap();
        let config = format!("[agents.a]\ndriver = \"acp\"\ncommand = {command}\nkill_grace_ms = 400\n");
        let daemon = Daemon::start(Setup::default().config(&config));
        let mut stage = Self { daemon, session: String::new(), plan: String::new() };
        stage.session = stage.made("/sessions", &json!({}), "session");
        let plan = json!({ "title": "A plan", "tasks": [{ "title": "a task", "key": "one" }] });
        stage.plan = stage.made("/plans", &plan, "id");
        stage
    }

    fn made(&self, path: &str, body: &Value, field: &str) -> String {
        let answer = self.post("POST", path, &[], body);
        assert!(answer.status < 300, "{path}: {}", answer.text());
        answer.json()[field].as_str().unwrap().to_owned()
    }

    fn post(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.daemon.request(method, &format!("/api/v1{path}"), headers, Some(&body.to_string()))
    }

    /// A task of its own for each route: what one does must not be in another's way.
    fn task(&self) -> String {
        self.made("/tasks", &json!({ "title": "another", "kind": "external" }), "id")
    }

    fn path(&self, route: &ApiRoute) -> String {
        let fill = |path: String, name: &str, make: &dyn Fn() -> String| {
            if path.contains(name) { path.replace(name, &make()) } else { path }
        };
        let mut path = route.path.to_owned();
        path = fill(path, "{id}", &|| self.session.clone());
        path = fill(path, "{task}", &|| self.task());
        path = fill(path, "{any}", &|| self.session.clone());
        path = fill(path, "{plan}", &|| match route.name {
            // Only a plan whose tasks have ended is put away.
            "archive_plan" => self.made("/plans", &json!({ "title": "An empty plan" }), "id"),
            _ => self.plan.clone(),
        });
        path = fill(path, "{memory}", &|| self.made("/memory", &json!({ "text": "a fact" }), "id"));
        let token = json!({ "role": "observer", "name": "t" });
        path = fill(path, "{token}", &|| self.made("/tokens", &token, "id"));
        path = fill(path, "{mail}", &|| {
            let task = self.task();
            self.made(&format!("/tasks/{task}/mail"), &json!({ "text": "hello" }), "id")
        });
        // There is none of these: the refusal is repeated.
        let none = |prefix: &str| format!("{prefix}_01m7n5djg0fayvh8t5cxyjkdnf");
        for (name, prefix) in [("{flow}", "flow"), ("{gate}", "gate"), ("{notification}", "ntf")] {
            path = path.replace(name, &none(prefix));
        }
        path.replace("{server}", "none").replace("{name}", "none")
    }

    /// A body the route takes, as far as it needs one; `which` makes two that differ.
    fn body(&self, route: &ApiRoute, which: u32) -> Value {
        match route.name {
            "new_token" => json!({ "role": "observer", "name": format!("t{which}") }),
            "new_plan" => json!({ "title": format!("plan {which}") }),
            "import_plan" => json!({ "markdown": format!("# Plan {which}\n\n- [ ] a thing\n") }),
            "new_task" => json!({ "title": format!("task {which}") }),
            "edit_task" => json!({ "title": format!("title {which}") }),
            "complete_task" => json!({ "summary": format!("done {which}") }),
            "cancel_task" => json!({ "reason": format!("cancel {which}") }),
            "send_mail" => json!({ "text": format!("mail {which}") }),
            "add_memory" | "add_session_memory" => json!({ "text": format!("memory {which}") }),
            "deploy_task" | "deploy_plan" => json!({ "force": which > 1 }),
            "retry_task" => json!({ "deploy": which > 1 }),
            "adopt_task" => json!({ "parent": (which > 1).then_some(&self.session) }),
            "gc" => json!({ "dry_run": which > 1 }),
            "new_sign_in_link" => json!({}),
            _ => json!({ "reason": format!("reason {which}") }),
        }
    }
}

fn recorded() -> Vec<ApiRoute> {
    let here = |route: &ApiRoute| matches!(route.recorded, Recorded::Here | Recorded::WithoutAnswer);
    let mut routes: Vec<ApiRoute> =
        table().into_iter().filter(here).filter(|route| !LEFT_OUT.contains(&route.name)).collect();
    // What is halted stays so for the others.
    routes.sort_by_key(|route| ["halt", "lift_halt"].iter().position(|last| *last == route.name));
    routes
}

/// The same request under the same key has the same answer; another one under it is refused.
#[test]
fn fnd_h1_every_change_can_be_repeated_under_its_key() {
    let stage = Stage::new();
    let (mut done, mut conflicts) = (Vec::new(), 0);
    for route in recorded() {
        let (method, path) = (route.method.to_uppercase(), stage.path(&route));
        let key = [("idempotency-key", route.name)];
        let first = stage.post(&method, &path, &key, &stage.body(&route, 1));
        assert!(first.status < 500, "{}: {}", route.name, first.text());
        let again = stage.post(&method, &path, &key, &stage.body(&route, 1));
        assert_eq!(first.status, again.status, "{}: {} and {}", route.name, first.text(), again.text());
        if first.status >= 300 {
            assert_eq!(first.code(), again.code(), "{}", route.name);
            continue;
        }
        done.push(route.name);
        assert_eq!(first.text(), again.text(), "{}", route.name);
        if stage.body(&route, 1) != stage.body(&route, 2) {
            let other = stage.post(&method, &path, &key, &stage.body(&route, 2));
            assert_eq!(
                (other.status, other.code().as_str()),
                (409, "idempotency_conflict"),
                "{}",
                route.name
            );
            conflicts += 1;
        }
    }
    assert!(done.len() >= 18 && conflicts >= 14, "{conflicts} conflicts, done: {done:?}");
}

/// Answers with secrets and with words that may be forgotten are not kept. A repeat shows again what was made, and makes
/// nothing in place of what is gone.
#[test]
fn fnd_h1_a_repeat_brings_back_nothing_that_is_gone() {
    let mut stage = Stage::new();
    let ask = |stage: &Stage, path: &str, key: &str, body: &Value| {
        stage.post("POST", path, &[("idempotency-key", key)], body)
    };
    let twice = |stage: &Stage, path: &str, key: &str, body: &Value| {
        let (first, again) = (ask(stage, path, key, body), ask(stage, path, key, body));
        assert_eq!((first.status, first.text()), (201, again.text()), "{path}");
        first.json()
    };
    let gone = |stage: &Stage, path: &str, key: &str, body: &Value| {
        let answer = ask(stage, path, key, body);
        (answer.status, answer.code())
    };
    let new = json!({ "role": "observer", "name": "reader" });
    let token = twice(&stage, "/tokens", "t", &new);
    let at = format!("/tokens/{}", token["id"].as_str().unwrap());
    assert_eq!(stage.post("DELETE", &at, &[], &json!({})).status, 204);
    assert_eq!(gone(&stage, "/tokens", "t", &new), (410, "token_revoked".to_owned()));
    let listed = stage.post("GET", "/tokens", &[], &Value::Null).text();
    assert!(!listed.contains("reader"), "{listed}");

    let link = twice(&stage, "/sign-in/links", "l", &json!({}));
    let code = link["url"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    assert_eq!(stage.post("POST", "/sign-in", &[], &json!({ "code": code })).status, 200);
    let spent = (410, "sign_in_link_spent".to_owned());
    assert_eq!(gone(&stage, "/sign-in/links", "l", &json!({})), spent);
    let other = twice(&stage, "/sign-in/links", "m", &json!({}));
    assert_ne!(other["url"], link["url"]);

    let words = json!({ "text": "the cellar key is under the mat", "name": "cellar" });
    let entry = twice(&stage, "/memory", "w", &words);
    assert_eq!(entry["version"], 1, "written once");
    let forgotten = format!("/memory/{}", entry["id"].as_str().unwrap());
    assert_eq!(stage.post("DELETE", &forgotten, &[], &json!({})).status, 200);
    assert_eq!(gone(&stage, "/memory", "w", &words), (410, "memory_forgotten".to_owned()));
    assert_eq!(stage.post("GET", &forgotten, &[], &Value::Null).status, 404);

    let task = twice(&stage, "/tasks", "k", &json!({ "title": "once", "kind": "external" }));
    let edit = json!({ "title": "renamed" });
    let path = format!("/tasks/{}", task["id"].as_str().unwrap());
    assert_eq!(stage.post("PATCH", &path, &[], &edit).status, 200);
    let again = ask(&stage, "/tasks", "k", &json!({ "title": "once", "kind": "external" }));
    assert_eq!(again.json(), task, "the first answer, not the task as it is now");

    // A link is not good past the daemon that made it, and its code is in no file.
    let home = stage.daemon.home();
    assert!(stage.daemon.terminate().success());
    stage.daemon.try_start().unwrap();
    assert_eq!(gone(&stage, "/sign-in/links", "m", &json!({})), spent);
    let secrets = [token["token"].as_str().unwrap(), &code, other["url"].as_str().unwrap(), "under the mat"];
    for file in ["journal.db", "journal.db-wal"] {
        let bytes = std::fs::read(home.join(file)).unwrap_or_default();
        for secret in secrets {
            let found = bytes.windows(secret.len()).any(|piece| piece == secret.as_bytes());
            assert!(!found, "{secret} in {file}");
        }
    }
}

/// Who did it and why is in the audit, of every change that was made.
#[test]
fn fnd_h1_every_change_says_who_made_it_and_why() {
    let stage = Stage::new();
    let mut made = Vec::new();
    for route in recorded() {
        let (method, path) = (route.method.to_uppercase(), stage.path(&route));
        let body = stage.body(&route, 1);
        if stage.post(&method, &path, &[], &body).status < 300 {
            made.push((route.name, path, body["reason"].clone()));
        }
    }
    let audit = stage.post("GET", "/audit?kind=change&limit=1000", &[], &Value::Null).json();
    let entries = audit["entries"].as_array().unwrap();
    for (name, path, reason) in &made {
        let is = |entry: &&Value| entry["event"] == *name && entry["about"][0] == path.as_str();
        let entry = entries.iter().find(is).unwrap_or_else(|| panic!("no {name} of {path} in {entries:?}"));
        assert_eq!(entry["actor"]["kind"], "operator", "{entry}");
        assert_eq!(entry["reason"], *reason, "{entry}");
        assert_eq!(entry["session"], Value::Null);
    }
    let plan = &stage.plan;
    let needed =
        ["start_plan", "pause_plan", "archive_plan", "acknowledge_mail", "cancel_task", "halt", "lift_halt"];
    for name in needed {
        assert!(made.iter().any(|(made, _, _)| *made == name), "{name} of {plan}");
    }
    let said = stage.daemon.lanyard(&["audit", "--kind", "change", "--limit", "0"]);
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("start_plan") && said.contains("\"reason 1\""), "{said}");
    // Page after page, each once.
    let mut seen = 0;
    let mut cursor = String::new();
    loop {
        let page =
            stage.post("GET", &format!("/audit?kind=change&limit=7{cursor}"), &[], &Value::Null).json();
        seen += page["entries"].as_array().unwrap().len();
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, entries.len());
}

/// Two that ask at once under one key make one thing.
#[test]
fn fnd_h1_the_same_request_at_once_is_carried_out_once() {
    let stage = Stage::new();
    let body = json!({ "title": "only once" }).to_string();
    let answers: Vec<String> = std::thread::scope(|scope| {
        let ask = || {
            let caller = stage.daemon.caller();
            let body = body.clone();
            scope.spawn(move || {
                let key = [("idempotency-key", "at-once")];
                caller.try_request("POST", "/api/v1/plans", &key, Some(&body)).unwrap().text()
            })
        };
        let asked: Vec<_> = (0..8).map(|_| ask()).collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    let plans = stage.post("GET", "/plans", &[], &Value::Null).json();
    let named = plans["plans"].as_array().unwrap().iter().filter(|plan| plan["title"] == "only once").count();
    assert_eq!(named, 1);
}

/// No route changes something without a place where that is written down.
#[test]
fn fnd_h1_every_changing_route_says_where_it_is_recorded() {
    let nowhere: Vec<&str> = table()
        .iter()
        .filter(|route| route.method != "get" && route.recorded == Recorded::Nowhere)
        .map(|route| route.name)
        .collect();
    let known = [
        "sign_in",
        "sign_out",
        "call_begins",
        "call_ends",
        "call_unsent",
        "mcp_message",
        "mcp_close",
        "report_run",
        "backup",
        "upload_attachment",
        // Keys are in no log.
        "type_terminal",
        "resize_terminal",
    ];
    assert!(nowhere.iter().all(|name| known.contains(name)), "{nowhere:?}");
}
