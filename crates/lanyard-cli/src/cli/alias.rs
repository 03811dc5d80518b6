//! `lanyard alias`: another name for a session.

use lanyard_api::types::NewAlias;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
An alias is accepted wherever an id is. It may hold anything, such as the id another program uses.

Examples:
  lanyard alias sess_01m7n5djg0fayvh8t5cxyjkdnf fix-login";

/// Give a session a further name
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Alias {
    #[command(flatten)]
    target: Target,
    /// The name
    alias: String,
}

impl Alias {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let outcome =
            self.target.change(context, &["aliases"], &NewAlias { alias: self.alias.clone() }).await?;
        context.out.receipt(&outcome, None, &format!("{} is also `{}`", outcome.session, self.alias))
    }
}
