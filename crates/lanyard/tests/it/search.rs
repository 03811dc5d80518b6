//! Full-text search over HTTP and on the command line, across kills, purges and roles.

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, Setup, until};

fn make(daemon: &Daemon, body: &Value) -> String {
    let made = daemon.request("POST", "/api/v1/sessions", &[], Some(&body.to_string()));
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()["session"].as_str().unwrap().to_owned()
}

fn signal(daemon: &Daemon, session: &str, signal: &Value) {
    let path = format!("/api/v1/sessions/{session}/signals");
    let told = daemon.request("POST", &path, &[], Some(&signal.to_string()));
    assert_eq!(told.status, 201, "{}", told.text());
}

fn say(daemon: &Daemon, session: &str, text: &str) {
    signal(daemon, session, &json!({ "type": "said", "role": "agent", "text": text, "message_id": text }));
}

fn ask(daemon: &Daemon, route: &str, query: &str) -> Answer {
    daemon.request("GET", &format!("/api/v1{route}?{query}"), &[], None)
}

/// The page of a search once all of the log is in the index.
fn found(daemon: &Daemon, query: &str) -> Value {
    let mut page = Value::Null;
    let complete = until(|| {
        let answer = ask(daemon, "/search", query);
        assert_eq!(answer.status, 200, "{}", answer.text());
        page = answer.json();
        page["index"]["complete"] == true
    });
    assert!(complete, "the index is not complete: {page}");
    page
}

fn sessions(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|hit| hit["session"].as_str().unwrap()).collect()
}

#[test]
fn what_was_said_and_done_is_found_with_its_place() {
    let daemon = Daemon::start(Setup::default());
    let one = make(
        &daemon,
        &json!({ "title": "Repair", "workspace": "/srv/shop", "agent": "mine", "source": "external" }),
    );
    let two = make(&daemon, &json!({ "title": "Other" }));
    say(&daemon, &one, "The Größe of the login form is wrong");
    signal(
        &daemon,
        &one,
        &json!({ "type": "tool_called", "call": "c", "tool": "bash", "arguments": { "command": "grep parseConfig" } }),
    );
    signal(
        &daemon,
        &one,
        &json!({ "type": "tool_returned", "call": "c", "is_error": false, "content": "login.rs:12" }),
    );
    say(&daemon, &two, "no login here");
    let page = found(&daemon, "q=grosse%20login");
    assert_eq!(page["items"], json!([]), "an accent is left out, and no letter is written in another way");
    let page = found(&daemon, "q=gr%C3%B6%C3%9Fe%20LOGIN");
    let hit = &page["items"][0];
    assert_eq!(
        (&hit["session"], &hit["title"], &hit["agent"], &hit["workspace"], &hit["seq"], &hit["kind"]),
        (&json!(one), &json!("Repair"), &json!("mine"), &json!("/srv/shop"), &json!(2), &json!("message"))
    );
    assert_eq!(
        hit["snippet"],
        json!({ "text": "The Größe of the login form is wrong", "marks": [[4, 9], [17, 22]] })
    );
    assert_eq!(page["next"], Value::Null);
    for (query, count) in [
        ("q=login", 3),
        ("q=login%20-form", 2),
        ("q=login&kind=result", 1),
        ("q=login%20kind:message", 2),
        ("q=config", 1),
        ("q=parse*", 1),
        ("q=login&in=shop", 2),
        ("q=login&agent=mine", 2),
        ("q=login%20in:/srv", 2),
        ("q=login&since=2100-01-01T00:00:00Z", 0),
        ("q=login%20since:1h", 3),
    ] {
        assert_eq!(found(&daemon, query)["items"].as_array().unwrap().len(), count, "{query}");
    }
    assert_eq!(sessions(&found(&daemon, &format!("q=login&session={two}"))), [two.as_str()]);
    let of_one = ask(&daemon, &format!("/sessions/{one}/search"), "q=login").json();
    assert_eq!(sessions(&of_one), [one.as_str(), one.as_str()]);
    refusals(&daemon);
    pages(&daemon, &one);
}

