//! Links, cookies, and what a browser may do with them.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket};

use super::browser::{Browser, code, link};
use crate::support::{Daemon, Setup};

const TEN_MINUTES_MS: u64 = 600_000;

fn create(daemon: &Daemon) -> String {
    let made = daemon.request("POST", "/api/v1/sessions", &[], Some("{}"));
    made.json()["session"].as_str().unwrap().to_owned()
}

fn tokens(daemon: &Daemon) -> Vec<Value> {
    let listed = daemon.request("GET", "/api/v1/tokens", &[], None).json();
    listed["tokens"].as_array().unwrap().clone()
}

/// S0-51.
#[test]
fn a_link_signs_one_browser_in_and_is_then_spent() {
    let mut daemon = Daemon::start(Setup::default());
    let made = link(&daemon, &json!({ "name": "wall screen" }));
    assert_eq!(made["role"], "operator");
    assert!(made["url"].as_str().unwrap().starts_with(&format!("http://{}/sign-in#lyl_", daemon.address())));
    let mut browser = Browser::new(&daemon);
    let answer = browser.sign_in(&code(&made));
    assert_eq!((answer.status, answer.json()), (200, json!({ "role": "operator", "name": "wall screen" })));
    let set = answer.header("set-cookie").unwrap();
    assert!(set.starts_with(&format!("lanyard_{}=lyd_", browser.port())), "{set}");
    assert!(set.ends_with("; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"), "{set}");
    let mut second = Browser::new(&daemon);
    let spent = second.sign_in(&code(&made));
    assert_eq!((spent.status, spent.code().as_str()), (403, "sign_in_link_spent"));
    assert!(spent.json()["advice"].as_str().unwrap().contains("lanyard open"));
    assert_eq!(second.sign_in("lyl_guess").code(), "sign_in_link_spent");
    assert_eq!(second.get("/api/v1/me").code(), "token_missing");

    let me = browser.get("/api/v1/me").json();
    assert_eq!((&me["role"], &me["name"]), (&json!("operator"), &json!("wall screen")));
    assert_eq!(me["limits"]["guidance_chars"], 500);
    let listed = tokens(&daemon);
    assert_eq!((listed.len(), &listed[0]["id"]), (1, &me["token"]), "it is a token like any other");
    let own = daemon.request("GET", "/api/v1/me", &[], None).json();
    assert_eq!((&own["name"], own.get("token")), (&json!("local"), None));

    // A restart keeps the browser signed in, where the daemon is found at the same address; and no link.
    let address = daemon.address();
    let unused = link(&daemon, &json!({}));
    daemon.restart_with(Setup::default().listen(&address));
    assert_eq!(browser.get("/api/v1/me").status, 200);
    assert_eq!(second.sign_in(&code(&unused)).code(), "sign_in_link_spent");
}

#[test]
fn a_link_is_good_for_ten_minutes() {
    let folder = tempfile::tempdir().unwrap();
    let clock = folder.path().join("clock");
    let start = 1_750_000_000_000_u64;
    std::fs::write(&clock, start.to_string()).unwrap();
    let daemon = Daemon::start(Setup::default().env("LANYARD_CLOCK_FILE", &clock));
    let (first, second) = (link(&daemon, &json!({})), link(&daemon, &json!({})));
    let mut browser = Browser::new(&daemon);
    std::fs::write(&clock, (start + TEN_MINUTES_MS - 1).to_string()).unwrap();
    assert_eq!(browser.sign_in(&code(&first)).status, 200);
    std::fs::write(&clock, (start + TEN_MINUTES_MS).to_string()).unwrap();
    assert_eq!(browser.sign_in(&code(&second)).code(), "sign_in_link_spent");
}

#[test]
fn only_operators_make_links_and_only_of_roles_people_have() {
    let daemon = Daemon::start(Setup::default());
    let observer = Browser::signed_in(&daemon, "observer");
    assert_eq!(observer.post("/api/v1/sign-in/links", "{}").code(), "role_forbidden");
    for body in [r#"{"role":"agent"}"#, r#"{"role":"system"}"#, r#"{"name":"a\nb"}"#, r#"{"rôle":"x"}"#] {
        let refused = daemon.request("POST", "/api/v1/sign-in/links", &[], Some(body));
        assert_eq!(refused.status, 422, "{body}: {}", refused.text());
    }
}

