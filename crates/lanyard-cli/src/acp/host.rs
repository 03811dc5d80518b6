//! What all sessions of one editor share: the way to the daemon, the way to the editor, and who sits where.

use lanyard_api::types::UploadedAttachment;
use lanyard_client::Route;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agent_client_protocol_schema::v1::{Error, RequestId, SessionId};
use lanyard_client::BACKOFF;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;

use super::Options;
use super::prompt::EditorContent;
use super::seat::{self, Order};
use super::wire::Wire;
use crate::context::Context;
use crate::failure::{Exit, Failure};

/// Requests that may wait for one session.
const ORDERS_MAX: usize = 64;
/// Sessions one editor may have open; it closes those it does not need.
const SEATS_MAX: usize = 256;
/// How often a daemon that is away is asked again: about half a minute.
const TRIES_MAX: u32 = 20;
/// How long work under way may take when the editor has left.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Of an id that goes into the name of a turn.
const ID_CHARS_MAX: usize = 40;

#[derive(Debug)]
pub(super) struct Host {
    pub(super) context: Context,
    pub(super) wire: Wire,
    pub(super) options: Options,
    /// What the names of this process's turns and keys begin with; those of other clients do not.
    pub(super) mine: String,
    made: AtomicU64,
    seats: Mutex<OpenSeats>,
    /// Held by whatever is under way; gone when all is done.
    alive: Mutex<Option<mpsc::Sender<()>>>,
}

#[derive(Debug, Default)]
struct OpenSeats {
    by_name: HashMap<SessionId, mpsc::Sender<Order>>,
    /// The editor has left.
    closed: bool,
}

/// Comes back with nothing when all work is done.
pub(super) type Idle = mpsc::Receiver<()>;

impl Host {
    pub(super) fn new(context: &Context, wire: Wire, options: Options) -> Result<(Arc<Self>, Idle), Failure> {
        let mut bits = [0_u8; 12];
        getrandom::fill(&mut bits).map_err(|error| {
            Failure::local("no_randomness", format!("cannot make a random name: {error}"), "")
        })?;
        let mut mine = "acp-".to_owned();
        for byte in bits {
            // Writing to a string cannot fail.
            let _ = write!(mine, "{byte:02x}");
        }
        mine.push('-');
        let (alive, idle) = mpsc::channel(1);
        let host = Self {
            context: context.clone(),
            wire,
            options,
            mine,
            made: AtomicU64::new(1),
            seats: Mutex::default(),
            alive: Mutex::new(Some(alive)),
        };
        Ok((Arc::new(host), idle))
    }

