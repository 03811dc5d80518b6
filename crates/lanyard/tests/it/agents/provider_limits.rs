//! Limits of providers: a turn that meets one is kept, waits, and goes on exactly once, whatever dies in between.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::kit::{Stage, Talk, interrupted, until};

/// No spread, so that a test knows when a turn goes on; tries after an overload come soon.
const RULES: &str = "limits = { jitter_ms = 0, retry_ms = 20, retries = 2 }\n";
/// What the agent does when it is told to continue.
const ON: [&str; 2] = ["--otherwise", "/run echo on >> on.txt"];
const BEGIN_MS: i64 = 1_794_729_630_000;
const HOUR_MS: i64 = 3_600_000;

/// The clocks of a daemon, set by hand.
struct HandClock {
    path: PathBuf,
    past: i64,
    _folder: tempfile::TempDir,
}

impl HandClock {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Self { path: folder.path().join("clock"), past: 0, _folder: folder };
        clock.show(0);
        clock
    }

    /// Whole at once: a clock that is half written would be a leap.
    fn show(&self, wall_off: i64) {
        let beside = self.path.with_extension("new");
        let (wall, boot) = (BEGIN_MS + self.past + wall_off, 1_000 + self.past);
        std::fs::write(&beside, format!("{wall} {boot}")).unwrap();
        std::fs::rename(&beside, &self.path).unwrap();
    }

    /// Time passes, by both clocks.
    fn later(&mut self, ms: i64) {
        self.past += ms;
        self.show(0);
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

fn operator_state(talk: &Talk<'_>) -> Value {
    talk.record()["operator_state"].clone()
}

fn completed(end: &Value) {
    assert_eq!((&end["type"], &end["data"]["outcome"]), (&json!("turn.finished"), &json!("completed")));
}

fn send_on(talk: &Talk<'_>) {
    let sent = talk.post("resume", &json!({}));
    assert_eq!(sent.status, 202, "{}", sent.text());
}

/// In the middle of a turn, after a tool call: the conversation continues, and nothing is done twice.
#[test]
fn a_turn_that_worked_continues_at_the_reset() {
    let mut clock = HandClock::new();
    let stage = Stage::timed(&ON, RULES, &clock.path);
    let mut talk = stage.talk();
    let turn = talk.turn("/run echo did >> did.txt\n/limit hit usage 3600000\n/say never");
    let waiting = talk.until("turn.waiting");
    assert_eq!(waiting["data"]["turn"], json!(turn));
    assert_eq!(waiting["data"]["limit"]["kind"], "usage");
    assert_eq!(waiting["data"]["until"], "2026-11-15T09:00:30.000Z", "{waiting:#}");
    assert_eq!(operator_state(&talk), "waiting_for_limit");
    assert_eq!(talk.record()["active_turn"]["id"], json!(turn), "it is kept");
    clock.later(HOUR_MS - 2_000);
    assert_eq!(talk.post("turns", &json!({"prompt": "more"})).status, 409, "it is at work");
    clock.later(2_000);
    completed(&talk.over());
    assert_eq!((lines(&stage.file("did.txt")), lines(&stage.file("on.txt"))), (1, 1), "{:#?}", talk.seen);
    assert!(stage.memory().contains("Continue where you stopped"), "{}", stage.memory());
    assert_eq!((talk.all("turn.continued").len(), talk.runs()), (1, 1), "the same process");
}

/// Before anything was done the request is given as it was.
#[test]
fn a_turn_that_did_nothing_gets_its_request_again() {
    let stage = Stage::with(&[], RULES);
    let mut talk = stage.talk();
    talk.turn("/limit hit usage 100\n/say after the limit");
    completed(&talk.over());
    assert_eq!(talk.said(), "after the limit");
    assert_eq!(talk.all("turn.waiting").len(), 1);
    assert_eq!(stage.memory().matches("Continue where you stopped").count(), 0);
}

#[test]
fn a_person_sends_a_turn_on_before_its_reset_or_gives_it_up() {
    let stage = Stage::with(&[], RULES);
    let mut talk = stage.talk();
    talk.turn("/limit first usage\n/say sent on");
    let waiting = talk.until("turn.waiting");
    assert!(waiting["data"]["until"].is_string() && waiting["data"]["limit"]["resets_at"].is_null());
    send_on(&talk);
    let continued = talk.until("turn.continued");
    assert_eq!(
        (&continued["data"]["asked"], &continued["actor"]["kind"]),
        (&json!(true), &json!("operator"))
    );
    completed(&talk.over());
    assert_eq!(talk.said(), "sent on");

    talk.turn("/limit second quota\n/say never");
    let waiting = talk.until("turn.waiting");
    assert_eq!((&waiting["data"]["asks"], &waiting["data"]["until"]), (&json!("no_reset"), &Value::Null));
    assert_eq!(operator_state(&talk), "needs_answer");
    talk.cancel();
    interrupted(&talk.over(), "user");
    assert_eq!(talk.said(), "sent on");
}

/// A message that interrupts takes the place of a turn that waits, and a stop ends it.
#[test]
fn a_waiting_turn_makes_room_and_can_be_stopped() {
    let stage = Stage::with(&[], RULES);
    let mut talk = stage.talk();
    talk.turn("/limit hit quota\n/say never");
    talk.until("turn.waiting");
    let sent = talk.post("turns", &json!({"prompt": "/say instead", "delivery": "interrupt"}));
    assert!(sent.status < 300, "{}", sent.text());
    interrupted(&talk.over(), "user");
    let waits = talk.until("turn.waiting");
    assert_eq!(waits["data"]["limit"]["text"], "the account reached its limit in another session");
    send_on(&talk);
    completed(&talk.over());
    assert_eq!(talk.said(), "instead");
    talk.turn("/limit again quota\n/say never");
    talk.until("turn.waiting");
    talk.stop();
    assert_eq!(talk.until("session.ended")["data"]["how"], "stopped");
}

/// Overloads are tried again a few times, and told as such.
#[test]
fn an_overload_is_tried_again_and_given_up() {
    let stage = Stage::with(&[], RULES);
    let mut talk = stage.talk();
    talk.turn("/limit one 529\n/say well again");
    let waiting = talk.until("turn.waiting");
    assert_eq!(waiting["data"]["limit"]["kind"], "overloaded");
    completed(&talk.over());
    assert_eq!(talk.said(), "well again");
    talk.turn("/limit a 529\n/limit b 529\n/limit c 529\n/say never");
    let end = talk.over();
    assert_eq!(end["data"]["outcome"], "failed", "{end:#}");
    let reason = end["data"]["reason"].as_str().unwrap();
    assert_eq!(reason, "overload of the provider, given up after 2 more tries: Overloaded");
    assert_eq!(talk.all("turn.waiting").len(), 3);
}

/// An agent that dies with words about a limit is taken up again by its own resume.
#[test]
fn an_agent_that_dies_of_a_limit_goes_on_in_a_new_process() {
    let stage = Stage::with(&ON, RULES);
    let mut talk = stage.talk();
    talk.turn("/run echo did >> did.txt\n/limit hit die");
    talk.until("turn.waiting");
    completed(&talk.over());
    assert_eq!((lines(&stage.file("did.txt")), lines(&stage.file("on.txt")), talk.runs()), (1, 1, 2));
    assert_eq!(talk.all("run.ready")[1]["data"]["continuity"], "native");
}

/// What is known of an account holds for all of its sessions, also those that begin later.
#[test]
fn another_session_of_the_account_waits_without_asking_the_agent() {
    let mut clock = HandClock::new();
    let mut stage = Stage::timed(&[], RULES, &clock.path);
    let mut first = stage.talk();
    first.turn("/limit hit usage 3600000\n/say first");
    first.until("turn.waiting");
    let first = first.id;
    stage.restart();
    let mut second = stage.talk();
    second.turn("/say second");
    let waiting = second.until("turn.waiting");
    assert_eq!(waiting["data"]["until"], "2026-11-15T09:00:30.000Z", "{waiting:#}");
    assert_eq!(second.runs(), 0, "no process was started for it");
    clock.later(HOUR_MS);
    completed(&second.over());
    completed(&stage.follow(&first).over());
}

/// The second account goes on where the first is exhausted. No value of either is in the log.
#[test]
fn the_next_account_goes_on_with_the_conversation() {
    let accounts = "local_history = true\naccount_policy = \"next\"\n\
        accounts = [{ name = \"one\", env = { WHO_KEY = \"sekret-one-1\" } }, \
        { name = \"two\", env_from = { WHO_KEY = \"TEST_ACCOUNT_KEY\" } }]\n";
    let mut stage = Stage::with(&ON, &format!("{RULES}{accounts}"));
    stage.restart_in("TEST_ACCOUNT_KEY", "sekret-two-2");
    let mut talk = stage.talk();
    talk.turn("/run printf %s $WHO_KEY > first.txt\n/limit hit usage 3600000");
    completed(&talk.over());
    let who = |name: &str| std::fs::read_to_string(stage.file(name)).unwrap();
    assert_eq!(who("first.txt"), "sekret-one-1");
    let accounts: Vec<&Value> =
        talk.all("run.started").iter().map(|event| &event["data"]["account"]).collect();
    assert_eq!(accounts, [&json!("one"), &json!("two")]);
    assert_eq!(talk.all("turn.waiting")[0]["data"]["limit"]["account"], "one");
    assert_eq!(talk.all("run.ready")[1]["data"]["continuity"], "native");
    assert_eq!(lines(&stage.file("on.txt")), 1);
    let mut new = stage.talk();
    new.turn("/run printf %s $WHO_KEY > second.txt");
    completed(&new.over());
    assert_eq!(who("second.txt"), "sekret-two-2", "a new session begins where there is something left");
    let log = format!("{:?}{:?}", talk.seen, new.seen);
    assert!(!log.contains("sekret-one-1") && !log.contains("sekret-two-2"), "{log}");
}

/// An account whose conversation cannot move waits, although another one is free.
#[test]
fn a_conversation_that_cannot_move_waits_for_its_own_account() {
    let accounts = "account_policy = \"next\"\n\
        accounts = [{ name = \"one\" }, { name = \"two\", env = { HOME = \"/nonexistent\" } }]\n";
    let stage = Stage::with(&[], &format!("{RULES}{accounts}"));
    let mut talk = stage.talk();
    talk.turn("/limit hit usage 3600000\n/say never");
    talk.until("turn.waiting");
    talk.catch_up();
    assert_eq!((talk.all("turn.continued").len(), operator_state(&talk)), (0, json!("waiting_for_limit")));
    talk.cancel();
    interrupted(&talk.over(), "user");
}

#[test]
fn an_account_that_cannot_be_read_fails_the_turn_with_its_name() {
    let accounts = "accounts = [{ name = \"one\", env_files = { WHO_KEY = \"/nonexistent/key\" } }]\n";
    let stage = Stage::with(&[], accounts);
    let mut talk = stage.talk();
    let end = talk.ask("/say never");
    let reason = end["data"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("account_unusable: the account `one` takes WHO_KEY from"), "{reason}");
    assert_eq!(talk.runs(), 0);
}

/// A clock that is put right does not make a wait longer, and one that leaps does not send a turn on twice.
#[test]
fn a_wait_goes_by_the_time_that_passes() {
    let mut clock = HandClock::new();
    let stage = Stage::timed(&ON, RULES, &clock.path);
    let mut talk = stage.talk();
    talk.turn("/run echo did >> did.txt\n/limit hit usage 3600000");
    talk.until("turn.waiting");
    // Put back by two hours; then an hour passes, with the part in a hundred that recorded time is slower.
    clock.show(-2 * HOUR_MS);
    clock.past += HOUR_MS + HOUR_MS / 50;
    clock.show(-2 * HOUR_MS);
    completed(&talk.over());
    clock.later(10 * HOUR_MS);
    talk.catch_up();
    assert_eq!((lines(&stage.file("on.txt")), talk.all("turn.continued").len()), (1, 1));
}

/// The daemon is killed while the turn waits, and its successor at each place on the way to the prompt.
fn goes_on_once(prompt: &str, ready_to_die: &str, reset_ms: i64, place: &str) {
    let mut clock = HandClock::new();
    let mut stage = Stage::timed(&ON, RULES, &clock.path);
    let session = {
        let mut talk = stage.talk();
        talk.turn(prompt);
        talk.until(ready_to_die);
        talk.id.clone()
    };
    stage.restart_to_die(place);
    clock.later(reset_ms);
    until(&format!("the daemon to die at {place}"), || !stage.daemon.is_alive());
    stage.restart();
    let mut talk = stage.follow(&session);
    completed(&talk.over());
    let did = (lines(&stage.file("did.txt")), lines(&stage.file("on.txt")));
    assert_eq!(did, (1, 1), "{place}: {:#?}", talk.seen);
    assert!(!talk.all("turn.continued").is_empty(), "{place}");
}

#[test]
fn a_kill_around_the_reset_neither_loses_nor_repeats_a_turn() {
    for place in ["before_prompt:1", "after_prompt:1", "before_report:1", "after_report:1"] {
        let prompt = "/run echo did >> did.txt\n/limit hit usage 3600000";
        goes_on_once(prompt, "turn.waiting", HOUR_MS + 1, place);
    }
}

#[test]
fn a_kill_around_the_reset_of_an_agent_that_died_does_neither() {
    for place in ["before_run:1", "before_spawn:1", "after_spawn:1", "after_ready:1", "before_prompt:1"] {
        goes_on_once("/run echo did >> did.txt\n/limit hit die", "run.ended", 2_000, place);
    }
}

/// An agent that is run once per turn: its own flag continues the conversation; one that has none is asked about.
#[test]
fn an_agent_that_is_run_once_per_turn_goes_on_in_a_new_run() {
    let script = r#"
printf '%s\n' "$*" >> prompts.txt
if [ ! -e hit ]; then : > hit; echo "You have hit your usage limit. Try again in 1 second" >&2; exit 1; fi
echo done
"#;
    let with_next = "per_turn = { first = [\"first\", \"{prompt}\"], next = [\"next\", \"{prompt}\"] }\n";
    let stage = Stage::once(script, &format!("{RULES}{with_next}"));
    let mut talk = stage.talk();
    talk.turn("go");
    talk.until("turn.waiting");
    completed(&talk.over());
    let prompts = std::fs::read_to_string(stage.file("prompts.txt")).unwrap();
    assert_eq!(prompts, "first go\nnext go\n");

    let stage = Stage::once(script, &format!("{RULES}per_turn = {{ first = [\"{{prompt}}\"] }}\n"));
    let mut talk = stage.talk();
    talk.turn("go");
    let waiting = talk.until("turn.waiting");
    assert_eq!(waiting["data"]["asks"], "side_effects", "nobody knows what it did: {waiting:#}");
    assert_eq!(operator_state(&talk), "needs_answer");
    talk.until("run.ended");
    send_on(&talk);
    completed(&talk.over());
}