/// S0-51: who looks on cannot touch, whatever it sends.
#[test]
fn an_observers_cookie_looks_and_cannot_write() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let observer = Browser::signed_in(&daemon, "observer");
    assert_eq!(observer.get("/api/v1/sessions").status, 200);
    assert_eq!(observer.get(&format!("/api/v1/sessions/{session}")).status, 200);
    for path in [
        "/api/v1/sessions".to_owned(),
        format!("/api/v1/sessions/{session}/stop"),
        format!("/api/v1/sessions/{session}/turns"),
        "/api/v1/tokens".to_owned(),
    ] {
        let refused = observer.post(&path, "{}");
        assert_eq!((refused.status, refused.code().as_str()), (403, "role_forbidden"), "{path}");
    }
}

/// A cookie is sent by the browser whichever page asks; `SameSite` does not tell ports apart.
#[test]
fn a_cookie_changes_nothing_unless_the_page_is_named() {
    let daemon = Daemon::start(Setup::default());
    let browser = Browser::signed_in(&daemon, "operator");
    let origin = browser.origin();
    let to = "/api/v1/sessions";
    let plain = browser.send("POST", to, &[], Some("{}"));
    assert_eq!((plain.status, plain.code().as_str()), (403, "origin_missing"));
    assert_eq!(browser.send("DELETE", "/api/v1/tokens/x", &[], None).code(), "origin_missing");
    for other in ["http://127.0.0.1:1", "http://localhost:3000", "null", "https://example.com"] {
        let refused = browser.send("POST", to, &[("origin", other)], Some("{}"));
        assert_eq!(refused.code(), "origin_not_allowed", "{other}");
    }
    for site in ["same-site", "cross-site"] {
        let refused = browser.send("GET", to, &[("sec-fetch-site", site)], None);
        assert_eq!(refused.code(), "origin_not_allowed", "{site}");
    }
    for site in ["same-origin", "none"] {
        assert_eq!(browser.send("GET", to, &[("sec-fetch-site", site)], None).status, 200, "{site}");
    }
    assert_eq!(browser.send("POST", to, &[("origin", &origin)], Some("{}")).status, 201);
    // Whoever gives a token needs no origin, cookie or not.
    let bearer = format!("Bearer {}", daemon.token());
    assert_eq!(browser.send("POST", to, &[("authorization", &bearer)], Some("{}")).status, 201);
    // And a token that is given is the one that counts.
    let guess = browser.send("GET", to, &[("authorization", "Bearer lyd_guess")], None);
    assert_eq!(guess.code(), "token_unknown");
    // The cookie of another daemon on this host is none.
    let cookie = browser.cookie.clone().unwrap().replace("lanyard_", "lanyard_1");
    let elsewhere = Browser { cookie: Some(cookie), ..browser };
    assert_eq!(elsewhere.get(to).code(), "token_missing");
}

fn reply(socket: &mut WebSocket<std::net::TcpStream>, frame: &Value) -> Value {
    socket.send(Message::text(frame.to_string())).unwrap();
    loop {
        let Message::Text(text) = socket.read().unwrap() else { continue };
        let frame: Value = serde_json::from_str(&text).unwrap();
        if frame["type"] == "reply" {
            return frame;
        }
    }
}

#[test]
fn a_websocket_opens_by_cookie_from_the_daemons_own_pages() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let path = format!("/api/v1/sessions/{session}/attach");
    let (operator, observer) =
        (Browser::signed_in(&daemon, "operator"), Browser::signed_in(&daemon, "observer"));
    let own = operator.origin();
    assert_eq!(operator.socket(&path, &[]).unwrap_err(), "origin_missing");
    let other = [("origin", "http://127.0.0.1:1")];
    assert_eq!(operator.socket(&path, &other).unwrap_err(), "origin_not_allowed");
    assert_eq!(operator.socket("/api/v1/directory/stream", &[]).unwrap_err(), "origin_missing");
    let mut directory = operator.socket("/api/v1/directory/stream", &[("origin", &own)]).unwrap();
    assert!(directory.read().unwrap().into_text().unwrap().contains("connected"));

    let mut socket = operator.socket(&path, &[("origin", &own)]).unwrap();
    let answer = reply(&mut socket, &json!({ "ref": "0", "do": "get_session" }));
    assert_eq!(answer["status"], 200, "{answer}");
    let answer = reply(&mut socket, &json!({ "ref": "1", "do": "archive_session", "body": {} }));
    assert_eq!(answer["status"], 200, "what it asks for is done as the browser's role allows: {answer}");
    let mut socket = observer.socket(&path, &[("origin", &own)]).unwrap();
    let answer = reply(&mut socket, &json!({ "ref": "1", "do": "unarchive_session", "body": {} }));
    assert_eq!((&answer["status"], &answer["body"]["code"]), (&json!(403), &json!("role_forbidden")));
}

