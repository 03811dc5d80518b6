//! Notifications on their way outward: nothing lost, nothing sent twice without saying so, whatever the receiver does and
//! whenever the daemon is killed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};

use super::kit::{Manner, Post, Receiver, Stage, rounds, until, webhook};
use crate::support::{Daemon, Setup};

/// Ten failures: one notification.
fn raise(stage: &Stage) -> Value {
    let session = stage.new_session();
    stage.fail_to_attach(&session, 10);
    stage.await_notifications("continuity_alert", 1).remove(0)
}

fn delivery(stage: &Stage, id: &Value, wanted: &str) -> Value {
    until(wanted, || {
        let detail = stage.get(&format!("/notifications/{}", id.as_str().unwrap()));
        let found = detail["deliveries"][0].clone();
        (found["state"]["name"] == wanted).then_some(found)
    })
}

fn attempts(posts: &[Post]) -> Vec<&str> {
    posts.iter().map(|post| post.header("lanyard-attempt")).collect()
}

/// A receiver that fails, hangs, breaks off and sends elsewhere gets it in the end, each try with its number.
#[test]
fn a_receiver_that_fails_and_hangs_gets_it_in_the_end() {
    let manners = [Manner::Fail, Manner::Hang, Manner::Break, Manner::Redirect, Manner::Take];
    let receiver = Receiver::start(&manners);
    let mut stage = Stage::new(&webhook("ops", &receiver.url(), "secret_env = \"HOOK\""));
    // The secret is named and not there: nothing goes out unsigned.
    let raised = raise(&stage);
    let failed = until("a try that failed", || {
        stage.later(0);
        let detail = stage.get(&format!("/notifications/{}", raised["id"].as_str().unwrap()));
        let found = detail["deliveries"][0].clone();
        found["last_error"].is_string().then_some(found)
    });
    assert!(failed["last_error"].as_str().unwrap().contains("HOOK"), "{failed}");
    assert!(receiver.rest().is_empty());

    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "whsec_c2VjcmV0\n").unwrap();
    let more = format!("secret_file = \"{}\"\nkinds = [\"continuity_alert\"]", secret.display());
    let with = webhook("ops", &receiver.url(), &more);
    stage.again(&with);
    let mut posts = Vec::new();
    while posts.len() < manners.len() {
        // Time moves on past each pause.
        stage.later(5_000);
        until("the next try", || {
            posts.extend(receiver.rest());
            stage.later(1_000);
            (!posts.is_empty()).then_some(())
        });
    }
    let done = delivery(&stage, &raised["id"], "delivered");
    assert_eq!(done["attempts"], json!(posts.len() + 1), "the one without a secret too");
    let ids: std::collections::BTreeSet<&str> = posts.iter().map(|post| post.header("webhook-id")).collect();
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), [done["id"].as_str().unwrap()]);
    assert_eq!(attempts(&posts), ["2", "3", "4", "5", "6"]);
    for post in &posts {
        assert_eq!(post.path, "/hook");
        let signed = [post.header("webhook-id"), ".", post.header("webhook-timestamp"), "."].concat();
        let message = [signed.as_bytes(), &post.body].concat();
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        let signature =
            STANDARD.decode(post.header("webhook-signature").strip_prefix("v1,").unwrap()).unwrap();
        hmac::verify(&key, &message, &signature).expect("signed with the secret of the file");
        assert_eq!(post.json()["notification"]["id"], raised["id"]);
    }
    stage.later(60_000);
    rounds();
    assert!(receiver.rest().is_empty(), "not sent again");
    assert!(!stage.daemon.stderr().contains("c2VjcmV0"), "no secret in the log");
}

/// After the last try it is dead, and can be seen.
#[test]
fn a_receiver_that_never_takes_it_leaves_a_dead_letter() {
    let receiver = Receiver::start(&[Manner::Fail]);
    let mut stage = Stage::new(&webhook("ops", &receiver.url(), "attempts = 3"));
    let raised = raise(&stage);
    let mut posts = Vec::new();
    while posts.len() < 3 {
        stage.later(1_000);
        rounds();
        posts.extend(receiver.rest());
    }
    let dead = delivery(&stage, &raised["id"], "dead");
    assert_eq!((&dead["attempts"], dead["last_error"].as_str().unwrap().contains("503")), (&json!(3), true));
    assert_eq!(attempts(&posts), ["1", "2", "3"]);
    stage.later(600_000);
    rounds();
    assert!(receiver.rest().is_empty());
}

