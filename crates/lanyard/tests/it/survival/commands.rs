//! Agents that are run once per turn, with turns that wait. Each process counts itself in a file outside of Lanyard: a
//! turn that is told as completed ran exactly once, one that is told as never begun did not run, and the rest is told
//! as uncertain (FND-K2).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::kit::{Stage, wait};

/// Kills at moments of chance in the short form.
const KILLS: u64 = 10;
/// Turns of one session that wait at a time.
const WAITING: u64 = 3;
/// A kill comes within so many milliseconds after the daemon answers.
const KILL_WITHIN_MS: u64 = 120;
/// One program per form of output.
const FORMS: [&str; 3] = ["text", "claude_json", "codex_json"];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A program that counts its turn, tells its end, and stays for a moment. The turn `wait` waits for the file `go` before
/// its end; while the file `hold` is there the process of any turn stays after its end.
fn program(form: &str, counts: &str, work: &str) -> String {
    let (hello, bye) = match form {
        "claude_json" => (
            r#"{"type":"system","subtype":"init","session_id":"c"}"#,
            r#"{"type":"result","subtype":"success","result":"done"}"#,
        ),
        "codex_json" => {
            (r#"{"type":"thread.started","thread_id":"c"}"#, r#"{"type":"turn.completed","usage":{}}"#)
        }
        _ => ("", "done"),
    };
    format!(
        "echo '{hello}'; echo \"$1\" >> {counts}; \
         if [ \"$1\" = wait ]; then until [ -e {work}/go ]; do sleep 0.01; done; fi; \
         echo '{bye}'; while [ -e {work}/hold ]; do sleep 0.01; done; sleep 0.02"
    )
}

struct Scene {
    stage: Stage,
    counts: PathBuf,
}

impl Scene {
    /// A scene with an agent per form.
    fn new() -> Self {
        let mut stage = Stage::new();
        let counts = stage.folder().join("counts");
        let (file, work) = (counts.display().to_string(), stage.work("").display().to_string());
        for form in FORMS {
            let script = program(form, &file, work.trim_end_matches('/'));
            let command = serde_json::to_string(&["/bin/sh", "-c", &script, "agent"]).unwrap();
            stage.add_agent(&format!(
                "[agents.{form}]\ndriver = \"command\"\ncommand = {command}\nresume = [\"native\"]\n\
                 kill_grace_ms = 500\n\
                 per_turn = {{ first = [\"{{prompt}}\"], next = [\"{{prompt}}\"], output = \"{form}\" }}\n"
            ));
        }
        stage.up();
        Self { stage, counts }
    }

    /// How often each turn's process counted itself.
    fn counted(&self) -> BTreeMap<String, u64> {
        let text = std::fs::read_to_string(&self.counts).unwrap_or_default();
        let mut counted = BTreeMap::new();
        for line in text.lines() {
            *counted.entry(line.to_owned()).or_default() += 1;
        }
        counted
    }

    /// Sends a turn that waits for those before it. False when the daemon died of it.
    fn send(&self, session: &str, name: &str) -> bool {
        let body = json!({"prompt": name, "client_turn_id": name, "delivery": "queue"});
        let Some(answer) = self.stage.try_post(&format!("/sessions/{session}/turns"), &body) else {
            return false;
        };
        let uncertain = answer.status == 409 && answer.code() == "turn_uncertain";
        assert!(uncertain || [200, 201].contains(&answer.status), "{name}: {}", answer.text());
        true
    }

    /// Lets everything that waits run, until nothing is left to do.
    fn drive(&self, session: &str) {
        let mut shown = Value::Null;
        let done = wait(|| {
            let Some(now) = self.stage.look(session) else { return false };
            shown = now;
            let rests = shown["active_turn"].is_null();
            let empty = shown["inbox"].as_array().is_none_or(Vec::is_empty);
            if rests && !empty {
                let _ = self.stage.try_post(&format!("/sessions/{session}/inbox/go"), &json!({}));
            }
            rests && empty
        });
        assert!(done, "{shown:#}\n{:#?}", self.stage.log(session));
    }

    /// Compares what the log tells of each turn with what was counted. Answers how many there are of each kind.
    fn check(&self, session: &str, about: &str) -> BTreeMap<&'static str, u64> {
        let counted = self.counted();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        let mut tally = BTreeMap::new();
        let log = self.stage.log(session);
        for event in &log {
            let data = &event["data"];
            let turn = data["turn"].as_str().unwrap_or_default();
            let (told, wanted) = match event["type"].as_str().unwrap_or_default() {
                "turn.started" => {
                    let name = data["client_turn_id"].as_str().unwrap().to_owned();
                    names.insert(turn.to_owned(), name);
                    continue;
                }
                "turn.finished" if data["outcome"] == "completed" => ("completed", 1..=1),
                // No program here fails, so no count is right.
                "turn.finished" => ("failed", u64::MAX..=u64::MAX),
                "turn.interrupted" if data["uncertain"] == true => ("uncertain", 0..=1),
                "turn.interrupted" => ("interrupted", 0..=0),
                _ => continue,
            };
            let name = names.remove(turn).unwrap_or_else(|| panic!("{about}: {turn} ended twice: {log:#?}"));
            let times = counted.get(&name).copied().unwrap_or(0);
            assert!(
                wanted.contains(&times),
                "{about}: {name} is told as {told} and ran {times} times\n{log:#?}"
            );
            *tally.entry(told).or_default() += 1;
        }
        assert!(names.is_empty(), "{about}: without an end: {names:?}");
        tally
    }
}

