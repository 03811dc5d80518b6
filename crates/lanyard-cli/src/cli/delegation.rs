//! `lanyard delegation`: where a session stands in its family.

use lanyard_api::types::Delegation as Told;

use super::target::Target;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::delegation::delegation;

const EXAMPLES: &str = "\
Level 1 is a person's own agent, 2 what it delegates to, 3 what those delegate to. LIVENESS of a
child is found by its process, its open calls and its turn, never by silence alone.

Examples:
  lanyard delegation fix-login
  lanyard delegation fix-login --json | jq -r '.call_stack[].agent'";

/// Show a session's level, depth, caller and children
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DelegationArgs {
    #[command(flatten)]
    target: Target,
}

impl DelegationArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let told: Told = client.get(&self.target.route(&["delegation"])).await?;
        if context.out.is_json() {
            return context.out.json(&told);
        }
        if told.truncated {
            context.out.warn("there are more children than can be shown");
        }
        let now = daemon_now(&mut client).await?;
        context.out.data(&delegation(&told, now, context.out.columns))
    }
}
