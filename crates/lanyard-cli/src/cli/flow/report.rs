//! `lanyard flow report`.

use std::path::PathBuf;

use lanyard_api::types::FlowReport;

use super::at;
use super::which::Ended;
use crate::context::Context;
use crate::failure::Failure;

pub(super) const EXAMPLES: &str = "\
Examples:
  lanyard flow report
  lanyard flow report flow_01m7n5djg0fayvh8t5cxyjkdnf -o report.md
  lanyard flow report --json | jq .";

#[derive(Debug, clap::Args)]
pub(super) struct FlowReportArgs {
    #[command(flatten)]
    target: Ended,
    /// As Markdown, which it is without --json too
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Write it to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl FlowReportArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let flow = self.target.newest(&mut client).await?;
        let told: FlowReport = client.get(&at(&flow, &["report"])).await?;
        let Some(file) = self.output else {
            return if context.out.is_json() {
                context.out.json(&told.report)
            } else {
                context.out.data(&told.markdown)
            };
        };
        let text = if context.out.is_json() {
            serde_json::to_string_pretty(&told.report)
                .map_err(|error| Failure::local("output_failed", error.to_string(), ""))?
        } else {
            told.markdown
        };
        std::fs::write(&file, text.trim_end().to_owned() + "\n").map_err(|error| {
            let title = format!("cannot write {}: {error}", file.display());
            Failure::local("output_failed", title, "name a file that can be written with -o")
        })?;
        context.out.note(&format!("the report of {flow} is in {}", file.display()));
        Ok(())
    }
}
