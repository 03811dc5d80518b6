//! Forgetting entries.

use lanyard_api::types::{Forget as Body, Forgotten};
use lanyard_client::Route;
use lanyard_client::names::A_SESSION;
use lanyard_core::MemoryId;
use lanyard_core::memory::Where;

use crate::cli::target::workspace;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
By id, or all that match every condition given; all there is is never meant. What is forgotten is
gone from the journal, the index and the file.

Examples:
  lanyard memory forget mem_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard memory forget --tag dev_test --dry-run
  lanyard memory forget --session fix-login --store session";

/// Forget entries, by id or by what they have in common
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct MemoryForgetArgs {
    /// Their ids
    #[arg(value_name = "MEMORY", conflicts_with_all = ["tags", "session", "workspace", "owner", "store"])]
    ids: Vec<MemoryId>,
    /// Those with this tag; may be given more than once, for those with all of them
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Those of this session: id or alias
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Those of this workspace
    #[arg(long, value_parser = workspace)]
    workspace: Option<String>,
    /// Those of this person
    #[arg(long)]
    owner: Option<String>,
    /// Those of this store
    #[arg(long, value_parser = ["session", "long_term"])]
    store: Option<String>,
    /// Only tell how many it would be
    #[arg(long)]
    dry_run: bool,
}

impl MemoryForgetArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let store = match self.store.as_deref() {
            Some("session") => Some(Where::Session),
            Some(_) => Some(Where::LongTerm),
            None => None,
        };
        let dry_run = self.dry_run;
        let mut client = context.client().await?;
        let body = Body {
            ids: self.ids,
            tags: self.tags,
            session: client.id_if(A_SESSION, self.session).await?,
            workspace: self.workspace,
            owner: self.owner,
            store,
            dry_run,
        };
        let mut total = Forgotten { forgotten: 0, more: false };
        loop {
            let part = total.forgotten.to_string();
            let answer: Forgotten = client.post_part(&part, &Route::to(&["memory", "forget"]), &body).await?;
            total = Forgotten { forgotten: total.forgotten + answer.forgotten, more: answer.more };
            if !answer.more || dry_run || answer.forgotten == 0 {
                break;
            }
        }
        if context.out.is_json() {
            return context.out.json(&total);
        }
        let more = if total.more { " and more" } else { "" };
        let entries = total.forgotten;
        let noun = if entries == 1 { "entry" } else { "entries" };
        let what = if dry_run { "would be forgotten" } else { "forgotten" };
        context.out.note(&format!("{entries} {noun}{more} {what}"));
        Ok(())
    }
}
