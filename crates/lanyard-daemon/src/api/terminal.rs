//! Programs on terminals: watching one over a WebSocket, its screen as text, its recording, typing, and its size. What is
//! typed is in no log.

mod watcher;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lanyard_agents::runs::{LinkError, Sent};
use lanyard_agents::terminal::LiveTerminal;
use lanyard_api::types::{
    CursorPlace, NewTerminalInput, NewWindowSize, TerminalConnected, TerminalFrame, TerminalReceipt,
    TerminalView,
};
use lanyard_core::session::{Command, WindowSize, may_write};
use lanyard_core::{Actor, ActorKind, ConnectionId, Session, SessionId, refusals};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::api::attach::{Attach, Desk, Offered, Upgrade, guest, serve, upgrade};
use crate::api::context::{Change, Target, WriterEpoch, load, missing, query};
use crate::api::right::{Frames, Right};
use crate::api::{App, writer};
use crate::auth::bearer;
use crate::problem::Problem;
use crate::refusal::refuses;
use crate::server::ConnectionSlot;
use lanyard_engine::engine::{Ask, AskError, Request};
use lanyard_engine::hub::{HEARTBEAT, control};

use watcher::watch;

/// How long a program that begins, or is taken over, is waited for.
const BEGIN_WAIT: Duration = Duration::from_secs(10);
/// Bytes that are typed at once.
const INPUT_BYTES_MAX: usize = 64 * 1024;

refusals! {
    /// Why a terminal was not shown, or not typed into.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub(crate) enum TerminalRefusal {
        NotTerminal => "session_not_terminal", Conflict
            ("the session is not a program on a terminal")
            ("start one with `lanyard run --pty PROGRAM`");
        NotRunning => "terminal_not_running", Conflict
            ("the program of the session does not run")
            ("start it again with `lanyard resume`");
        NoRecording => "terminal_no_recording", NotFound
            ("the session has no recording") ("a recording begins with the first run");
        NotSocket => "terminal_needs_websocket", Malformed
            ("a terminal is watched over a WebSocket only")
            ("send the headers of a WebSocket, or read the screen at `/sessions/{{id}}/terminal`");
        InputBad => "terminal_input_bad", Invalid
            ("the input is not base64, or longer than {} bytes", INPUT_BYTES_MAX)
            ("send up to 64 KiB as base64 in `data`");
        InputFull => "terminal_input_full", Conflict
            ("the program does not read what is typed, and too much waits")
            ("wait until it reads, or stop it");
        Unreachable => "terminal_unreachable", Unavailable
            ("the program's supervisor does not answer") ("repeat it with the same key");
    }
}

refuses!(TerminalRefusal);

type Shared = State<Arc<App>>;

impl From<LinkError> for TerminalRefusal {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Ended | LinkError::InputClosed | LinkError::NoTerminal => Self::NotRunning,
            LinkError::InputFull => Self::InputFull,
            LinkError::TooLong => Self::InputBad,
            LinkError::Disconnected | LinkError::NoAnswer => Self::Unreachable,
        }
    }
}

