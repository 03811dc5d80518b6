//! Messages to a session's agent, those that wait, and what became of all of them.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{
    CancelReceipt, CancelRequested, InboxEdit, InboxOrder, InboxPromotion, InboxView, LogRange, NewTurn,
    Reason, TurnList, TurnReceipt,
};
use lanyard_core::session::{
    AgentAbility, AgentChoice, ChoiceKind, Command, DrivenBy, InboxChange, InboxCommand, Message, PromptPart,
    TurnResult, TurnRow, TurnStatus, identity,
};
use lanyard_core::{NoteId, Outcome, SessionId, TurnId};
use serde::Deserialize;

use crate::api::App;
use crate::api::agents::{can_be_run, can_take_turn, not_open_elsewhere};
use crate::api::attachments::{described, mark};
use crate::api::choices::admit;
use crate::api::context::{Change, Target, WriterEpoch, key_of, load, on_disk, query};
use crate::api::lacks;
use crate::api::sessions::{command_on, marked, not_rolling_back};
use crate::problem::Problem;
use lanyard_engine::engine::{Ask, Reply, Request, Sending};

type Answer = Result<Response, Problem>;
type Shared = State<Arc<App>>;

const PAGE_DEFAULT: usize = 50;
pub(super) const PAGE_MAX: usize = 500;

pub(super) async fn send(
    State(app): Shared,
    target: Target,
    WriterEpoch(epoch): WriterEpoch,
    change: Change<NewTurn>,
) -> Answer {
    let client_turn_id = change.body.client_turn_id.clone();
    let reply = deliver(&app, target.0, epoch, change).await?;
    answer(&app, target, reply, client_turn_id).await
}

/// Gives a message to a session whose agent can take it.
pub(super) async fn deliver(
    app: &Arc<App>,
    id: SessionId,
    epoch: Option<u64>,
    change: Change<NewTurn>,
) -> Result<Reply, Problem> {
    not_rolling_back(app, id)?;
    let NewTurn {
        prompt,
        parts,
        client_turn_id,
        delivery,
        again,
        writer_epoch,
        memory,
        choice,
        resume,
        forced,
    } = change.body;
    let session = load(app, id).await?.session;
    if resume { can_be_run(app, &session) } else { can_take_turn(app, &session) }?;
    not_open_elsewhere(app, &session, resume).await?;
    admit(app, &session, &choice).await?;
    if session.driver() == DrivenBy::Parent {
        lacks::admit(app, &session, AgentAbility::Prompt).await?;
    }
    if again && client_turn_id.is_none() {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "again_without_id",
            "`again` stands without the client_turn_id it is about",
            "send it with the client_turn_id of the turn, or leave `again` out to send a new message",
        ));
    }
    let parts = described(app, parts).await?;
    mark(app, id, &parts).await?;
    // A turn named by its client is carried out once, whether or not the request has a key of its own.
    let client = client_turn_id.as_ref().map(|client| {
        let name = format!("turn\0{id}\0{client}");
        key_of(&change.actor, &name, &[], content(&message_bytes(&prompt, &parts), &choice).as_bytes())
    });
    let message = Message {
        turn: TurnId::mint(app.clock.now(), app.clock.random()),
        note: NoteId::mint(app.clock.now(), app.clock.random()),
        client_turn_id,
        prompt,
        parts,
        delivery: delivery.unwrap_or_default(),
        memory,
        choice,
        take_over: resume,
        review: None,
        forced,
    };
    let warnings = lacks::warnings(app, &session, &message).await?;
    let epoch = writer_epoch.or(epoch);
    let intervention = app.config.now().config.intervention.of(&change.actor);
    let sending = Sending { message, writer_epoch: epoch, client, intervention, again };
    let ask = Ask::Send { session: id, sending: Box::new(sending) };
    let request = Request { ask, actor: change.actor, cause: change.cause, keys: change.keys };
    let mut reply = app.engine.ask(request).await?;
    super::writer::wrote(app, id, epoch).await?;
    reply.outcome.warnings.extend(warnings);
    Ok(reply)
}

