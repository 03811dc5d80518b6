//! The screen of one session: what was said and done, what it waits for, and a line to type in.

mod draw;
mod files;
mod frames;
mod inbox;
mod keys;
mod replies;
mod status;
#[cfg(test)]
mod tests;

pub(crate) use keys::type_key;

use lanyard_api::types::StopReceipt;
use lanyard_core::session::AgentAbility;
use lanyard_core::{GateId, SessionId, Timestamp};
use ratatui::Frame;
use serde_json::{Value, json};

use lanyard_client::Route;

use super::face::{Face, Writer};
use super::input::Input;
use super::message::{Asked, Call, Do, Exit, Link, Message, Method, Refused, Screen};
use super::paint::Paint;
use super::transcript::Transcript;
use files::GoingFile;
use inbox::Inbox;

/// Turns that were sent from here and not answered yet.
const SENT_MAX: usize = 32;
/// How long a word about what happened stays, in ticks; what went wrong stays longer.
const NOTICE_TICKS: u32 = 24;
const TROUBLE_TICKS: u32 = 60;
/// An approval must have been on the screen this long before a number answers it.
const SETTLE_TICKS: u32 = 3;

/// How often the sessions below are looked at.
const BELOW_TICKS: u32 = 8;

/// Whether one may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Write,
    ReadOnly,
}

/// How a message arrives while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypedDelivery {
    Reject,
    Queue,
    Steer,
    Interrupt,
}

impl TypedDelivery {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Queue => "queue",
            Self::Steer => "steer",
            Self::Interrupt => "interrupt",
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Reject => Self::Queue,
            Self::Queue => Self::Steer,
            Self::Steer => Self::Interrupt,
            Self::Interrupt => Self::Reject,
        }
    }

    const fn previous(self) -> Self {
        self.next().next().next()
    }
}

/// What the line that is typed in is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Aim {
    Turn,
    Guidance,
    /// A message that waits is changed.
    Edit(String),
    /// The path of a file that goes with the next message, whose words are held meanwhile.
    File(Input),
}

/// What lies over the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Over {
    Nothing,
    Help,
    /// Detach, cancel, stop, or go on?
    Leave,
    /// Stop the session?
    Stop,
    Inbox,
    /// A turn that may have run: once more?
    Again(Sent),
}

/// A turn on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sent {
    number: u64,
    client_turn_id: String,
    prompt: String,
    files: Vec<GoingFile>,
    delivery: TypedDelivery,
    again: bool,
    /// No answer: it is sent again, as the same turn, once the daemon is back.
    unheard: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Notice {
    text: String,
    bad: bool,
    ticks: u32,
}

/// A session below that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asking {
    session: SessionId,
    name: String,
}

/// Another one that is attached.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Present {
    connection: String,
    name: String,
}

/// Whether the session has to be looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fresh {
    Yes,
    Asked,
    /// Asked, and changed since.
    AskedAndStale,
}

#[derive(Debug)]
pub(crate) struct Model {
    id: SessionId,
    mode: Mode,
    paint: Paint,
    columns: u16,
    rows: u16,
    now: Timestamp,
    link: Link,
    connection: Option<String>,
    face: Option<Face>,
    fresh: Fresh,
    transcript: Transcript,
    paging: bool,
    input: Input,
    /// The prompt that was recalled into the line, counted back from the newest.
    recalled: Option<usize>,
    aim: Aim,
    /// Files that go with the next message.
    files: Vec<GoingFile>,
    files_count: u64,
    delivery: TypedDelivery,
    over: Over,
    inbox: Inbox,
    present: Vec<Present>,
    /// When the takeover that was asked for from here is due.
    asked_until: Option<Timestamp>,
    receipt: Option<StopReceipt>,
    /// There are sessions below, which are looked at now and then: their questions are asked in their own logs.
    children: bool,
    below: Option<Asking>,
    ticks: u32,
    /// The question that was put aside.
    aside: Option<GateId>,
    /// The question that is shown, and for how many ticks.
    shown: Option<(GateId, u32)>,
    sent: Vec<Sent>,
    sent_count: u64,
    /// Random, so that ids made of it are unique.
    seed: u128,
    notice: Option<Notice>,
    /// The last turn's end that was marked as seen.
    seen: u64,
}

