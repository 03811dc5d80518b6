//! Following a flow's log: every event once and in order, whatever happens to the daemon meanwhile.

use lanyard_api::types::FlowEventPage;
use lanyard_core::FlowId;
use tokio::sync::mpsc;

use super::at;
use crate::client::Absence;
use crate::context::Context;
use crate::failure::Failure;

/// How long the daemon holds a question for what comes next.
const HELD_MS: u64 = 25_000;
/// Pages that may wait to be shown.
const PAGES_MAX: usize = 4;

#[derive(Debug)]
pub(super) enum Heard {
    /// Events that were not heard before, perhaps none, and the flow as it is.
    Page(Box<FlowEventPage>),
    /// The daemon does not answer; it is tried again for a while. The sentence says so.
    Lost(String),
    Back,
    /// No further try will mend it.
    Refused(Failure),
}

/// Follows from the first event on, until nobody listens.
pub(super) fn follow(context: &Context, flow: FlowId) -> mpsc::Receiver<Heard> {
    let (sender, heard) = mpsc::channel(PAGES_MAX);
    let mut context = context.clone();
    // What breaks is told by whoever listens, once.
    context.out.quiet = true;
    tokio::spawn(async move { run(&context, flow, &sender).await });
    heard
}

/// Ends when a word cannot be said any more.
async fn run(context: &Context, flow: FlowId, sender: &mpsc::Sender<Heard>) -> Option<()> {
    let mut after = 0;
    let mut absence = Absence::new(context);
    // Whoever waits to be allowed something is news as well.
    let mut known = String::new();
    loop {
        match page(context, flow, after, &known).await {
            Ok(mut page) => {
                let ids = page.flow.approvals.iter().map(|entry| entry.gate.id.to_string());
                known = ids.collect::<Vec<_>>().join(",");
                if absence.lasts() {
                    sender.send(Heard::Back).await.ok()?;
                }
                absence.ends();
                page.events.retain(|event| event.seq > after);
                after = page.events.last().map_or(after, |event| event.seq);
                sender.send(Heard::Page(Box::new(page))).await.ok()?;
            }
            Err(failure) if failure.is_passing() => {
                if let Some(sentence) = absence.begins() {
                    sender.send(Heard::Lost(sentence)).await.ok()?;
                }
                if let Err(failure) = absence.pause(&format!("lanyard flow watch {flow}")).await {
                    return sender.send(Heard::Refused(failure)).await.ok();
                }
            }
            Err(failure) => return sender.send(Heard::Refused(failure)).await.ok(),
        }
    }
}

async fn page(context: &Context, flow: FlowId, after: u64, known: &str) -> Result<FlowEventPage, Failure> {
    // Somebody ended the daemon on purpose, or it starts again by itself: either way not ours to start.
    let client = context.client_if_running().await?;
    let mut client = client.ok_or_else(|| context.not_running(""))?;
    let route = at(&flow.to_string(), &["events"])
        .with("after", Some(after))
        .with("wait_ms", Some(HELD_MS))
        .with("approvals", Some(known));
    client.get(&route).await
}
