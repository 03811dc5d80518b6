//! `lanyard flow resume`.

use lanyard_api::types::FlowView;
use serde_json::json;

use super::which::Ended;
use super::{at, told};
use crate::context::Context;
use crate::failure::Failure;

pub(super) const EXAMPLES: &str = "\
Without FLOW it is the flow that ended last, when that was aborted.

Examples:
  lanyard flow resume
  lanyard flow resume flow_01m7n5djg0fayvh8t5cxyjkdnf && lanyard flow watch";

#[derive(Debug, clap::Args)]
pub(super) struct FlowResumeArgs {
    #[command(flatten)]
    target: Ended,
}

impl FlowResumeArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let flow = self.target.aborted(&mut client).await?;
        let view: FlowView = client.post(&at(&flow, &["resume"]), &json!({})).await?;
        told(context, &view, &format!("watch it with `lanyard flow watch {}`", view.flow.id))
    }
}