impl Model {
    pub(crate) fn new(id: SessionId, mode: Mode, paint: Paint, seed: u128) -> Self {
        Self {
            id,
            mode,
            paint,
            columns: 80,
            rows: 24,
            now: Timestamp::from_millis(0),
            link: Link::Connecting,
            connection: None,
            face: None,
            fresh: Fresh::Yes,
            transcript: Transcript::default(),
            paging: false,
            input: Input::default(),
            recalled: None,
            aim: Aim::Turn,
            files: Vec::new(),
            files_count: 0,
            delivery: TypedDelivery::Queue,
            over: Over::Nothing,
            inbox: Inbox::default(),
            present: Vec::new(),
            asked_until: None,
            receipt: None,
            children: false,
            below: None,
            ticks: 0,
            aside: None,
            shown: None,
            sent: Vec::new(),
            sent_count: 0,
            seed,
            notice: None,
            seen: 0,
        }
    }

    /// What to say on leaving: whether the session goes on, and how to come back to it.
    pub(crate) fn farewell(&self) -> String {
        let id = self.id;
        match self.face.as_ref().filter(|face| face.is_ended()) {
            None => format!("detached; the session goes on. Come back with `lanyard attach {id}`"),
            Some(face) if face.state == "stopped" => {
                format!("detached; the session is stopped. Resume it with `lanyard resume {id}`")
            }
            Some(face) => format!("detached; the session is {}", face.state),
        }
    }

    /// The right to write is released on leaving, so that no other client waits for it to lapse.
    pub(crate) fn parting(&self) -> Option<Call> {
        let epoch = self.own_epoch()?;
        let body = json!({"connection": self.connection, "epoch": epoch});
        Some(Call::post(self.route(&["writer", "release"]), body))
    }

    /// Messages that were typed here and that the daemon never answered.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = &str> {
        self.sent.iter().filter(|sent| sent.unheard).map(|sent| sent.prompt.as_str())
    }

    fn route(&self, below: &[&str]) -> Route {
        let id = self.id.to_string();
        let parts: Vec<&str> = ["sessions", &id].into_iter().chain(below.iter().copied()).collect();
        Route::to(&parts)
    }

    fn call(&self, asked: Asked, below: &[&str], body: Value) -> Vec<Do> {
        vec![Do::Call(asked, Call::post(self.route(below), body))]
    }

    fn look(&self, asked: Asked, below: &[&str]) -> Do {
        Do::Call(asked, Call::get(self.route(below)))
    }

    /// Asks how the session is, once at a time.
    fn refresh(&mut self) -> Vec<Do> {
        match self.fresh {
            Fresh::Yes => {
                self.fresh = Fresh::Asked;
                vec![self.look(Asked::Session, &[])]
            }
            Fresh::Asked | Fresh::AskedAndStale => {
                self.fresh = Fresh::AskedAndStale;
                Vec::new()
            }
        }
    }

    fn say(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), bad: false, ticks: NOTICE_TICKS });
    }

    fn complain(&mut self, refused: &Refused) {
        let advice = if refused.advice.is_empty() { String::new() } else { format!("; {}", refused.advice) };
        let text = format!("{} [{}]{advice}", refused.title, refused.code);
        self.notice = Some(Notice { text, bad: true, ticks: TROUBLE_TICKS });
    }

    /// The reason why the session's agent cannot be asked for one thing.
    fn lack(&self, what: AgentAbility) -> Option<String> {
        self.face.as_ref().and_then(|face| face.lack(what))
    }

    fn is_busy(&self) -> bool {
        self.face.as_ref().is_some_and(|face| face.turn.is_some())
    }

    fn writer(&self) -> Option<&Writer> {
        self.face.as_ref().and_then(|face| face.writer.as_ref())
    }

    fn is_own(&self, writer: &Writer) -> bool {
        self.connection.as_deref() == Some(writer.connection.as_str())
    }

    /// The epoch every write has to name while this connection holds the right to write.
    fn own_epoch(&self) -> Option<u64> {
        self.writer().filter(|writer| self.is_own(writer)).map(|writer| writer.epoch)
    }

    /// Another client asks for the right to write that is held here.
    fn takeover(&self) -> Option<&super::face::FaceTakeover> {
        self.writer().filter(|writer| self.is_own(writer)).and_then(|writer| writer.asked.as_ref())
    }

    /// A turn that could not be confirmed keeps its id: sent again it is the same turn.
    fn send(&mut self, prompt: String) -> Vec<Do> {
        if self.sent.len() >= SENT_MAX {
            self.input = Input::holding(&prompt);
            self.say("too many messages wait for an answer of the daemon");
            return Vec::new();
        }
        self.sent_count += 1;
        let number = self.sent_count;
        let bits = self.seed.wrapping_add(u128::from(number));
        let client_turn_id = uuid(bits);
        let delivery = self.delivery;
        let files = std::mem::take(&mut self.files);
        let sent = Sent { number, client_turn_id, prompt, files, delivery, again: false, unheard: false };
        let order = self.order(&sent);
        self.sent.push(sent);
        // After sending, the newest entries are shown.
        self.transcript.scroll.below = 0;
        let mut all = vec![order];
        all.extend(self.catch_up());
        all
    }

    fn order(&self, sent: &Sent) -> Do {
        let mut body = json!({
            "prompt": sent.prompt, "client_turn_id": sent.client_turn_id, "delivery": sent.delivery.as_str(),
        });
        if sent.again {
            body["again"] = true.into();
        }
        let parts: Vec<&Value> = sent.files.iter().filter_map(|file| file.part.as_ref()).collect();
        if !parts.is_empty() {
            body["parts"] = json!(parts);
        }
        Do::Call(Asked::Turn(sent.number), Call::post(self.route(&["turns"]), body).writing(self.own_epoch()))
    }

    /// Reads the newest of the log again when it was let go for something older.
    fn catch_up(&mut self) -> Vec<Do> {
        if self.transcript.is_live() || self.paging {
            return Vec::new();
        }
        self.paging = true;
        let after = self.transcript.head().saturating_sub(super::transcript::PAGE_EVENTS);
        vec![self.page(Asked::Latest, after, super::transcript::PAGE_EVENTS * 2)]
    }

    fn page(&self, asked: Asked, after: u64, limit: u64) -> Do {
        let route = self.route(&["events"]).with("after", Some(after)).with("limit", Some(limit));
        Do::Call(asked, Call::get(route))
    }
}