/// The session, which must be a terminal run.
async fn terminal_session(app: &Arc<App>, id: SessionId) -> Result<Session, Problem> {
    let session = load(app, id).await?.session;
    if session.terminal.is_none() {
        return Err(TerminalRefusal::NotTerminal.into());
    }
    Ok(session)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ViewQuery {
    transcript: bool,
}

pub(super) async fn view(
    State(app): Shared,
    target: Target,
    uri: Uri,
) -> Result<Json<TerminalView>, Problem> {
    let ViewQuery { transcript } = query(&uri)?;
    let session = terminal_session(&app, target.0).await?;
    let running = session.live_run().is_some();
    if let Some(live) = app.wishes.terminals().live(target.0) {
        let screen = live.screen.text();
        return Ok(Json(TerminalView {
            session: target.0,
            running,
            run: session.run.as_ref().map(|run| run.id),
            size: screen.size,
            title: screen.title,
            text: screen.text,
            cursor: screen.cursor.map(|(row, col)| CursorPlace { row, col }),
            transcript: transcript.then(|| live.screen.transcript()),
        }));
    }
    let archive = app.wishes.terminals().archive().clone();
    let kept = tokio::task::spawn_blocking(move || archive.newest(target.0)).await;
    let kept = kept.map_err(|_| missing("reader"))?.unwrap_or_else(|error| {
        tracing::warn!(session = %target.0, %error, "the last screen of a terminal cannot be read");
        None
    });
    let size = session.terminal.as_ref().map_or_else(WindowSize::default, |terminal| terminal.size);
    Ok(Json(match kept {
        Some(kept) => TerminalView {
            session: target.0,
            running,
            run: Some(kept.run),
            size: kept.size,
            title: kept.title,
            text: kept.screen,
            cursor: None,
            transcript: transcript.then_some(kept.transcript),
        },
        None => TerminalView {
            session: target.0,
            running,
            run: None,
            size,
            title: String::new(),
            text: String::new(),
            cursor: None,
            transcript: None,
        },
    }))
}

/// The newest recording: of the program that runs, as far as it is, or of the last that ran.
pub(super) async fn recording(State(app): Shared, target: Target) -> Result<Response, Problem> {
    terminal_session(&app, target.0).await?;
    let terminals = app.wishes.terminals().clone();
    let read = tokio::task::spawn_blocking(move || {
        let live = terminals.live(target.0).and_then(|live| live.recording().ok());
        live.or_else(|| terminals.archive().newest_recording(target.0).ok().flatten())
    });
    let bytes = read.await.map_err(|_| missing("reader"))?.ok_or(TerminalRefusal::NoRecording)?;
    let headers = [
        (header::CONTENT_TYPE, "application/x-asciicast"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((StatusCode::OK, headers, bytes).into_response())
}

pub(super) async fn input(
    State(app): Shared,
    target: Target,
    WriterEpoch(epoch): WriterEpoch,
    change: Change<NewTerminalInput>,
) -> Result<Json<TerminalReceipt>, Problem> {
    let bytes = STANDARD.decode(&change.body.data).map_err(|_| TerminalRefusal::InputBad)?;
    if bytes.len() > INPUT_BYTES_MAX {
        return Err(TerminalRefusal::InputBad.into());
    }
    let live = writable(&app, target.0, epoch, &change).await?;
    let sent = live.input(&format!("typed-{}", name_of(&app, &change)), &bytes).await;
    let repeated = sent.map_err(TerminalRefusal::from)? == Sent::Repeated;
    writer::wrote(&app, target.0, epoch).await?;
    Ok(Json(TerminalReceipt { repeated }))
}

pub(super) async fn resize(
    State(app): Shared,
    target: Target,
    WriterEpoch(epoch): WriterEpoch,
    change: Change<NewWindowSize>,
) -> Result<Json<TerminalReceipt>, Problem> {
    let size = WindowSize { cols: change.body.cols, rows: change.body.rows };
    size.check().map_err(AskError::Refused)?;
    let live = writable(&app, target.0, epoch, &change).await?;
    if live.screen.text().size != size {
        live.resize(name_of(&app, &change), size).await.map_err(TerminalRefusal::from)?;
    }
    writer::wrote(&app, target.0, epoch).await?;
    Ok(Json(TerminalReceipt { repeated: false }))
}

/// The terminal, if the caller may type into it: as the writer, or where there is none.
async fn writable<T>(
    app: &Arc<App>,
    id: SessionId,
    epoch: Option<u64>,
    change: &Change<T>,
) -> Result<LiveTerminal, Problem> {
    let session = terminal_session(app, id).await?;
    let holder = session.writer.clone().map(|held| writer::entry(app, id, held));
    let gone = holder.is_some_and(|holder| !holder.present);
    may_write(&session, epoch, &change.actor, gone).map_err(AskError::Refused)?;
    let terminals = app.wishes.terminals();
    let mut changes = terminals.changes();
    let until = Instant::now() + BEGIN_WAIT;
    loop {
        changes.mark_unchanged();
        if let Some(live) = terminals.live(id) {
            return Ok(live);
        }
        // It begins, or a daemon that has just started reads what it wrote meanwhile.
        let comes = session.live_run().is_some() || session.run_wanted.is_some();
        if !comes || timeout_at(until, changes.changed()).await.is_err() {
            return Err(TerminalRefusal::NotRunning.into());
        }
    }
}

/// One name per key of a caller; a new one without a key.
fn name_of<T>(app: &App, change: &Change<T>) -> String {
    let key = change.keys.first().map_or_else(|| app.clock.random(), |key| u128::from_be_bytes(key.key));
    format!("{key:032x}")
}

/// An operator who gets the screen sees what the program came to. It is no reason to refuse the screen.
async fn see(app: &Arc<App>, held: &Session, actor: &Actor) {
    if actor.kind != ActorKind::Operator || !held.unread() {
        return;
    }
    let command = Command::See { by: actor.clone(), seq: held.seq };
    let ask = Ask::Do { session: held.id, command };
    let request = Request { ask, actor: actor.clone(), cause: None, keys: Vec::new() };
    if let Err(error) = app.engine.ask(request).await {
        tracing::debug!(session = %held.id, %error, "the screen was not marked as seen");
    }
}

pub(super) async fn attach(
    State(app): Shared,
    target: Target,
    Extension(right): Extension<Right>,
    place: Option<Extension<ConnectionSlot>>,
    headers: HeaderMap,
    uri: Uri,
    offered: Offered,
) -> Result<Response, Problem> {
    let id = target.0;
    let held = terminal_session(&app, id).await?;
    let Upgrade::Socket(upgrade) = upgrade(&headers, offered)? else {
        return Err(TerminalRefusal::NotSocket.into());
    };
    let ask = Attach::read(&uri, &headers)?.allowed(app.config.features())?;
    let authorization = bearer(&headers, app.address.port()).map(Cow::into_owned).unwrap_or_default();
    let connection =
        ask.connection.unwrap_or_else(|| ConnectionId::mint(app.clock.now(), app.clock.random()));
    let seat = app.presence.enter(id, guest(&app, right.caller(), connection, &ask))?;
    see(&app, &held, &right.caller().actor).await;
    let running = held.live_run().is_some() || held.run_wanted.is_some();
    let hello = TerminalFrame::Connected(Box::new(TerminalConnected {
        session: id,
        connection,
        running,
        writer: held.writer.clone().map(|held| writer::entry(&app, id, held)),
        writer_epoch: held.writer_epoch,
        heartbeat_ms: u64::try_from(HEARTBEAT.as_millis()).unwrap_or(u64::MAX),
    }));
    let hello = control("connected", &hello);
    let frames = watch(app.wishes.terminals().clone(), id, running, hello, seat);
    let desk = Desk::new(app.clone(), id, &authorization);
    Ok(serve(*upgrade, Frames::new(frames, right)?, Some(desk), place.map(|place| place.0)))
}
