//! `lanyard flow merge`.

use std::path::PathBuf;

use lanyard_api::types::{MergeTask, MergedFlow};

use super::at;
use super::which::Ended;
use crate::cli::target::folder;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::one_line;

pub(super) const EXAMPLES: &str = "\
Into what is checked out in the flow's folder. Refused, with nothing changed, when there are
uncommitted changes there, when the two do not fit, or when the flow worked in the folder itself.

Examples:
  lanyard flow merge
  lanyard flow merge flow_01m7n5djg0fayvh8t5cxyjkdnf --into ../release";

#[derive(Debug, clap::Args)]
pub(super) struct MergeFlow {
    #[command(flatten)]
    target: Ended,
    /// The folder to merge into [default: the flow's]
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
}

impl MergeFlow {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let into = self.into.map(|into| folder(Some(into), "--into")).transpose()?;
        let mut client = context.client().await?;
        let flow = self.target.newest(&mut client).await?;
        let merged: MergedFlow = client.post_patiently(&at(&flow, &["merge"]), &MergeTask { into }).await?;
        if context.out.is_json() {
            return context.out.json(&merged);
        }
        let into = one_line(&merged.into);
        if merged.nothing {
            context.out.note(&format!("there was nothing to merge; {into} has it all"));
        } else {
            context.out.note(&format!("{} is merged into {into}", merged.flow));
        }
        context.out.data(&one_line(&merged.commit))
    }
}
