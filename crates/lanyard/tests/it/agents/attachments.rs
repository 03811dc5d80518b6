//! What is attached to messages: how it reaches agents that take images and agents that do not, and what agents send.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::kit::{Stage, Talk};

/// A picture of one point. All of it is ASCII, so that it can be a body in these tests.
const PICTURE: &str = "GIF89a\u{1}\0\u{1}\0\0\0\0;";

fn upload(stage: &Stage, name: &str, content: &str) -> String {
    let headers = [("content-type", "application/octet-stream")];
    let path = format!("/api/v1/attachments?name={name}");
    let answer = stage.daemon.request("POST", &path, &headers, Some(content));
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn attached(id: &str, name: &str) -> Value {
    json!({ "kind": "attachment", "id": id, "name": name })
}

fn send(talk: &Talk<'_>, prompt: &str, parts: &Value) {
    let answer = talk.post("turns", &json!({ "prompt": prompt, "parts": parts }));
    assert_eq!(answer.status, 201, "{}", answer.text());
}

/// The path of the copy that a prompt names.
fn copy_in(told: &str) -> PathBuf {
    let (_, rest) = told.split_once("a read-only copy of it: ").expect(told);
    rest.split(['\\', '"', '\n']).next().unwrap().into()
}

#[test]
fn an_agent_gets_an_image_as_it_takes_it_or_as_a_path() {
    let stage = Stage::of(&[("sees", &["--images", "--otherwise", "/parts"], ""), ("blind", &[], "")]);
    let id = upload(&stage, "shot.gif", PICTURE);
    let notes = upload(&stage, "notes.txt", "remember");
    let parts = json!([attached(&id, "shot.gif"), attached(&notes, "notes.txt"), { "kind": "link", "uri": "https://example.org/x" }]);

    let mut talk = stage.talk_with("sees");
    send(&talk, "/parts", &parts);
    talk.over();
    assert_eq!(
        talk.said(),
        "text, image image/gif of 14 bytes, file of 8 bytes, link https://example.org/x https://example.org/x"
    );
    let started = talk.all("turn.started")[0]["data"]["parts"].clone();
    let image =
        json!({ "kind": "image", "id": id, "media_type": "image/gif", "bytes": 14, "name": "shot.gif" });
    assert_eq!((&started[0], &started[1]["kind"]), (&image, &json!("file")), "{started}");
    // A picture alone is a message too.
    let mut wordless = stage.talk_with("sees");
    send(&wordless, "", &json!([attached(&id, "shot.gif")]));
    wordless.over();
    assert_eq!(wordless.said(), "image image/gif of 14 bytes");

    let mut talk = stage.talk_with("blind");
    send(&talk, "/parts", &parts);
    talk.over();
    assert!(talk.said().starts_with("text, link notes.txt file:///"), "{}", talk.said());
    let copy = copy_in(&stage.memory());
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), PICTURE);
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o400);
}