/// What became of a message, the first time and when it is repeated.
pub(super) async fn answer(
    app: &Arc<App>,
    target: Target,
    reply: Reply,
    client_turn_id: Option<String>,
) -> Answer {
    let outcome = reply.outcome;
    if let Some(result) = reply.sent {
        let receipt = fresh(outcome, result, client_turn_id);
        return Ok((StatusCode::CREATED, Json(receipt)).into_response());
    }
    let row = match outcome.turn {
        Some(turn) => on_disk(app, move |store| store.turn(target.0, turn)).await?,
        None => None,
    };
    let receipt = repeat(outcome, row, client_turn_id);
    Ok(marked((StatusCode::OK, Json(receipt)).into_response()))
}

/// What a message says and shows, as one text: the content that its name stands for.
fn message_bytes<'a>(prompt: &'a str, parts: &[PromptPart]) -> Cow<'a, str> {
    if parts.is_empty() {
        Cow::Borrowed(prompt)
    } else {
        Cow::Owned(format!("{prompt}\0{}", identity(parts)))
    }
}

/// What two messages of one name must have in common.
fn content(prompt: &str, choice: &AgentChoice) -> String {
    let chosen = ChoiceKind::ALL.map(|kind| choice.get(kind).unwrap_or_default());
    if choice.is_empty() { prompt.to_owned() } else { format!("{}\0{prompt}", chosen.join("\0")) }
}

fn fresh(outcome: Outcome, result: TurnResult, client_turn_id: Option<String>) -> TurnReceipt {
    let running = result == TurnResult::Accepted;
    let turn_status = if running { TurnStatus::Running } else { TurnStatus::Queued };
    let log = LogRange { after: outcome.seq.saturating_sub(outcome.events.into()), last: None };
    TurnReceipt { outcome, result, client_turn_id, turn_status, log }
}

fn repeat(outcome: Outcome, row: Option<TurnRow>, client_turn_id: Option<String>) -> TurnReceipt {
    let turn_status = row.as_ref().map_or(TurnStatus::Uncertain, |row| row.status);
    let first = row.as_ref().map_or(outcome.seq, |row| row.started_seq.unwrap_or(row.first_seq));
    let last = row.as_ref().and_then(|row| row.ended_seq);
    let log = LogRange { after: first.saturating_sub(1), last };
    let client_turn_id = client_turn_id.or_else(|| row.and_then(|row| row.client_turn_id));
    TurnReceipt { outcome, result: TurnResult::again(turn_status), client_turn_id, turn_status, log }
}

/// One cancel path for everybody.
pub(super) async fn cancel(State(app): Shared, target: Target, change: Change<Reason>) -> Answer {
    let reason = change.body.reason.clone();
    let command = Command::CancelTurn { reason: reason.clone() };
    let ask = Ask::Do { session: target.0, command };
    let request = Request { ask, actor: change.actor, cause: change.cause, keys: change.keys };
    let reply = app.engine.ask(request).await?;
    let session = load(&app, target.0).await?.session;
    let run = session.live_run().map(|run| run.id);
    let cancel_requested = CancelRequested { session: target.0, turn: reply.outcome.turn, run, reason };
    let receipt = CancelReceipt { outcome: reply.outcome, cancel_requested };
    let response = (StatusCode::ACCEPTED, Json(receipt)).into_response();
    Ok(if reply.repeated { marked(response) } else { response })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TurnsQuery {
    cursor: Option<String>,
    limit: Option<usize>,
    workspace: Option<String>,
    plan: Option<String>,
}

pub(super) async fn list(State(app): Shared, target: Target, uri: Uri) -> Result<Json<TurnList>, Problem> {
    // The last two narrow an alias; the guard has read them.
    let TurnsQuery { cursor, limit, workspace: _, plan: _ } = query(&uri)?;
    let limit = limit.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&limit) {
        let title = format!("`limit` is {limit}");
        return Err(Problem::bad_request("query_invalid", title, format!("use 1 to {PAGE_MAX}")));
    }
    let unreadable = || {
        Problem::bad_request("cursor_unreadable", "the cursor cannot be read", "start again without a cursor")
    };
    let before: Option<TurnId> = cursor.map(|cursor| cursor.parse()).transpose().map_err(|_| unreadable())?;
    let (page, gone) = on_disk(&app, move |store| {
        let page = store.turns(target.0, before, limit)?;
        // A session without turns may have none yet, or be purged.
        let gone = page.turns.is_empty() && store.tombstone(target.0)?.is_some();
        Ok((page, gone))
    })
    .await?;
    if gone {
        return Err(Problem::deleted(target.0));
    }
    let next = page.turns.last().filter(|_| page.more).map(|row| row.turn.to_string());
    Ok(Json(TurnList { turns: page.turns, next }))
}

