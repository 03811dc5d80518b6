//! What one session may remember: shown, and set.

use lanyard_api::types::{MemoryPolicySet, MemoryPolicyView};
use lanyard_core::memory::MemoryAsk;

use crate::cli::memory::flags::{mode_of, modes};
use crate::cli::target::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::memory::policy_card;

const EXAMPLES: &str = "\
  off           no memory at all, neither written nor read
  session_only  the session's own memory; nothing goes into long-term memory
  selective     long-term memory too, for entries with a tag on the allow-list
  full          all of it
What is left out stays as it is. Less counts at once, in the middle of a turn too; more counts from
the next turn on. A session is never allowed more than those above it, and those below it are
tightened with it.

Examples:
  lanyard memory policy fix-login
  lanyard memory policy fix-login --mode selective --allow design --allow api
  lanyard memory policy fix-login --tag dev_test --session-memory off
  lanyard memory policy fix-login --no-tags --no-allow";

/// Show or set what a session may remember
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct MemoryPolicyArgs {
    #[command(flatten)]
    target: Target,
    /// How much is remembered
    #[arg(long, value_parser = modes())]
    mode: Option<String>,
    /// Whether the session has a memory of its own
    #[arg(long, value_name = "ON|OFF", value_parser = ["on", "off"], hide_possible_values = true)]
    session_memory: Option<String>,
    /// A tag put on everything that is written; may be given more than once
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// No such tags
    #[arg(long, conflicts_with = "tags")]
    no_tags: bool,
    /// A tag that may go into long-term memory in the mode selective; may be given more than once
    #[arg(long, value_name = "TAG")]
    allow: Vec<String>,
    /// An empty allow-list
    #[arg(long, conflicts_with = "allow")]
    no_allow: bool,
}

impl MemoryPolicyArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let list = |tags: Vec<String>, none: bool| Some(tags).filter(|tags| none || !tags.is_empty());
        let ask = MemoryAsk {
            mode: self.mode.as_deref().and_then(mode_of),
            session_memory: self.session_memory.map(|word| word == "on"),
            tags: list(self.tags, self.no_tags),
            allow: list(self.allow, self.no_allow),
        };
        let route = self.target.route(&["memory-policy"]);
        let mut client = context.client().await?;
        if ask == MemoryAsk::default() {
            let view: MemoryPolicyView = client.get(&route).await?;
            return shown(context, &view);
        }
        let set: MemoryPolicySet = client.patch(&route, &ask).await?;
        if context.out.is_json() {
            return context.out.json(&set);
        }
        context.out.note(if set.outcome.events == 0 { "nothing to change" } else { "it is set" });
        shown(context, &set.view)
    }
}

fn shown(context: &Context, view: &MemoryPolicyView) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.json(view);
    }
    for warning in &view.warnings {
        context.out.warn(warning);
    }
    context.out.data(&policy_card(view))
}
