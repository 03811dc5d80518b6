//! `lanyard show`: one session.

use lanyard_api::types::SessionDetail;
use lanyard_core::journal::Damage;

use super::target::Target;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::card::card;
use crate::seen::mark_seen;

const EXAMPLES: &str = "\
Examples:
  lanyard show sess_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard show fix-login --workspace .
  lanyard show fix-login --json | jq .usage";

/// Show all there is to know of a session
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    target: Target,
}

impl ShowArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let detail: SessionDetail = client.get(&self.target.route(&[])).await?;
        if context.out.is_json() {
            return context.out.json(&detail);
        }
        for damage in &detail.damage {
            let Damage { first_seq, last_seq, what, .. } = damage;
            context.out.warn(&format!("events {first_seq} to {last_seq} are damaged: {what}"));
        }
        let now = daemon_now(&mut client).await?;
        context.out.data(&card(&detail.view, now))?;
        if let (true, Some(turn), Some(_)) = (detail.view.unread, &detail.view.last_turn, context.out.columns)
        {
            mark_seen(context, &detail.view.id.to_string(), turn.seq).await;
        }
        Ok(())
    }
}
