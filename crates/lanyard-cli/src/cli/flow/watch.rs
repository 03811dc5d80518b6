//! `lanyard flow watch`.

use lanyard_api::types::FlowView;

use super::at;
use super::begin::EXIT_CODES;
use super::live::{From, watch};
use super::which::Target;
use crate::context::Context;
use crate::failure::Failure;

pub(super) fn examples() -> String {
    format!(
        "\
Tells the flow from its beginning, and goes on as it does, over restarts of the daemon too. With
--json, its events as they are, one per line. Ctrl-C leaves; the flow goes on.

Examples:
  lanyard flow watch
  lanyard flow watch flow_01m7n5djg0fayvh8t5cxyjkdnf --last 5

{EXIT_CODES}"
    )
}

#[derive(Debug, clap::Args)]
pub(super) struct FlowWatchArgs {
    #[command(flatten)]
    target: Target,
    /// Begin with this many events before now [default: all]
    #[arg(long, short = 'n', value_name = "N")]
    last: Option<u64>,
}

impl FlowWatchArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let flow = self.target.find(&mut client).await?;
        let view: FlowView = client.get(&at(&flow, &[])).await?;
        drop(client);
        watch(context, view.flow.id, self.last.map_or(From::Beginning, From::Last)).await
    }
}
