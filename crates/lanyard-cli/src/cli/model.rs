//! `lanyard model`: the model, mode and effort of a session, shown or changed.

use std::fmt::Write as _;

use lanyard_api::types::SessionDetail;
use lanyard_core::session::{AgentChoice, AgentOffer};

use super::choice_flags::ModeFlags;
use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::offer::{choice_words, offer_lines};

const EXAMPLES: &str = "\
Without a change it shows what is chosen, what is in force and what the agent offers. A change holds
from the next turn on, in an agent that can be asked at once also for the running one. For one turn
alone use `lanyard send --model`.

Examples:
  lanyard model fix-login
  lanyard model fix-login opus
  lanyard model fix-login --mode plan --effort high
  lanyard model fix-login --default";

/// Show or change the model, mode and effort of a session
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ModelArgs {
    #[command(flatten)]
    target: Target,
    /// The model, by the agent's name for it
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    #[command(flatten)]
    rest: ModeFlags,
    /// Go back to the agent's defaults, but for what is named here
    #[arg(long)]
    default: bool,
}

impl ModelArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let wanted = self.rest.with(self.model);
        let detail: SessionDetail = context.client().await?.get(&self.target.route(&[])).await?;
        if wanted.is_empty() && !self.default {
            return show(context, &detail);
        }
        let below = if self.default { AgentChoice::default() } else { detail.view.choice };
        let choice = wanted.over(&below);
        let outcome = self.target.change(context, &["choice"], &choice).await?;
        let words = choice_words(&choice);
        let words = if words.is_empty() { "the agent's defaults".to_owned() } else { words };
        context.out.receipt(&outcome, None, &format!("{} works with {words}", outcome.session))
    }
}

fn show(context: &Context, detail: &SessionDetail) -> Result<(), Failure> {
    let view = &detail.view;
    if context.out.is_json() {
        let (choice, in_force) = (&view.choice, &view.in_force);
        return context.out.json(&serde_json::json!({
            "choice": choice, "in_force": in_force, "offer": detail.offer,
            "bypasses_approvals": view.bypasses_approvals,
        }));
    }
    let named = |choice: &AgentChoice, none: &str| {
        let words = choice_words(choice);
        if words.is_empty() { none.to_owned() } else { words }
    };
    let mut text = format!("chosen    {}\n", named(&view.choice, "nothing: the agent's defaults"));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "in force  {}", named(&view.in_force, "not known: no run has told"));
    if view.bypasses_approvals {
        text.push_str("warning   in this mode the agent asks for no approvals\n");
    }
    text.push_str(&offer_lines(detail.offer.as_ref().unwrap_or(&AgentOffer::default())));
    context.out.data(&text)
}
