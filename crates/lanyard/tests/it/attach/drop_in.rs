//! Clients that come and go while an agent works: it never notices, and they miss nothing.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::kit::{BOTH, Client, Stage, Wire, sessions, until};

fn over(client: &mut Client) -> Value {
    client.until("turn.finished")
}

/// S3-13: attached to an idle session, a client hears of it when it goes on.
#[test]
fn an_idle_session_is_heard_when_it_goes_on() {
    let stage = Stage::new();
    let session = stage.talk();
    for wire in BOTH {
        let mut client = Client::attach(&stage.daemon, &session, "", wire);
        assert_eq!(client.connected()["active_turn"], Value::Null);
        stage.turn(&session, "/say hello");
        assert_eq!(over(&mut client)["data"]["outcome"], "completed", "{wire:?}");
    }
}

/// S3-10: dropped in while a turn runs, a client sees the rest of it live, with its terminal status.
#[test]
fn dropping_in_shows_the_running_turn_and_its_end() {
    let stage = Stage::new();
    let session = stage.talk();
    for (round, wire) in BOTH.into_iter().enumerate() {
        let (begun, go) = (format!("begun{round}"), format!("go{round}"));
        let turn = stage
            .turn(&session, &format!("/say before\n/touch {begun}\n/wait-file {go}\n/say after\n/usage 1 2"));
        until("the turn to be under way", || stage.file(&begun).exists());
        let mut early = Client::attach(&stage.daemon, &session, "mode=full", wire);
        early.connected();
        let mut late = Client::attach(&stage.daemon, &session, "", wire);
        let connected = late.connected();
        assert_eq!(connected["active_turn"]["id"], turn);
        assert_eq!(
            (&connected["state"], &connected["session"]["lifecycle"]),
            (&json!("executing"), &json!("running"))
        );
        std::fs::write(stage.file(&go), "").unwrap();
        let said = late.until("message");
        assert!(said["seq"].as_u64() > connected["head_seq"].as_u64());
        let end = over(&mut late);
        assert_eq!(end["data"]["outcome"], "completed");
        // The one who reads from the beginning sees every turn's end, this one's last.
        while over(&mut early)["seq"] != end["seq"] {}
    }
}

/// S3-08, S3-T2: a client that goes away in the middle has only detached; the run completes without one.
#[test]
fn a_run_completes_with_nobody_there() {
    let stage = Stage::new();
    for wire in BOTH {
        let session = stage.talk();
        let mut client = Client::attach(&stage.daemon, &session, "write=true", wire);
        client.connected();
        let go = format!("go{wire:?}");
        stage.turn(&session, &format!("/say a\n/wait-file {go}\n/say b"));
        client.until("message");
        drop(client);
        until("the client to be gone", || stage.detail(&session)["active_connections"] == 0);
        assert_eq!(stage.detail(&session)["active_runs"], 1);
        std::fs::write(stage.file(&go), "").unwrap();
        until("the turn to end", || stage.detail(&session)["lifecycle_state"] == "idle");
        let log = stage.daemon.log_after(&session, 0);
        let ends: Vec<&Value> = log.iter().filter(|event| event["type"] == "turn.finished").collect();
        assert_eq!(ends.len(), 1);
        assert_eq!(ends[0]["data"]["outcome"], "completed");
        let odd = log.iter().find(|event| event["type"].as_str().unwrap().contains("cancel"));
        assert!(odd.is_none(), "leaving writes nothing: {odd:?}");
    }
}

/// S3-T4, S3-06: going from one session to another and back makes nothing, ends nothing and writes nothing.
#[test]
fn switching_between_sessions_creates_nothing() {
    let stage = Stage::new();
    let (one, other) = (stage.talk(), stage.talk());
    stage.turn(&one, "/say a\n/wait-file go\n/say b");
    let before = stage.detail(&other)["last_seq"].clone();
    for round in 0..20 {
        let session = if round % 2 == 0 { &one } else { &other };
        Client::attach(&stage.daemon, session, "last=5", BOTH[round / 2 % 2]).connected();
    }
    assert_eq!(sessions(&stage.daemon).len(), 2);
    assert_eq!(stage.detail(&other)["last_seq"], before);
    assert_eq!(stage.detail(&one)["state"], "executing");
    std::fs::write(stage.file("go"), "").unwrap();
    let mut client = Client::attach(&stage.daemon, &one, "mode=full", Wire::Ws);
    assert_eq!(over(&mut client)["data"]["outcome"], "completed");
}

/// S3-09, S3-T3: what changes while a session lives is in its detail and in listings.
#[test]
fn runtime_fields_go_from_running_to_idle() {
    let stage = Stage::new();
    let session = stage.talk();
    let client = Client::attach(&stage.daemon, &session, "", Wire::Ws);
    let fields = |value: &Value| {
        ["lifecycle_state", "active_connections", "active_runs"].map(|name| value[name].clone())
    };
    stage.turn(&session, "/say a\n/wait-file go\n/say b");
    let running = [json!("running"), json!(1), json!(1)];
    assert_eq!(fields(&stage.detail(&session)), running);
    assert_eq!(fields(&sessions(&stage.daemon)[0]), running);
    std::fs::write(stage.file("go"), "").unwrap();
    until("the turn to end", || stage.detail(&session)["active_runs"] == 0);
    drop(client);
    until("the client to be gone", || stage.detail(&session)["active_connections"] == 0);
    let (detail, row) = (stage.detail(&session), sessions(&stage.daemon).remove(0));
    let idle = [json!("idle"), json!(0), json!(0)];
    assert_eq!((fields(&detail), fields(&row)), (idle.clone(), idle));
    for seen in [&detail, &row] {
        assert_eq!(seen["last_event_seq"], seen["last_seq"]);
        assert!(seen["last_activity_at"].is_string() || seen["last_activity_at"].is_number());
    }
}

/// Text is shown while it is written, and what is shown never moves the cursor: the event that follows holds it all.
/// Previews may be lost where a machine is busy, so a few turns may pass before both kinds were seen.
#[test]
fn previews_show_text_before_it_is_an_event_and_have_no_position() {
    let stage = Stage::new();
    for wire in BOTH {
        let session = stage.talk();
        let mut client = Client::attach(&stage.daemon, &session, "mode=full", wire);
        client.connected();
        let (mut seen, mut last) = (BTreeSet::new(), 0);
        for _ in 0..20 {
            let prompt =
                "/pace 30\n/think one two three four five six\n/say seven eight nine ten eleven twelve";
            let turn = stage.turn(&session, prompt);
            let (mut previews, mut texts) = (Vec::new(), String::new());
            loop {
                let frame = client.next().unwrap();
                if let Some(seq) = frame["seq"].as_u64() {
                    assert_eq!(seq, last + 1, "no gap and no repeat");
                    last = seq;
                }
                match frame["type"].as_str().unwrap() {
                    "preview" => {
                        assert_eq!(frame["turn"], turn);
                        seen.insert(frame["kind"].as_str().unwrap().to_owned());
                        previews.push(frame["text"].as_str().unwrap().to_owned());
                    }
                    "message" | "thought" => texts += frame["data"]["text"].as_str().unwrap(),
                    "turn.finished" => break,
                    _ => {}
                }
            }
            assert!(
                texts.ends_with("one two three four five sixseven eight nine ten eleven twelve"),
                "{texts}"
            );
            assert!(previews.iter().all(|text| texts.contains(text)), "{previews:?} of {texts}");
            if seen.len() == 2 {
                break;
            }
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["message", "thought"], "{wire:?}");
    }
}