/// What cannot be asked is refused by a code, and no text is an error of the database.
fn refusals(daemon: &Daemon) {
    for (query, status, code) in [
        ("q=", 422, "search_empty"),
        ("", 422, "search_empty"),
        ("q=-login", 422, "search_only_excluded"),
        ("q=a*", 422, "search_prefix_short"),
        ("q=x%20kind:no", 422, "search_filter_bad"),
        ("q=x%20agent:a&agent=b", 422, "search_filter_twice"),
        ("q=a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q", 422, "search_too_many_words"),
        ("q=x&limit=0", 400, "query_invalid"),
        ("q=x&limit=101", 400, "query_invalid"),
        ("q=x&cursor=nothing", 400, "cursor_unreadable"),
        ("q=x&cursor=1.0.00000000", 400, "cursor_other_filter"),
        ("q=x&session=nobody", 404, "session_not_found"),
    ] {
        let answer = ask(daemon, "/search", query);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{query}");
    }
    let long = ask(daemon, "/search", &format!("q={}", "x".repeat(501)));
    assert_eq!((long.status, long.code().as_str()), (422, "search_too_long"));
    let hostile = ask(daemon, "/search", "q=%22)%20OR%20(whole:x*%20NEAR(%00%20%7Ba%7D%5E");
    assert!([200, 422].contains(&hostile.status), "{}", hostile.text());
}

/// Pages follow each other, and a cursor belongs to its query.
fn pages(daemon: &Daemon, session: &str) {
    for number in 0..30 {
        say(daemon, session, &format!("turtle number{number}"));
    }
    let (mut cursor, mut seen) = (String::new(), Vec::new());
    found(daemon, "q=turtle");
    loop {
        let page = found(daemon, &format!("q=turtle&limit=7{cursor}"));
        seen.extend(page["items"].as_array().unwrap().iter().map(|hit| hit["seq"].as_u64().unwrap()));
        let Some(next) = page["next"].as_str() else { break };
        let other = ask(daemon, "/search", &format!("q=hare&cursor={next}"));
        assert_eq!(other.code(), "cursor_other_filter");
        cursor = format!("&cursor={next}");
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 30);
}

#[test]
fn an_agent_finds_what_is_in_its_own_log_and_nothing_else() {
    let daemon = Daemon::start(Setup::default());
    let (mine, other) = (make(&daemon, &json!({})), make(&daemon, &json!({})));
    say(&daemon, &mine, "the penguin is mine");
    say(&daemon, &other, "the penguin is theirs");
    assert_eq!(found(&daemon, "q=penguin")["items"].as_array().unwrap().len(), 2);
    let token = json!({ "role": "agent", "name": "mine", "session": mine });
    let token = daemon.request("POST", "/api/v1/tokens", &[], Some(&token.to_string())).json();
    let agent =
        crate::support::Caller { token: token["token"].as_str().unwrap().to_owned(), ..daemon.caller() };
    let asked = |route: &str| agent.try_request("GET", &format!("/api/v1{route}"), &[], None).unwrap();
    let own = asked(&format!("/sessions/{mine}/search?q=penguin")).json();
    assert_eq!(sessions(&own), [mine.as_str()]);
    for route in ["/search?q=penguin".to_owned(), format!("/sessions/{other}/search?q=penguin")] {
        assert_eq!(asked(&route).status, 403, "{route}");
    }
    // The address says which session it is; the query cannot name another.
    let twice = asked(&format!("/sessions/{mine}/search?q=penguin%20session:{other}"));
    assert_eq!((twice.status, twice.code().as_str()), (422, "search_filter_twice"));
}

