//! Tools with side effects, carried out once: in a turn that is taken up again after a crash, a call that was carried
//! out before is answered with its first answer. Off unless the config names the tool.
//!
//! An honest second call within one life of the agent is carried out: calls are counted per run, and only those an
//! earlier run of the same turn made are answered from what is kept. A call whose answer was lost with the crash is not
//! repeated behind anyone's back: the agent is told so, and may call once more if that is meant.

use std::sync::Arc;

use lanyard_api::annotate::json;
use lanyard_core::{Session, SessionId, Timestamp};
use lanyard_store::{PaperKey, Put, Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::mcp::RelayContext;
use crate::mcp::envelope::HINT;

/// The kind of paper calls are kept as.
const KIND: &str = "call";
/// The longest answer that is kept; what is longer cannot be given again.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Tries to write while others write the same.
const TRIES_MAX: usize = 16;

/// What is known of the same call in the same turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Sheet {
    calls: Vec<Made>,
}

/// One call that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Made {
    /// The number of the agent's run that made it.
    run: u64,
    came: Came,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Came {
    /// It is under way, or nobody knows any more.
    Nothing,
    Result(String),
    /// The server refused it as a request: nothing was carried out.
    Error,
}

/// What becomes of a call.
#[derive(Debug)]
pub(super) enum Before {
    /// It is carried out, and its answer is kept.
    Goes(Ticket),
    /// It was carried out; this was its result.
    Done(String),
    /// It may have been carried out.
    Unclear,
}

/// A call that is being carried out.
pub(super) struct Ticket {
    store: Arc<dyn Store>,
    place: PaperKey,
    at: usize,
    now: Timestamp,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Looks a call up before it is carried out. `None` when it has no turn or run to belong to.
pub(super) async fn look(
    context: &Arc<RelayContext>,
    session: SessionId,
    server: &str,
    tool: &str,
    arguments: Option<&str>,
) -> Option<Before> {
    let (store, now) = (context.store.clone(), context.clock.now());
    let call = fingerprint(server, tool, arguments.unwrap_or("{}"))?;
    let looked = tokio::task::spawn_blocking(move || -> Result<Option<Before>, StoreError> {
        let Some(loaded) = store.load(session)? else { return Ok(None) };
        let Some((turn, run)) = place_in_work(&loaded.session) else { return Ok(None) };
        let key = blake3::hash(format!("{turn}\0{call}").as_bytes()).to_hex().to_string();
        let place = PaperKey { kind: KIND.to_owned(), workspace: session.to_string(), key };
        for _ in 0..TRIES_MAX {
            let (mut sheet, version) = read(&*store, &place)?;
            let step = sheet.make(run);
            if let Put::Kept(_) = store.put_paper(&place, version, now, &sheet.text())? {
                return Ok(Some(match step {
                    Step::Carry(at) => Before::Goes(Ticket { store, place, at, now }),
                    Step::Repeat(result) => Before::Done(result),
                    Step::Ask => Before::Unclear,
                }));
            }
        }
        Err(StoreError::Stopped("a call's sheet is written by too many".to_owned()))
    });
    match looked.await {
        Ok(Ok(before)) => before,
        // Not being able to tell must not become a second time.
        Ok(Err(error)) => {
            tracing::warn!(%error, "whether a call was carried out before cannot be read");
            Some(Before::Unclear)
        }
        Err(_) => Some(Before::Unclear),
    }
}

impl Ticket {
    /// Keeps the call's answer before it goes out.
    pub(super) async fn keep(self, answer: &[u8]) {
        let text = std::str::from_utf8(answer).unwrap_or_default();
        let came = match json::member(text, "result") {
            Some(result) if result.len() <= ANSWER_BYTES_MAX => Came::Result(result.to_owned()),
            Some(_) => Came::Nothing,
            None => Came::Error,
        };
        let kept = tokio::task::spawn_blocking(move || self.write(&came)).await;
        if !matches!(kept, Ok(Ok(true))) {
            tracing::warn!("the answer of a call that is carried out once could not be kept");
        }
    }

