//! `lanyard rm`: delete a session.

use lanyard_core::Outcome;
use lanyard_core::session::SessionView;
use lanyard_daemon::api::types::Reason;

use super::ask::{agreed, can_ask};
use super::target::Target;
use crate::client::Route;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{count, quoted};

const EXAMPLES: &str = "\
A deleted session is not listed any more and cannot go on. `lanyard archive` puts one away instead.

Examples:
  lanyard rm ses_4f2a
  lanyard rm ses_4f2a --yes --reason \"made by mistake\"";

/// Delete a session
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Rm {
    #[command(flatten)]
    target: Target,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Why, for the log
    #[arg(long)]
    reason: Option<String>,
}

impl Rm {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        if !self.yes && !can_ask() {
            return Err(Failure::usage("there is no terminal to ask on", "say --yes if you are sure"));
        }
        let mut client = context.client().await?;
        let route = if self.yes {
            self.target.route(&[])
        } else {
            let view: SessionView = client.get(&self.target.route(&[])).await?;
            if !agreed(context, &question(&view))? {
                context.out.note("nothing was deleted");
                return Ok(());
            }
            // By its id: while the question stood, the alias may have become another's.
            Route::to(&["sessions", &view.id.to_string()])
        };
        let outcome: Outcome = client.delete(&route, &Reason { reason: self.reason }).await?;
        context.out.receipt(&outcome, None, &format!("{} was deleted", outcome.session))
    }
}

fn question(view: &SessionView) -> String {
    let title = view.title.as_deref().map(|title| format!(" {}", quoted(title))).unwrap_or_default();
    format!("delete {}{title}, {}, {}?", view.id, view.state, count(view.last_seq, "event"))
}
