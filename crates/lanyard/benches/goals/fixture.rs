//! Journals to measure on, made directly through the store in large batches. Their events come from the core, so they
//! can be loaded, listed and folded like any other.

use std::path::Path;

use anyhow::{Context, Result};
use bytes::Bytes;
use lanyard_core::session::{
    Command, Envelope, Event, NewSession, Role, Signal, TurnOutcome, create, decide, observe,
};
use lanyard_core::{Actor, Rules, Session, SessionId, Timestamp, TurnId};
use lanyard_store::{Batch, EventEntry, Journal, SqliteJournal, SqliteOptions};

/// Bytes of an event that is only content.
pub(crate) const BODY_BYTES: usize = 300;
/// Room for a sequence number in such an event, so that it can be written into a ready one.
const SEQ_WIDTH: usize = 9;
/// Events of one commit while a journal is made.
pub(crate) const BATCH_EVENTS: usize = 10_000;
/// Words of titles. Session `n` is called by word `n % 200`, so that a word goes with few owners.
const WORDS: usize = 200;

/// The names sessions of a catalogue have.
pub(crate) fn owner(number: usize) -> String {
    format!("owner-{:02}", number % 20)
}

pub(crate) fn workspace(number: usize) -> String {
    format!("workspace-{:03}", number % 50)
}

pub(crate) fn word(number: usize) -> String {
    format!("topic{:03}", number % WORDS)
}

pub(crate) fn open(home: &Path) -> Result<SqliteJournal> {
    std::fs::create_dir_all(home)?;
    let options = SqliteOptions::at(home.join("journal.db"));
    SqliteJournal::open(options).context("cannot open a journal")
}

pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(0))
}

/// Spreads numbers over 128 bits, the same every time.
fn bits(number: usize) -> u128 {
    (number as u128 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
}

/// Writes sessions into a journal.
pub(crate) struct Scribe<'a> {
    journal: &'a SqliteJournal,
    batch: Batch,
    now: Timestamp,
    actor: Actor,
    rules: Rules,
}

impl<'a> Scribe<'a> {
    pub(crate) fn new(journal: &'a SqliteJournal) -> Self {
        let (batch, rules) = (Batch::default(), Rules::default());
        Self { journal, batch, now: now(), actor: Actor::operator("bench"), rules }
    }

    /// A session at its beginning. Its record goes with the batch once `keep` is called.
    fn born(&mut self, number: usize, new: &NewSession) -> Result<Session> {
        let created = create(new, "bench", None, &self.rules.limits)?;
        let id = SessionId::mint(self.now, bits(number));
        let envelope = self.envelope(id, 1, created.into());
        let session = Session::born(&envelope)?;
        self.stage(&envelope)?;
        Ok(session)
    }

    fn envelope(&self, session: SessionId, seq: u64, event: Event) -> Envelope {
        Envelope { seq, session, at: self.now, actor: self.actor.clone(), cause: None, event }
    }

    fn stage(&mut self, envelope: &Envelope) -> Result<()> {
        let body = Bytes::from(serde_json::to_vec(envelope)?);
        self.batch.entries.push(EventEntry {
            session: envelope.session,
            seq: envelope.seq,
            at: envelope.at,
            body,
        });
        Ok(())
    }

    fn write(&mut self, session: &mut Session, events: Vec<Event>) -> Result<()> {
        for event in events {
            let envelope = self.envelope(session.id, session.seq + 1, event);
            session.apply(&envelope)?;
            self.stage(&envelope)?;
        }
        Ok(())
    }

    fn tell(&mut self, session: &mut Session, signal: &Signal) -> Result<()> {
        let events = observe(session, signal, &self.rules);
        self.write(session, events)
    }

    fn command(&mut self, session: &mut Session, command: &Command) -> Result<()> {
        let events = decide(session, command, self.now, &self.rules)?;
        self.write(session, events)
    }

