//! Who may do what. The matrix is made from the daemon's own route table: a new route is in it before anyone thinks of
//! it, and one that lets somebody in who should stay out fails here.

use std::net::TcpStream;

use lanyard_daemon::api::{ApiRoute, table};
use lanyard_daemon::auth::Access;

use crate::support::{Answer, Caller, Daemon, Setup, exchange};

/// Everyone who could knock.
struct People {
    daemon: Daemon,
    session: String,
    other: String,
    operator: Caller,
    observer: Caller,
    agent: Caller,
    /// Holds a share link to `session`.
    reader: Caller,
    /// A child of `session`.
    child: String,
}

impl People {
    fn new() -> Self {
        let daemon = Daemon::start(Setup::default());
        let create = || {
            let made = daemon.request("POST", "/api/v1/sessions", &[], Some("{}"));
            made.json()["session"].as_str().unwrap().to_owned()
        };
        let (session, other) = (create(), create());
        let operator = daemon.caller();
        let with = |body: &str| {
            let made = daemon.request("POST", "/api/v1/tokens", &[], Some(body));
            assert_eq!(made.status, 201, "{}", made.text());
            Caller { token: made.json()["token"].as_str().unwrap().to_owned(), ..operator.clone() }
        };
        let observer = with(r#"{"role":"observer","name":"wall screen"}"#);
        let agent = with(&format!(r#"{{"role":"agent","name":"executor","session":"{session}"}}"#));
        let path = format!("/api/v1/sessions/{session}/shares");
        let link = daemon.request("POST", &path, &[], Some("{}"));
        assert_eq!(link.status, 201, "{}", link.text());
        let url = link.json()["url"].as_str().unwrap().to_owned();
        let token = url.split_once('#').unwrap().1.to_owned();
        let reader = Caller { token, ..operator.clone() };
        let below = format!(r#"{{"parent":"{session}"}}"#);
        let child = daemon.request("POST", "/api/v1/sessions", &[], Some(&below)).json();
        let child = child["session"].as_str().unwrap().to_owned();
        Self { daemon, session, other, operator, observer, agent, reader, child }
    }
}

/// Uses a route on a session; whether it works is another matter, only who gets past the gate counts.
fn knock(caller: &Caller, route: &ApiRoute, session: &str) -> Answer {
    let path = format!("{}{}", route.base, route.path).replace("{id}", session).replace("{note}", "x");
    let path =
        path.replace("{server}", "x").replace("{token}", "x").replace("{gate}", "x").replace("{name}", "x");
    // A position no log has: the gate is asked, and no stream is opened.
    let path = if route.streams { format!("{path}?after={}", u64::MAX) } else { path };
    let body = (route.method != "get").then_some("{}");
    caller.try_request(&route.method.to_uppercase(), &path, &[], body).unwrap()
}

fn is_turned_away(answer: &Answer) -> bool {
    matches!(answer.status, 401 | 403) && answer.code() != "signal_internal"
}

/// S3-B13: roles are the server's business, on every route there is.
#[test]
fn every_route_lets_in_exactly_whom_its_row_says() {
    let people = People::new();
    // The routes that would end the test go last.
    let mut routes = table();
    routes.sort_by_key(|route| {
        ["sign_out", "delete_session", "shutdown"].iter().position(|last| *last == route.name)
    });
    assert!(routes.len() > 25, "the table is short: {}", routes.len());
    let open: Vec<&str> =
        routes.iter().filter(|route| route.access == Access::Anyone).map(|route| route.name).collect();
    assert_eq!(open, ["sign_in"], "what needs no token is said here by name");
    for route in &routes {
        let name = route.name;
        let nobody = Caller { token: String::new(), ..people.operator.clone() };
        let stranger = Caller { token: "lyd_guess".to_owned(), ..people.operator.clone() };
        if route.access == Access::Anyone {
            for caller in [&nobody, &stranger, &people.observer, &people.agent, &people.reader] {
                let answer = knock(caller, route, &people.session);
                assert!(!is_turned_away(&answer), "anyone on {name}: {}", answer.text());
            }
            continue;
        }
        assert_eq!(knock(&nobody, route, &people.session).code(), "token_missing", "{name}");
        assert_eq!(knock(&stranger, route, &people.session).status, 401, "{name}");

        let (observer, own, other) = match route.access {
            Access::Look | Access::Shared => (true, true, false),
            Access::LookAll => (true, false, false),
            Access::Own | Access::Call | Access::Message => (false, true, false),
            Access::Operate => (false, false, false),
            Access::Known | Access::Anyone => (true, true, true),
        };
        let own = own && (route.path.contains("{id}") || route.access == Access::Known);
        let answer = knock(&people.observer, route, &people.session);
        assert_eq!(!is_turned_away(&answer), observer, "observer on {name}: {}", answer.text());
        let answer = knock(&people.agent, route, &people.session);
        assert_eq!(!is_turned_away(&answer), own, "agent on its own session, {name}: {}", answer.text());
        let answer = knock(&people.agent, route, &people.other);
        assert_eq!(!is_turned_away(&answer), other, "agent on another session, {name}: {}", answer.text());
        // A share link: its own session and those below it, on the routes that are for it.
        let known = route.access == Access::Known;
        let shared = route.access == Access::Shared || known;
        for (session, may) in [(&people.session, shared), (&people.child, shared), (&people.other, known)] {
            let answer = knock(&people.reader, route, session);
            assert_eq!(!is_turned_away(&answer), may, "reader on {session}, {name}: {}", answer.text());
        }
        let only_looks = route.method == "get" && route.path.contains("{id}");
        assert!(route.access != Access::Shared || only_looks, "{name} is not for readers of links");
    }
    for route in &routes {
        let answer = knock(&people.operator, route, &people.other);
        assert!(!is_turned_away(&answer), "operator on {}: {}", route.name, answer.text());
    }
}

/// An agent that names its own session by another's alias is still itself, and the other way round.
#[test]
fn an_agent_cannot_reach_another_session_by_its_alias() {
    let people = People::new();
    let path = format!("/api/v1/sessions/{}/aliases", people.other);
    people.daemon.request("POST", &path, &[], Some(r#"{"alias":"my::own"}"#));
    let answer = people.agent.try_request("GET", "/api/v1/sessions/my%3A%3Aown", &[], None).unwrap();
    assert_eq!(answer.code(), "not_your_session");
}

#[test]
fn a_revoked_token_is_unknown_at_once_and_after_a_restart() {
    let mut people = People::new();
    let listed = people.daemon.request("GET", "/api/v1/tokens", &[], None).json();
    let observer =
        listed["tokens"].as_array().unwrap().iter().find(|token| token["name"] == "wall screen").unwrap();
    assert!(observer.get("token").is_none(), "a token is shown only once");
    let path = format!("/api/v1/tokens/{}", observer["id"].as_str().unwrap());
    assert_eq!(people.daemon.request("DELETE", &path, &[], None).status, 204);
    assert_eq!(people.daemon.request("DELETE", &path, &[], None).status, 204);
    let look = |caller: &Caller| caller.try_request("GET", "/api/v1/sessions", &[], None).unwrap();
    assert_eq!(look(&people.observer).code(), "token_unknown");
    people.daemon.restart_with(Setup::default());
    assert_eq!(look(&people.observer).code(), "token_unknown");
    let own = format!("/api/v1/sessions/{}", people.session);
    let agent = Caller { socket: people.daemon.caller().socket, ..people.agent.clone() };
    assert_eq!(agent.try_request("GET", &own, &[], None).unwrap().status, 200, "others stay");
}

/// The same key makes the same token, and no second one.
#[test]
fn a_repeated_request_for_a_token_gets_the_same_token() {
    let daemon = Daemon::start(Setup::default());
    let make = |name: &str| {
        let body = format!(r#"{{"role":"observer","name":"{name}"}}"#);
        daemon.request("POST", "/api/v1/tokens", &[("idempotency-key", "t1")], Some(&body))
    };
    let first = make("screen").json();
    assert_eq!(make("screen").json(), first);
    assert_eq!(make("other").code(), "idempotency_conflict");
    let listed = daemon.request("GET", "/api/v1/tokens", &[], None).json();
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 1);
}

/// A link ends at its time, with the streams that it opened; and when it is revoked. After a restart too.
#[test]
fn a_share_link_ends() {
    let folder = tempfile::tempdir().unwrap();
    let clock = folder.path().join("clock");
    let start = 1_750_000_000_000_u64;
    let at = |ms: u64| std::fs::write(&clock, (start + ms).to_string()).unwrap();
    at(0);
    let setup = || Setup::default().env("LANYARD_CLOCK_FILE", &clock);
    let mut daemon = Daemon::start(setup());
    let made = daemon.request("POST", "/api/v1/sessions", &[], Some("{}")).json();
    let session = made["session"].as_str().unwrap().to_owned();
    let shares = format!("/api/v1/sessions/{session}/shares");
    let share = |daemon: &Daemon, body: &str| daemon.request("POST", &shares, &[], Some(body));
    for body in [r#"{"expires_in_ms":59999}"#, r#"{"expires_in_ms":2592000001}"#] {
        assert_eq!(share(&daemon, body).code(), "share_life_invalid");
    }
    let token = |link: &Answer| link.json()["url"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    let (short, long) = (share(&daemon, r#"{"expires_in_ms":60000,"name":"ann"}"#), share(&daemon, "{}"));
    let (short, id) = (token(&short), long.json()["id"].as_str().unwrap().to_owned());
    let long = token(&long);
    let path = format!("/api/v1/sessions/{session}");
    let look = |daemon: &Daemon, token: &str| {
        let caller = Caller { token: token.to_owned(), ..daemon.caller() };
        caller.try_request("GET", &path, &[], None).unwrap()
    };
    assert_eq!(look(&daemon, &short).status, 200);
    daemon.restart_with(setup());
    assert_eq!(look(&daemon, &short).status, 200);
    let listed = daemon.request("GET", &shares, &[], None).json();
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 2);
    at(60_000);
    let over = look(&daemon, &short);
    assert_eq!(over.status, 401, "{}", over.text());
    assert!(crate::support::until(|| {
        let listed = daemon.request("GET", &shares, &[], None).json();
        listed["tokens"].as_array().unwrap().len() == 1
    }));
    assert_eq!(look(&daemon, &short).code(), "token_unknown");
    assert_eq!(look(&daemon, &long).status, 200);
    assert_eq!(daemon.request("DELETE", &format!("/api/v1/tokens/{id}"), &[], None).status, 204);
    assert_eq!(look(&daemon, &long).code(), "token_unknown");
}

/// When and from what kind of program a token was used is listed.
#[test]
fn the_last_use_of_a_token_is_listed() {
    let people = People::new();
    let path = format!("/api/v1/sessions/{}", people.session);
    let from = [("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")];
    assert_eq!(people.observer.try_request("GET", &path, &from, None).unwrap().status, 200);
    let listed = people.daemon.request("GET", "/api/v1/tokens", &[], None).json();
    let token = |name: &str| {
        let all = listed["tokens"].as_array().unwrap();
        all.iter().find(|token| token["name"] == name).unwrap().clone()
    };
    assert_eq!(token("wall screen")["last_client"], "browser");
    assert!(token("wall screen")["last_used_at"].is_string());
    assert_eq!(token("executor").get("last_used_at"), None);
}

/// DNS rebinding and foreign pages: exact names only, over TCP.
#[test]
fn hosts_and_origins_are_checked_exactly() {
    let daemon = Daemon::start(Setup::default());
    let address = daemon.address();
    let port = address.rsplit_once(':').unwrap().1;
    let bearer = format!("Bearer {}", daemon.token());
    let ask = |host: &str, origin: Option<&str>| {
        let mut headers = vec![("host", host), ("authorization", bearer.as_str())];
        headers.extend(origin.map(|origin| ("origin", origin)));
        exchange(TcpStream::connect(&address).unwrap(), "GET", "/api/v1/status", &headers, None).unwrap()
    };
    assert_eq!(ask(&address, None).status, 200);
    assert_eq!(ask(&format!("localhost:{port}"), None).status, 200);
    for host in ["evil.example", "localhost", "127.0.0.1", &format!("evil.example:{port}"), "127.0.0.1:1"] {
        assert_eq!(ask(host, None).code(), "host_not_allowed", "{host}");
    }
    assert_eq!(ask(&address, Some(&format!("http://{address}"))).status, 200);
    for origin in
        ["http://evil.example", "null", &format!("https://{address}"), &format!("http://evil.example:{port}")]
    {
        assert_eq!(ask(&address, Some(origin)).code(), "origin_not_allowed", "{origin}");
    }
}

#[test]
fn only_json_is_taken_as_a_body() {
    let daemon = Daemon::start(Setup::default());
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let answer = daemon.request("POST", "/api/v1/sessions", &[("content-type", kind)], Some("{}"));
        assert_eq!((answer.status, answer.code()), (415, "content_type_not_json".to_owned()), "{kind}");
    }
    let kind = [("content-type", "application/json; charset=utf-8")];
    assert_eq!(daemon.request("POST", "/api/v1/sessions", &kind, Some("{}")).status, 201);
}

/// What is in the data folder is for its owner only.
#[test]
fn the_data_folder_and_everything_in_it_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let daemon = Daemon::start(Setup::default());
    daemon.request("POST", "/api/v1/sessions", &[], Some("{}"));
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o077;
    assert_eq!(mode(&daemon.home()), 0);
    for entry in std::fs::read_dir(daemon.home()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0, "{}", path.display());
    }
}

/// Nothing that is secret shows in the daemon's own words.
#[test]
fn no_token_is_ever_logged() {
    let people = People::new();
    let said = people.daemon.stderr();
    for caller in [&people.operator, &people.observer, &people.agent] {
        assert!(!said.contains(&caller.token));
    }
}
