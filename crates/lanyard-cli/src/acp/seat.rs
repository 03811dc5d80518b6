//! One session as one editor has it open. It owns nothing of the session: who leaves only stops looking.

mod kin;
mod play;

use std::collections::HashMap;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    CloseSessionResponse, Error, PromptResponse, RequestId, RequestPermissionOutcome,
    RequestPermissionResponse, ResumeSessionResponse, SessionId, StopReason, Usage,
};
use lanyard_api::types::{GateAnswer, NewPart, NewTurn, SessionDetail, TurnReceipt};
use lanyard_client::Route;
use lanyard_core::session::{
    AgentChoice, ChangeEvent, Ending, Envelope, Event, GateEvent, GateStatus, InboxEvent, Question,
    TranscriptEvent, TurnEvent, TurnStatus,
};
use lanyard_core::{GateId, Outcome, TurnId};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use self::kin::{Kin, News};
use super::follow::{Follow, FollowDepth, Told};
use super::host::Host;
use super::offers::Choosing;
use super::prompt::EditorPrompt;
use super::tell::{Teller, Telling, TextPart};
use super::wire::Answer;
use super::words::{error_of, failed, finished, interrupted, permission};
use crate::failure::Failure;
use crate::seen::mark_seen;

/// Prompts of one editor that may wait for their turns to end.
const PROMPTS_MAX: usize = 64;

/// What the editor wants of a session.
#[derive(Debug)]
pub(super) enum Order {
    Load {
        id: RequestId,
    },
    Resume {
        id: RequestId,
    },
    Prompt {
        id: RequestId,
        prompt: EditorPrompt,
    },
    /// A model, mode or effort.
    Choose {
        id: RequestId,
        wish: AgentChoice,
    },
    Cancel,
    /// The answer to a request is not wanted any more.
    TakeBack {
        id: RequestId,
    },
    Close {
        id: RequestId,
    },
}

impl Order {
    /// The request that is to be answered.
    fn request(self) -> Option<RequestId> {
        match self {
            Self::Load { id }
            | Self::Resume { id }
            | Self::Prompt { id, .. }
            | Self::Choose { id, .. }
            | Self::Close { id } => Some(id),
            Self::Cancel | Self::TakeBack { .. } => None,
        }
    }
}

struct EditorSession {
    host: Arc<Host>,
    /// What the editor calls the session.
    name: SessionId,
    /// Its id.
    id: String,
    follow: Follow,
    teller: Teller,
    prompts: Vec<Prompt>,
    /// Questions the editor was asked, by the number it was asked under.
    asked: HashMap<GateId, i64>,
    kin: Kin,
    choosing: Choosing,
}

/// A prompt whose turn has not ended.
#[derive(Debug)]
struct Prompt {
    request: RequestId,
    turn: TurnId,
    /// It waits for another turn to end first.
    queued: bool,
    cancelled: bool,
    tokens: Option<(u64, u64)>,
}

/// Whether to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stay {
    Yes,
    No,
}

/// Sits at a session until the editor leaves it or it is gone. What happened `from` a position on is told, or from now on.
pub(super) async fn run(
    host: Arc<Host>,
    name: SessionId,
    from: Option<u64>,
    mut orders: mpsc::Receiver<Order>,
) {
    let found: Result<SessionDetail, Failure> = host.get(&Route::to(&["sessions", &name.0])).await;
    let detail = match found {
        Ok(detail) => detail,
        Err(failure) => return turn_away(&host, &failure, &mut orders).await,
    };
    let (mut seat, mut news) = EditorSession::new(host, name, from, &detail);
    // Questions come after the first answer: before it the editor does not know that it has the session.
    let mut questions = detail.view.gates;
    loop {
        let stay = tokio::select! {
            biased;
            order = orders.recv() => match order {
                Some(order) => seat.obey(order).await,
                None => Stay::No,
            },
            told = seat.follow.next(), if questions.is_empty() => seat.hear(told).await,
            Some(told) = news.recv() => seat.hear_kin(told).await,
        };
        if stay == Stay::No {
            return;
        }
        for gate in questions.drain(..).filter(|gate| gate.status == GateStatus::Open) {
            let id = seat.id.clone();
            seat.ask(&id, gate.id, &gate.question, None).await;
        }
    }
}

/// There is no such session, or no daemon.
async fn turn_away(host: &Host, failure: &Failure, orders: &mut mpsc::Receiver<Order>) {
    orders.close();
    while let Some(order) = orders.recv().await {
        if let Some(id) = order.request() {
            host.wire.refuse(id, error_of(failure)).await;
        }
    }
}

