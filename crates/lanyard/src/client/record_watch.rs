//! Watching records: the stream says when to look again, over any restart of the daemon.

use lanyard_core::PlanId;
use serde::Deserialize;

use super::{Absence, Route, Stream};
use crate::context::Context;
use crate::failure::Failure;

#[derive(Debug)]
pub(crate) enum Woken {
    /// Something may be different from the last look. The first comes as soon as the stream is open.
    Look,
    /// The daemon does not answer; it is tried again for a while. The sentence says so.
    Lost(String),
    Back,
}

/// What of a frame matters for watching.
#[derive(Debug, Deserialize)]
struct Told {
    #[serde(rename = "type")]
    kind: String,
}

/// A stream of records that is opened again whenever it breaks.
pub(crate) struct RecordWatch<'a> {
    context: &'a Context,
    route: Route,
    /// The command that goes on after a daemon that stayed away.
    again: String,
    stream: Option<Stream>,
    absence: Absence,
}

impl<'a> RecordWatch<'a> {
    /// Watches these records; their ids are separated by commas.
    pub(crate) fn of(context: &'a Context, records: &str, again: String) -> Self {
        Self::at(context, Route::to(&["records", "stream"]).with("record", Some(records)), again)
    }

    /// Watches a plan and its tasks, also those that are added later.
    pub(crate) fn of_plan(context: &'a Context, plan: PlanId, again: String) -> Self {
        Self::at(context, Route::to(&["records", "stream"]).with("plan", Some(plan)), again)
    }

    fn at(context: &'a Context, route: Route, again: String) -> Self {
        Self { context, route, again, stream: None, absence: Absence::new(context) }
    }

    /// The next reason to look. Nothing is lost when this is dropped before it is done.
    pub(crate) async fn next(&mut self) -> Result<Woken, Failure> {
        loop {
            let Some(stream) = &mut self.stream else {
                if let Some(woken) = self.connect().await? {
                    return Ok(woken);
                }
                continue;
            };
            let told = stream.next().await.and_then(|frame| serde_json::from_str::<Told>(&frame.data).ok());
            match told.as_ref().map(|told| told.kind.as_str()) {
                Some("ready") => {}
                None | Some("goodbye") => {
                    if let Some(sentence) = self.lost() {
                        return Ok(Woken::Lost(sentence));
                    }
                }
                Some(_) => {
                    // One look is enough for all that arrived.
                    stream.skip_ready();
                    return Ok(Woken::Look);
                }
            }
        }
    }

    /// The daemon did not answer. Returns the sentence to print, once for each absence.
    pub(crate) fn lost(&mut self) -> Option<String> {
        self.stream = None;
        self.absence.begins()
    }

    async fn connect(&mut self) -> Result<Option<Woken>, Failure> {
        if self.absence.lasts() {
            self.absence.pause(&self.again).await?;
        }
        self.stream = match self.open().await {
            Err(failure) if failure.is_passing() => None,
            opened => opened?,
        };
        if self.stream.is_none() {
            return Ok(self.lost().map(Woken::Lost));
        }
        let was_lost = self.absence.lasts();
        self.absence.ends();
        Ok(was_lost.then_some(Woken::Back))
    }

    async fn open(&self) -> Result<Option<Stream>, Failure> {
        // Somebody ended the daemon on purpose, or it starts again by itself: either way not ours to start.
        match self.context.client_if_running().await? {
            Some(client) => client.stream(&self.route).await,
            None => Ok(None),
        }
    }
}
