//! Following tasks or a plan until they are over, over restarts of the daemon, with the approvals of their agents answered in
//! place.

use std::time::Duration;

use lanyard_api::types::GateEntry;
use lanyard_client::{RecordWatch, Woken};
use lanyard_core::GateId;

use super::approve::Approvals;
use super::ask::Keyboard;
use crate::client::Client;
use crate::context::Context;
use crate::failure::{Failure, daemon_gone};

/// Records that are followed, as they were at the last look.
pub(super) trait Followed {
    /// Reads them again and prints what changed.
    async fn look(&mut self, context: &Context, client: &mut Client<'_>) -> Result<(), Failure>;

    fn is_over(&self) -> bool;

    /// Open approvals of their agents.
    fn approvals(&self) -> Vec<GateEntry>;

    /// Whether what was printed before is drawn again at each look: a question then stands below it again.
    fn is_redrawn(&self) -> bool {
        false
    }

    /// Something was printed below.
    fn printed_below(&mut self) {}
}

/// Follows until they are over. Returns false when that took longer than `seconds`.
pub(super) async fn follow_within(
    context: &Context,
    watch: RecordWatch,
    followed: &mut impl Followed,
    seconds: Option<u64>,
) -> Result<bool, Failure> {
    let over = follow(context, watch, followed);
    match seconds {
        None => over.await.map(|()| true),
        Some(seconds) => match tokio::time::timeout(Duration::from_secs(seconds), over).await {
            Ok(over) => over.map(|()| true),
            Err(_) => Ok(false),
        },
    }
}

/// A daemon that restarts is waited for, within the bound of the watch.
async fn follow(
    context: &Context,
    mut watch: RecordWatch,
    followed: &mut impl Followed,
) -> Result<(), Failure> {
    let keyboard = if context.out.is_json() { Keyboard::nobody() } else { Keyboard::open() };
    let mut asking = FollowPrompt { context, keyboard, approvals: Approvals::default(), asked: None };
    asking.look(followed);
    while !followed.is_over() {
        let woken = tokio::select! {
            typed = asking.keyboard.next() => {
                asking.take(typed, followed).await;
                continue;
            }
            woken = watch.next() => woken?,
        };
        let woken = match woken {
            Woken::Look => match look_again(context, followed).await {
                Err(failure) if failure.is_passing() => watch.lost(),
                looked => {
                    looked?;
                    asking.look(followed);
                    None
                }
            },
            Woken::Lost(_) | Woken::Back => Some(woken),
        };
        let said = match woken {
            Some(Woken::Lost(bound)) => daemon_gone(bound),
            Some(Woken::Back) => "the daemon is back".to_owned(),
            Some(Woken::Look) | None => continue,
        };
        context.out.note(&said);
        followed.printed_below();
    }
    Ok(())
}

async fn look_again(context: &Context, followed: &mut impl Followed) -> Result<(), Failure> {
    let client = context.client_if_running().await?;
    let mut client = client.ok_or_else(|| context.not_running(""))?;
    followed.look(context, &mut client).await
}

/// Approvals of agents, each printed once, with a prompt on a terminal.
struct FollowPrompt<'a> {
    context: &'a Context,
    keyboard: Keyboard,
    approvals: Approvals,
    asked: Option<GateId>,
}

impl FollowPrompt<'_> {
    fn look(&mut self, followed: &mut impl Followed) {
        for line in self.approvals.update(&followed.approvals()) {
            self.context.out.note(&line);
            followed.printed_below();
        }
        if followed.is_redrawn() {
            self.asked = None;
        }
        self.prompt(followed);
    }

    fn prompt(&mut self, followed: &mut impl Followed) {
        let next = self.approvals.prompt().filter(|_| self.keyboard.is_there());
        if let Some((_, text)) = next.as_ref().filter(|(gate, _)| self.asked != Some(*gate)) {
            self.context.out.question(text);
            followed.printed_below();
        }
        self.asked = next.map(|(gate, _)| gate);
    }

    /// Takes a line that was typed; nothing when there will be no more.
    async fn take(&mut self, typed: Option<String>, followed: &mut impl Followed) {
        self.asked = None;
        followed.printed_below();
        if let Some(line) = typed
            && let Some(told) = self.approvals.line(self.context, &line).await
        {
            self.context.out.question(&format!("{told}\n"));
        }
        self.prompt(followed);
    }
}
