//! What agents, operators, summaries and imports may write, in whose memory it ends up, and who finds it there.

use lanyard_core::memory::{MemoryAsk, MemoryEntry, MemoryPolicy, Where, admit};
use lanyard_core::session::{Delivery, InboxChange, Message};
use lanyard_core::{MemoryId, NoteId, TurnId};
use lanyard_store::MemoryFilter;
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};

use super::*;
use crate::memory::{self, Brought, Keeper};

fn store(scope: &str, name: &str, text: &str, tags: &[&str]) -> Value {
    json!({ "action": "store", "scope": scope, "name": name, "text": text, "tags": tags })
}

impl Room {
    async fn remembering(&self, ask: Value, parent: Option<SessionId>) -> SessionId {
        let memory = serde_json::from_value(ask).unwrap();
        self.session(NewSession { memory: Some(memory), ..NewSession::default() }, parent).await
    }

    async fn set_memory(&self, session: SessionId, ask: Value) {
        let ask: MemoryAsk = serde_json::from_value(ask).unwrap();
        let by = (Actor::operator("local"), None, Vec::new());
        memory::set_policy(&self.app.memories, session, ask, by).await.unwrap();
    }

    async fn turn(&self, session: SessionId, memory: Option<MemoryAsk>) {
        let message = Message {
            turn: TurnId::mint(self.app.clock.now(), self.app.clock.random()),
            note: NoteId::mint(self.app.clock.now(), self.app.clock.random()),
            client_turn_id: None,
            prompt: "Fix the flaky test".to_owned(),
            parts: Vec::new(),
            delivery: Delivery::Reject,
            memory,
            choice: lanyard_core::session::AgentChoice::default(),
            forced: false,
            take_over: false,
            review: None,
        };
        self.command(session, Command::Inbox(InboxChange::Send(Box::new(message)).into())).await;
    }

    pub(super) fn remembered(&self) -> Vec<MemoryEntry> {
        self.app.store.memories(&MemoryFilter::default(), None, 10_000).unwrap()
    }

