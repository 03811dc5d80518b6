//! `lanyard show`: one session.

use lanyard_core::session::SessionView;
use lanyard_store::Damage;
use serde::{Deserialize, Serialize};

use super::target::Target;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::card::card;

const EXAMPLES: &str = "\
Examples:
  lanyard show sess_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard show ses_4f2a --workspace .
  lanyard show ses_4f2a --json | jq .usage";

/// Show all there is to know of a session
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Show {
    #[command(flatten)]
    target: Target,
}

/// The view, and what could not be read of the session's log.
#[derive(Debug, Serialize, Deserialize)]
struct Detail {
    #[serde(flatten)]
    view: SessionView,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    damage: Vec<Damage>,
}

impl Show {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let detail: Detail = client.get(&self.target.route(&[])).await?;
        if context.out.is_json() {
            return context.out.json(&detail);
        }
        for damage in &detail.damage {
            let Damage { first_seq, last_seq, what, .. } = damage;
            context.out.warn(&format!("events {first_seq} to {last_seq} are damaged: {what}"));
        }
        let now = daemon_now(&mut client).await?;
        context.out.data(&card(&detail.view, now))
    }
}
