//! `lanyard flow ls`.

use lanyard_api::types::{FlowList, FlowView};
use lanyard_client::Route;

use crate::cli::target::workspace;
use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::flow::listing;

pub(super) const EXAMPLES: &str = "\
Without --all, flows that have ended are left out.

Examples:
  lanyard flow ls
  lanyard flow ls --all -n 5
  lanyard flow ls --json | jq -r '.items[].id'";

#[derive(Debug, clap::Args)]
pub(super) struct FlowLsArgs {
    /// Show flows that have ended too
    #[arg(long, short)]
    all: bool,
    /// Show this many at most [default: all]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Go on where a limited listing ended: its `next`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Of this workspace (`.` for this folder)
    #[arg(long, value_parser = workspace)]
    workspace: Option<String>,
}

impl FlowLsArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let open = (!self.all).then_some(true);
        let route = Route::to(&["flows"]).with("open", open).with("workspace", self.workspace.as_ref());
        let (flows, next) =
            read_all(&mut client, &route, self.cursor, self.limit.unwrap_or(usize::MAX)).await?;
        if context.out.is_json() {
            return context.out.list(&flows, next.as_deref());
        }
        if flows.is_empty() {
            let hint = if self.all {
                "begin one with `lanyard flow run PLAN.md`"
            } else {
                "--all shows ended ones too"
            };
            context.out.note(&format!("no flows; {hint}"));
            return Ok(());
        }
        let now = daemon_now(&mut client).await?;
        context.out.data(&listing(&flows, now, context.out.columns))
    }
}

/// Reads page after page from `cursor` on until there are `max` flows or no more. Returns the cursor of the rest too.
async fn read_all(
    client: &mut Client<'_>,
    route: &Route,
    mut cursor: Option<String>,
    max: usize,
) -> Result<(Vec<FlowView>, Option<String>), Failure> {
    let mut flows: Vec<FlowView> = Vec::new();
    while flows.len() < max {
        let page: FlowList = client.get(&route.clone().with("before", cursor.as_ref())).await?;
        let more = page.more || page.flows.len() > max - flows.len();
        flows.extend(page.flows);
        flows.truncate(max);
        cursor = flows.last().filter(|_| more).map(|view| view.flow.id.to_string());
        if cursor.is_none() {
            break;
        }
    }
    Ok((flows, cursor))
}