impl Screen for Model {
    fn update(&mut self, message: Message) -> Vec<Do> {
        match message {
            Message::Key(key) => self.key(key),
            Message::Paste(text) => {
                if self.mode == Mode::Write && self.over == Over::Nothing {
                    self.input.insert(&text);
                }
                Vec::new()
            }
            Message::Resized { columns, rows } => {
                (self.columns, self.rows) = (columns, rows);
                self.transcript.resize(usize::from(columns));
                Vec::new()
            }
            Message::Tick(now) => self.tick(now),
            Message::Now(now) => {
                self.now = now;
                Vec::new()
            }
            Message::Frame(frame) => self.frame(&frame),
            Message::Link(link) => {
                self.link = link;
                if link == Link::Down {
                    self.transcript.forget_preview();
                }
                Vec::new()
            }
            Message::Reply(asked, result) => self.reply(asked, result),
        }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        draw::draw(self, frame);
    }
}

impl Model {
    fn tick(&mut self, now: Timestamp) -> Vec<Do> {
        self.now = now;
        self.ticks = self.ticks.wrapping_add(1);
        if let Some(notice) = &mut self.notice {
            notice.ticks = notice.ticks.saturating_sub(1);
        }
        if self.notice.as_ref().is_some_and(|notice| notice.ticks == 0) {
            self.notice = None;
        }
        let gate = self.question().map(|gate| gate.id);
        self.shown = match (gate, self.shown) {
            (Some(gate), Some((shown, ticks))) if gate == shown => Some((gate, ticks.saturating_add(1))),
            (Some(gate), _) => Some((gate, 0)),
            (None, _) => None,
        };
        if self.asked_until.is_some_and(|until| until < now) {
            self.asked_until = None;
        }
        let due = self.children && self.link == Link::Up && self.ticks.is_multiple_of(BELOW_TICKS);
        if due { vec![self.look(Asked::Below, &["tree"])] } else { Vec::new() }
    }

    /// The question that is in front of the user.
    fn question(&self) -> Option<&lanyard_core::session::Gate> {
        let face = self.face.as_ref()?;
        face.questions.iter().find(|gate| Some(gate.id) != self.aside)
    }

    fn patch(&self, asked: Asked, below: &[&str], body: Value) -> Vec<Do> {
        let call = Call { method: Method::Patch, ..Call::post(self.route(below), body) };
        vec![Do::Call(asked, call.writing(self.own_epoch()))]
    }
}

/// Leaving is all a screen can do to itself; the session does not notice.
fn leave() -> Vec<Do> {
    vec![Do::Leave(Exit::Quit)]
}

/// Bits in the form of a random UUID.
fn uuid(bits: u128) -> String {
    let bits = (bits & !(0xF << 76) & !(0b11 << 62)) | (0x4 << 76) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