    /// A request of the HTTP API by an operator: status and body.
    pub(super) async fn http(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        use tower::ServiceExt;
        let request = axum::http::Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header("authorization", "Bearer operator")
            .header("content-type", "application/json")
            .extension(crate::server::Via::Socket)
            .body(axum::body::Body::from(body.to_string()))
            .unwrap();
        let answer = crate::api::router(&self.app).oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

/// S3-26 to S3-29, S3-T7: as an agent meets them.
#[tokio::test(flavor = "multi_thread")]
async fn each_mode_lets_an_agent_write_what_it_says() {
    let room = Room::new();
    for (mode, in_session, tagged, long_term) in [
        ("off", "memory_off", "memory_off", "memory_off"),
        ("session_only", "", "memory_session_only", "memory_session_only"),
        ("selective", "", "", "memory_tag_not_allowed"),
        ("full", "", "", ""),
    ] {
        let me = room.remembering(json!({ "mode": mode, "allow": ["design"] }), None).await;
        let writes = [
            (in_session, store("session", "draft", "mine", &[])),
            (tagged, store("workspace", mode, "for all", &["Design"])),
            (long_term, store("workspace", &format!("{mode} 2"), "for all", &["other"])),
        ];
        for (refused, write) in writes {
            let before = room.remembered().len();
            if refused.is_empty() {
                room.call(me, "memory_context", write).await;
                assert_eq!(room.remembered().len(), before + 1);
            } else {
                assert_eq!(room.refused(me, "memory_context", write).await, refused, "{mode}");
                assert_eq!(room.remembered().len(), before, "{mode}");
            }
        }
    }
    room.close().await;
}

/// S3-30: what is there is found from every mode but off, by those it is for.
#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_written_is_still_found() {
    let room = Room::new();
    let writer = room.remembering(json!({ "mode": "full" }), None).await;
    room.call(writer, "memory_context", store("workspace", "port", "The server listens on 8080", &[])).await;
    let find = json!({ "action": "search", "query": "8080" });
    let get = json!({ "action": "get", "name": "port" });
    let reader = room.remembering(json!({ "mode": "session_only" }), None).await;
    assert_eq!(room.call(reader, "memory_context", find.clone()).await["found"], 1);
    assert_eq!(room.call(reader, "memory_context", get.clone()).await["text"], "The server listens on 8080");
    let delete = json!({ "action": "delete", "name": "port" });
    assert_eq!(room.refused(reader, "memory_context", delete).await, "memory_session_only");
    let off = room.remembering(json!({ "mode": "off" }), None).await;
    for asked in [find, get, json!({ "action": "list" })] {
        assert_eq!(room.refused(off, "memory_context", asked).await, "memory_off");
    }
    let without = room.remembering(json!({ "mode": "full", "session_memory": false }), None).await;
    let own = json!({ "action": "list", "scope": "session" });
    assert_eq!(room.refused(without, "memory_context", own).await, "memory_session_off");
    room.close().await;
}

/// Scoped by workspace and owner: one person's agents do not read another's.
#[tokio::test(flavor = "multi_thread")]
async fn memory_belongs_to_a_workspace_and_a_person() {
    let room = Room::new();
    let of = |owner: &str, workspace: &str| NewSession {
        owner: Some(owner.to_owned()),
        workspace: Some(workspace.to_owned()),
        ..NewSession::default()
    };
    let anns = room.session(of("ann", "/w"), None).await;
    room.call(anns, "memory_context", store("workspace", "x", "anns secret", &[])).await;
    let find = json!({ "action": "search", "query": "secret" });
    let second = room.session(of("ann", "/w"), None).await;
    let child = room.child(second).await;
    for sees in [anns, second, child] {
        assert_eq!(room.call(sees, "memory_context", find.clone()).await["found"], 1);
    }
    for blind in [room.session(of("bob", "/w"), None).await, room.session(of("ann", "/v"), None).await] {
        assert_eq!(room.call(blind, "memory_context", find.clone()).await["found"], 0);
        let same_name = store("workspace", "x", "my own", &[]);
        room.call(blind, "memory_context", same_name).await;
    }
    let get = json!({ "action": "get", "name": "x" });
    assert_eq!(room.call(anns, "memory_context", get).await["text"], "anns secret");
    room.close().await;
}

/// A refusal names its rule and is counted, for the session and for the daemon.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_counted_with_its_rule() {
    let room = Room::new();
    let me = room.remembering(json!({ "mode": "session_only" }), None).await;
    for _ in 0..3 {
        room.refused(me, "memory_context", store("workspace", "x", "y", &[])).await;
    }
    let (status, view) = room.http("GET", &format!("/sessions/{me}/memory-policy"), json!({})).await;
    assert_eq!((status, &view["refused"]), (200, &json!({ "session_only": 3 })));
    let (_, all) = room.http("GET", "/memory/status", json!({})).await;
    assert_eq!(all["refused"], json!({ "session_only": 3 }));
    room.close().await;
}

/// S3-33, and what is tightened above counts below, at once and in the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_tightened_reaches_the_family() {
    let room = Room::new();
    let hub = room.remembering(json!({ "mode": "full" }), None).await;
    let child = room.child(hub).await;
    let grandchild = room.child(child).await;
    let write = |name: &str| store("workspace", name, "text", &[]);
    room.call(grandchild, "memory_context", write("before")).await;
    room.set_memory(hub, json!({ "mode": "session_only" })).await;
    for session in [hub, child, grandchild] {
        assert_eq!(room.refused(session, "memory_context", write("after")).await, "memory_session_only");
        assert_eq!(room.load(session).policy.memory.mode, MemoryMode::SessionOnly);
    }
    let path = format!("/sessions/{grandchild}/memory-policy");
    let (status, problem) = room.http("PATCH", &path, json!({ "mode": "full" })).await;
    assert_eq!((status, problem["code"].as_str()), (409, Some("memory_policy_wider")));
    room.set_memory(hub, json!({ "mode": "full" })).await;
    let (status, view) = room.http("PATCH", &path, json!({ "mode": "full" })).await;
    // The one between was tightened, and nobody has widened it again.
    assert_eq!((status, view["code"].as_str()), (409, Some("memory_policy_wider")));
    room.close().await;
}