#[test]
fn images_that_an_agent_sends_are_kept_and_shown() {
    let stage = Stage::new();
    std::fs::write(stage.file("shot.gif"), PICTURE).unwrap();
    std::fs::write(stage.file("page.html"), "<script>alert(1)</script>").unwrap();
    let mut talk = stage.talk();
    talk.answer_to("/say! before\n/image shot.gif\n/tool-image shot.gif\n/image page.html\n/say! after");
    let shown: Vec<Value> = talk
        .all("message")
        .iter()
        .flat_map(|event| event["data"]["parts"].as_array().cloned().unwrap_or_default())
        .collect();
    assert_eq!((shown.len(), &shown[0]["media_type"]), (1, &json!("image/gif")), "{shown:?}");
    let id = shown[0]["id"].as_str().unwrap();
    let block = talk.all("tool.returned")[0]["data"]["content"][0].clone();
    assert_eq!(
        (&block["type"], &block["kind"], &block["id"]),
        (&json!("attachment"), &json!("image"), &json!(id))
    );
    assert!(talk.said().contains("[image, left out: its content is text/plain]"), "{}", talk.said());

    let path = format!("/api/v1/sessions/{}/attachments/{id}?name=a%22b.gif", talk.id);
    let got = stage.daemon.request("GET", &path, &[], None);
    assert_eq!((got.status, got.text().as_str()), (200, PICTURE));
    for (name, value) in [
        ("content-type", "image/gif"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("x-content-type-options", "nosniff"),
        ("content-disposition", "inline; filename*=UTF-8''a%22b%2Egif"),
    ] {
        assert_eq!(got.header(name), Some(value));
    }
    let log = stage.daemon.lanyard(&["log", &talk.id]);
    assert!(String::from_utf8_lossy(&log.stdout).contains("[image image/gif]"), "{log:?}");

    // Another session's agent gets nothing of it, and cannot claim it as its own.
    let other = stage.talk();
    let token = json!({ "role": "agent", "name": "other", "session": other.id });
    let made = stage.post("/tokens", &token).json();
    let caller =
        crate::support::Caller { token: made["token"].as_str().unwrap().to_owned(), ..stage.daemon.caller() };
    let ask = |method: &str, path: &str, body: Option<&str>| {
        let answer = caller.try_request(method, path, &[], body).unwrap();
        (answer.status, answer.code())
    };
    assert_eq!(ask("GET", &path, None), (403, "not_your_session".to_owned()));
    let own = path.replace(&talk.id, &other.id);
    assert_eq!(ask("GET", &own, None), (404, "attachment_unknown".to_owned()));
    let claim = json!({ "type": "said", "role": "agent", "text": "mine", "parts": shown }).to_string();
    let signals = format!("/api/v1/sessions/{}/signals", other.id);
    assert_eq!(ask("POST", &signals, Some(&claim)), (404, "attachment_unknown".to_owned()));
}

/// An agent that cannot take a picture in mid-turn gets it with the next turn, as itself and not as words.
#[test]
fn a_picture_for_a_running_turn_waits_where_the_agent_cannot_take_it() {
    let stage = Stage::with(&["--images"], "");
    let id = upload(&stage, "shot.gif", PICTURE);
    let mut talk = stage.talk();
    talk.turn("/wait-file go");
    let body = json!({ "prompt": "/parts", "parts": [attached(&id, "shot.gif")], "delivery": "steer" });
    let answer = talk.post("turns", &body);
    assert_eq!((answer.status, &answer.json()["result"]), (201, &json!("queued")), "{}", answer.text());
    // The same words about something else are another message.
    let body = json!({ "prompt": "/parts", "delivery": "queue" });
    assert_eq!(talk.post("turns", &body).json()["result"], "queued");
    assert_eq!(talk.post("turns", &body).status, 200, "and about the same the same");
    stage.touch("go");
    for _ in 0..3 {
        talk.over();
    }
    assert_eq!(talk.said(), "text, image image/gif of 14 bytestext");
}

/// A damaged file is told where it belongs, and the turn runs without it.
#[test]
fn a_damaged_attachment_is_told_in_its_place() {
    let stage = Stage::with(&["--images"], "");
    let id = upload(&stage, "shot.gif", PICTURE);
    let place = stage.daemon.home().join("attachments/content").join(&id[..2]).join(&id);
    assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let mut talk = stage.talk();
    send(&talk, "/parts", &json!([attached(&id, "shot.gif")]));
    talk.over();
    std::fs::write(&place, "GIF89a of another").unwrap();
    send(&talk, "/parts", &json!([attached(&id, "shot.gif")]));
    assert_eq!(talk.over()["data"]["outcome"], "completed");
    assert!(stage.memory().contains("which cannot be had: its content is not as it was"));
    let path = format!("/api/v1/sessions/{}/attachments/{id}", talk.id);
    let got = stage.daemon.request("GET", &path, &[], None);
    assert_eq!((got.status, got.code()), (410, "attachment_damaged".to_owned()));
    let damage = stage.get("/check")["damage"].to_string();
    assert!(damage.contains("its content is not as it was"), "{damage}");
    std::fs::remove_file(&place).unwrap();
    assert_eq!(stage.daemon.request("GET", &path, &[], None).code(), "attachment_missing");
    assert!(stage.get("/check")["damage"].to_string().contains("is missing"));
    // The same content again mends it.
    assert_eq!(upload(&stage, "shot.gif", PICTURE), id);
    assert_eq!(stage.get("/check")["damage"], json!([]));
}

#[test]
fn the_command_line_attaches_files_and_says_what_it_cannot() {
    let stage = Stage::with(&["--images"], "");
    let file = |name: &str, content: &str| {
        std::fs::write(stage.file(name), content).unwrap();
        stage.file(name).display().to_string()
    };
    let (shot, empty) = (file("shot.gif", PICTURE), file("empty", ""));
    let drawing = file("drawing.png", "<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>");
    let work = stage.work().display().to_string();
    let pipe = stage.file("pipe").display().to_string();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let run = |more: &[&str]| {
        let words = [&["run", "--agent", "a", "--cwd", &work], more].concat();
        let ran = stage.daemon.lanyard(&words);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (ran.status.success(), text(&ran.stdout), text(&ran.stderr))
    };
    let (good, out, err) = run(&["/parts", "-a", &shot, "-a", "https://example.org/x"]);
    assert!(good, "{err}");
    assert_eq!(out, "text, image image/gif of 14 bytes, link https://example.org/x https://example.org/x\n");
    let sessions = stage.get("/sessions")["sessions"].as_array().unwrap().len();
    let missing = stage.file("missing").display().to_string();
    for (path, code) in [
        (&missing, "attachment_unreadable"),
        (&work, "attachment_unusable"),
        (&pipe, "attachment_unusable"),
        (&empty, "attachment_unusable"),
        (&drawing, "attachment_not_an_image"),
    ] {
        let (good, _, err) = run(&["look", "-a", path]);
        assert!(!good && err.contains(code), "{path}: {err}");
    }
    assert_eq!(stage.get("/sessions")["sessions"].as_array().unwrap().len(), sessions, "nothing was begun");
}
