//! Names instead of ids, as people type them: parts of ids, aliases, titles, `last`, `.`, keys of tasks.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::{Daemon, Setup};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn said(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

/// The stdout of a command that must succeed.
fn ok(daemon: &Daemon, words: &[&str]) -> String {
    let output = daemon.lanyard(words);
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    text(&output.stdout).trim().to_owned()
}

/// The refusal of a command that must be refused, as JSON and as people see it.
fn no(daemon: &Daemon, words: &[&str]) -> (Value, String) {
    let output = daemon.lanyard(words);
    assert_eq!(output.status.code(), Some(1), "{words:?}: {}", said(&output));
    let seen = text(&output.stderr);
    let output = daemon.lanyard(&[words, &["--json"]].concat());
    let line = text(&output.stderr);
    (serde_json::from_str(line.lines().next_back().unwrap()).unwrap(), seen)
}

fn end(id: &str, chars: usize) -> &str {
    &id[id.len() - chars..]
}

#[test]
fn fnd_n16_a_session_is_called_by_its_id_a_part_of_it_an_alias_its_title_last_and_the_folder() {
    let daemon = Daemon::start(Setup::default());
    let first =
        ok(&daemon, &["new", "--title", "Fix the login test", "--alias", "login", "--workspace", "."]);
    let second = ok(&daemon, &["new", "--title", "Write the changelog", "--workspace", "/srv/web"]);
    let no_kind = first.strip_prefix("sess_").unwrap();
    for name in [
        first.as_str(),
        no_kind,
        end(&first, 6),
        &format!("sess_{}", end(&first, 6)),
        end(&first, 12),
        &end(&first, 6).to_uppercase(),
        &first[..first.len() - 1],
        &no_kind[..20],
        "login",
        "Fix the login test",
        "fix the LOGIN  test",
        ".",
    ] {
        let shown: Value = serde_json::from_str(&ok(&daemon, &["show", name, "--json"])).unwrap();
        assert_eq!(shown["id"], first.as_str(), "{name}");
    }
    let last: Value = serde_json::from_str(&ok(&daemon, &["show", "last", "--json"])).unwrap();
    assert_eq!(last["id"], second.as_str());
    let here: Value =
        serde_json::from_str(&ok(&daemon, &["show", "last", "--workspace", ".", "--json"])).unwrap();
    assert_eq!(here["id"], first.as_str(), "`last` in a workspace");
    // An alias wins over an id that ends the same way.
    ok(&daemon, &["alias", &second, end(&first, 6)]);
    let named: Value = serde_json::from_str(&ok(&daemon, &["show", end(&first, 6), "--json"])).unwrap();
    assert_eq!(named["id"], second.as_str());
    // Options take names too.
    let child = ok(&daemon, &["new", "--parent", end(&second, 8)]);
    let listed = ok(&daemon, &["ls", "--parent", "Write the changelog", "--json"]);
    assert!(listed.contains(&child), "{listed}");
}

#[test]
fn an_ambiguous_name_lists_the_candidates_and_does_nothing() {
    let daemon = Daemon::start(Setup::default());
    let made: Vec<String> = (0..3).map(|_| ok(&daemon, &["new", "--title", "same thing"])).collect();
    for words in [
        ["rm", "same thing", "--yes"].as_slice(),
        &["stop", "Same Thing"],
        &["archive", "same thing"],
        &["show", "same thing"],
        // All three were made within the same minutes.
        &["rm", &made[0][..10], "--yes"],
    ] {
        let (problem, seen) = no(&daemon, words);
        assert_eq!(problem["code"], "name_ambiguous", "{problem}");
        for id in &made {
            assert!(seen.contains(end(id, 6)) && !seen.contains(id.as_str()), "short: {seen}");
        }
        for word in ["same thing", "beginning", "AGE", "means 3 sessions", "  try: type the id"] {
            assert!(seen.contains(word), "{word}: {seen}");
        }
    }
    let listed: Value = serde_json::from_str(&ok(&daemon, &["ls", "--json"])).unwrap();
    let states: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|row| &row["state"]).collect();
    assert_eq!(states, [&json!("beginning"); 3], "nothing was done");
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest_ones() {
    let daemon = Daemon::start(Setup::default());
    let id = ok(&daemon, &["new", "--title", "Fix the login test", "--alias", "fix-login"]);
    ok(&daemon, &["new", "--title", "something else"]);
    for words in
        [&["show", "fix-logn"][..], &["show", "login test"], &["notifications", "--session", "fix-logn"]]
    {
        let (problem, seen) = no(&daemon, words);
        assert_eq!(problem["code"], "session_not_found", "{problem}");
        assert!(seen.contains("the nearest:") && seen.contains(end(&id, 6)), "{seen}");
        assert!(seen.contains("fix-login") && !seen.contains("something else"), "{seen}");
    }
    // A script's whole id gets no suggestions, and no second request.
    let whole = "sess_01m7f3gs00fqqr28t5cy4tqkff";
    assert!(!no(&daemon, &["show", whole]).1.contains("nearest"));
    // Too short to be part of an id.
    assert!(!no(&daemon, &["show", end(&id, 3)]).1.contains("name_ambiguous"));
}