/// Bad input is refused where it comes in, with what to do (S3-B08).
#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_with_what_to_do() {
    let room = Room::new();
    let me = room.remembering(json!({ "mode": "full" }), None).await;
    let policy = format!("/sessions/{me}/memory-policy");
    let long = "x".repeat(40_000);
    let many: Vec<String> = (0..40).map(|n| format!("t{n}")).collect();
    for (method, path, body, status, code) in [
        ("PATCH", policy.as_str(), json!({ "mode": "everything" }), 422, "body_invalid"),
        ("PATCH", &policy, json!({ "modus": "full" }), 422, "body_invalid"),
        ("PATCH", &policy, json!({ "tags": ["a,b"] }), 422, "memory_tag_bad"),
        ("PATCH", &policy, json!({ "tags": ["\u{7}"] }), 422, "memory_tag_bad"),
        ("PATCH", &policy, json!({ "allow": many }), 422, "field_too_many"),
        ("POST", "/memory", json!({ "text": long }), 422, "field_too_long"),
        ("POST", "/memory", json!({ "text": " " }), 422, "field_empty"),
        ("POST", "/memory", json!({ "text": "x", "name": "a\nb" }), 422, "field_bad_text"),
        ("POST", "/memory", json!({ "text": "x", "tags": ["🎈"] }), 422, "memory_tag_bad"),
        ("POST", "/memory", json!({ "text": "x", "scope": "session" }), 422, "field_empty"),
        ("POST", "/memory", json!({ "text": "x", "session": "nobody" }), 404, "session_not_found"),
        ("POST", "/memory/forget", json!({}), 422, "forget_what"),
        ("GET", "/memory/mem_x", json!({}), 400, "memory_id_bad"),
        ("GET", "/memory/mem_00000000000000000000000000", json!({}), 404, "memory_not_found"),
        ("DELETE", "/memory/mem_00000000000000000000000000", json!({}), 404, "memory_not_found"),
        ("GET", "/memory?store=attic", json!({}), 400, "query_invalid"),
        ("GET", "/memory?tags=a%22b", json!({}), 422, "memory_tag_bad"),
        ("POST", "/sessions", json!({ "memory": { "mode": "ful" } }), 422, "body_invalid"),
        ("POST", "/sessions", json!({ "memory": { "tags": ["a;b"] } }), 422, "memory_tag_bad"),
    ] {
        let (found, problem) = room.http(method, path, body.clone()).await;
        assert_eq!(
            (found, problem["code"].as_str()),
            (status, Some(code)),
            "{method} {path} {body}: {problem}"
        );
        assert!(problem["advice"].as_str().is_some_and(|advice| !advice.is_empty()), "{problem}");
    }
    assert!(room.remembered().is_empty());
    room.close().await;
}