impl EditorSession {
    fn new(
        host: Arc<Host>,
        name: SessionId,
        from: Option<u64>,
        detail: &SessionDetail,
    ) -> (Self, mpsc::Receiver<News>) {
        let id = detail.view.id.to_string();
        let follow =
            Follow::after(&host.context, &id, from.unwrap_or(detail.view.last_seq), FollowDepth::Attached);
        let (mut kin, news) = Kin::new(Arc::clone(&host));
        if detail.view.active_turn.is_some() {
            kin.find(id.clone());
        }
        let (teller, choosing) = (Teller::new(&host.mine), Choosing::of(detail));
        let seat = Self {
            host,
            name,
            id,
            follow,
            teller,
            prompts: Vec::new(),
            asked: HashMap::new(),
            kin,
            choosing,
        };
        (seat, news)
    }

    fn route(&self, below: &[&str]) -> Route {
        let parts: Vec<&str> = ["sessions", &self.id].into_iter().chain(below.iter().copied()).collect();
        Route::to(&parts)
    }

    async fn obey(&mut self, order: Order) -> Stay {
        match order {
            Order::Load { id } => self.load(id).await,
            Order::Resume { id } => {
                self.host.wire.answer(id, self.choosing.beside(&ResumeSessionResponse::new())).await;
                self.tell_commands().await;
            }
            Order::Choose { id, wish } => self.choose(id, &wish).await,
            Order::Prompt { id, prompt } => self.prompt(id, prompt).await,
            Order::Cancel => self.cancel(None).await,
            Order::TakeBack { id } => self.cancel(Some(&id)).await,
            Order::Close { id } => {
                self.leave().await;
                self.host.wire.answer(id, Ok(CloseSessionResponse::new())).await;
                return Stay::No;
            }
        }
        Stay::Yes
    }

    /// Passes a choice on; the answer has what is offered from now on.
    async fn choose(&mut self, id: RequestId, wish: &AgentChoice) {
        if let Err(refusal) = self.choosing.admit(wish) {
            return self.host.wire.refuse(id, refusal).await;
        }
        let choice = wish.over(&self.choosing.chosen);
        match self.host.post::<Outcome>(&self.route(&["choice"]), &choice).await {
            Ok(_) => {
                let event = ChangeEvent::ChoiceSet { choice }.into();
                for update in self.choosing.follow(&event) {
                    self.host.wire.update_json(&self.name, update).await;
                }
                let options = json!({ "configOptions": self.choosing.options() });
                self.host.wire.answer(id, Ok(options)).await;
            }
            Err(failure) => self.host.wire.refuse(id, error_of(&failure)).await,
        }
    }

    async fn tell_commands(&self) {
        if let Some(update) = self.choosing.commands() {
            self.host.wire.update_json(&self.name, update).await;
        }
    }

    async fn prompt(&mut self, id: RequestId, prompt: EditorPrompt) {
        let refused = if self.prompts.iter().any(|prompt| prompt.request == id) {
            Some(Error::invalid_request().data("a prompt with this id is under way"))
        } else if self.prompts.len() >= PROMPTS_MAX {
            Some(Error::invalid_request().data("too many prompts of this session are under way"))
        } else {
            None
        };
        if let Some(error) = refused {
            return self.host.wire.refuse(id, error).await;
        }
        let mut parts = Vec::with_capacity(prompt.contents.len());
        for content in &prompt.contents {
            match self.host.upload(content).await {
                Ok(kept) => parts.push(NewPart::Attachment { id: kept.id, name: kept.name }),
                Err(failure) => return self.host.wire.refuse(id, error_of(&failure)).await,
            }
        }
        let new = NewTurn {
            prompt: prompt.text,
            parts,
            client_turn_id: Some(self.host.turn_name(&id)),
            delivery: Some(self.host.options.delivery.wish()),
            again: false,
            writer_epoch: None,
            memory: None,
            choice: AgentChoice::default(),
            forced: false,
            resume: false,
        };
        let receipt = match self.host.post::<TurnReceipt>(&self.route(&["turns"]), &new).await {
            Ok(receipt) => receipt,
            Err(failure) => return self.host.wire.refuse(id, error_of(&failure)).await,
        };
        for warning in &receipt.outcome.warnings {
            self.host.context.out.warn(warning);
        }
        let Some(turn) = receipt.outcome.turn else {
            return self.host.wire.refuse(id, failed("no_turn", "the daemon named no turn")).await;
        };
        let queued = receipt.turn_status == TurnStatus::Queued;
        self.prompts.push(Prompt { request: id, turn, queued, cancelled: false, tokens: None });
    }