    fn keep(&mut self, session: Session) -> Result<()> {
        self.batch.sessions.push(session);
        if self.batch.entries.len() >= BATCH_EVENTS { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.journal.append(&self.batch)?;
        self.batch = Batch::default();
        Ok(())
    }

    /// Sessions that have only begun.
    pub(crate) fn beginnings(&mut self, count: usize) -> Result<Vec<Log>> {
        let mut logs = Vec::with_capacity(count);
        for number in 0..count {
            let new = NewSession { title: Some(format!("bench {number}")), ..NewSession::default() };
            let session = self.born(number, &new)?;
            logs.push(Log::of(&session));
            self.keep(session)?;
        }
        self.flush()?;
        Ok(logs)
    }

    /// Sessions as they are in a daemon that has been used: several owners, agents, places and states, ten events each.
    /// Answers the logs of those that can go on.
    pub(crate) fn catalogue(&mut self, count: usize) -> Result<Vec<Log>> {
        let mut logs = Vec::new();
        for number in 0..count {
            let new = NewSession {
                title: Some(format!("session about {} number{number:06}", word(number))),
                agent: Some(["claude", "codex", "gemini", "opencode", "pi"][number % 5].to_owned()),
                owner: Some(owner(number)),
                source: Some(["api", "chat", "cli", "telegram"][number % 4].to_owned()),
                workspace: Some(workspace(number)),
                purpose: (number % 3 == 0).then(|| format!("look into {}", word(number + 7))),
                aliases: if number % 10 == 0 { vec![format!("alias-{number}")] } else { Vec::new() },
                ..NewSession::default()
            };
            let mut session = self.born(number, &new)?;
            self.live(&mut session, number)?;
            if !session.state.is_ended() {
                logs.push(Log::of(&session));
            }
            self.keep(session)?;
        }
        self.flush()?;
        Ok(logs)
    }

    fn live(&mut self, session: &mut Session, number: usize) -> Result<()> {
        let text = format!("{:x<120}", format!("what was said about {} ", word(number)));
        let said = Signal::Said { role: Role::Agent, text, message_id: None, parts: Vec::new() };
        let kind = number % 10;
        if kind >= 4 {
            let turn = TurnId::mint(self.now, bits(number));
            let start = Command::StartTurn { turn, client_turn_id: None, prompt: "go on".to_owned() };
            self.command(session, &start)?;
            self.tell(
                session,
                &Signal::TurnFinished { turn: Some(turn), outcome: TurnOutcome::Completed, reason: None },
            )?;
        }
        while session.seq < if kind >= 8 { 9 } else { 10 } {
            self.tell(session, &said)?;
        }
        match kind {
            8 => self.command(session, &Command::Complete { reason: None }),
            9 => self.command(session, &Command::Fail { reason: Some("bench".to_owned()) }),
            _ => Ok(()),
        }
    }

    /// Adds content to sessions in turn, one event each, until so many are written; `commit` of them at a time.
    pub(crate) fn content(&mut self, logs: &mut [Log], events: usize, commit: usize) -> Result<()> {
        let count = logs.len();
        for number in 0..events {
            let log = &mut logs[number % count];
            self.batch.entries.push(log.next());
            if self.batch.entries.len() >= commit {
                self.flush()?;
            }
        }
        self.flush()
    }
}

/// A session's log as its writer knows it, with an event of content ready to be numbered.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) id: SessionId,
    pub(crate) seq: u64,
    at: Timestamp,
    ready: Vec<u8>,
}

impl Log {
    fn of(session: &Session) -> Self {
        Self { seq: session.seq, ..Self::unwritten(session.id, session.created_at) }
    }

    /// Logs that are in no journal, to be written elsewhere.
    pub(crate) fn loose(count: usize) -> Vec<Self> {
        let at = now();
        (0..count).map(|number| Self::unwritten(SessionId::mint(at, bits(number)), at)).collect()
    }

    fn unwritten(id: SessionId, at: Timestamp) -> Self {
        let blank = " ".repeat(SEQ_WIDTH);
        let head = format!(
            "{{\"seq\":{blank},\"session\":\"{id}\",\"at\":\"{at}\",\"actor\":{{\"kind\":\"agent\",\"name\":\"bench\"}},\
             \"type\":\"message\",\"data\":{{\"role\":\"agent\",\"text\":\""
        );
        let filled = BODY_BYTES.saturating_sub(head.len() + 3);
        let ready = format!("{head}{:x<filled$}\"}}}}", "").into_bytes();
        Self { id, seq: 0, at, ready }
    }

    /// The next event of content.
    pub(crate) fn next(&mut self) -> EventEntry {
        self.seq += 1;
        let mut body = self.ready.clone();
        let digits = self.seq.to_string();
        body[7..7 + digits.len()].copy_from_slice(digits.as_bytes());
        EventEntry { session: self.id, seq: self.seq, at: self.at, body: Bytes::from(body) }
    }
}
