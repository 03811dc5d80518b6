//! `lanyard flow run`.

use lanyard_core::flow::{Asking, FlowKind};

use super::begin::{EXIT_CODES, FlowBeginArgs};
use crate::context::Context;
use crate::failure::Failure;

pub(super) fn examples() -> String {
    format!(
        "\
The flow's id goes to stdout, its progress to stderr. On a terminal approvals are answered in place;
elsewhere an approval is printed with the commands that answer it, and the flow waits. Ctrl-C leaves;
the flow continues.

Examples:
  lanyard flow run PLAN.md
  lanyard flow run PLAN.md --from \"Add the API\" --auto
  flow=$(lanyard flow run PLAN.md --detach --author codex --reviewer claude)

{EXIT_CODES}"
    )
}

#[derive(Debug, clap::Args)]
pub(super) struct FlowRunArgs {
    #[command(flatten)]
    begin: FlowBeginArgs,
    /// Begin with this phase: its number or title [default: the first that is not ticked]
    #[arg(long, value_name = "PHASE")]
    from: Option<String>,
    /// Go on with the next phase by itself when one was found ready
    #[arg(long)]
    auto: bool,
    /// Do without the quality commands of the config
    #[arg(long)]
    no_quality: bool,
}

impl FlowRunArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut body = self.begin.body(FlowKind::Phases)?;
        body.from = self.from;
        body.phase_gate = self.auto.then_some(Asking::Auto);
        body.quality = self.no_quality.then_some(false);
        self.begin.begin(context, &body).await
    }
}