/// What is exported and brought in again is the same, however often.
#[tokio::test(flavor = "multi_thread")]
async fn an_import_is_idempotent_and_judged() {
    let room = Room::new();
    let me = room.remembering(json!({ "mode": "full" }), None).await;
    room.call(me, "memory_context", store("workspace", "a", "one", &["x"])).await;
    room.call(me, "memory_context", store("session", "b", "two", &[])).await;
    let entries = room.remembered();
    let import = json!({ "entries": entries });
    let (_, again) = room.http("POST", "/memory/import", import.clone()).await;
    assert_eq!(again, json!({ "imported": 0, "known": 2 }));
    let ids: Vec<MemoryId> = entries.iter().map(|entry| entry.id).collect();
    room.app.store.forget_memories(&ids).unwrap();
    let (_, back) = room.http("POST", "/memory/import", import.clone()).await;
    assert_eq!(back, json!({ "imported": 2, "known": 0 }));
    assert_eq!(room.remembered(), entries);
    // Other content under the same id, a line that is none, and what a policy forbids by now.
    let mut changed = entries[0].clone();
    changed.text = "changed".to_owned();
    room.app.store.forget_memories(&ids[1..]).unwrap();
    room.set_memory(me, json!({ "mode": "off" })).await;
    let mixed = json!({ "entries": [changed, { "text": 7 }, entries[1]] });
    let (_, mixed) = room.http("POST", "/memory/import", mixed).await;
    let codes: Vec<&str> =
        mixed["refused"].as_array().unwrap().iter().map(|line| line["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["memory_off", "entry_invalid", "memory_off"]);
    assert_eq!(room.remembered().len(), 1);
    room.close().await;
}

/// Two agents that write under one name at the same time both get their answer, and one of them the last word.
#[tokio::test(flavor = "multi_thread")]
async fn writers_of_one_name_do_not_lose_each_other() {
    let room = Arc::new(Room::new());
    let me = room.remembering(json!({ "mode": "full" }), None).await;
    let writes = (0..8).map(|n| {
        let room = room.clone();
        tokio::spawn(async move {
            room.call(me, "memory_context", store("workspace", "x", &format!("text {n}"), &[])).await
        })
    });
    let mut versions = Vec::new();
    for write in writes.collect::<Vec<_>>() {
        versions.push(write.await.unwrap()["version"].as_u64().unwrap());
    }
    versions.sort_unstable();
    assert_eq!(versions, (1..=8).collect::<Vec<_>>());
    assert_eq!(room.remembered().len(), 1);
    let room = Arc::into_inner(room).unwrap();
    room.close().await;
}

/// Ways an entry may come in.
#[derive(Debug, Clone, Copy)]
enum Path {
    Tool,
    Api,
    SessionApi,
    Summary,
    Import,
}

#[derive(Debug, Clone)]
struct Case {
    session: MemoryAsk,
    child: Option<MemoryAsk>,
    turn: Option<MemoryAsk>,
    later: Option<MemoryAsk>,
    path: Path,
    long_term: bool,
    tags: Vec<String>,
}

fn tags() -> impl Strategy<Value = Vec<String>> {
    let tag = prop::sample::select(&["api", "design", "dev_test"][..]).prop_map(str::to_owned);
    prop::collection::vec(tag, 0..3)
}

fn ask() -> impl Strategy<Value = MemoryAsk> {
    let mode = prop::sample::select(&MemoryMode::ALL[..]);
    (prop::option::of(mode), any::<Option<bool>>(), prop::option::of(tags()), prop::option::of(tags()))
        .prop_map(|(mode, session_memory, tags, allow)| MemoryAsk { mode, session_memory, tags, allow })
}

fn case() -> impl Strategy<Value = Case> {
    let path =
        prop::sample::select(&[Path::Tool, Path::Api, Path::SessionApi, Path::Summary, Path::Import][..]);
    let asks = (ask(), prop::option::of(ask()), prop::option::of(ask()), prop::option::of(ask()));
    (asks, path, any::<bool>(), tags()).prop_map(|((session, child, turn, later), path, long_term, tags)| {
        Case { session, child, turn, later, path, long_term, tags }
    })
}

/// S3-26 to S3-32: for every policy of a session, its child, its turn and a change in mid-turn, and for every way in,
/// nothing is in a store that any of them forbids.
#[test]
fn nothing_reaches_a_store_that_a_policy_forbids() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let room = runtime.block_on(async { Room::new() });
    let mut runner = TestRunner::new(Cases { cases: 96, source_file: Some(file!()), ..Cases::default() });
    runner
        .run(&case(), |case| {
            let (policies, entries) = runtime.block_on(carried_out(&room, &case));
            for entry in entries {
                for policy in &policies {
                    prop_assert!(
                        admit(policy, entry.store, &entry.tags).is_ok(),
                        "{:?} {:?} under {policy:?}",
                        entry.store,
                        entry.tags
                    );
                }
            }
            Ok(())
        })
        .unwrap();
    runtime.block_on(room.close());
}

/// FND-K14. A policy's own tags may be all that lets an entry into long-term memory, so an entry that is brought in gets
/// them like any other write: else it lies there under a policy above that lets in nothing without such a tag.
#[tokio::test(flavor = "multi_thread")]
async fn fnd_k14_what_is_brought_in_gets_the_tags_that_let_it_in() {
    let words = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
    for (path, mode_later, expected) in [
        (Path::Import, MemoryMode::Selective, &["api"][..]),
        (Path::Tool, MemoryMode::Selective, &["api"]),
        (Path::Api, MemoryMode::Selective, &["api"]),
        (Path::SessionApi, MemoryMode::Selective, &["api"]),
        (Path::Import, MemoryMode::Full, &["api"]),
    ] {
        let room = Room::new();
        let case = Case {
            session: MemoryAsk { allow: words(&["api"]), ..MemoryAsk::default() },
            child: Some(MemoryAsk { tags: words(&["api"]), ..MemoryAsk::default() }),
            turn: None,
            later: Some(MemoryAsk { mode: Some(mode_later), ..MemoryAsk::default() }),
            path,
            long_term: true,
            tags: Vec::new(),
        };
        let (policies, entries) = carried_out(&room, &case).await;
        let [entry] = &entries[..] else { panic!("{path:?}: {entries:?}") };
        assert!(
            entry.tags.iter().map(ToString::to_string).eq(expected.iter().copied()),
            "{path:?}: {entry:?}"
        );
        for policy in &policies {
            assert!(admit(policy, entry.store, &entry.tags).is_ok(), "{path:?}: {entry:?} under {policy:?}");
        }
        room.close().await;
    }
}

/// FND-K14. An entry that got a policy's tags is known when it comes again, with them or without.
#[tokio::test(flavor = "multi_thread")]
async fn fnd_k14_an_entry_that_got_tags_is_known_again() {
    let room = Room::new();
    let me = room.remembering(json!({ "mode": "full" }), None).await;
    room.call(me, "memory_context", store("workspace", "a", "one", &["x"])).await;
    let given = room.remembered();
    room.set_memory(me, json!({ "tags": ["api"] })).await;
    let import = json!({ "entries": given });
    let (_, known) = room.http("POST", "/memory/import", import.clone()).await;
    assert_eq!(known, json!({ "imported": 0, "known": 1 }));
    room.app.store.forget_memories(&[given[0].id]).unwrap();
    for expected in [json!({ "imported": 1, "known": 0 }), json!({ "imported": 0, "known": 1 })] {
        let (_, brought) = room.http("POST", "/memory/import", import.clone()).await;
        assert_eq!(brought, expected);
    }
    let held = room.remembered();
    assert_eq!(held[0].tags.len(), 2, "{held:?}");
    let (_, known) = room.http("POST", "/memory/import", json!({ "entries": held })).await;
    assert_eq!(known, json!({ "imported": 0, "known": 1 }));
    room.close().await;
}

/// Does what the case says, and answers which policies there were and what came in.
async fn carried_out(room: &Room, case: &Case) -> (Vec<MemoryPolicy>, Vec<MemoryEntry>) {
    let ask = |ask: &MemoryAsk| serde_json::to_value(ask).unwrap();
    let top = room.remembering(ask(&case.session), None).await;
    let me = match &case.child {
        Some(child) => room.remembering(ask(child), Some(top)).await,
        None => top,
    };
    // A turn that asks for more than its session may is refused; it then begins with what there is.
    let held = room.load(me).policy.memory;
    let turn = case.turn.clone().filter(|turn| turn.within(&held).is_ok());
    room.turn(me, turn).await;
    if let Some(later) = &case.later {
        let by = (Actor::operator("local"), None, Vec::new());
        // Wider than what is above is refused, and nothing has changed then.
        let _ = memory::set_policy(&room.app.memories, top, later.clone(), by).await;
    }
    let session = room.load(me);
    let policies = vec![
        room.load(top).policy.memory,
        session.policy.memory.clone(),
        session.turn.as_ref().unwrap().memory.clone().unwrap(),
    ];
    let before: Vec<MemoryId> = room.remembered().iter().map(|entry| entry.id).collect();
    let scope = if case.long_term { "workspace" } else { "session" };
    let (name, tags) = (format!("of {me}"), case.tags.clone());
    let body = json!({ "text": "words", "name": name, "scope": scope, "tags": tags });
    match case.path {
        Path::Tool => {
            let mut arguments = body;
            arguments["action"] = "store".into();
            room.result(Some(me), "memory_context", arguments).await;
        }
        Path::Api => {
            let mut body = body;
            body["session"] = me.to_string().into();
            room.http("POST", "/memory", body).await;
        }
        Path::SessionApi => drop(room.http("POST", &format!("/sessions/{me}/memory"), body).await),
        Path::Summary => {
            room.command(me, Command::Complete { reason: None }).await;
            let scope = if case.long_term {
                lanyard_core::memory::MemoryScope::Workspace
            } else {
                lanyard_core::memory::MemoryScope::Session
            };
            let app = room.app.memories.clone();
            tokio::task::spawn_blocking(move || Keeper::summary(&app, &*app.store, me, scope))
                .await
                .unwrap()
                .unwrap();
        }
        Path::Import => {
            let store = if case.long_term { Where::LongTerm } else { Where::Session };
            let entry = json!({
                "id": MemoryId::mint(room.app.clock.now(), room.app.clock.random()), "store": store,
                "scope": scope, "workspace": WORKSPACE, "owner": "local", "text": "words", "tags": tags,
                "by": { "kind": "operator", "name": "local" }, "session": me, "source": "api",
                "at": room.app.clock.now(), "version": 1,
            });
            let entry: MemoryEntry = serde_json::from_value(entry).unwrap();
            let app = room.app.clone();
            let brought = tokio::task::spawn_blocking(move || {
                memory::import(&app.memories.memory, &*app.store, &app.clock, vec![entry])
            });
            assert!(matches!(brought.await.unwrap().unwrap()[..], [Brought::In | Brought::Refused(_)]));
        }
    }
    let mut brought_in = room.remembered();
    brought_in.retain(|entry| !before.contains(&entry.id));
    (policies, brought_in)
}

/// S3-B08: a session whose stored policy this Lanyard does not understand remembers nothing, says so, and can be mended.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_stored_policy_closes_memory_with_a_warning() {
    use lanyard_core::session::{Envelope, create};
    let room = Room::new();
    let id = SessionId::mint(room.app.clock.now(), room.app.clock.random());
    let new = NewSession { workspace: Some(WORKSPACE.to_owned()), ..NewSession::default() };
    let created = create(&new, "local", None, &room.app.config.rules().limits).unwrap();
    let envelope = Envelope {
        seq: 1,
        session: id,
        at: room.app.clock.now(),
        actor: Actor::operator("local"),
        cause: None,
        event: created.into(),
    };
    let mut written = serde_json::to_value(&envelope).unwrap();
    written["data"]["policy"]["memory_mode"] = "everything".into();
    let body = bytes::Bytes::from(written.to_string());
    let session = Session::born(&serde_json::from_slice(&body).unwrap()).unwrap();
    let batch = lanyard_store::Batch {
        entries: vec![lanyard_store::EventEntry { session: id, seq: 1, at: envelope.at, body }],
        sessions: vec![session],
        ..lanyard_store::Batch::default()
    };
    room.app.store.append(&batch).unwrap();
    let write = store("session", "x", "y", &[]);
    assert_eq!(room.refused(id, "memory_context", write.clone()).await, "memory_policy_unreadable");
    let path = format!("/sessions/{id}/memory-policy");
    let (status, view) = room.http("GET", &path, json!({})).await;
    assert_eq!((status, view["policy"]["mode"].as_str()), (200, Some("off")));
    assert!(view["warnings"][0].as_str().unwrap().contains("cannot be read"), "{view}");
    assert_eq!(room.app.store.check().unwrap().damage, [], "nothing is damaged");
    let (status, view) = room.http("PATCH", &path, json!({ "mode": "full", "session_memory": true })).await;
    assert_eq!((status, &view["warnings"]), (200, &Value::Null), "{view}");
    room.call(id, "memory_context", write).await;
    room.close().await;
}

/// the same request again is the same entry; other content under its key is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_sent_again_is_remembered_once() {
    use tower::ServiceExt;
    let room = Room::new();
    let send = async |text: &str| {
        let request = axum::http::Request::builder()
            .method("POST")
            .uri("/api/v1/memory")
            .header("authorization", "Bearer operator")
            .header("content-type", "application/json")
            .header("idempotency-key", "k-1")
            .extension(crate::server::Via::Socket)
            .body(axum::body::Body::from(json!({ "text": text }).to_string()))
            .unwrap();
        let answer = crate::api::router(&room.app).oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice::<Value>(&bytes).unwrap())
    };
    let (first, again) = (send("once").await, send("once").await);
    assert_eq!((first.0, &first.1), (201, &again.1));
    let other = send("something else").await;
    assert_eq!((other.0, other.1["code"].as_str()), (409, Some("idempotency_conflict")));
    assert_eq!(room.remembered().len(), 1);
    room.close().await;
}
