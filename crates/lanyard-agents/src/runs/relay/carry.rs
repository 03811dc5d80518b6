//! One request to the daemon and its answer back, also when the daemon ends in between.

use super::asker::{Asker, RelayRefusal, Request};
use super::heads::{AnswerHead, Body};
use super::listening;
use super::message::{self, Message};
use super::place::{Cut, Exchange, Patience, RelayPlace};

/// Daemons that one request is sent to at most: a request that ends each of them is given up.
const TRIES_MAX: u32 = 8;
/// Answers up to this size are read whole before their first byte goes out, so that one that is cut off can still be
/// replaced. Larger ones pass through in pieces.
const WHOLE_BYTES_MAX: usize = 256 * 1024;

/// The client's connection cannot be used any more.
#[derive(Debug)]
pub(super) struct Gone;

impl From<Cut> for Gone {
    fn from(_: Cut) -> Self {
        Self
    }
}

pub(super) fn carry(asker: &mut Asker, request: &Request, place: &RelayPlace) -> Result<(), Gone> {
    if !request.head.target.starts_with("/mcp/") {
        return once(asker, request, place);
    }
    if request.head.method == "GET" {
        return listening::listen(asker, request, place);
    }
    let message = Message::read(&request.head, &request.body);
    let may_repeat = request.head.method == "DELETE" || message.may_repeat();
    let server = server_of(&request.head.target);
    let contact = &|answered: bool| {
        if message.is_first_contact() {
            place.contacts.note(server, answered);
        }
    };
    for _ in 0..TRIES_MAX {
        let cut = match place.connect(asker, Patience::Ms(place.wait_ms)) {
            Ok(stream) => match exchange(asker, Exchange::begin(stream, request, &[]), &message, contact) {
                Ok(()) => return Ok(()),
                Err(Broken::Before(cut)) => cut,
                Err(Broken::Midway) => return Err(Gone),
            },
            Err(cut) => cut,
        };
        match cut {
            Cut::Unread => {}
            Cut::Read if may_repeat => {}
            Cut::Read => return answer(asker, message.uncertain()),
            Cut::Late => {
                contact(false);
                return answer(asker, message.not_sent(place.wait_ms));
            }
            Cut::Client => {
                contact(false);
                return Err(Gone);
            }
        }
    }
    contact(false);
    answer(asker, message.uncertain())
}

/// The server's name in `/mcp/SESSION/SERVER`.
fn server_of(target: &str) -> &str {
    let path = target.split('?').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}

fn answer(asker: &mut Asker, message: Option<String>) -> Result<(), Gone> {
    match message {
        Some(message) => Ok(asker.answer("200 OK", "application/json", &message)?),
        None => Ok(asker.refuse(&RelayRefusal::away("no daemon has taken this message"))?),
    }
}

/// A request of a hook or of the command line. Its sender goes on without an answer, so it never waits for a daemon.
fn once(asker: &mut Asker, request: &Request, place: &RelayPlace) -> Result<(), Gone> {
    let Ok(stream) = place.connect(asker, Patience::Ms(0)) else {
        return Ok(asker.refuse(&RelayRefusal::away("no daemon runs, so nothing was done"))?);
    };
    let mut exchange = Exchange::begin(stream, request, &[]);
    let head = match exchange.head(asker) {
        Ok(head) => head,
        Err(Cut::Client) => return Err(Gone),
        Err(Cut::Unread | Cut::Late) => {
            return Ok(asker.refuse(&RelayRefusal::away("the daemon ended, and nothing was done"))?);
        }
        Err(Cut::Read) => {
            let title = "the daemon ended before it answered; the request may have been carried out";
            return Ok(asker.refuse(&RelayRefusal::away(title))?);
        }
    };
    let mut body = Body::new(head.length().map_err(|_| Gone)?);
    Ok(pass(asker, &mut exchange, &head, &mut body, &[])?)
}

/// Where an exchange broke off.
enum Broken {
    /// Before the client was told anything.
    Before(Cut),
    /// The answer had begun, or the client has gone.
    Midway,
}

/// Carries the answer to a message. Whether it is a good one is noted before it goes out.
fn exchange(
    asker: &mut Asker,
    mut exchange: Exchange,
    message: &Message,
    contact: impl Fn(bool),
) -> Result<(), Broken> {
    let head = exchange.head(asker).map_err(Broken::Before)?;
    let length = head.length().map_err(|_| Broken::Before(Cut::Read))?;
    let mut body = Body::new(length);
    if head.is_event_stream() {
        contact(head.status < 400);
        return events(asker, &mut exchange, &head, &mut body, message).map_err(|_| Broken::Midway);
    }
    let mut whole = Vec::new();
    while whole.len() <= WHOLE_BYTES_MAX {
        if let Some(piece) = exchange.piece(&mut body, asker).map_err(Broken::Before)? {
            whole.extend_from_slice(piece);
        } else {
            contact(head.status < 400);
            let sent = asker.begin(&head, Some(whole.len() as u64)).and_then(|()| asker.bytes(&whole));
            return sent.map_err(|_| Broken::Midway);
        }
    }
    contact(head.status < 400);
    pass(asker, &mut exchange, &head, &mut body, &whole).map_err(|_| Broken::Midway)
}

/// Passes an answer on in pieces, after those that were read already. One that is cut off ends the connection.
pub(super) fn pass(
    asker: &mut Asker,
    exchange: &mut Exchange,
    head: &AnswerHead,
    body: &mut Body,
    before: &[u8],
) -> Result<(), Cut> {
    asker.begin(head, None)?;
    if matches!(head.status, 204 | 304) {
        return Ok(());
    }
    asker.chunk(before)?;
    while let Some(piece) = exchange.piece(body, asker)? {
        asker.chunk(piece)?;
    }
    asker.last_chunk()
}

/// The stream that answers a message. A daemon that ends in the middle of it leaves a last event that says so.
fn events(
    asker: &mut Asker,
    exchange: &mut Exchange,
    head: &AnswerHead,
    body: &mut Body,
    message: &Message,
) -> Result<(), Cut> {
    asker.begin(head, None)?;
    let mut in_event = false;
    loop {
        match exchange.piece(body, asker) {
            Ok(Some(piece)) => {
                in_event = !piece.ends_with(b"\n\n");
                asker.chunk(piece)?;
            }
            Ok(None) => return asker.last_chunk(),
            Err(Cut::Unread | Cut::Read) => break,
            Err(cut @ (Cut::Client | Cut::Late)) => return Err(cut),
        }
    }
    if in_event {
        asker.chunk(b"\n\n")?;
    }
    if let Some(text) = message.uncertain() {
        asker.chunk(&message::event(&text))?;
    }
    asker.last_chunk()
}
