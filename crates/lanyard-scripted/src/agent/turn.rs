//! One prompt, from its first step to its answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, Error, MessageId, PlanEntry, PromptResponse, RequestId, SessionNotification,
    SessionUpdate, StopReason, ToolCallId, Usage,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::children::Child;
use super::connection::{Agent, Session};
use super::inbox::{Cancelled, Inbox};
use super::mcp::Link;
use super::script::{self, Step};
use super::{demo, misbehave, scripts};

/// What is kept of the last words for the caller.
const LAST_WORDS_MAX: usize = 500;

/// A turn under way. Owned by its thread.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) agent: Arc<Agent>,
    pub(super) session: Arc<Session>,
    pub(super) inbox: Arc<Inbox>,
    /// Which prompt of the conversation this is, counted from 1: makes ids that no earlier turn had.
    number: usize,
    /// Messages and tool calls so far.
    made: usize,
    /// Between two words.
    pub(super) pace: Duration,
    pub(super) plan: Vec<PlanEntry>,
    pub(super) open: Vec<ToolCallId>,
    pub(super) children: Vec<Child>,
    pub(super) links: HashMap<String, Arc<Link>>,
    pub(super) usage: Option<Usage>,
    pub(super) last_words: String,
    pub(super) manners: misbehave::Manners,
}

/// Why no further step is run.
#[derive(Debug)]
pub(super) enum Halt {
    Cancelled,
    Stop(StopReason),
    Error(Error),
    /// The turn is over without an answer.
    Silent,
}

impl From<Cancelled> for Halt {
    fn from(Cancelled: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// How a turn came to its end.
pub(super) type Ending = Result<StopReason, Halt>;

/// Runs a prompt in a thread of its own and answers it.
pub(super) fn start(
    agent: Arc<Agent>,
    session: Arc<Session>,
    inbox: Arc<Inbox>,
    id: RequestId,
    prompt: String,
) {
    agent.busy.fetch_add(1, Ordering::Relaxed);
    std::thread::spawn(move || {
        let busy = Arc::clone(&agent);
        Turn::new(agent, session, inbox).answer(&id, &prompt);
        busy.busy.fetch_sub(1, Ordering::Relaxed);
    });
}

/// The words of a prompt; whatever else is in it is for agents with eyes and ears.
pub(super) fn text_of(prompt: &[ContentBlock]) -> String {
    let text = |block: &ContentBlock| {
        if let ContentBlock::Text(text) = block { Some(text.text.clone()) } else { None }
    };
    prompt.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

impl Turn {
    pub(super) fn new(agent: Arc<Agent>, session: Arc<Session>, inbox: Arc<Inbox>) -> Self {
        let number = session.memory.lock().prompts.len() + 1;
        Self {
            agent,
            session,
            inbox,
            number,
            made: 0,
            pace: Duration::ZERO,
            plan: Vec::new(),
            open: Vec::new(),
            children: Vec::new(),
            links: HashMap::new(),
            usage: None,
            last_words: String::new(),
            manners: misbehave::Manners::default(),
        }
    }

    fn answer(mut self, id: &RequestId, prompt: &str) {
        let ending = match self.steps(prompt) {
            Ok(steps) => self.perform(prompt, &steps),
            Err(why) => Err(Halt::Error(Error::invalid_params().data(why))),
        };
        let answer = match ending {
            Ok(reason) => Ok(PromptResponse::new(reason).usage(self.usage.take())),
            Err(Halt::Error(error)) => Err(error),
            Err(Halt::Cancelled | Halt::Stop(_)) => Ok(PromptResponse::new(StopReason::Cancelled)),
            Err(Halt::Silent) => return self.session.end(),
        };
        // Before the answer: the client may then send the next prompt.
        self.session.end();
        for _ in 0..self.manners.answers() {
            self.agent.wire.answer(id.clone(), answer.clone());
        }
        if self.manners.updates_late {
            self.say_chunk("late words");
            self.flush();
        }
    }

    /// The steps of a prompt, or those that are to take their place. An error is for the author of the script.
    fn steps(&self, prompt: &str) -> Result<Vec<Step>, String> {
        let parse = |text: &str| script::parse(text).map_err(|error| error.to_string());
        let steps = parse(prompt)?;
        if !steps.is_empty() {
            return Ok(steps);
        }
        let options = &self.agent.options;
        let waiting = match &options.scripts {
            Some(folder) => {
                let taken = scripts::take(folder);
                taken.map_err(|error| format!("the scripts in {}: {error}", folder.display()))?
            }
            None => None,
        };
        match waiting.as_ref().or(options.otherwise.as_ref()) {
            Some(text) => parse(text),
            None => Ok(demo::steps(&self.session.place.cwd)),
        }
    }

    /// Runs the steps and cleans up. What was done is on disk when this returns.
    pub(super) fn perform(&mut self, prompt: &str, steps: &[Step]) -> Ending {
        {
            let mut memory = self.session.memory.lock();
            memory.prompts.push(prompt.to_owned());
            memory.history.prompt(prompt);
        }
        let ending = match self.play(steps) {
            Ok(()) => Ok(StopReason::EndTurn),
            Err(Halt::Stop(reason)) => Ok(reason),
            Err(halt) => Err(halt),
        };
        if let Err(Halt::Cancelled) = ending {
            self.agent.cancel_children(&self.session.id);
            self.await_children();
            self.fail_open_tools();
            self.after_cancel();
        }
        self.flush();
        ending
    }

    fn play(&mut self, steps: &[Step]) -> Result<(), Halt> {
        for step in steps {
            // A misdeed happens once its turn has come: a test that has seen the step before can rely on it.
            if !matches!(step, Step::Wrong(_)) {
                self.inbox.check()?;
            }
            let done = self.step(step);
            self.flush();
            done?;
        }
        Ok(())
    }

    /// Tells the client, and remembers.
    pub(super) fn update(&self, update: SessionUpdate) {
        self.session.memory.lock().history.update(&update);
        self.tell(update);
    }

    /// Tells the client what is not worth remembering.
    pub(super) fn tell(&self, update: SessionUpdate) {
        let notification = SessionNotification::new(self.session.id.clone(), update);
        self.agent.wire.notify("session/update", &notification);
    }

    pub(super) fn flush(&self) {
        self.session.memory.lock().history.flush();
    }

    pub(super) fn message_id(&mut self) -> MessageId {
        MessageId::new(self.next_id("msg"))
    }

    pub(super) fn next_id(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}_{}_{}", self.number, self.made)
    }

    /// A whole message in one chunk.
    pub(super) fn say_chunk(&mut self, text: &str) {
        let id = self.message_id();
        self.note_words(text);
        self.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into()).message_id(id)));
    }

    pub(super) fn note_words(&mut self, text: &str) {
        self.last_words = text.chars().take(LAST_WORDS_MAX).collect();
    }

    /// Asks the client and waits. The inner error is a sentence: no answer of the client ends a turn.
    pub(super) fn ask<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Result<R, String>, Halt> {
        self.flush();
        let id = self.agent.wire.ask(&self.inbox, method, params);
        let answer = self.inbox.answer(id).inspect_err(|Cancelled| self.agent.wire.forget(id))?;
        Ok(understood(method, answer))
    }
}

pub(super) fn understood<R: DeserializeOwned>(
    method: &str,
    answer: Result<Value, Error>,
) -> Result<R, String> {
    let value = answer.map_err(|error| format!("{method} was answered with an error: {}", error.message))?;
    serde_json::from_value(value).map_err(|error| format!("{method} was answered with nonsense: {error}"))
}