    /// Ends the turns of one prompt or of all. A prompt that waits is taken back; another client's turn is ended only by
    /// an editor that has none of its own.
    async fn cancel(&mut self, only: Option<&RequestId>) {
        let wanted = |prompt: &Prompt| only.is_none_or(|id| prompt.request == *id);
        let mut runs = only.is_none() && self.prompts.is_empty();
        let mut waiting = Vec::new();
        for prompt in self.prompts.iter_mut().filter(|prompt| wanted(prompt)) {
            prompt.cancelled = true;
            if prompt.queued {
                waiting.push(prompt.turn.to_string());
            } else {
                runs = true;
            }
        }
        for turn in waiting {
            // It may have begun this very moment.
            runs |= self.host.delete::<Value>(&self.route(&["inbox", &turn])).await.is_err();
        }
        if runs {
            let reason = json!({"reason": "cancelled in the editor"});
            // With no turn running there is nothing to cancel, and no prompt waits for an answer.
            let _ = self.host.post::<Outcome>(&self.route(&["cancel"]), &reason).await;
        }
    }

    /// The editor has closed the session, which goes on.
    async fn leave(&mut self) {
        for (_, number) in self.asked.drain() {
            self.host.wire.take_back(number).await;
        }
        for prompt in self.prompts.drain(..) {
            let error = Error::request_cancelled().data("the session was closed here; its turn goes on");
            self.host.wire.refuse(prompt.request, error).await;
        }
    }

    async fn hear(&mut self, told: Told) -> Stay {
        match told {
            Told::Event(envelope) => return self.event(&envelope).await,
            Told::Preview { kind, text, message_id } => {
                if let Some(update) = self.teller.preview(&TextPart::new(kind, message_id.as_deref()), &text)
                {
                    self.host.wire.update(&self.name, update).await;
                }
            }
            Told::Over(failure) => {
                self.end_all(&Err(error_of(&failure))).await;
                return Stay::No;
            }
        }
        Stay::Yes
    }

    async fn event(&mut self, envelope: &Envelope) -> Stay {
        if let Some(update) = self.teller.tell(envelope, Telling::Live) {
            self.host.wire.update(&self.name, update).await;
        }
        for update in self.choosing.follow(&envelope.event) {
            self.host.wire.update_json(&self.name, update).await;
        }
        match &envelope.event {
            Event::Turn(event) => self.turn(event, envelope.seq).await,
            Event::Inbox(event) => self.inbox(event).await,
            Event::Gate(event) => {
                let id = self.id.clone();
                self.gate(&id, event, None).await;
            }
            Event::Transcript(TranscriptEvent::UsageReported { input_tokens, output_tokens, .. }) => {
                for prompt in self.prompts.iter_mut().filter(|prompt| !prompt.queued) {
                    let (input, output) = prompt.tokens.get_or_insert_default();
                    *input = input.saturating_add(*input_tokens);
                    *output = output.saturating_add(*output_tokens);
                }
            }
            Event::Change(event) => return self.change(event).await,
            Event::Transcript(_)
            | Event::Context(_)
            | Event::Control(_)
            | Event::Run(_)
            | Event::Writer(_)
            | Event::Review(_) => {}
        }
        Stay::Yes
    }

    async fn turn(&mut self, event: &TurnEvent, seq: u64) {
        let (turn, answer) = match event {
            TurnEvent::Started { turn, .. } => {
                if let Some(prompt) = self.prompts.iter_mut().find(|prompt| prompt.turn == *turn) {
                    prompt.queued = false;
                }
                return;
            }
            TurnEvent::CancelRequested { .. } | TurnEvent::Waiting { .. } | TurnEvent::Continued { .. } => {
                return;
            }
            TurnEvent::Finished { turn, outcome, reason, .. } => {
                (turn, finished(*outcome, reason.as_deref()))
            }
            TurnEvent::Interrupted { turn, cause, reason, .. } => {
                (turn, interrupted(*cause, reason.as_deref()))
            }
        };
        while let Some(at) = self.prompts.iter().position(|prompt| prompt.turn == *turn) {
            let prompt = self.prompts.remove(at);
            self.answer(prompt, answer.clone()).await;
        }
        self.mark(seq);
    }

    /// Marks the log as seen up to here: the editor has all of it.
    fn mark(&self, seq: u64) {
        let (host, id) = (Arc::clone(&self.host), self.id.clone());
        self.host.spawn(async move { mark_seen(&host.context, &id, seq).await });
    }