/// A turn waits while the process of the turn before stays on; the daemon ends, by a kill or in order.
fn keeps_them_apart(form: &str, end: impl Fn(&Scene)) {
    let mut scene = Scene::new();
    let session = scene.stage.session_of(form);
    scene.stage.touch("hold");
    assert!(scene.send(&session, "wait"));
    assert!(scene.send(&session, "second"));
    assert!(wait(|| scene.counted().contains_key("wait")));
    scene.stage.touch("go");
    if form == "text" {
        // The end of its process is the end of its turn.
        std::fs::remove_file(scene.stage.work("hold")).unwrap();
    } else {
        assert!(wait(|| !scene.stage.events(&session, "turn.finished").is_empty()));
    }
    end(&scene);
    scene.stage.up();
    let _ = std::fs::remove_file(scene.stage.work("hold"));
    scene.drive(&session);
    let tally = scene.check(&session, form);
    assert_eq!(tally, BTreeMap::from([("completed", 2)]), "{form}");
    assert_eq!(scene.stage.events(&session, "run.started").len(), 2, "{form}: a run for each turn");
    scene.stage.end();
}

/// FND-K2.
#[test]
fn fnd_k2_a_waiting_turn_is_not_given_to_the_run_of_the_turn_before_by_a_kill() {
    for form in FORMS {
        keeps_them_apart(form, |scene| scene.stage.daemon.kill_9());
    }
}

/// FND-K2: also without a crash.
#[test]
fn fnd_k2_a_waiting_turn_is_not_given_to_the_run_of_the_turn_before_by_down_and_up() {
    for form in FORMS {
        keeps_them_apart(form, |scene| assert!(scene.stage.daemon.terminate().success()));
    }
}

/// The daemon dies at a place with turns waiting, or does not come to it.
fn dies_at(form: &str, place: &str) {
    let mut scene = Scene::new();
    let session = scene.stage.session_of(form);
    scene.stage.up_to(place);
    let names = ["wait", "second", "third"];
    let mut sent = 0;
    while sent < names.len() && scene.send(&session, names[sent]) {
        sent += 1;
    }
    scene.stage.touch("go");
    let at_rest = || scene.stage.look(&session).is_some_and(|shown| shown["active_turn"].is_null());
    assert!(wait(|| !scene.stage.daemon.is_alive() || at_rest()), "{place}");
    scene.stage.up();
    for name in names {
        assert!(scene.send(&session, name), "{place}");
    }
    scene.drive(&session);
    scene.check(&session, &format!("{form}, {place}"));
    scene.stage.end();
}

macro_rules! places {
    ($($test:ident $form:literal $($place:literal)*;)*) => {$(
        /// FND-K2.
        #[test]
        fn $test() {
            for place in [$($place),*] {
                dies_at($form, place);
            }
        }
    )*};
}

places! {
    fnd_k2_killed_around_the_end_of_a_text_turn "text"
        "before_report:2" "after_report:2" "before_report:3" "after_report:3" "before_run_end:1" "after_run_end:1";
    fnd_k2_killed_around_the_end_of_a_claude_turn "claude_json"
        "before_report:2" "after_report:2" "before_run_end:1" "after_run_end:1";
    fnd_k2_killed_around_the_start_of_a_process "text"
        "before_run:2" "before_spawn:2" "after_spawn:1" "after_spawn:2";
}

/// FND-K2: kills at moments of chance, with an agent of each form at work and turns that wait.
#[test]
fn fnd_k2_every_completed_turn_ran_once_after_kills_at_any_moment() {
    let kills = number("LANYARD_COMMAND_KILLS", KILLS);
    let seed = number("LANYARD_SURVIVAL_SEED", 20_261_117);
    eprintln!("repeat with LANYARD_SURVIVAL_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut scene = Scene::new();
    let sessions: Vec<(&str, String)> =
        FORMS.iter().map(|form| (*form, scene.stage.session_of(form))).collect();
    let mut next = [0_u64; FORMS.len()];
    for _ in 0..kills {
        for ((form, session), next) in sessions.iter().zip(&mut next) {
            let _ = scene.stage.try_post(&format!("/sessions/{session}/inbox/go"), &json!({}));
            let waiting =
                scene.stage.look(session).map_or(0, |shown| shown["inbox"].as_array().map_or(0, Vec::len));
            for _ in waiting as u64..WAITING {
                // The same name until it was taken: a kill may come between the two.
                if scene.send(session, &format!("{form}-{next}")) {
                    *next += 1;
                }
            }
        }
        // sleep: any moment of the turns.
        std::thread::sleep(Duration::from_millis(random.u64(0..KILL_WITHIN_MS)));
        scene.stage.up();
    }
    for (form, session) in &sessions {
        scene.drive(session);
        let tally = scene.check(session, form);
        eprintln!("{form}: {kills} kills, {tally:?}");
        assert!(tally.get("completed").is_some_and(|completed| *completed > 0), "{form}: {tally:?}");
    }
    scene.stage.end();
}