/// A kill before, in and after a post: the next daemon sends it again, and says so; what was taken is not sent again.
#[test]
fn a_kill_around_a_delivery_loses_nothing_and_marks_the_repeat() {
    for (place, sent_before) in [("before_delivery", 0), ("after_delivery", 1)] {
        let receiver = Receiver::start(&[Manner::Take]);
        // The failures below raise one alert, that of the rate.
        let config =
            format!("[continuity]\nattach_failures_max = 0\n{}", webhook("ops", &receiver.url(), ""));
        let setup = Setup::default().config(&config);
        let mut daemon = Daemon::start(setup.clone().env("LANYARD_FAILPOINT", format!("{place}:1")));
        let session = super::kit::new_session(&daemon);
        let caller = daemon.caller();
        let path = format!("/api/v1/sessions/{session}/attach?after=99999");
        until("the daemon to be killed", || {
            let _ = caller.try_request("GET", &path, &[], None);
            (!daemon.is_alive()).then_some(())
        });
        let first: Vec<Post> = receiver.rest();
        assert_eq!(attempts(&first), vec!["1"; sent_before], "{place}");
        daemon.restart_with(setup.clone());
        let second = receiver.next();
        assert_eq!(second.header("lanyard-attempt"), "2", "{place}");
        let id = second.header("webhook-id").to_owned();
        assert!(first.iter().all(|post| post.header("webhook-id") == id), "the same delivery");
        let notification = second.json()["notification"]["id"].as_str().unwrap().to_owned();
        until("delivered", || {
            let detail = super::kit::get(&daemon, &format!("/notifications/{notification}"));
            (detail["deliveries"][0]["state"]["name"] == "delivered").then_some(())
        });
        daemon.restart_with(setup);
        assert!(super::kit::get(&daemon, "/notifications")["notifications"].as_array().unwrap().len() == 1);
        assert!(receiver.rest().is_empty(), "{place}: taken once and not sent again");
    }
}

/// Slack and ntfy get what they understand; who wants less gets less; one that hangs holds up nobody.
#[test]
fn each_receiver_gets_its_own_form_and_share() {
    let (slack, ntfy, picky, slow) = (
        Receiver::start(&[Manner::Take]),
        Receiver::start(&[Manner::Take]),
        Receiver::start(&[Manner::Take]),
        Receiver::start(&[Manner::Hang]),
    );
    let config = webhook("slow", &slow.url(), "")
        + &webhook("slack", &slack.url(), "body = \"slack\"")
        + &webhook("ntfy", &ntfy.url(), "body = \"ntfy\"")
        + &webhook("picky", &picky.url(), "kinds = [\"continuity_recovered\"]");
    let mut stage = Stage::new(&config);
    raise(&stage);
    let text = slack.next().json()["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("[critical] Continuity is degraded"), "{text}");
    let post = ntfy.next();
    assert_eq!((post.header("priority"), post.header("tags")), ("5", "rotating_light"));
    assert!(post.header("title").starts_with("Continuity is degraded"));
    assert!(String::from_utf8(post.body).unwrap().contains("attaches failed"));
    slow.next();
    stage.later(61 * 60_000);
    assert_eq!(picky.next().json()["notification"]["kind"], json!("continuity_recovered"));
    assert!(picky.rest().is_empty());
}

/// Quiet hours hold back all but what is critical, and lose nothing; what was dismissed meanwhile is dropped.
#[test]
fn quiet_hours_put_off_what_is_not_critical() {
    let receiver = Receiver::start(&[Manner::Take]);
    // The clock begins at 08:00:30 UTC.
    let config =
        format!("[notifications]\nquiet_hours = \"06:00-11:00\"\n{}", webhook("ops", &receiver.url(), ""));
    let mut stage = Stage::new(&config);
    let alert = raise(&stage);
    assert_eq!(receiver.next().json()["notification"]["id"], alert["id"], "critical goes out");
    let silent = |stage: &mut Stage| {
        let session = stage.new_session();
        stage.call("POST", &format!("/sessions/{session}/turns"), &json!({"prompt": "work"}));
    };
    silent(&mut stage);
    silent(&mut stage);
    stage.later(11 * 60_000);
    let found = stage.await_notifications("suspected_orphan", 2);
    rounds();
    assert!(receiver.rest().is_empty(), "it is quiet");
    let id = found[0]["id"].as_str().unwrap();
    assert_eq!(
        stage.call("PATCH", &format!("/notifications/{id}"), &json!({"status": "dismissed"})).status,
        200
    );
    stage.later(3 * 3_600_000);
    // The hour without attaches also ended the alert.
    let posts = [receiver.next(), receiver.next()].map(|post| post.json()["notification"]["id"].clone());
    assert!(posts.contains(&found[1]["id"]), "{posts:?}");
    rounds();
    assert!(receiver.rest().iter().all(|post| post.json()["notification"]["id"] != found[0]["id"]));
    assert_eq!(delivery(&stage, &found[0]["id"], "dropped")["attempts"], json!(0));
}

/// On the desktop, where there is one: a stand-in for `notify-send` gets the words as words.
#[test]
fn the_desktop_is_told_where_there_is_one() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let (program, log) = (folder.path().join("notify-send"), folder.path().join("log"));
    let script = format!(
        "#!/bin/sh\nfor word in \"$@\"; do echo \"<$word>\"; done >> {}.new && mv {0}.new {0}\n",
        log.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let stage = Stage::with("[notifications]\ndesktop = \"auto\"\n", |setup| {
        setup.env("PATH", path.clone()).env("DISPLAY", ":9")
    });
    let raised = raise(&stage);
    let told = until("notify-send", || std::fs::read_to_string(&log).ok());
    assert!(told.contains("<--urgency>\n<critical>\n<-->\n<Continuity is degraded"), "{told}");
    delivery(&stage, &raised["id"], "delivered");
}