    /// What becomes of a prompt that waits.
    async fn inbox(&mut self, event: &InboxEvent) {
        if let InboxEvent::Withdrawn { turn, .. } = event
            && let Some(at) = self.prompts.iter().position(|prompt| prompt.turn == *turn)
        {
            let prompt = self.prompts.remove(at);
            self.answer(prompt, Ok(StopReason::Cancelled)).await;
        }
        // Its text was steered into the running turn: when that one ends, it is done too.
        if let InboxEvent::Steered { turn, into, .. } = event
            && let Some(prompt) = self.prompts.iter_mut().find(|prompt| prompt.turn == *turn)
        {
            (prompt.turn, prompt.queued) = (*into, false);
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most changes of a session are not for editors")]
    async fn change(&mut self, event: &ChangeEvent) -> Stay {
        match event {
            ChangeEvent::ChildLinked { child, agent } => self.kin.follow(*child, agent.as_deref()),
            ChangeEvent::Ended { how, reason } => {
                let answer = match how {
                    Ending::Completed => Ok(StopReason::EndTurn),
                    Ending::Stopped => Ok(StopReason::Cancelled),
                    Ending::Failed => {
                        Err(failed("session_failed", reason.as_deref().unwrap_or("the session failed")))
                    }
                };
                self.end_all(&answer).await;
            }
            ChangeEvent::Deleted { .. } => {
                self.end_all(&Err(failed("session_deleted", "the session was deleted"))).await;
                return Stay::No;
            }
            _ => {}
        }
        Stay::Yes
    }

    /// No turn of the session will end any more.
    async fn end_all(&mut self, answer: &Result<StopReason, Error>) {
        for prompt in std::mem::take(&mut self.prompts) {
            self.answer(prompt, answer.clone()).await;
        }
        for (_, number) in self.asked.drain() {
            self.host.wire.take_back(number).await;
        }
    }

    /// Who asked for a cancel is told of that, whatever came of the turn meanwhile: the protocol wants it so.
    async fn answer(&self, prompt: Prompt, answer: Result<StopReason, Error>) {
        let answer = if prompt.cancelled { Ok(StopReason::Cancelled) } else { answer };
        let usage =
            prompt.tokens.map(|(input, output)| Usage::new(input.saturating_add(output), input, output));
        let answer = answer.map(|reason| PromptResponse::new(reason).usage(usage));
        self.host.wire.answer(prompt.request, answer).await;
    }

    async fn hear_kin(&mut self, news: News) -> Stay {
        match news {
            News::Born { child, agent } => self.kin.follow(child, agent.as_deref()),
            News::Gate { session, name, event } => {
                self.gate(&session.to_string(), &event, Some(&name)).await;
            }
        }
        Stay::Yes
    }

    async fn gate(&mut self, session: &str, event: &GateEvent, of: Option<&str>) {
        match event {
            GateEvent::Opened { gate, question, .. } => self.ask(session, *gate, question, of).await,
            // The first answer counts: the question is taken back here.
            GateEvent::Answered { gate, .. } | GateEvent::Withdrawn { gate, .. } => {
                if let Some(number) = self.asked.remove(gate) {
                    self.host.wire.take_back(number).await;
                }
            }
        }
    }

    /// Asks the editor a question of the session, or of one of its subagents.
    async fn ask(&mut self, session: &str, gate: GateId, question: &Question, of: Option<&str>) {
        // A question without options has no answer an editor could give.
        if question.options.is_empty() || self.asked.contains_key(&gate) {
            return;
        }
        let request = permission(&self.name, gate, question, of);
        let (number, answer) = self.host.wire.ask("session/request_permission", &request).await;
        self.asked.insert(gate, number);
        let route = Route::to(&["sessions", session, "gates", &gate.to_string()]);
        self.host.spawn(pass_on(Arc::clone(&self.host), route, answer));
    }
}

/// Brings the editor's answer to the gate. The first answer anywhere stands, so a late one changes nothing.
async fn pass_on(host: Arc<Host>, route: Route, answer: oneshot::Receiver<Answer>) {
    const LATE: [&str; 2] = ["gate_already_answered", "gate_void"];
    let outcome = match answer.await {
        // Taken back, or the editor has left.
        Err(_) => return,
        Ok(Err(error)) => {
            let what = "the editor did not answer a permission request; answer it elsewhere";
            return host.context.out.warn(&format!("{what} ({})", error.message));
        }
        Ok(Ok(value)) => {
            serde_json::from_value::<RequestPermissionResponse>(value).map(|response| response.outcome)
        }
    };
    let option = match outcome {
        Ok(RequestPermissionOutcome::Selected(selected)) => selected.option_id.0.to_string(),
        // It has cancelled the turn, which settles the question.
        Ok(RequestPermissionOutcome::Cancelled) => return,
        Ok(_) | Err(_) => {
            return host.context.out.warn("the editor's answer to a permission request is not understood");
        }
    };
    let body = GateAnswer { option, message: None };
    match host.post::<Outcome>(&route, &body).await {
        Err(Failure::Told { problem, .. }) if !LATE.contains(&problem.code.as_str()) => {
            host.context.out.warn(&format!("the answer was not taken: {}", problem.title));
        }
        Ok(_) | Err(_) => {}
    }
}