    /// Does something beside everything else. What is under way when the editor leaves is brought to an end.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let alive = self.alive.lock().clone();
        tokio::spawn(async move {
            work.await;
            drop(alive);
        });
    }

    /// The client's own name of a turn: the same however often it is sent, and different for each prompt.
    pub(super) fn turn_name(&self, id: &RequestId) -> String {
        let shown: String =
            id.to_string().chars().filter(char::is_ascii_graphic).take(ID_CHARS_MAX).collect();
        format!("{}{}-{shown}", self.mine, self.count())
    }

    fn count(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks the daemon something.
    pub(super) async fn get<T: DeserializeOwned>(&self, route: &Route) -> Result<T, Failure> {
        self.patiently(route, &Ask::Look).await
    }

    /// Changes something, once, however often it must be sent.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_value(body)
            .map_err(|error| Failure::local("request_unwritable", error.to_string(), ""))?;
        self.patiently(route, &Ask::Post(body)).await
    }

    /// Has the daemon keep the content of an attachment.
    pub(super) async fn upload(&self, content: &EditorContent) -> Result<UploadedAttachment, Failure> {
        let route = Route::to(&["attachments"]).with("name", content.name.as_ref());
        self.patiently(&route, &Ask::Upload(content.clone())).await
    }

    pub(super) async fn delete<T: DeserializeOwned>(&self, route: &Route) -> Result<T, Failure> {
        self.patiently(route, &Ask::Delete).await
    }

    /// A daemon that is away may be starting again.
    async fn patiently<T: DeserializeOwned>(&self, route: &Route, ask: &Ask) -> Result<T, Failure> {
        let key = Some(format!("{}{}", self.mine, self.count()));
        let context = Context { key, ..self.context.clone() };
        let mut backoff = BACKOFF;
        let mut tries = 0;
        loop {
            match once(&context, route, ask).await {
                Err(Failure::Told { exit: Exit::Unreachable, .. }) if tries < TRIES_MAX => {}
                other => return other,
            }
            tries += 1;
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    /// Gives an order to the session, which is looked up if it is not open yet.
    pub(super) fn order(self: &Arc<Self>, session: &SessionId, order: Order) -> Result<(), Error> {
        let mut seats = self.seats();
        if let Some(seat) = seats.by_name.get(session) {
            match seat.try_send(order) {
                Ok(()) => return Ok(()),
                Err(mpsc::error::TrySendError::Full(_)) => return Err(crowded("requests for this session")),
                // It was just left; it is opened again.
                Err(mpsc::error::TrySendError::Closed(order)) => {
                    let seat = self.sit(&mut seats, session, None)?;
                    return seat.try_send(order).map_err(|_| crowded("requests for this session"));
                }
            }
        }
        let seat = self.sit(&mut seats, session, None)?;
        seat.try_send(order).map_err(|_| crowded("requests for this session"))
    }

    /// Attaches to a session that was just made, from this position on: what others say in it before its first look is
    /// shown too.
    pub(super) fn attach(self: &Arc<Self>, session: &SessionId, from: u64) {
        let mut seats = self.seats();
        if !seats.closed {
            // With too many sessions open it is attached when it is used.
            let _ = self.sit(&mut seats, session, Some(from));
        }
    }

    fn sit(
        self: &Arc<Self>,
        seats: &mut OpenSeats,
        session: &SessionId,
        from: Option<u64>,
    ) -> Result<mpsc::Sender<Order>, Error> {
        seats.by_name.retain(|_, seat| !seat.is_closed());
        if seats.by_name.len() >= SEATS_MAX {
            return Err(crowded("open sessions"));
        }
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        seats.by_name.insert(session.clone(), sender.clone());
        self.spawn(seat::run(Arc::clone(self), session.clone(), from, orders));
        Ok(sender)
    }

    /// Tells every session that the editor does not wait for an answer any more.
    pub(super) fn take_back(&self, id: &RequestId) {
        for seat in self.seats().by_name.values() {
            // A seat with so much to do that this does not fit is not waiting.
            let _ = seat.try_send(Order::TakeBack { id: id.clone() });
        }
    }

    /// The editor has left: what it asked for is done, and no answer is waited for.
    pub(super) async fn leave(&self, mut idle: Idle) {
        {
            let mut seats = self.seats();
            seats.closed = true;
            seats.by_name.clear();
        }
        self.wire.hang_up();
        drop(self.alive.lock().take());
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, idle.recv()).await;
    }

    fn seats(&self) -> MutexGuard<'_, OpenSeats> {
        self.seats.lock()
    }
}

/// What is asked of the daemon.
#[derive(Debug)]
enum Ask {
    Look,
    Post(Value),
    Upload(EditorContent),
    Delete,
}

async fn once<T: DeserializeOwned>(context: &Context, route: &Route, ask: &Ask) -> Result<T, Failure> {
    let mut client = context.client().await?;
    match ask {
        Ask::Look => client.get(route).await,
        Ask::Post(body) => client.post(route, body).await,
        Ask::Upload(sent) => client.upload(route, sent.content.clone(), sent.media_type.as_deref()).await,
        Ask::Delete => client.delete(route, &serde_json::json!({})).await,
    }
}

fn crowded(what: &str) -> Error {
    Error::new(super::words::REFUSED, format!("there are too many {what}"))
        .data(serde_json::json!({"code": "too_many"}))
}
