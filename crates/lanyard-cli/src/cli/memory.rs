//! `lanyard memory`: what is remembered, and what each session may remember.

mod carry;
pub(super) mod flags;
mod forget;
mod policy;
mod search;

use lanyard_api::types::MemoryStatus;
use lanyard_client::Route;
use lanyard_core::memory::MemoryEntry;

use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::memory::{entry_card, status_card};

const EXAMPLES: &str = "\
There are two stores: each session's own memory, and long-term memory, which belongs to a workspace
and a person. Agents write with their tool `memory_context`, people with `add`. What a session may
write is its policy: `off`, `session_only` (the default), `selective` (long-term for tags on its
allow-list) or `full`. Entries tagged `discard` or `dev_test` are swept after a while, those tagged
`retain` never.

Examples:
  lanyard memory search \"server port\"
  lanyard memory add --tag design \"The API speaks JSON only\"
  lanyard memory policy fix-login --mode selective --allow design --allow api
  lanyard memory forget --tag dev_test --dry-run
  lanyard memory export > memory.jsonl
  lanyard memory import memory.jsonl";

/// Search, add and forget what is remembered, and set what may be
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct MemoryArgs {
    #[command(subcommand)]
    verb: MemoryVerb,
}

#[derive(Debug, clap::Subcommand)]
enum MemoryVerb {
    Search(search::Search),
    Add(search::MemoryAddArgs),
    /// Show one entry, whole, with where it came from
    Show {
        /// Its id
        #[arg(value_name = "MEMORY")]
        memory: String,
    },
    Forget(forget::MemoryForgetArgs),
    Export(carry::Export),
    Import(carry::MemoryImportArgs),
    Policy(policy::MemoryPolicyArgs),
    /// Show how much is remembered, and what was refused since the daemon started
    Status,
}

impl MemoryArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            MemoryVerb::Search(search) => search.run(context).await,
            MemoryVerb::Add(add) => add.run(context).await,
            MemoryVerb::Show { memory } => show(context, &memory).await,
            MemoryVerb::Forget(forget) => forget.run(context).await,
            MemoryVerb::Export(export) => export.run(context).await,
            MemoryVerb::Import(import) => import.run(context).await,
            MemoryVerb::Policy(policy) => policy.run(context).await,
            MemoryVerb::Status => status(context).await,
        }
    }
}

async fn show(context: &Context, memory: &str) -> Result<(), Failure> {
    let mut client = context.client().await?;
    let entry: MemoryEntry = client.get(&Route::to(&["memory", memory])).await?;
    if context.out.is_json() {
        return context.out.json(&entry);
    }
    let now = daemon_now(&mut client).await?;
    context.out.data(&entry_card(&entry, now))
}

async fn status(context: &Context) -> Result<(), Failure> {
    let status: MemoryStatus = context.client().await?.get(&Route::to(&["memory", "status"])).await?;
    if context.out.is_json() {
        return context.out.json(&status);
    }
    if let Some(trouble) = &status.embeddings_trouble {
        context.out.warn(&format!("the embeddings endpoint {trouble}; words alone find things meanwhile"));
    }
    context.out.data(&status_card(&status))
}
