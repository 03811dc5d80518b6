//! Attaching to a session: its log from anywhere on, live, with what stands beside it. As server-sent events or as a
//! WebSocket; the frames are the same, and a client that goes away has only detached.

mod asks;
mod query;
mod socket;
mod stream;

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use lanyard_api::types::{
    Connected, ConnectedSession, PresenceList, PresenceMode, PresentConnection, StreamFrame,
};
use lanyard_core::id::uuid_v7;
use lanyard_core::{ActorKind, ConnectionId, Session};

use crate::api::context::{Target, load};
use crate::api::right::{Frames, Right, SaysGoodbye};
use crate::api::{App, writer};
use crate::auth::{Caller, bearer};
use crate::problem::Problem;
use crate::server::ConnectionSlot;
use lanyard_engine::hub::{EventReader, HEARTBEAT, ReaderWant, control};
use lanyard_engine::presence::ConnectionTaken;

use stream::Attached;

pub(super) use asks::Desk;
pub(super) use query::{Attach, Begin, LAST_MAX, no_token};
pub(super) use socket::{Upgrade, binary, serve, upgrade};

/// The subprotocol a WebSocket client may name; a browser gives its token beside it.
const PROTOCOL: &str = "lanyard.v1";

/// The router, for requests that come as frames. Emptied when the daemon ends, since it holds everything.
pub type OwnRouter = parking_lot::Mutex<Option<Router>>;

pub(super) type Offered = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

pub(super) async fn attach(
    State(app): State<Arc<App>>,
    target: Target,
    Extension(right): Extension<Right>,
    place: Option<Extension<ConnectionSlot>>,
    headers: HeaderMap,
    uri: Uri,
    offered: Offered,
) -> Result<Response, Problem> {
    let upgrade = upgrade(&headers, offered)?;
    let ask = Attach::read(&uri, &headers)?.allowed(app.config.features())?;
    let authorization = bearer(&headers, app.address.port()).map(Cow::into_owned).unwrap_or_default();
    let session = target.0;
    // Joined before the session is read: nothing can come between what is read and what is heard.
    let seat_at_hub = app.hub.join(session, ReaderWant::All);
    let held = load(&app, session).await?.session;
    let after = ask.begin.after(held.seq)?;
    let connection =
        ask.connection.unwrap_or_else(|| ConnectionId::mint(app.clock.now(), app.clock.random()));
    let guest = guest(&app, right.caller(), connection, &ask);
    let seat = app.presence.enter(session, guest.clone())?;
    let hello = connected(&app, &held, connection, ask.begin, after);
    let reader = EventReader::new(seat_at_hub, app.store.clone(), after, held.seq);
    let desk = Desk::new(app.clone(), session, &authorization);
    let hello = control("connected", &StreamFrame::Connected(Box::new(hello)));
    let stream = Attached::new(reader, seat, guest, ask.begin.mode(), hello);
    Ok(match upgrade {
        Upgrade::Socket(upgrade) => {
            serve(*upgrade, Frames::new(stream, right)?, Some(desk), place.map(|place| place.0))
        }
        Upgrade::Events => event_stream(Body::new(stream)),
    })
}

pub(super) async fn presence(
    State(app): State<Arc<App>>,
    target: Target,
) -> Result<Json<PresenceList>, Problem> {
    load(&app, target.0).await?;
    Ok(Json(app.presence.list(target.0)))
}

/// A body that is server-sent events.
pub(super) fn event_stream(body: Body) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (StatusCode::OK, kind, Extension(SaysGoodbye), body).into_response()
}

pub(super) fn guest(app: &App, caller: &Caller, connection: ConnectionId, ask: &Attach) -> PresentConnection {
    // What it may do is the token's business; a client can only want less.
    let may_write = match caller.actor.kind {
        ActorKind::Operator => true,
        ActorKind::Observer | ActorKind::Agent | ActorKind::System => false,
    };
    PresentConnection {
        connection,
        actor: caller.actor.clone(),
        client: ask.client.clone(),
        channel: ask.channel.clone(),
        mode: if ask.write && may_write { PresenceMode::Writing } else { PresenceMode::Reading },
        since: app.clock.now(),
    }
}

fn connected(app: &App, held: &Session, connection: ConnectionId, begin: Begin, after: u64) -> Connected {
    let state = held.state.name();
    let writer = held.writer.clone().map(|writer| writer::entry(app, held.id, writer));
    Connected {
        session_id: held.id,
        session: ConnectedSession {
            id: held.id,
            state,
            lifecycle: state.lifecycle(),
            status: held.status(),
            head_seq: held.seq,
            active_turn: held.turn.clone(),
            writer: writer.clone(),
        },
        connection,
        mode: begin.mode(),
        head_seq: held.seq,
        after,
        state,
        active_turn: held.turn.clone(),
        writer,
        client_turn_id: uuid(uuid_v7(app.clock.now(), app.clock.random())),
        heartbeat_ms: u64::try_from(HEARTBEAT.as_millis()).unwrap_or(u64::MAX),
    }
}

/// In the form everyone knows.
fn uuid(bits: u128) -> String {
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

impl From<ConnectionTaken> for Problem {
    fn from(taken: ConnectionTaken) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "connection_taken",
            taken.to_string(),
            "leave `connection` out to get one of your own",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_looks_like_one() {
        assert_eq!(uuid(0x0123_4567_89ab_7def_8123_4567_89ab_cdef), "01234567-89ab-7def-8123-456789abcdef");
    }
}
