//! Finding and adding entries.

use lanyard_api::types::{FoundBy, MemoryPage, NewMemory};
use lanyard_client::Route;
use lanyard_client::names::A_SESSION;
use lanyard_core::memory::{MemoryEntry, MemoryScope, Where};
use serde_json::json;

use crate::cli::target::{text_or_stdin, workspace};
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::memory::entries;

const SEARCH: &str = "\
Without words the newest are listed. Words are looked for in texts, names and tags: all of them, or
any where nothing has all. With an embeddings endpoint in the config, meaning counts too. With --as
you see what that session sees.

Examples:
  lanyard memory search
  lanyard memory search \"server port\"
  lanyard memory search --tag design --workspace .
  lanyard memory search deploy --as fix-login --json";

/// Find what is remembered, or list the newest
#[derive(Debug, clap::Args)]
#[command(after_help = SEARCH)]
pub(super) struct Search {
    /// What to look for
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    /// What this session sees, as its policy has it: id or alias
    #[arg(long = "as", value_name = "ID", conflicts_with_all = ["session", "workspace", "owner"])]
    seen_by: Option<String>,
    /// Only of this session: id or alias
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only of this workspace
    #[arg(long, value_parser = workspace)]
    workspace: Option<String>,
    /// Only of this person
    #[arg(long)]
    owner: Option<String>,
    /// Only of this store
    #[arg(long, value_parser = ["session", "long_term"])]
    store: Option<String>,
    /// Only with this tag; may be given more than once
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Show this many at most
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    limit: usize,
}

impl Search {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let words = self.words.join(" ");
        let tags = Some(self.tags.join(",")).filter(|tags| !tags.is_empty());
        let route = match &self.seen_by {
            Some(id) => Route::to(&["sessions", id, "memory"]),
            None => Route::to(&["memory"]),
        };
        let mut client = context.client().await?;
        let session = client.id_if(A_SESSION, self.session).await?;
        let route = route
            .with("query", Some(&words).filter(|words| !words.is_empty()))
            .with("session", session.as_ref())
            .with("workspace", self.workspace.as_ref())
            .with("owner", self.owner.as_ref())
            .with("store", self.store.as_ref())
            .with("tags", tags.as_ref())
            .with("limit", Some(self.limit));
        let page: MemoryPage = client.get(&route).await?;
        if context.out.is_json() {
            return context.out.list_with(
                &page.entries,
                page.next.as_deref(),
                &json!({ "found_by": page.found_by, "warnings": page.warnings }),
            );
        }
        for warning in &page.warnings {
            context.out.warn(warning);
        }
        if page.entries.is_empty() {
            let hint = if words.is_empty() {
                "nothing is remembered there; `lanyard memory add` adds something"
            } else {
                "nothing was found; without words the newest are listed"
            };
            context.out.note(hint);
            return Ok(());
        }
        if page.found_by.contains(&FoundBy::Letters) {
            context.out.note("no entry has these words; these have the letters");
        }
        let now = daemon_now(&mut client).await?;
        context.out.data(&entries(&page.entries, now, context.out.columns))?;
        if page.next.is_some() {
            context.out.note("there are more; narrow it down, or raise --limit");
        }
        Ok(())
    }
}

const ADD: &str = "\
Without --session it goes into long-term memory, for a workspace and a person. In a session's name it
goes into that session's own memory, or with --long-term into long-term memory, and the session's
policy judges it: refused, you are told which rule forbids it.

Examples:
  lanyard memory add \"The API speaks JSON only\" --workspace . --tag design
  lanyard memory add --name deploy - < deploy-notes.md
  lanyard memory add --session fix-login --long-term --tag api \"Port 8080\"";

/// Remember something, and print its id
#[derive(Debug, clap::Args)]
#[command(after_help = ADD)]
pub(super) struct MemoryAddArgs {
    /// The text; `-` reads it from stdin
    text: String,
    /// What it is called: written again under its name it takes the place of what was there
    #[arg(long)]
    name: Option<String>,
    /// A tag; may be given more than once
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// In the name of this session: id or alias
    #[arg(long, value_name = "ID", conflicts_with_all = ["workspace", "owner"])]
    session: Option<String>,
    /// Into long-term memory, where a session is named
    #[arg(long, requires = "session")]
    long_term: bool,
    /// The workspace it belongs to
    #[arg(long, value_parser = workspace)]
    workspace: Option<String>,
    /// The person it belongs to [default: you]
    #[arg(long)]
    owner: Option<String>,
    /// Only in place of this version of it
    #[arg(long, value_name = "N", requires = "name")]
    version: Option<u64>,
}

impl MemoryAddArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let new = NewMemory {
            text: text_or_stdin(self.text)?,
            name: self.name,
            scope: self.long_term.then_some(MemoryScope::Workspace),
            tags: self.tags,
            session: client.id_if(A_SESSION, self.session).await?,
            workspace: self.workspace,
            owner: self.owner,
            plan: None,
            version: self.version,
        };
        let entry: MemoryEntry = client.post(&Route::to(&["memory"]), &new).await?;
        if context.out.is_json() {
            return context.out.json(&entry);
        }
        let store = match entry.store {
            Where::Session => "the session's own memory",
            Where::LongTerm => "long-term memory",
        };
        context.out.note(&format!("it is in {store}, version {}", entry.version));
        context.out.data(&entry.id.to_string())
    }
}
