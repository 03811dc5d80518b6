//! `lanyard ls`: what sessions there are.

use clap::builder::PossibleValuesParser;
use lanyard_api::types::{SessionPage, SessionRow};
use lanyard_client::Route;
use lanyard_client::names::{A_PLAN, A_SESSION};
use lanyard_core::MemoryMode;
use lanyard_core::session::{OperatorState, StateName};

use super::halt::warning;
use super::target::workspace;
use crate::client::Client;
use crate::context::{Context, daemon_status};
use crate::failure::Failure;
use crate::render::session::listing;

/// The most one page may hold.
const PAGE_ROWS_MAX: usize = 1_000;

const EXAMPLES: &str = "\
Without --all, archived sessions and those that ended long ago are left out.

Examples:
  lanyard ls --operator-state needs_answer
  lanyard ls --state executing
  lanyard ls --workspace . --text login
  lanyard ls --all --limit 20
  lanyard ls --sort attention
  lanyard ls --json | jq -r '.items[].id'";

/// List sessions, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct LsArgs {
    /// Show archived sessions too, and those that ended long ago
    #[arg(long, short)]
    all: bool,
    /// Show this many at most [default: all]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Go on where a limited listing ended: its `next`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Only sessions a person should look at
    #[arg(long)]
    attention: bool,
    /// In this order: the newest, the latest activity, or what needs a person first
    #[arg(long, value_parser = ["created", "activity", "attention"])]
    sort: Option<String>,
    #[command(flatten)]
    filter: Filter,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Filters")]
struct Filter {
    /// Words in the title, purpose, agent or an alias
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
    /// By state
    #[arg(long, value_parser = PossibleValuesParser::new(StateName::ALL.map(StateName::as_str)))]
    state: Option<String>,
    /// By the operator's word for them
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(OperatorState::ALL.map(OperatorState::as_str)))]
    operator_state: Option<String>,
    /// By status, or by lifecycle
    #[arg(long, value_parser = ["active", "stopping", "stopped", "completed", "running", "idle", "terminal"])]
    status: Option<String>,
    /// By lifecycle
    #[arg(long, value_parser = ["running", "idle", "terminal"])]
    lifecycle: Option<String>,
    /// By agent
    #[arg(long)]
    agent: Option<String>,
    /// By owner
    #[arg(long)]
    owner: Option<String>,
    /// By where they come from
    #[arg(long)]
    source: Option<String>,
    /// By workspace (`.` for this folder)
    #[arg(long, value_parser = workspace)]
    workspace: Option<String>,
    /// By plan
    #[arg(long)]
    plan: Option<String>,
    /// The children of a session
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// By memory mode
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(MemoryMode::ALL.map(MemoryMode::as_str)))]
    memory_mode: Option<String>,
    /// Archived ones only
    #[arg(long)]
    archived: bool,
}

impl LsArgs {
    pub(super) async fn run(mut self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        self.filter.parent = client.id_if(A_SESSION, self.filter.parent).await?;
        self.filter.plan = client.id_if(A_PLAN, self.filter.plan).await?;
        let route = self.route();
        let Listed { rows, next } =
            read_all(&mut client, route, self.cursor, self.limit.unwrap_or(usize::MAX)).await?;
        if context.out.is_json() {
            return context.out.list(&rows, next.as_deref());
        }
        let status = daemon_status(&mut client).await?;
        if let Some(halted) = warning(&status.halt) {
            context.out.warn(&halted);
        }
        if rows.is_empty() {
            let hint = if self.all { "" } else { "; --all shows archived and long ended ones too" };
            context.out.note(&format!("no sessions{hint}"));
            return Ok(());
        }
        let rows: Vec<_> = rows.into_iter().map(|listed| (listed.row, listed.branch)).collect();
        context.out.data(&listing(&rows, status.now, context.out.columns))
    }

    fn route(&self) -> Route {
        let filter = &self.filter;
        let archived = match (filter.archived, self.all) {
            (true, _) => Some("true"),
            (false, true) => None,
            (false, false) => Some("false"),
        };
        // Who asks for archived ones asks for what is over, however long ago.
        let live = (!self.all && !filter.archived).then_some("true");
        Route::to(&["sessions"])
            .with("live", live)
            .with("archived", archived)
            .with("text", filter.text.as_ref())
            .with("state", filter.state.as_ref())
            .with("operator_state", filter.operator_state.as_ref())
            .with("status", filter.status.as_ref())
            .with("lifecycle", filter.lifecycle.as_ref())
            .with("agent", filter.agent.as_ref())
            .with("owner", filter.owner.as_ref())
            .with("source", filter.source.as_ref())
            .with("workspace", filter.workspace.as_ref())
            .with("plan", filter.plan.as_ref())
            .with("parent", filter.parent.as_ref())
            .with("memory_mode", filter.memory_mode.as_ref())
            .with("attention", self.attention.then_some("true"))
            .with("sort", self.sort.as_ref())
    }
}

/// Sessions of a listing, and the cursor of those that were not asked for.
pub(super) struct Listed {
    pub(super) rows: Vec<SessionRow>,
    pub(super) next: Option<String>,
}

/// Reads page after page from `cursor` on until there are `max` sessions or no more.
pub(super) async fn read_all(
    client: &mut Client<'_>,
    route: Route,
    mut cursor: Option<String>,
    max: usize,
) -> Result<Listed, Failure> {
    let mut rows: Vec<SessionRow> = Vec::new();
    while rows.len() < max {
        let limit = PAGE_ROWS_MAX.min(max - rows.len());
        let page: SessionPage =
            client.get(&route.clone().with("cursor", cursor.as_ref()).with("limit", Some(limit))).await?;
        rows.extend(page.sessions);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(Listed { rows, next: cursor })
}
