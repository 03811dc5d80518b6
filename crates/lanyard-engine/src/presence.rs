//! Who is attached to which session, now. In memory only: coming and going writes nothing into a log, and a daemon that
//! starts has none. Changes are announced a little later and together.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lanyard_api::types::{PresenceList, PresentConnection};
use lanyard_core::{Actor, ActorKind, ConnectionId, SessionId, Timestamp};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::hub::{Hub, Of, control};
use lanyard_base::clock::Clock;

/// How long changes are gathered before others are told.
const GATHER: Duration = Duration::from_millis(200);
/// Connections a list names. Of a larger crowd those that write and those that came first, and how many there are.
const LIST_MAX: usize = 64;
/// Connections that left and are remembered, all sessions together.
const GONE_MAX: usize = 4_096;

/// When a session's connection was last seen, if ever.
pub type Seen = Arc<dyn Fn(SessionId, ConnectionId) -> Option<Timestamp> + Send + Sync>;

#[derive(Debug)]
pub struct Presence {
    clock: Arc<Clock>,
    rooms: Mutex<Rooms>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Rooms {
    by_session: HashMap<SessionId, Room>,
    /// Oldest first.
    gone: VecDeque<Gone>,
    seats: u64,
    changed: HashSet<SessionId>,
}

#[derive(Debug, Default)]
struct Room {
    /// By the number of the seat: in the order they came.
    guests: BTreeMap<u64, PresentConnection>,
    told_at: Option<Instant>,
}

#[derive(Debug)]
struct Gone {
    session: SessionId,
    connection: ConnectionId,
    actor: Actor,
    at: Timestamp,
}

/// A connection as it was last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    pub present: bool,
    pub last_seen_at: Timestamp,
}

/// The connection belongs to another client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection {0} belongs to another client")]
pub struct ConnectionTaken(pub ConnectionId);

/// Keeps a connection present. Dropped, it has left.
#[derive(Debug)]
pub struct PresenceGuard {
    presence: Arc<Presence>,
    session: SessionId,
    number: u64,
}

impl Presence {
    #[must_use]
    pub fn new(clock: Arc<Clock>) -> Arc<Self> {
        Arc::new(Self { clock, rooms: Mutex::default(), wake: Notify::new() })
    }

    /// A client attaches. The same connection may sit twice, while its old socket is not yet known to be dead.
    pub fn enter(
        self: &Arc<Self>,
        session: SessionId,
        guest: PresentConnection,
    ) -> Result<PresenceGuard, ConnectionTaken> {
        let mut rooms = self.rooms();
        if rooms.owner(session, guest.connection).is_some_and(|owner| *owner != guest.actor) {
            return Err(ConnectionTaken(guest.connection));
        }
        rooms.seats += 1;
        let number = rooms.seats;
        rooms.by_session.entry(session).or_default().guests.insert(number, guest);
        rooms.changed.insert(session);
        drop(rooms);
        self.wake.notify_one();
        Ok(PresenceGuard { presence: self.clone(), session, number })
    }

    /// A client that is not attached shows that it is there: it claims the lease or writes under it over plain HTTP.
    pub fn sighted(&self, session: SessionId, connection: ConnectionId, actor: &Actor) {
        let at = self.clock.now();
        let mut rooms = self.rooms();
        let here = rooms.by_session.get(&session).is_some_and(|room| room.holds(connection));
        if here || rooms.owner(session, connection).is_some_and(|owner| owner != actor) {
            return;
        }
        rooms.gone.retain(|gone| gone.connection != connection || gone.session != session);
        rooms.remember(Gone { session, connection, actor: actor.clone(), at });
    }

    /// When a connection was last seen: now, if it is there; never, if it is not known (any more).
    #[must_use]
    pub fn is_present(&self, session: SessionId, connection: ConnectionId) -> Option<Timestamp> {
        self.sighting(session, connection).map(|sighting| sighting.last_seen_at)
    }

    #[must_use]
    pub fn sighting(&self, session: SessionId, connection: ConnectionId) -> Option<Sighting> {
        let now = self.clock.now();
        let rooms = self.rooms();
        let here = rooms.by_session.get(&session).is_some_and(|room| room.holds(connection));
        if here {
            return Some(Sighting { present: true, last_seen_at: now });
        }
        let gone = rooms.gone_one(session, connection);
        gone.map(|gone| Sighting { present: false, last_seen_at: gone.at })
    }

    /// The same as a function, for callers that need not know more.
    #[must_use]
    pub fn seen(self: &Arc<Self>) -> Seen {
        let presence = self.clone();
        Arc::new(move |session, connection| presence.is_present(session, connection))
    }

    /// How many connections a session has.
    #[must_use]
    pub fn count(&self, session: SessionId) -> u64 {
        self.rooms().by_session.get(&session).map_or(0, Room::count)
    }