#[test]
fn an_index_that_was_killed_goes_on_and_is_complete() {
    for place in ["index:1", "index:2"] {
        let mut daemon = Daemon::start(Setup::default());
        let session = make(&daemon, &json!({}));
        for number in 0..20 {
            say(&daemon, &session, &format!("walrus number{number}"));
        }
        found(&daemon, "q=walrus");
        // What the index has to do again dies in its first or second step.
        daemon.restart_with(Setup::default().env("LANYARD_FAILPOINT", place));
        let mut number = 20;
        let died = until(|| {
            // An event more, unless the daemon is gone already.
            let text = format!("walrus late{number}");
            let body = json!({ "type": "said", "role": "agent", "text": text, "message_id": text });
            let path = format!("/api/v1/sessions/{session}/signals");
            let _ = daemon.caller().try_request("POST", &path, &[], Some(&body.to_string()));
            number += 1;
            !daemon.is_alive()
        });
        assert!(died, "the index does not come to {place}");
        daemon.restart_with(Setup::default());
        let logged = daemon.log_after(&session, 0);
        let logged = logged.iter().filter(|event| event["type"] == "message").count();
        let mut hits = 0;
        let mut cursor = String::new();
        loop {
            let page = found(&daemon, &format!("q=walrus&limit=100{cursor}"));
            hits += page["items"].as_array().unwrap().len();
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(hits, logged, "{place}");
    }
}

#[test]
fn a_purged_session_is_not_found_and_a_rebuild_finds_the_rest() {
    let daemon = Daemon::start(Setup::default());
    let (kept, gone) = (make(&daemon, &json!({})), make(&daemon, &json!({})));
    for number in 0..10 {
        say(&daemon, &kept, &format!("ostrich kept{number}"));
        say(&daemon, &gone, &format!("ostrich gone{number}"));
    }
    assert_eq!(found(&daemon, "q=ostrich")["items"].as_array().unwrap().len(), 20);
    let removed = daemon.lanyard(&["rm", &gone, "--yes", "--wait"]);
    assert!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
    assert_eq!(found(&daemon, "q=ostrich%20gone*")["items"], json!([]));
    let late = ask(&daemon, &format!("/sessions/{gone}/search"), "q=ostrich");
    assert_eq!((late.status, late.code().as_str()), (410, "session_deleted"));
    let rebuilt = daemon.lanyard(&["doctor", "--rebuild"]);
    assert!(rebuilt.status.success(), "{}", String::from_utf8_lossy(&rebuilt.stderr));
    assert_eq!(found(&daemon, "q=ostrich")["items"].as_array().unwrap().len(), 10);
}

#[test]
fn the_command_shows_a_table_and_json() {
    let daemon = Daemon::start(Setup::default());
    let session = make(&daemon, &json!({ "title": "Feed the heron" }));
    say(&daemon, &session, "The heron eats fish");
    found(&daemon, "q=heron");
    let table = daemon.lanyard(&["search", "heron", "fish"]);
    let (out, err) = (String::from_utf8(table.stdout).unwrap(), String::from_utf8(table.stderr).unwrap());
    assert!(out.starts_with("AT") && out.contains("Feed the heron  The heron eats fish"), "{out}");
    let command = err.split('`').nth(1).unwrap_or_else(|| panic!("{err}"));
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let opened = String::from_utf8(daemon.lanyard(&words).stdout).unwrap();
    assert!(opened.contains("The heron eats fish"), "{command}: {opened}");
    let listed = daemon.lanyard(&["search", "heron", "--session", &session, "--since", "1h", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&listed["items"][0]["session"], &listed["next"]), (&json!(session), &Value::Null));
    let nothing = daemon.lanyard(&["search", "nothing-of-it"]);
    assert!(nothing.status.success() && nothing.stdout.is_empty());
    let refused = daemon.lanyard(&["search", "!!", "--json"]);
    assert!(!refused.status.success() && String::from_utf8(refused.stderr).unwrap().contains("search_empty"));
}