#[test]
fn signing_out_revokes_the_token_and_clears_the_cookie() {
    let daemon = Daemon::start(Setup::default());
    let browser = Browser::signed_in(&daemon, "observer");
    assert_eq!(tokens(&daemon).len(), 1);
    assert_eq!(browser.send("POST", "/api/v1/sign-out", &[], None).code(), "origin_missing");
    let answer = browser.send("POST", "/api/v1/sign-out", &[("origin", &browser.origin())], None);
    assert_eq!(answer.status, 204);
    assert!(answer.header("set-cookie").unwrap().ends_with("Max-Age=0"));
    assert_eq!(browser.get("/api/v1/me").code(), "token_unknown");
    assert_eq!(tokens(&daemon), Vec::<Value>::new());
    let no_cookie = daemon.request("POST", "/api/v1/sign-out", &[], None);
    assert_eq!((no_cookie.status, no_cookie.code().as_str()), (409, "not_signed_in"));
}

/// A browser that signs in again has one token, and not one more each time.
#[test]
fn signing_in_again_lets_go_of_the_earlier_token() {
    let daemon = Daemon::start(Setup::default());
    let mut browser = Browser::signed_in(&daemon, "observer");
    let before = browser.clone();
    assert_eq!(browser.sign_in(&code(&link(&daemon, &json!({})))).status, 200);
    assert_eq!(browser.get("/api/v1/me").json()["role"], "operator");
    assert_eq!(before.get("/api/v1/me").code(), "token_unknown");
    assert_eq!(tokens(&daemon).len(), 1);
}

/// Revoked by anybody, a browser is out.
#[test]
fn a_browsers_token_is_listed_and_revoked_like_any_other() {
    let daemon = Daemon::start(Setup::default());
    let browser = Browser::signed_in(&daemon, "operator");
    let listed = daemon.lanyard(&["token", "ls"]);
    let text = String::from_utf8(listed.stdout).unwrap();
    assert!(text.contains("operator") && text.contains("browser"), "{text}");
    let id = browser.get("/api/v1/me").json()["token"].as_str().unwrap().to_owned();
    assert!(daemon.lanyard(&["token", "rm", &id]).status.success());
    assert_eq!(browser.get("/api/v1/me").code(), "token_unknown");
}

#[test]
fn open_prints_a_link_and_nothing_secret_is_logged() {
    let daemon = Daemon::start(Setup::default().env("LANYARD_LOG", "trace"));
    let printed = daemon.lanyard(&["open", "--observer"]);
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let url = String::from_utf8(printed.stdout).unwrap().trim_end().to_owned();
    let code = url.split_once("/sign-in#").unwrap().1;
    let mut browser = Browser::new(&daemon);
    assert_eq!(browser.sign_in(code).json()["role"], "observer");
    let as_json = daemon.lanyard(&["open", "--json"]);
    let as_json: Value = serde_json::from_slice(&as_json.stdout).unwrap();
    assert_eq!(as_json["role"], "operator");
    let said = daemon.stderr();
    let token = browser.cookie.as_deref().unwrap().split_once('=').unwrap().1;
    for secret in [code, as_json["url"].as_str().unwrap(), token, "lyl_"] {
        assert!(!said.contains(secret), "{secret} is in the log");
    }
}

/// Who starts a daemon is shown the way in; a log is not.
#[test]
fn up_shows_a_link_to_who_starts_it() {
    let daemon = Daemon::start(Setup::default());
    assert!(!daemon.stderr().contains("sign-in"), "its stderr is no terminal");
    let up = daemon.lanyard(&["up", "--detach"]);
    let said = String::from_utf8(up.stderr).unwrap();
    assert_eq!(String::from_utf8(up.stdout).unwrap(), format!("http://{}\n", daemon.address()));
    let code = said.split_once("/sign-in#").unwrap().1.split(' ').next().unwrap();
    assert_eq!(Browser::new(&daemon).sign_in(code).status, 200);
    let up = daemon.lanyard(&["up", "--detach", "--json"]);
    let shown: Value = serde_json::from_slice(&up.stdout).unwrap();
    assert!(shown["sign_in"].as_str().unwrap().contains("/sign-in#lyl_"), "{shown}");
    let quiet = daemon.lanyard(&["up", "--detach", "--quiet"]);
    assert_eq!(String::from_utf8(quiet.stderr).unwrap(), "");
}
