//! Every message once, and the inbox, over the real API: what a repeat is answered with, what waits and in which order,
//! and that nothing is dropped without a word. The sessions have no agent; the tests report what one would.

mod flood;
mod inbox;
mod once;

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, Setup};

/// A daemon and one session of it.
struct Desk {
    daemon: Daemon,
    session: String,
}

impl Desk {
    fn new() -> Self {
        Self::with(Setup::default())
    }

    fn with(setup: Setup) -> Self {
        let daemon = Daemon::start(setup);
        let made = daemon.request("POST", "/api/v1/sessions", &[], Some("{}"));
        assert_eq!(made.status, 201, "{}", made.text());
        let session = made.json()["session"].as_str().unwrap().to_owned();
        Self { daemon, session }
    }

    fn ask(&self, method: &str, below: &str, body: Option<&Value>) -> Answer {
        let path = format!("/api/v1/sessions/{}/{below}", self.session);
        let body = body.map(Value::to_string);
        self.daemon.request(method, &path, &[], body.as_deref())
    }

    fn post(&self, below: &str, body: &Value) -> Answer {
        self.ask("POST", below, Some(body))
    }

    fn get(&self, below: &str) -> Value {
        let answer = self.ask("GET", below, None);
        assert_eq!(answer.status, 200, "{below}: {}", answer.text());
        answer.json()
    }

    fn send(&self, body: &Value) -> Answer {
        self.post("turns", body)
    }

    /// A message that is taken for the first time; its turn.
    #[track_caller]
    fn sent(&self, prompt: &str, delivery: &str, result: &str) -> String {
        let answer = self.send(&json!({"prompt": prompt, "delivery": delivery}));
        assert_eq!((answer.status, &answer.json()["result"]), (201, &json!(result)), "{}", answer.text());
        turn_of(&answer)
    }

    fn signal(&self, signal: &Value) {
        let answer = self.post("signals", signal);
        assert_eq!(answer.status, 201, "{}", answer.text());
    }

    /// The agent ends its turn.
    fn finish(&self, outcome: &str) {
        self.signal(&json!({"type": "turn_finished", "outcome": outcome}));
    }

    fn log(&self) -> Vec<Value> {
        self.daemon.log_after(&self.session, 0)
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        self.log().into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// The prompts of the turns that ran, in order.
    fn ran(&self) -> Vec<String> {
        let started = self.events("turn.started");
        started.iter().map(|event| event["data"]["prompt"].as_str().unwrap().to_owned()).collect()
    }

    /// The prompts that wait, and why they are held back.
    fn waiting(&self) -> (Vec<String>, Value) {
        let inbox = self.get("inbox");
        let turns = inbox["turns"].as_array().unwrap();
        let prompts = turns.iter().map(|turn| turn["prompt"].as_str().unwrap().to_owned()).collect();
        (prompts, inbox["paused"].clone())
    }

    fn status(&self, turn: &str) -> String {
        self.get(&format!("turns/{turn}"))["status"].as_str().unwrap().to_owned()
    }
}

fn turn_of(answer: &Answer) -> String {
    answer.json()["turn"].as_str().unwrap_or_else(|| panic!("{}", answer.text())).to_owned()
}
