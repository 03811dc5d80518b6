//! `lanyard flow cancel`.

use lanyard_api::types::{FlowReason, FlowView};

use super::which::Target;
use super::{at, told};
use crate::context::Context;
use crate::failure::Failure;

pub(super) const EXAMPLES: &str = "\
The running agent is asked to end its turn, and an open approval is withdrawn.

Examples:
  lanyard flow cancel
  lanyard flow cancel flow_01m7n5djg0fayvh8t5cxyjkdnf --reason \"wrong branch\"";

#[derive(Debug, clap::Args)]
pub(super) struct FlowCancelArgs {
    #[command(flatten)]
    target: Target,
    /// Why, for the record
    #[arg(long)]
    reason: Option<String>,
}

impl FlowCancelArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let flow = self.target.find(&mut client).await?;
        let body = FlowReason { reason: self.reason };
        let view: FlowView = client.post(&at(&flow, &["cancel"]), &body).await?;
        let next = format!("`lanyard flow resume {}` takes it up again", view.flow.id);
        told(context, &view, &next)
    }
}
