//! `lanyard flow review`.

use lanyard_core::flow::FlowKind;

use super::begin::{EXIT_CODES, FlowBeginArgs};
use crate::context::Context;
use crate::failure::Failure;

pub(super) fn examples() -> String {
    format!(
        "\
The reviewer judges the plan as it is written, the author corrects it, until it is approved. Nothing
of the plan is carried out.

Examples:
  lanyard flow review PLAN.md
  lanyard flow review PLAN.md --ask-reviews --reviewer claude

{EXIT_CODES}"
    )
}

#[derive(Debug, clap::Args)]
pub(super) struct Review {
    #[command(flatten)]
    begin: FlowBeginArgs,
}

impl Review {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let body = self.begin.body(FlowKind::PlanReview)?;
        self.begin.begin(context, &body).await
    }
}
