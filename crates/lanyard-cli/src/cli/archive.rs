//! `lanyard archive`: put a session away, or bring it back.

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
An archived session keeps everything, takes no prompts, and is listed with `lanyard ls --archived`.

Examples:
  lanyard archive fix-login
  lanyard archive fix-login --undo";

/// Put a session away
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Archive {
    #[command(flatten)]
    target: Target,
    /// Bring it back
    #[arg(long)]
    undo: bool,
}

impl Archive {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let (verb, done) = if self.undo { ("unarchive", "brought back") } else { ("archive", "put away") };
        let outcome = self.target.change(context, &[verb], &serde_json::json!({})).await?;
        context.out.receipt(&outcome, None, &format!("{} was {done}", outcome.session))
    }
}