#[test]
fn fnd_n16_a_task_is_called_by_its_key_and_a_plan_by_its_title() {
    let daemon = Daemon::start(Setup::default());
    let plan = |name: &str| {
        let title = format!("The {name}");
        let plan = ok(&daemon, &["plan", "new", &title, "--name", name, "--workspace", "/tmp"]);
        let task =
            ok(&daemon, &["task", "add", "the api", "--plan", name, "--task-key", "api", "--agent", "demo"]);
        (plan, task)
    };
    let (shop, shop_api) = plan("shop");
    let other = ok(
        &daemon,
        &["task", "add", "pages", "--plan", "The shop", "--task-key", "pages", "--agent", "demo"],
    );
    let id = |words: &[&str]| {
        let view: Value = serde_json::from_str(&ok(&daemon, &[words, &["--json"]].concat())).unwrap();
        view["id"].as_str().unwrap().to_owned()
    };
    for name in
        ["api", "shop/api", "The shop/api", "the api", end(&shop_api, 6), &format!("{}/api", end(&shop, 6))]
    {
        assert_eq!(id(&["task", "show", name]), shop_api, "{name}");
    }
    for name in ["shop", "the SHOP", end(&shop, 6), "last", &shop[..shop.len() - 2]] {
        assert_eq!(id(&["plan", "show", name]), shop, "{name}");
    }
    assert_eq!(id(&["task", "show", "last"]), other);
    let (garage, garage_api) = plan("garage");
    let (problem, seen) = no(&daemon, &["task", "cancel", "api"]);
    assert_eq!(problem["code"], "name_ambiguous");
    assert!(seen.contains("shop/api") && seen.contains("garage/api") && seen.contains("pending"), "{seen}");
    assert_eq!(id(&["task", "show", "garage/api"]), garage_api);
    assert_eq!(id(&["plan", "show", "last"]), garage);
    ok(&daemon, &["task", "cancel", "garage/api"]);
    assert_eq!(id(&["task", "show", "api"]), shop_api, "the only one that has not ended");
    let (problem, seen) = no(&daemon, &["task", "show", "pagse"]);
    assert_eq!(problem["code"], "task_not_found", "{problem}");
    assert!(seen.contains("shop/pages"), "{seen}");
}

#[test]
fn listings_show_short_ids_and_json_whole_ones() {
    let daemon = Daemon::start(Setup::default());
    let id = ok(&daemon, &["new", "--title", "one"]);
    let task = ok(&daemon, &["task", "add", "two", "--workspace", "/tmp", "--agent", "demo"]);
    for (words, id) in [(&["ls"][..], &id), (&["tree"], &id), (&["task", "ls"], &task)] {
        let shown = ok(&daemon, words);
        assert!(shown.contains(end(id, 6)) && !shown.contains(end(id, 7)), "{shown}");
        let shown = ok(&daemon, &[words, &["--full-ids"]].concat());
        assert!(shown.contains(id.as_str()), "{shown}");
        assert!(ok(&daemon, &[words, &["--json"]].concat()).contains(id.as_str()));
    }
    // What scripts read stays whole.
    let show = ok(&daemon, &["show", &id]);
    assert!(show.contains(&id), "{show}");
}

#[test]
fn a_name_that_is_taken_in_the_folder_is_refused_before_anything_starts() {
    let daemon = Daemon::start(Setup::default());
    let run = ["run", "--agent", "demo", "--name", "login", "--detach", "fix it"];
    let begun = daemon.lanyard(&run);
    assert_eq!(text(&begun.stderr), "demo works on it\n");
    let id = text(&begun.stdout).trim().to_owned();
    let shown: Value = serde_json::from_str(&ok(&daemon, &["show", "login", "--json"])).unwrap();
    assert_eq!(shown["id"], id.as_str());
    let (problem, _) = no(&daemon, &run);
    assert_eq!(problem["code"], "alias_taken", "{problem}");
    let listed: Value = serde_json::from_str(&ok(&daemon, &["ls", "--all", "--json"])).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    let elsewhere = [&run[..5], &["--cwd", "/tmp"], &run[5..]].concat();
    assert_ne!(ok(&daemon, &elsewhere), id);
    assert_eq!(no(&daemon, &["show", "login"]).0["code"], "name_ambiguous");
    ok(&daemon, &["show", "login", "--workspace", "/tmp"]);
}
