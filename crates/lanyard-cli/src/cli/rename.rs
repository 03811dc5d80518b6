//! `lanyard rename`: another title for a session.

use lanyard_api::types::EditSession;
use lanyard_core::Outcome;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
The title is what people see; ids and aliases stay. `lanyard alias` gives a session a further name.

Examples:
  lanyard rename fix-login \"Fix the login on Safari\"
  lanyard rename last second try";

/// Give a session another title
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Rename {
    #[command(flatten)]
    target: Target,
    /// The new title, quoted or not
    #[arg(required = true)]
    title: Vec<String>,
}

impl Rename {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let body = EditSession { title: self.title.join(" ") };
        let outcome: Outcome = context.client().await?.patch(&self.target.route(&[]), &body).await?;
        context.out.receipt(&outcome, None, &format!("{} was renamed", outcome.session))
    }
}