    /// Whether an operator's client shows the session now.
    #[must_use]
    pub fn watched(&self, session: SessionId) -> bool {
        let by_operator = |guest: &PresentConnection| guest.actor.kind == ActorKind::Operator;
        self.rooms().by_session.get(&session).is_some_and(|room| room.guests.values().any(by_operator))
    }

    /// The same for many.
    #[must_use]
    pub fn counts(&self, sessions: impl Iterator<Item = SessionId>) -> Vec<u64> {
        let rooms = self.rooms();
        sessions.map(|session| rooms.by_session.get(&session).map_or(0, Room::count)).collect()
    }

    #[must_use]
    pub fn list(&self, session: SessionId) -> PresenceList {
        self.rooms().by_session.get(&session).map_or_else(PresenceList::default, Room::list)
    }

    /// Tells those who are attached of who came and left. Runs until it is dropped.
    pub async fn run(self: Arc<Self>, hub: Arc<Hub>) {
        loop {
            self.wake.notified().await;
            tokio::time::sleep(GATHER).await;
            let (changed, news) = self.news();
            hub.touch(Of::All, changed.into_iter());
            for (session, frame) in news {
                hub.presence(session, frame);
            }
        }
    }

    /// Where something changed, and what as frames. Crowds are told less often: each change of theirs goes to each of
    /// them.
    fn news(&self) -> (Vec<SessionId>, Vec<(SessionId, Bytes)>) {
        let now = Instant::now();
        let mut rooms = self.rooms();
        let changed = std::mem::take(&mut rooms.changed);
        let mut news = Vec::with_capacity(changed.len());
        for &session in &changed {
            let Some(room) = rooms.by_session.get_mut(&session) else { continue };
            let pause = GATHER * u32::try_from(room.guests.len() / LIST_MAX).unwrap_or(u32::MAX);
            if room.told_at.is_some_and(|told| now.duration_since(told) < pause) {
                rooms.changed.insert(session);
                continue;
            }
            room.told_at = Some(now);
            news.push((session, frame(&room.list())));
        }
        if !rooms.changed.is_empty() {
            self.wake.notify_one();
        }
        (changed.into_iter().collect(), news)
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock()
    }
}

fn frame(list: &PresenceList) -> Bytes {
    #[derive(serde::Serialize)]
    struct Frame<'a> {
        r#type: &'static str,
        #[serde(flatten)]
        list: &'a PresenceList,
    }
    control("presence", &Frame { r#type: "presence", list })
}

impl Rooms {
    /// Whose connection it is, as far as is known.
    fn owner(&self, session: SessionId, connection: ConnectionId) -> Option<&Actor> {
        let room = self.by_session.get(&session);
        let here = room.and_then(|room| room.guests.values().find(|guest| guest.connection == connection));
        here.map(|guest| &guest.actor).or_else(|| self.gone_one(session, connection).map(|gone| &gone.actor))
    }

    fn gone_one(&self, session: SessionId, connection: ConnectionId) -> Option<&Gone> {
        self.gone.iter().rev().find(|gone| gone.connection == connection && gone.session == session)
    }

    fn leave(&mut self, session: SessionId, number: u64, at: Timestamp) {
        let Some(room) = self.by_session.get_mut(&session) else { return };
        let Some(left) = room.guests.remove(&number) else { return };
        if room.guests.is_empty() {
            self.by_session.remove(&session);
        }
        self.changed.insert(session);
        self.remember(Gone { session, connection: left.connection, actor: left.actor, at });
    }

    fn remember(&mut self, gone: Gone) {
        if self.gone.len() >= GONE_MAX {
            self.gone.pop_front();
        }
        self.gone.push_back(gone);
    }
}

impl Room {
    fn holds(&self, connection: ConnectionId) -> bool {
        self.guests.values().any(|guest| guest.connection == connection)
    }

    fn count(&self) -> u64 {
        let connections: HashSet<_> = self.guests.values().map(|guest| guest.connection).collect();
        connections.len() as u64
    }

    /// Each connection once, as it came last.
    fn list(&self) -> PresenceList {
        let mut seen = HashSet::new();
        let mut connections: Vec<&PresentConnection> =
            self.guests.values().rev().filter(|guest| seen.insert(guest.connection)).collect();
        connections.sort_by_key(|guest| (guest.mode, guest.since, guest.connection));
        let connections = connections.into_iter().take(LIST_MAX).cloned().collect();
        PresenceList { connections, count: seen.len() as u64 }
    }
}

impl PresenceGuard {
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }
}

impl Drop for PresenceGuard {
    fn drop(&mut self) {
        let now = self.presence.clock.now();
        self.presence.rooms().leave(self.session, self.number, now);
        self.presence.wake.notify_one();
    }
}
