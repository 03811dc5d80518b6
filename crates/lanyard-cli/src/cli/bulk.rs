//! `lanyard bulk`: one thing done to many sessions.

use clap::ValueEnum;
use lanyard_api::types::{Bulk, BulkAction, BulkAnswer, BulkFilter, BulkOutcome, BulkResult};
use lanyard_client::Route;
use lanyard_client::names::A_SESSION;

use super::ask::{agreed, can_ask};
use super::target::workspace;
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Column, table};
use crate::render::text::{count, one_line};

const EXAMPLES: &str = "\
Each session is handled on its own: one that refuses, because it runs, holds up none of the others. Without --yes you
see first what would be done.

Examples:
  lanyard bulk archive --state stale --dry-run
  lanyard bulk stop --workspace . --lifecycle running --reason \"wrong branch\"
  lanyard bulk guide --agent opencode --text \"keep to the tests folder\"
  lanyard bulk delete sess_01… sess_02… --yes";

/// Do one thing to many sessions
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct BulkArgs {
    action: Action,
    /// Sessions, by id or alias; or choose them with filters
    #[arg(value_name = "ID", conflicts_with_all = ["state", "status", "lifecycle", "agent", "owner", "source", "workspace", "find"])]
    sessions: Vec<String>,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Why, for the log
    #[arg(long)]
    reason: Option<String>,
    /// What `guide` says
    #[arg(long, value_name = "WORDS", required_if_eq("action", "guide"))]
    text: Option<String>,
    #[command(flatten)]
    filter: Filter,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Action {
    Cancel,
    Stop,
    Guide,
    Resume,
    Archive,
    Unarchive,
    Reset,
    Delete,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Filters")]
struct Filter {
    /// By words in the title, purpose, agent or an alias
    #[arg(long, value_name = "WORDS")]
    find: Option<String>,
    /// By state
    #[arg(long, value_parser = named::<lanyard_core::session::StateName>)]
    state: Option<lanyard_core::session::StateName>,
    /// By status: active, stopping, stopped, completed
    #[arg(long, value_parser = named::<lanyard_core::session::Status>)]
    status: Option<lanyard_core::session::Status>,
    /// By lifecycle: running, idle, terminal
    #[arg(long, value_parser = named::<lanyard_core::session::Lifecycle>)]
    lifecycle: Option<lanyard_core::session::Lifecycle>,
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
}

/// A word of the API.
fn named<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

impl BulkArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        if !(self.yes || self.dry_run || can_ask()) {
            return Err(Failure::usage(
                "there is no terminal to ask on",
                "say --yes, or look first with --dry-run",
            ));
        }
        let mut client = context.client().await?;
        let sessions = client.ids_of(A_SESSION, self.sessions.clone()).await?;
        let mut body = self.body(sessions);
        if !self.yes || self.dry_run {
            body.dry_run = true;
            let plan = send(&mut client, &body).await?;
            if self.dry_run {
                return show(context, &plan);
            }
            let would = plan.sessions.iter().filter(|one| one.result == BulkResult::WouldDo).count();
            if would == 0 {
                show(context, &plan)?;
                context.out.note("nothing to do");
                return Ok(());
            }
            context.out.question(&lines(&plan.sessions, context.out.columns));
            if !agreed(context, &format!("{} {}?", verb(self.action), count(would as u64, "session")))? {
                context.out.note("nothing was changed");
                return Ok(());
            }
            // Those that were shown, whatever else matches by now.
            body = Bulk { dry_run: false, filter: None, sessions: ids(&plan.sessions), ..body };
        }
        let answer = send(&mut client, &body).await?;
        show(context, &answer)
    }

    fn body(&self, sessions: Vec<String>) -> Bulk {
        let Filter { find, state, status, lifecycle, agent, owner, source, workspace } = &self.filter;
        let filter = BulkFilter {
            status: *status,
            lifecycle: *lifecycle,
            state: *state,
            source: source.clone(),
            owner: owner.clone(),
            agent: agent.clone(),
            workspace: workspace.clone(),
            archived: None,
            text: find.clone(),
        };
        Bulk {
            action: action(self.action),
            sessions,
            filter: Some(filter).filter(|filter| *filter != BulkFilter::default()),
            dry_run: false,
            reason: self.reason.clone(),
            text: self.text.clone(),
        }
    }
}

async fn send(client: &mut Client<'_>, body: &Bulk) -> Result<BulkAnswer, Failure> {
    client.post(&Route::to(&["sessions", "bulk"]), body).await
}

fn ids(sessions: &[BulkOutcome]) -> Vec<String> {
    let wanted = sessions.iter().filter(|one| one.result == BulkResult::WouldDo);
    wanted.map(|one| one.session.to_string()).collect()
}

fn action(action: Action) -> BulkAction {
    match action {
        Action::Cancel => BulkAction::Cancel,
        Action::Stop => BulkAction::Stop,
        Action::Guide => BulkAction::Guide,
        Action::Resume => BulkAction::Resume,
        Action::Archive => BulkAction::Archive,
        Action::Unarchive => BulkAction::Unarchive,
        Action::Reset => BulkAction::Reset,
        Action::Delete => BulkAction::Delete,
    }
}

fn verb(action: Action) -> String {
    action.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn show(context: &Context, answer: &BulkAnswer) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.json(answer);
    }
    if answer.sessions.is_empty() {
        context.out.note("no session matches");
        return Ok(());
    }
    context.out.data(&lines(&answer.sessions, context.out.columns))?;
    if answer.more {
        context.out.note("more match than one request reaches; run it again");
    }
    Ok(())
}

fn lines(sessions: &[BulkOutcome], max: Option<usize>) -> String {
    const COLUMNS: [Column; 4] = [
        Column::whole("ID"),
        Column::whole("STATE"),
        Column::elastic("RESULT", 8),
        Column::elastic("TITLE", 5),
    ];
    let cells: Vec<Vec<String>> = sessions
        .iter()
        .map(|one| {
            let result = match one.result {
                BulkResult::Done => "done".to_owned(),
                BulkResult::Unchanged => "unchanged".to_owned(),
                BulkResult::WouldDo => "would be done".to_owned(),
                BulkResult::Refused => format!("refused: {}", one.what.as_deref().unwrap_or_default()),
            };
            let title = one.title.as_deref().map(one_line).unwrap_or_default();
            vec![one.session.to_string(), one.state.to_string(), one_line(&result), title]
        })
        .collect();
    table(&COLUMNS, &cells, max)
}
