//! Plays what an agent wrote to its driver, does what a session would do, and shows the actions as text.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::PathBuf;

use lanyard_api::agents::settings::ClientFiles;
use lanyard_core::TurnId;
use lanyard_core::session::{Question, Signal};

use super::driver::{Action, Answer, Begin, Driver, Readiness, Setting, Tuned};

/// Lines of random nonsense a driver is shown in one test.
const NONSENSE_LINES: usize = 20_000;

pub(super) fn setting(begin: Begin) -> Setting {
    Setting {
        begin,
        workspace: PathBuf::from("/w"),
        instructions: None,
        mode: None,
        model: None,
        mcp: Vec::new(),
        client_files: ClientFiles::default(),
        conversation: "conversation-1".to_owned(),
        git_folders: Vec::new(),
        tuned: Tuned::default(),
    }
}

pub(super) fn turn(number: u8) -> TurnId {
    format!("turn_01jz00000000000000000000{number:02}").parse().unwrap()
}

pub(super) type Make = fn(Begin) -> Box<dyn Driver>;

/// A session as small as can be around a driver.
pub(super) struct Play {
    make: Make,
    driver: Box<dyn Driver>,
    pub(super) actions: Vec<Action>,
    readiness: Option<Readiness>,
    turn: Option<TurnId>,
    prompts: VecDeque<(TurnId, &'static str)>,
    open: Vec<Question>,
    /// Lines that a driver which comes after has to be reminded of.
    kept: Vec<String>,
    /// How the questions are answered in turn; `stop` cancels the turn instead.
    answers: VecDeque<&'static str>,
}

impl Play {
    pub(super) fn new(make: Make, begin: Begin, turns: u8, answers: &[&'static str]) -> Self {
        let mut play = Self {
            make,
            driver: make(begin),
            actions: Vec::new(),
            readiness: None,
            turn: None,
            prompts: (1..=turns).map(|number| (turn(number), "go")).collect(),
            open: Vec::new(),
            kept: Vec::new(),
            answers: answers.iter().copied().collect(),
        };
        play.wish(|driver, out| driver.begin(out));
        play
    }

    /// Does something with the driver and reacts to what comes of it.
    pub(super) fn wish<T>(&mut self, wish: impl FnOnce(&mut dyn Driver, &mut Vec<Action>) -> T) -> T {
        let mut out = Vec::new();
        let result = wish(self.driver.as_mut(), &mut out);
        for action in out {
            self.actions.push(action.clone());
            self.react(action);
        }
        result
    }

    fn react(&mut self, action: Action) {
        match action {
            Action::Ready(readiness) => {
                self.readiness = Some(*readiness);
                self.prompt();
            }
            Action::Finished { native: None, .. } => {
                self.turn = None;
                self.prompt();
            }
            Action::Asked { question, .. } => self.answer(*question),
            Action::Unasked { request, .. } => self.open.retain(|question| question.request != request),
            Action::Send { .. }
            | Action::Replayed(_)
            | Action::Text { .. }
            | Action::Image { .. }
            | Action::Saw { .. }
            | Action::Child(_)
            | Action::Finished { .. }
            | Action::Call { .. }
            | Action::Broken { .. }
            | Action::Odd { .. } => {}
        }
    }

    fn prompt(&mut self) {
        if let Some((turn, text)) = self.prompts.pop_front() {
            self.turn = Some(turn);
            self.wish(|driver, out| driver.prompt(turn, None, text.into(), out));
        }
    }

    fn answer(&mut self, question: Question) {
        match (self.answers.pop_front(), self.turn) {
            (Some("stop"), Some(turn)) => {
                self.open.push(question);
                self.wish(|driver, out| driver.cancel(turn, None, out));
            }
            (Some(word), _) => {
                let option = question.choose(word).unwrap().clone();
                let answer = Answer::Chosen { option, message: None };
                self.wish(|driver, out| driver.answer(&question, &answer, out));
            }
            (None, _) => self.open.push(question),
        }
    }

    pub(super) fn lines(&mut self, lines: &[&str]) {
        for line in lines {
            self.wish(|driver, out| driver.line(line.as_bytes(), out));
            self.kept.push((*line).to_owned());
            if !self.driver.is_midway() {
                self.kept.clear();
            }
        }
    }

    /// The daemon is started anew: another driver takes over.
    pub(super) fn restart(&mut self) {
        let readiness = self.readiness.clone().unwrap();
        self.driver = (self.make)(Begin::Adopted { readiness, turn: self.turn, open: self.open.clone() });
        self.wish(|driver, out| driver.begin(out));
        for line in self.kept.clone() {
            self.wish(|driver, out| driver.recall(line.as_bytes(), out));
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.readiness.is_some()
    }

    pub(super) fn show(&self) -> String {
        shown(&self.actions)
    }
}

/// Cuts the lines at every place after the greeting and shows that a second driver goes on where the first one stopped.
pub(super) fn goes_on_anywhere(make: Make, begin: &Begin, turns: u8, answers: &[&'static str], trace: &str) {
    let lines: Vec<&str> = trace.lines().collect();
    let mut whole = Play::new(make, begin.clone(), turns, answers);
    whole.lines(&lines);
    let whole = essence(&whole.actions);
    for cut in 0..=lines.len() {
        let mut play = Play::new(make, begin.clone(), turns, answers);
        play.lines(&lines[..cut]);
        if !play.is_ready() {
            continue;
        }
        play.restart();
        play.lines(&lines[cut..]);
        assert_eq!(essence(&play.actions), whole, "cut before line {}", cut + 1);
    }
}

/// What must be the same whoever listened: all but token counts and choices, which a new driver cannot always compare, and the
/// words of a question, which may tell less.
fn essence(actions: &[Action]) -> String {
    let kept = actions.iter().filter(|action| {
        !matches!(
            action,
            Action::Saw {
                signal: Signal::UsageReported { .. }
                    | Signal::ContextCompacted { .. }
                    | Signal::Offered(_)
                    | Signal::InForce(_),
                ..
            } | Action::Odd { .. }
        )
    });
    let mut kept: Vec<Action> = kept.cloned().collect();
    for action in &mut kept {
        if let Action::Asked { question, .. } = action {
            question.title.clear();
        }
    }
    shown(&kept)
}

/// Shows nonsense, and traces with parts of them changed, to a driver: nothing may panic.
pub(super) fn survives_nonsense(make: Make, begin: &Begin, traces: &[&str]) {
    let lines: Vec<&str> = traces.iter().flat_map(|trace| trace.lines()).collect();
    let mut random = fastrand::Rng::with_seed(7);
    let mut driver = make(begin.clone());
    let mut out = Vec::new();
    driver.begin(&mut out);
    for number in 0..NONSENSE_LINES {
        let mut line = random.choice(&lines).unwrap().as_bytes().to_vec();
        match random.u8(0..5) {
            0 => line.truncate(random.usize(0..=line.len())),
            1 => {
                let at = random.usize(0..line.len());
                line[at] = random.u8(..);
            }
            2 => line = mangled(&line, &mut random),
            _ => {}
        }
        driver.line(&line, &mut out);
        match random.u8(0..40) {
            0 => driver.prompt(turn(1), None, "go".into(), &mut out),
            1 => driver.prompt(turn(2), Some("id-2"), "go".into(), &mut out),
            2 => driver.cancel(turn(1), None, &mut out),
            3 => drop(driver.steer("k", None, "words".into(), &mut out)),
            4 => drop(driver.compact("k", &mut out)),
            5 => driver.exited(Some(1), &mut out),
            _ => {}
        }
        let asked = out.iter().find_map(|action| {
            let Action::Asked { question, .. } = action else {
                return None;
            };
            Some(question.clone())
        });
        if let Some(question) = asked {
            let chosen = random.choice(&question.options).cloned();
            let answer = chosen.map_or(Answer::Void, |option| Answer::Chosen { option, message: None });
            driver.answer(&question, &answer, &mut out);
        }
        out.clear();
        if number % 500 == 499 {
            driver = make(begin.clone());
        }
    }
}

/// The line with one of its values put in the place of another.
fn mangled(line: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(line) else {
        return Vec::new();
    };
    let other = random.choice(["null", "[]", "{}", "-1", "\"\"", "1e300", "[{\"a\":1}]", "true"]).unwrap();
    let other: serde_json::Value = serde_json::from_str(other).unwrap();
    let mut at = &mut value;
    loop {
        let count = at.as_object().map(serde_json::Map::len).or(at.as_array().map(Vec::len)).unwrap_or(0);
        if count == 0 || random.u8(0..4) == 0 {
            break;
        }
        let pick = random.usize(0..count);
        at = if at.is_object() {
            at.as_object_mut().unwrap().values_mut().nth(pick).unwrap()
        } else {
            &mut at.as_array_mut().unwrap()[pick]
        };
    }
    *at = other;
    value.to_string().into_bytes()
}

pub(super) fn shown(actions: &[Action]) -> String {
    let mut text = String::new();
    for action in actions {
        let line = match action {
            Action::Send { key, line } => format!("send {key}: {line}"),
            Action::Ready(ready) => {
                let version = ready.info.version.as_deref().unwrap_or("-");
                format!("ready {} {:?}, {} {version}", ready.native, ready.how, ready.info.name)
            }
            Action::Replayed(count) => format!("replayed {count}"),
            Action::Text { native, kind, text, message } => {
                let message = message.as_ref().map(|id| format!(" of {id}")).unwrap_or_default();
                format!("{}{kind:?}{message} {text:?}", of(native.as_ref()))
            }
            Action::Image { native, data, message } => {
                let message = message.as_ref().map(|id| format!(" of {id}")).unwrap_or_default();
                format!("{}image{message} {data}", of(native.as_ref()))
            }
            Action::Saw { native, signal } => format!("{}{}", of(native.as_ref()), saw(signal)),
            Action::Asked { native, question } => {
                let options: Vec<String> = question
                    .options
                    .iter()
                    .map(|option| format!("{} ({:?}, {})", option.id, option.kind, option.name))
                    .collect();
                let call = question.call.as_deref().unwrap_or("-");
                let (request, title) = (&question.request, &question.title);
                let options = options.join("; ");
                format!("{}asked {request} about {call}: {title} [{options}]", of(native.as_ref()))
            }
            Action::Unasked { request, why } => format!("unasked {request}: {why}"),
            Action::Child(child) => format!("{child:?}"),
            Action::Finished { native, turn, end } => {
                let turn = turn.map_or_else(|| "-".to_owned(), |turn| turn.to_string());
                format!("{}finished {turn}: {end:?}", of(native.as_ref()))
            }
            Action::Call { request, call } => format!("call {request}: {call:?}"),
            Action::Broken { code, what } => format!("broken {code}: {what}"),
            Action::Odd { what } => format!("odd: {what}"),
        };
        let _ = writeln!(text, "{line}");
    }
    text
}

fn of(native: Option<&String>) -> String {
    native.map_or_else(String::new, |native| format!("({native}) "))
}

fn saw(signal: &Signal) -> String {
    if let Signal::ToolCalled { call, tool, arguments } = signal {
        format!("called {call} {tool} {arguments}")
    } else if let Signal::ToolReturned { call, is_error, content } = signal {
        format!("returned {call} {}{content}", if *is_error { "ERROR " } else { "" })
    } else if let Signal::UsageReported { input_tokens, output_tokens, context_tokens, cost_micros } = signal
    {
        format!(
            "Usage {{ input: {input_tokens}, output: {output_tokens}, context: {context_tokens:?}, cost: {cost_micros} }}"
        )
    } else if let Signal::ContextCompacted { size_before, size_after, .. } = signal {
        format!("Compacted {{ before: {size_before}, after: {size_after} }}")
    } else if let Signal::ErrorSeen { text: Some(text), .. } = signal {
        format!("Error {{ text: {text:?} }}")
    } else {
        format!("{signal:?}")
    }
}
