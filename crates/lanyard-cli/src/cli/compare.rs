//! `lanyard compare`: the same message to several agents, each in a worktree of its own, and one of the results kept.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{
    BranchView, ComparedSession, ComparisonList, ComparisonView, KeepOne, KeptOne, NewCompared, NewComparison,
};
use lanyard_client::Route;
use lanyard_client::names::A_SESSION;
use lanyard_core::session::{AgentChoice, SessionView};
use lanyard_core::{ComparisonId, SessionId};

use super::ask::{agreed, can_ask};
use super::attach_flags::AttachFlags;
use super::target::{folder, is_stdin, words_or_stdin};
use super::worktree::{allow_setup, changes};
use crate::client::Client;
use crate::client::attached::upload;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::ago;

const ABOUT: &str = "\
Each agent gets the same message in a session and a worktree of its own, all begun at the same commit.
`keep` merges the branch of one session where asked, and discards the others: their worktrees and
branches are removed, their sessions archived. Git keeps the commits of a discarded branch under
refs/lanyard/discarded. Sessions that are still working, and work that is in no commit, are discarded
with --force only.

Examples:
  lanyard compare run --agent claude --agent codex \"make the parser faster\"
  lanyard compare run --agent claude --agent claude --cwd ~/src/web \"try another layout\"
  lanyard compare ls
  lanyard compare show cmp_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard compare keep sess_01m7n5djg0fayvh8t5cxyjkdnf --merge --commit";

/// Give several agents the same message in worktrees of their own, compare them and keep one
#[derive(Debug, clap::Args)]
#[command(after_help = ABOUT)]
pub(super) struct CompareArgs {
    #[command(subcommand)]
    verb: CompareVerb,
}

#[derive(Debug, clap::Subcommand)]
enum CompareVerb {
    /// Start a session for each agent with the same message
    Run(CompareRun),
    /// List the comparisons, newest first
    Ls,
    /// Show the sessions of a comparison with what each changed
    Show {
        /// The comparison, or one of its sessions
        #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
    /// Keep one session and discard the others
    Keep(CompareKeep),
}

#[derive(Debug, clap::Args)]
struct CompareRun {
    /// Message to the agents, quoted or not; `-` reads it from stdin
    #[arg(required_unless_present = "attach")]
    prompt: Vec<String>,
    #[command(flatten)]
    attach: AttachFlags,
    /// An agent; two to four times, also the same one
    #[arg(long = "agent", required = true, value_name = "AGENT")]
    agents: Vec<String>,
    /// A folder of the repository [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Where the branches begin [default: what is checked out]
    #[arg(long, value_name = "COMMIT")]
    base: Option<String>,
    /// The sessions' title, followed by the agent [default: the message]
    #[arg(long)]
    title: Option<String>,
    /// Allow the repository's `.lanyard/worktree.toml` as it is now
    #[arg(long)]
    trust: bool,
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
struct CompareKeep {
    /// The session to keep
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    session: String,
    /// Merge its branch into what is checked out in the repository; the branch stays as it is without it
    #[arg(long)]
    merge: bool,
    /// Commit its uncommitted work first
    #[arg(long, requires = "merge")]
    commit: bool,
    /// Stop the others where they are working, and discard their uncommitted work
    #[arg(long)]
    force: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Why, for the log
    #[arg(long)]
    reason: Option<String>,
}

impl CompareArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            CompareVerb::Run(run) => run.run(context).await,
            CompareVerb::Ls => list(context).await,
            CompareVerb::Show { id } => show(context, &id).await,
            CompareVerb::Keep(keep) => keep.run(context).await,
        }
    }
}

impl CompareRun {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let read = self.attach.read(is_stdin(&self.prompt))?;
        let prompt = words_or_stdin(&self.prompt)?;
        let workspace = folder(self.cwd, "--cwd")?;
        let mut client = context.client().await?;
        let parts = upload(&mut client, read).await?;
        allow_setup(context, &mut client, &workspace, self.trust).await?;
        let agents = self.agents.into_iter();
        let agents = agents.map(|agent| NewCompared { agent, choice: AgentChoice::default() }).collect();
        let new = NewComparison { prompt, parts, workspace, base: self.base, title: self.title, agents };
        let made: ComparisonView =
            client.post_part_patiently("comparison", &Route::to(&["comparisons"]), &new).await?;
        if context.out.is_json() {
            return context.out.json(&made);
        }
        for one in made.sessions.iter().filter_map(|one| Some((one, one.problem.as_ref()?))) {
            context.out.warn(&format!("{}: {}", one_line(&one.0.agent), one_line(&one.1.title)));
        }
        for one in made.sessions.iter().filter(|one| one.problem.is_none()) {
            context.out.note(&format!("session {} has {}", one.session, one_line(&one.agent)));
        }
        context.out.data(&made.id.to_string())
    }
}

/// By its own id, or by that of one of its sessions.
async fn find(client: &mut Client<'_>, id: &str) -> Result<ComparisonView, Failure> {
    let comparison = match id.parse::<ComparisonId>() {
        Ok(comparison) => comparison,
        Err(_) => of_session(client, id).await?.1,
    };
    client.get(&Route::to(&["comparisons", &comparison.to_string()])).await
}

