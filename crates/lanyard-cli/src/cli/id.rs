//! `lanyard id`: what an id stands for, and all it is linked to.

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::IdChain;
use lanyard_client::Route;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::chain::chain;

const EXAMPLES: &str = "\
Takes the id of a plan, task, worker, session, run or piece of mail, a task's address
`orchestrator:/task_…`, or an alias, and shows the chain it is part of and whom its task reports to.

Examples:
  lanyard id worker_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard id fix-login
  lanyard id run_01m7n5djg0fayvh8t5cxyjkdnf --json | jq -r .task.id";

/// Explain an id: what it stands for, and all it is linked to
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Id {
    /// Any id or alias
    #[arg(value_name = "ANY", value_parser = NonEmptyStringValueParser::new())]
    any: String,
}

impl Id {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let found: IdChain = context.client().await?.get(&Route::to(&["ids", &self.any])).await?;
        if context.out.is_json() {
            return context.out.json(&found);
        }
        context.out.data(&chain(&found, context.out.columns))
    }
}