    fn write(&self, came: &Came) -> Result<bool, StoreError> {
        for _ in 0..TRIES_MAX {
            let (mut sheet, version) = read(&*self.store, &self.place)?;
            let Some(made) = sheet.calls.get_mut(self.at) else { return Ok(false) };
            made.came = came.clone();
            if let Put::Kept(_) = self.store.put_paper(&self.place, version, self.now, &sheet.text())? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The turn a call belongs to, by the name it keeps when it is sent again, and the number of the run that makes it.
fn place_in_work(session: &Session) -> Option<(String, u64)> {
    let turn = session.turn.as_ref()?;
    let name = turn.client_turn_id.clone().unwrap_or_else(|| turn.id.to_string());
    Some((name, session.run.as_ref()?.number))
}

/// The same for the same call, whatever the order of its arguments.
fn fingerprint(server: &str, tool: &str, arguments: &str) -> Option<String> {
    let mut arguments: serde_json::Value = serde_json::from_str(arguments).ok()?;
    if let Some(members) = arguments.as_object_mut() {
        members.remove(HINT);
    }
    arguments.sort_all_objects();
    Some(format!("{server}\0{tool}\0{arguments}"))
}

fn read(store: &dyn Store, place: &PaperKey) -> Result<(Sheet, u64), StoreError> {
    let paper = store.paper(place)?;
    let sheet = paper.as_ref().and_then(|paper| serde_json::from_str(&paper.body).ok());
    Ok((sheet.unwrap_or_default(), paper.map_or(0, |paper| paper.version)))
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Carry it out; its place on the sheet.
    Carry(usize),
    Repeat(String),
    Ask,
}

impl Sheet {
    /// Notes a call of this run, and tells what becomes of it.
    fn make(&mut self, run: u64) -> Step {
        let nth = self.calls.iter().filter(|made| made.run == run && made.came != Came::Error).count();
        let earlier = self.calls.iter().filter(|made| made.run < run && made.came != Came::Error);
        let mut runs: Vec<(u64, Vec<&Came>)> = Vec::new();
        for made in earlier {
            match runs.iter_mut().find(|(number, _)| *number == made.run) {
                Some((_, calls)) => calls.push(&made.came),
                None => runs.push((made.run, vec![&made.came])),
            }
        }
        // What the same call came to in any life before; one that has an answer knows best.
        let mut same = runs.iter().filter_map(|(_, calls)| calls.get(nth).copied());
        let known = same.clone().find_map(|came| match came {
            Came::Result(result) => Some(result.clone()),
            Came::Nothing | Came::Error => None,
        });
        let step = match known {
            Some(result) => Step::Repeat(result),
            None if same.next().is_some() => Step::Ask,
            None => Step::Carry(self.calls.len()),
        };
        let came = match &step {
            Step::Repeat(result) => Came::Result(result.clone()),
            Step::Ask | Step::Carry(_) => Came::Nothing,
        };
        self.calls.push(Made { run, came });
        step
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(sheet: &mut Sheet, at: usize, result: &str) {
        sheet.calls[at].came = Came::Result(result.to_owned());
    }

    /// S3-18: in one life every call is carried out; in the next the same calls get their first answers, in order, and
    /// further ones are carried out.
    #[test]
    fn a_turn_taken_up_again_gets_first_answers() {
        let mut sheet = Sheet::default();
        for (at, result) in ["one", "two"].into_iter().enumerate() {
            assert_eq!(sheet.make(1), Step::Carry(at));
            came(&mut sheet, at, result);
        }
        assert_eq!(sheet.make(2), Step::Repeat("one".to_owned()));
        // It crashed again before the second, and begins anew.
        assert_eq!(sheet.make(3), Step::Repeat("one".to_owned()));
        assert_eq!(sheet.make(3), Step::Repeat("two".to_owned()));
        assert_eq!(sheet.make(3), Step::Carry(5));
    }

    /// What was under way when the agent died is not repeated in silence; asked for once more, it is.
    #[test]
    fn a_call_whose_answer_was_lost_asks_first() {
        let mut sheet = Sheet::default();
        assert_eq!(sheet.make(1), Step::Carry(0));
        assert_eq!(sheet.make(2), Step::Ask);
        assert_eq!(sheet.make(2), Step::Carry(2));
    }

    #[test]
    fn a_request_the_server_refused_was_not_carried_out() {
        let mut sheet = Sheet::default();
        assert_eq!(sheet.make(1), Step::Carry(0));
        sheet.calls[0].came = Came::Error;
        assert_eq!(sheet.make(2), Step::Carry(1));
    }

    #[test]
    fn a_call_is_the_same_whatever_the_order_of_its_arguments() {
        let one = fingerprint("s", "t", r#"{"a":1,"b":[2,3],"_session_id":"sess_x"}"#);
        assert_eq!(one, fingerprint("s", "t", r#"{ "b": [2, 3], "a": 1 }"#));
        assert_ne!(one, fingerprint("s", "t", r#"{"a":1,"b":[3,2]}"#));
        assert_ne!(one, fingerprint("s", "u", r#"{"a":1,"b":[2,3]}"#));
        assert_eq!(fingerprint("s", "t", "{"), None);
    }
}