pub(super) async fn get(
    State(app): Shared,
    target: Target,
    Path((_, turn)): Path<(String, String)>,
) -> Result<Json<TurnRow>, Problem> {
    let turn = turn_id(&turn)?;
    let (row, gone) = on_disk(&app, move |store| {
        let row = store.turn(target.0, turn)?;
        let gone = row.is_none() && store.tombstone(target.0)?.is_some();
        Ok((row, gone))
    })
    .await?;
    if gone {
        return Err(Problem::deleted(target.0));
    }
    row.map(Json).ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "turn_not_found",
            format!("the session has no turn {turn}"),
            "list its turns with `lanyard turns`",
        )
    })
}

pub(super) async fn inbox(State(app): Shared, target: Target) -> Result<Json<InboxView>, Problem> {
    let session = load(&app, target.0).await?.session;
    Ok(Json(InboxView { turns: session.inbox, paused: session.inbox_paused }))
}

pub(super) async fn order(
    State(app): Shared,
    target: Target,
    WriterEpoch(epoch): WriterEpoch,
    change: Change<InboxOrder>,
) -> Answer {
    let InboxOrder { turns, writer_epoch } = change.body.clone();
    changed(&app, target, change, writer_epoch.or(epoch), InboxChange::Order { turns }).await
}

pub(super) async fn pause(
    State(app): Shared,
    target: Target,
    WriterEpoch(epoch): WriterEpoch,
    change: Change<Reason>,
) -> Answer {
    changed(&app, target, change, epoch, InboxChange::Pause).await
}

pub(super) async fn go(
    State(app): Shared,
    target: Target,
    WriterEpoch(epoch): WriterEpoch,
    change: Change<Reason>,
) -> Answer {
    not_rolling_back(&app, target.0)?;
    changed(&app, target, change, epoch, InboxChange::Go).await
}

pub(super) async fn edit(
    State(app): Shared,
    target: Target,
    Path((_, turn)): Path<(String, String)>,
    WriterEpoch(epoch): WriterEpoch,
    change: Change<InboxEdit>,
) -> Answer {
    not_rolling_back(&app, target.0)?;
    let InboxEdit { prompt, delivery, writer_epoch } = change.body.clone();
    let (turn, note) = (turn_id(&turn)?, mint_note(&app));
    let what = InboxChange::Edit { turn, prompt, delivery, note };
    changed(&app, target, change, writer_epoch.or(epoch), what).await
}

pub(super) async fn withdraw(
    State(app): Shared,
    target: Target,
    Path((_, turn)): Path<(String, String)>,
    WriterEpoch(epoch): WriterEpoch,
    change: Change<Reason>,
) -> Answer {
    let (turn, reason) = (turn_id(&turn)?, change.body.reason.clone());
    changed(&app, target, change, epoch, InboxChange::Withdraw { turn, reason }).await
}

pub(super) async fn promote(
    State(app): Shared,
    target: Target,
    Path((_, turn)): Path<(String, String)>,
    WriterEpoch(epoch): WriterEpoch,
    change: Change<InboxPromotion>,
) -> Answer {
    not_rolling_back(&app, target.0)?;
    let InboxPromotion { to, writer_epoch } = change.body.clone();
    let (turn, note) = (turn_id(&turn)?, mint_note(&app));
    changed(&app, target, change, writer_epoch.or(epoch), InboxChange::Promote { turn, to, note }).await
}

async fn changed<T>(
    app: &Arc<App>,
    target: Target,
    change: Change<T>,
    writer_epoch: Option<u64>,
    what: InboxChange,
) -> Answer {
    let command = Command::Inbox(InboxCommand { writer_epoch, change: what });
    command_on(app, target, change, command, StatusCode::OK).await
}

fn mint_note(app: &App) -> NoteId {
    NoteId::mint(app.clock.now(), app.clock.random())
}

fn turn_id(text: &str) -> Result<TurnId, Problem> {
    text.parse().map_err(|error| {
        Problem::bad_request(
            "turn_id_bad",
            format!("`{text}` is not a turn id: {error}"),
            "list them with `lanyard inbox` or `lanyard turns`",
        )
    })
}
