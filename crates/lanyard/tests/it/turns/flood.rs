//! Many at once: every request has a definite answer, and no key runs twice (S3-19, S3-T5).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Desk;

const CLIENTS: usize = 20;
const POSTS_EACH: usize = 25;
/// Each name is sent five times, from different clients.
const NAMES: usize = 100;

#[test]
fn five_hundred_messages_at_once_have_an_answer_each_and_run_once_at_most() {
    let desk = Desk::new();
    let path = format!("/api/v1/sessions/{}/turns", desk.session);
    let answers: Vec<(String, u16, Value)> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (caller, path) = (desk.daemon.caller(), &path);
                scope.spawn(move || {
                    (0..POSTS_EACH)
                        .map(|post| {
                            let name = format!("n{}", (client * POSTS_EACH + post) % NAMES);
                            let body = json!({"prompt": name, "client_turn_id": name, "delivery": "queue"});
                            let answer =
                                caller.try_request("POST", path, &[], Some(&body.to_string())).unwrap();
                            (name, answer.status, answer.json())
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    assert_eq!(answers.len(), CLIENTS * POSTS_EACH);
    let mut turns: BTreeMap<String, String> = BTreeMap::new();
    let mut first: BTreeMap<String, u32> = BTreeMap::new();
    for (name, status, body) in &answers {
        match status {
            200 | 201 => {
                let turn = body["turn"].as_str().unwrap().to_owned();
                let known = turns.entry(name.clone()).or_insert_with(|| turn.clone());
                assert_eq!(*known, turn, "one name, one turn");
                *first.entry(name.clone()).or_default() += u32::from(*status == 201);
            }
            409 => assert_eq!(body["code"], "inbox_full", "{body}"),
            other => panic!("{other}: {body}"),
        }
    }
    assert!(first.values().all(|count| *count == 1), "{first:?}");
    // One runs and the inbox is full.
    assert_eq!(turns.len(), 33);
    for _ in 0..33 {
        desk.finish("completed");
    }
    let mut ran = desk.ran();
    let mut sent: Vec<String> = turns.into_keys().collect();
    assert_eq!(ran.len(), 33);
    ran.sort_unstable();
    sent.sort_unstable();
    assert_eq!(ran, sent, "what was admitted ran, each once");
}
