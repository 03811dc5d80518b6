//! `lanyard link`: give a session a parent.

use lanyard_api::types::NewLink;
use lanyard_client::names::A_SESSION;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
The first ID is the child's. A child that had another parent leaves it.

Examples:
  lanyard link fix-login sess_01m7n5djg0fayvh8t5cxyjkdnf";

/// Make a session the child of another
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct LinkArgs {
    #[command(flatten)]
    child: Target,
    /// The session to put it under: its id or one of its aliases
    parent: String,
}

impl LinkArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let parent = context.client().await?.id_of(A_SESSION, &self.parent).await?;
        let outcome = self.child.change(context, &["link"], &NewLink { parent }).await?;
        context.out.receipt(&outcome, None, &format!("{} is a child of {}", outcome.session, self.parent))
    }
}
