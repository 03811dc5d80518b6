//! `lanyard tree`: families of sessions.

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::TreeNode;
use lanyard_client::Route;

use super::ls::read_all;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::session::line;
use crate::render::tree::{draw, forest};

/// The most sessions of a tree; a larger forest is shown one family at a time.
const FOREST_MAX: usize = 1_000;

const EXAMPLES: &str = "\
Examples:
  lanyard tree
  lanyard tree sess_01m7n5djg0fayvh8t5cxyjkdnf";

/// Draw a session with its children, or all live families
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TreeArgs {
    /// The session to begin with: its id or one of its aliases [default: all that live]
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    id: Option<String>,
}

impl TreeArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let roots = if let Some(id) = &self.id {
            let root: TreeNode = client.get(&Route::to(&["sessions", id, "tree"])).await?;
            if context.out.is_json() {
                return context.out.json(&root);
            }
            vec![root]
        } else {
            let route = Route::to(&["sessions"]).with("live", Some(true)).with("archived", Some(false));
            let listed = read_all(&mut client, route, None, FOREST_MAX).await?;
            if listed.next.is_some() {
                context
                    .out
                    .warn(&format!("only the {FOREST_MAX} newest are shown; name one to see its family"));
            }
            let roots = forest(listed.rows.into_iter().map(|listed| listed.row).collect());
            if context.out.is_json() {
                return context.out.list(&roots, listed.next.as_deref());
            }
            roots
        };
        if roots.is_empty() {
            context.out.note("no sessions");
            return Ok(());
        }
        let now = daemon_now(&mut client).await?;
        context.out.data(&draw(&roots, &|row| line(row, now), context.out.columns))
    }
}
