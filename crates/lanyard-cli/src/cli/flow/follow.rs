//! Following a flow's log: every event once and in order, whatever happens to the daemon meanwhile.

use lanyard_api::types::FlowEventPage;
use lanyard_client::Woken;
use lanyard_core::FlowId;
use tokio::sync::mpsc;

use super::at;
use crate::context::Context;
use crate::failure::{Failure, daemon_gone};

/// Pages that may wait to be shown, and the most events of one.
const PAGES_MAX: usize = 4;
const EVENTS_MAX: usize = 500;

#[derive(Debug)]
pub(super) enum FlowHeard {
    /// Events that were not heard before, perhaps none, and the flow as it is.
    Page(Box<FlowEventPage>),
    /// The daemon does not answer; it is tried again for a while. The sentence says so.
    Lost(String),
    Back,
    /// No further try will mend it.
    Refused(Failure),
}

/// Follows from the first event on, until the receiver is gone.
pub(super) fn follow(context: &Context, flow: FlowId) -> mpsc::Receiver<FlowHeard> {
    let (sender, heard) = mpsc::channel(PAGES_MAX);
    let mut context = context.clone();
    // The receiver reports what breaks, once.
    context.out.quiet = true;
    tokio::spawn(async move { run(&context, flow, &sender).await });
    heard
}

/// Ends when a word cannot be said any more.
async fn run(context: &Context, flow: FlowId, sender: &mpsc::Sender<FlowHeard>) -> Option<()> {
    let mut watch = match context.watch(&flow.to_string(), format!("lanyard flow watch {flow}")) {
        Ok(watch) => watch,
        Err(failure) => return sender.send(FlowHeard::Refused(failure)).await.ok(),
    };
    let mut after = 0;
    loop {
        let woken = match watch.next().await {
            Ok(Woken::Look) => match look(context, flow, &mut after, sender).await {
                Ok(heard) => {
                    heard?;
                    continue;
                }
                Err(failure) if failure.is_passing() => watch.lost().and_then(heard_of),
                Err(failure) => Some(FlowHeard::Refused(failure)),
            },
            Ok(woken) => heard_of(woken),
            Err(error) => Some(FlowHeard::Refused(error.into())),
        };
        let Some(heard) = woken else { continue };
        let over = matches!(heard, FlowHeard::Refused(_));
        sender.send(heard).await.ok()?;
        if over {
            return Some(());
        }
    }
}

fn heard_of(woken: Woken) -> Option<FlowHeard> {
    match woken {
        Woken::Lost(bound) => Some(FlowHeard::Lost(daemon_gone(bound))),
        Woken::Back => Some(FlowHeard::Back),
        Woken::Look => None,
    }
}

/// Sends everything that is new, perhaps only the flow as it is. Nothing when the receiver is gone.
async fn look(
    context: &Context,
    flow: FlowId,
    after: &mut u64,
    sender: &mpsc::Sender<FlowHeard>,
) -> Result<Option<()>, Failure> {
    let client = context.client_if_running().await?;
    let mut client = client.ok_or_else(|| context.not_running(""))?;
    loop {
        let route = at(&flow.to_string(), &["events"]).with("after", Some(*after));
        let page: FlowEventPage = client.get(&route.with("limit", Some(EVENTS_MAX))).await?;
        let last = page.events.last().map(|event| event.seq);
        *after = last.unwrap_or(*after);
        let more = last.is_some_and(|last| last < page.head);
        if sender.send(FlowHeard::Page(Box::new(page))).await.is_err() {
            return Ok(None);
        }
        if !more {
            return Ok(Some(()));
        }
    }
}
