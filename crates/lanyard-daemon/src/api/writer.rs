//! The writer's lease: who has it, asking for it, handing it over.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use lanyard_api::types::{HeldWriter, NewWriter, WriterAnswer, WriterEntry, WriterResult, WriterView};
use lanyard_core::SessionId;
use lanyard_core::session::{Command, Pen, Writer, WriterCommand};

use crate::api::App;
use crate::api::context::{Change, Target, load};
use crate::problem::Problem;
use lanyard_engine::engine::{Ask, Request};

type Shared = State<Arc<App>>;
type Answer = Result<Json<WriterAnswer>, Problem>;

pub(super) async fn get(State(app): Shared, target: Target) -> Result<Json<WriterView>, Problem> {
    let session = load(&app, target.0).await?.session;
    let writer = session.writer.map(|writer| entry(&app, target.0, writer));
    Ok(Json(WriterView { writer, epoch: session.writer_epoch }))
}

/// A lease with what is known of its holder now.
pub(super) fn entry(app: &App, session: SessionId, writer: Writer) -> WriterEntry {
    let seen = (app.seen)(session, writer.pen.connection);
    let last = seen.into_iter().chain([writer.since, app.started_at]).max().unwrap_or(writer.since);
    let present = app.clock.now().millis_since(last) <= app.config.rules().writer.lapse_ms;
    WriterEntry { writer, present, last_seen_at: seen }
}

pub(super) async fn claim(State(app): Shared, target: Target, change: Change<NewWriter>) -> Answer {
    let NewWriter { connection, client, take } = change.body.clone();
    let pen = Pen { connection, client, actor: change.actor.clone() };
    // The engine says whether the holder is gone.
    let command = WriterCommand::Claim { pen: pen.clone(), take, holder_gone: false };
    let session = decided(&app, target, change, command).await?;
    let mine = session.writer.as_ref().is_some_and(|writer| writer.pen.connection == pen.connection);
    if mine {
        app.presence.sighted(target.0, pen.connection, &pen.actor);
    }
    let (result, asked) = match &session.writer {
        Some(writer) if !mine => (WriterResult::Asked, writer.asked.as_ref()),
        Some(_) | None => (WriterResult::Granted, None),
    };
    tracing::info!(session = %target.0, connection = %pen.connection, actor = pen.actor.name, ?result, "writer claimed");
    let until = asked.map(|asked| asked.until);
    let holder = session.writer.as_ref().filter(|_| !mine).map(|writer| writer.pen.clone());
    Ok(Json(WriterAnswer { result, epoch: session.writer_epoch, until, holder }))
}

pub(super) async fn grant(State(app): Shared, target: Target, change: Change<HeldWriter>) -> Answer {
    let (pen, epoch) = held(&change);
    told(&app, target, change, WriterCommand::Grant { pen, epoch }, WriterResult::Granted).await
}

pub(super) async fn deny(State(app): Shared, target: Target, change: Change<HeldWriter>) -> Answer {
    let (pen, epoch) = held(&change);
    told(&app, target, change, WriterCommand::Deny { pen, epoch }, WriterResult::Denied).await
}

pub(super) async fn release(State(app): Shared, target: Target, change: Change<HeldWriter>) -> Answer {
    let (pen, epoch) = held(&change);
    told(&app, target, change, WriterCommand::Release { pen, epoch }, WriterResult::Released).await
}

fn held(change: &Change<HeldWriter>) -> (Pen, u64) {
    let HeldWriter { connection, epoch } = change.body;
    (Pen { connection, client: None, actor: change.actor.clone() }, epoch)
}

async fn told(
    app: &Arc<App>,
    target: Target,
    change: Change<HeldWriter>,
    command: WriterCommand,
    result: WriterResult,
) -> Answer {
    let (connection, actor) = (change.body.connection, change.actor.clone());
    let session = decided(app, target, change, command).await?;
    app.presence.sighted(target.0, connection, &actor);
    tracing::info!(session = %target.0, ?result, epoch = session.writer_epoch, "writer changed");
    let holder = session.writer.map(|writer| writer.pen);
    Ok(Json(WriterAnswer { result, epoch: session.writer_epoch, until: None, holder }))
}

/// Words came in under the lease: its holder is there, attached or not.
pub(super) async fn wrote(app: &Arc<App>, session: SessionId, epoch: Option<u64>) -> Result<(), Problem> {
    let Some(epoch) = epoch else { return Ok(()) };
    let held = load(app, session).await?.session.writer.filter(|writer| writer.epoch == epoch);
    if let Some(Writer { pen, .. }) = held {
        app.presence.sighted(session, pen.connection, &pen.actor);
    }
    Ok(())
}

/// Has the lease changed, and shows the session as it then is.
async fn decided<T>(
    app: &Arc<App>,
    target: Target,
    change: Change<T>,
    command: WriterCommand,
) -> Result<lanyard_core::Session, Problem> {
    let ask = Ask::Do { session: target.0, command: Command::Writer(command) };
    let request = Request { ask, actor: change.actor, cause: change.cause, keys: change.keys };
    app.engine.ask(request).await?;
    Ok(load(app, target.0).await?.session)
}