async fn of_session(client: &mut Client<'_>, id: &str) -> Result<(SessionId, ComparisonId), Failure> {
    let view: SessionView = client.get(&Route::to(&["sessions", id])).await?;
    let comparison = view.comparison.ok_or_else(|| {
        Failure::local(
            "session_not_compared",
            format!("session {} is not part of a comparison", view.id),
            "list the comparisons with `lanyard compare ls`",
        )
    })?;
    Ok((view.id, comparison))
}

async fn list(context: &Context) -> Result<(), Failure> {
    const COLUMNS: [Column; 4] = [
        Column::whole("COMPARISON"),
        Column::elastic("AGENTS", 12),
        Column::elastic("KEPT", 8),
        Column::whole("MADE"),
    ];
    let mut client = context.client().await?;
    let list: ComparisonList = client.get(&Route::to(&["comparisons"])).await?;
    if context.out.is_json() {
        return context.out.list(&list.comparisons, None);
    }
    if list.comparisons.is_empty() {
        context.out.note("no comparisons");
        return Ok(());
    }
    let now = daemon_now(&mut client).await?;
    let row = |one: &ComparisonView| {
        let agents: Vec<String> = one.sessions.iter().map(|one| one_line(&one.agent)).collect();
        let kept = one.sessions.iter().find(|session| Some(session.session) == one.kept);
        let kept = kept.map(|one| one_line(&one.agent)).unwrap_or_default();
        vec![one.id.to_string(), agents.join(", "), kept, ago(now, one.created_at)]
    };
    let rows: Vec<Vec<String>> = list.comparisons.iter().map(row).collect();
    context.out.data(&table(&COLUMNS, &rows, context.out.columns))
}

async fn show(context: &Context, id: &str) -> Result<(), Failure> {
    const COLUMNS: [Column; 5] = [
        Column::whole("SESSION"),
        Column::elastic("AGENT", 6),
        Column::whole("STATE"),
        Column::elastic("CHANGES", 16),
        Column::elastic("BRANCH", 10),
    ];
    let mut client = context.client().await?;
    let view = find(&mut client, id).await?;
    if context.out.is_json() {
        return context.out.json(&view);
    }
    let mut rows = Vec::new();
    for one in &view.sessions {
        let changes = match standing(one) {
            Some(standing) => standing,
            None => changes(&branch_of(&mut client, one.session).await?),
        };
        let state = one.operator_state.map(|state| state.label().to_owned()).unwrap_or_default();
        let kept = if view.kept == Some(one.session) { "kept".to_owned() } else { state };
        let branch = one.branch.as_deref().map(one_line).unwrap_or_default();
        rows.push(vec![one.session.to_string(), one_line(&one.agent), kept, changes, branch]);
    }
    context.out.data(&table(&COLUMNS, &rows, context.out.columns))
}

/// What there is to say of a session without a branch.
fn standing(one: &ComparedSession) -> Option<String> {
    match (&one.problem, one.discarded, one.operator_state) {
        (Some(problem), _, _) => Some(one_line(&problem.title)),
        (None, true, _) => Some("discarded".to_owned()),
        (None, false, None) => Some("deleted".to_owned()),
        (None, false, Some(_)) => None,
    }
}

async fn branch_of(client: &mut Client<'_>, session: SessionId) -> Result<BranchView, Failure> {
    client.get(&Route::to(&["sessions", &session.to_string(), "branch"])).await
}

impl CompareKeep {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        if !self.yes && !can_ask() {
            return Err(Failure::usage("there is no terminal to ask on", "say --yes if you are sure"));
        }
        let mut client = context.client().await?;
        let named = client.id_if(A_SESSION, Some(self.session)).await?.unwrap_or_default();
        let (session, comparison) = of_session(&mut client, &named).await?;
        let route = Route::to(&["comparisons", &comparison.to_string()]);
        if !self.yes {
            let view: ComparisonView = client.get(&route).await?;
            context.out.question(&losses(&mut client, &view, session).await?);
            if !agreed(context, "Discard them?")? {
                context.out.note("nothing was changed");
                return Ok(());
            }
        }
        let Self { merge, commit, force, reason, .. } = self;
        let body = KeepOne { session, merge, commit, force, reason };
        let route = Route::to(&["comparisons", &comparison.to_string(), "keep"]);
        let kept: KeptOne = client.post_patiently(&route, &body).await?;
        if context.out.is_json() {
            return context.out.json(&kept);
        }
        if let Some(merged) = &kept.merged {
            context.out.note(&format!("{} merged into {}", one_line(&merged.branch), one_line(&merged.into)));
        }
        for one in &kept.discarded {
            let (branch, reference) = (one_line(&one.branch), one_line(&one.reference));
            context.out.note(&format!("{branch} discarded; git keeps it as {reference}"));
        }
        for one in &kept.left {
            context.out.warn(&format!("{} was not discarded: {}", one.session, one_line(&one.problem.title)));
        }
        context.out.note(&format!("session {session} was kept"));
        Ok(())
    }
}

/// The sessions that would be discarded, a line each.
async fn losses(client: &mut Client<'_>, view: &ComparisonView, kept: SessionId) -> Result<String, Failure> {
    let mut text = String::from("These would be discarded:\n");
    for one in view.sessions.iter().filter(|one| one.session != kept) {
        let what = match standing(one) {
            Some(standing) => standing,
            None => changes(&branch_of(client, one.session).await?),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {} {}: {what}", one.session, one_line(&one.agent));
    }
    Ok(text)
}
