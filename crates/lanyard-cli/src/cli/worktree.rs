//! `lanyard worktree`: what a repository asks for in new worktrees, and leave to do it; the end of a session's own worktree;
//! and the flags with which a session gets one.

use std::path::PathBuf;

use lanyard_api::types::{
    BranchView, DiscardSession, DiscardedSession, MergeSession, MergedSession, TrustSetup, WorktreeSetup,
};
use lanyard_client::Route;
use lanyard_core::Outcome;
use lanyard_core::session::{ChangeEvent, Envelope, Event, NewWorktree};

use super::ask::{agreed, can_ask};
use super::printer::page;
use super::target::{Target, folder};
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{count, harmless, one_line};
use crate::render::time::span;

const HEADING: &str = "A worktree of its own";

const EXAMPLES: &str = "\
A repository can say in `.lanyard/worktree.toml` what a new worktree needs:

  setup = [\"npm ci\"]         commands, run in the new worktree by `sh`
  copy = [\".env\"]            ignored files to copy
  link = [\"node_modules\"]    ignored files and folders to share

The file is content of the repository, so nothing of it is done before you allow it. What you allow is this content for
this repository: after a change of the file you are asked again. Agents cannot allow it.

`merge` and `discard` end the worktree of a session that was started with --worktree. A merge goes into the branch that is
checked out in the repository; a discard removes the worktree and the branch and archives the session. Git keeps the
commits of a discarded branch under refs/lanyard/discarded.

Examples:
  lanyard worktree show
  lanyard worktree trust ~/src/web
  lanyard worktree trust --revoke
  lanyard worktree status fix-login
  lanyard worktree merge fix-login --commit
  lanyard worktree discard fix-login";

/// Merge or discard the worktree of a session; allow the setup of new ones
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WorktreeArgs {
    #[command(subcommand)]
    verb: WorktreeVerb,
}

#[derive(Debug, clap::Subcommand)]
enum WorktreeVerb {
    /// Show the setup file of a repository and whether it is allowed
    Show {
        /// A folder in the repository [default: this one]
        path: Option<PathBuf>,
    },
    /// Allow the content of a repository's setup file
    Trust {
        /// A folder in the repository [default: this one]
        path: Option<PathBuf>,
        /// Take back what was allowed
        #[arg(long)]
        revoke: bool,
    },
    /// Show the branch of a session: what it changed, what is not committed, where it would be merged
    Status {
        #[command(flatten)]
        target: Target,
    },
    /// Merge the branch of a session into what is checked out in the repository
    Merge {
        #[command(flatten)]
        target: Target,
        /// The folder to merge into [default: the repository of the worktree]
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
        /// Commit uncommitted work to the branch first
        #[arg(long)]
        commit: bool,
        /// Why, for the log
        #[arg(long)]
        reason: Option<String>,
    },
    /// Remove the worktree and the branch of a session, and archive it
    Discard {
        #[command(flatten)]
        target: Target,
        /// Discard work that is in no commit, too
        #[arg(long)]
        force: bool,
        /// Why, for the log
        #[arg(long)]
        reason: Option<String>,
    },
}

impl WorktreeArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let setup = match self.verb {
            WorktreeVerb::Show { path } => setup_of(&mut client, &folder(path, "PATH")?).await?,
            WorktreeVerb::Trust { path, revoke } => {
                let workspace = folder(path, "PATH")?;
                let setup = setup_of(&mut client, &workspace).await?;
                let Some(hash) = setup.hash.clone() else {
                    return Err(Failure::local(
                        "worktree_setup_missing",
                        format!(
                            "{} has no `.lanyard/worktree.toml` that asks for anything",
                            setup.repository
                        ),
                        "new worktrees of it need no setup",
                    ));
                };
                allow(&mut client, workspace, hash, revoke).await?
            }
            WorktreeVerb::Status { target } => return status(context, &mut client, &target).await,
            WorktreeVerb::Merge { target, into, commit, reason } => {
                let into = into.map(|into| folder(Some(into), "--into")).transpose()?;
                let body = MergeSession { into, commit, reason };
                return merge(context, &mut client, &target, &body).await;
            }
            WorktreeVerb::Discard { target, force, reason } => {
                let body = DiscardSession { force, reason };
                return discard(context, &mut client, &target, &body).await;
            }
        };
        if context.out.is_json() {
            return context.out.json(&setup);
        }
        context.out.data(&text(&setup))
    }
}

async fn status(context: &Context, client: &mut Client<'_>, target: &Target) -> Result<(), Failure> {
    let branch: BranchView = client.get(&target.route(&["branch"])).await?;
    if context.out.is_json() {
        return context.out.json(&branch);
    }
    let name = one_line(&branch.branch);
    let text = if branch.discarded {
        format!("{name}: discarded\n")
    } else {
        let into = branch.into.as_deref().map_or_else(|| "no branch".to_owned(), one_line);
        let merged = if branch.merged { "merged into" } else { "not merged into" };
        format!("{name}: {}\n{merged} {into} of {}\n", changes(&branch), one_line(&branch.repository))
    };
    context.out.data(&text)
}

/// `3 files, +120 −4, 2 commits, 1 file not committed`.
pub(super) fn changes(branch: &BranchView) -> String {
    let sum = |of: fn(&lanyard_api::types::DiffFile) -> Option<u64>| {
        branch.files.iter().filter_map(of).fold(0, u64::saturating_add)
    };
    let lines = format!("+{} −{}", sum(|file| file.added), sum(|file| file.removed));
    let mut parts = vec![count(branch.files.len(), "file"), lines];
    parts.push(count(branch.commits.len(), "commit"));
    if !branch.uncommitted.is_empty() {
        parts.push(format!("{} not committed", count(branch.uncommitted.len(), "file")));
    }
    parts.join(", ")
}

async fn merge(
    context: &Context,
    client: &mut Client<'_>,
    target: &Target,
    body: &MergeSession,
) -> Result<(), Failure> {
    let merged: MergedSession = client.post_patiently(&target.route(&["merge"]), body).await?;
    if context.out.is_json() {
        return context.out.json(&merged);
    }
    let (branch, into) = (one_line(&merged.branch), one_line(&merged.into));
    context.out.note(&if merged.nothing {
        format!("{into} has all of {branch} already")
    } else {
        format!("{branch} merged into {into}")
    });
    Ok(())
}

async fn discard(
    context: &Context,
    client: &mut Client<'_>,
    target: &Target,
    body: &DiscardSession,
) -> Result<(), Failure> {
    let discarded: DiscardedSession = client.post_patiently(&target.route(&["discard"]), body).await?;
    if context.out.is_json() {
        return context.out.json(&discarded);
    }
    let (branch, reference) = (one_line(&discarded.branch), one_line(&discarded.reference));
    context.out.note(&format!("{branch} discarded; git keeps it as {reference}"));
    Ok(())
}

async fn setup_of(client: &mut Client<'_>, workspace: &str) -> Result<WorktreeSetup, Failure> {
    client.get(&Route::to(&["worktree-setup"]).with("workspace", Some(workspace))).await
}

async fn allow(
    client: &mut Client<'_>,
    workspace: String,
    hash: String,
    revoke: bool,
) -> Result<WorktreeSetup, Failure> {
    let body = TrustSetup { workspace, hash, revoke, reason: None };
    client.post_part("trust", &Route::to(&["worktree-setup"]), &body).await
}

fn text(setup: &WorktreeSetup) -> String {
    if setup.hash.is_none() {
        return format!("{}: no setup for new worktrees\n", one_line(&setup.repository));
    }
    let allowed = if setup.trusted { "allowed" } else { "not allowed" };
    format!("{}/.lanyard/worktree.toml: {allowed}\n{}", one_line(&setup.repository), asks(setup))
}

/// What is done in each new worktree, a line each.
fn asks(setup: &WorktreeSetup) -> String {
    let lines = |verb: &'static str, names: &[String]| {
        names.iter().map(|name| format!("  {verb:<5} {}\n", one_line(name))).collect::<Vec<_>>().concat()
    };
    [lines("copy", &setup.copy), lines("link", &setup.link), lines("run", &setup.setup)].concat()
}

/// How a new session gets a worktree of its own.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct WorktreeFlags {
    /// Work in a new git worktree on BRANCH, which may exist [default branch: made from the name or title]
    #[arg(
        long,
        value_name = "BRANCH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        help_heading = HEADING
    )]
    worktree: Option<String>,
    /// Where a new branch begins [default: what is checked out]
    #[arg(long, value_name = "COMMIT", requires = "worktree", help_heading = HEADING)]
    base: Option<String>,
    /// Allow the repository's `.lanyard/worktree.toml` as it is now
    #[arg(long, requires = "worktree", help_heading = HEADING)]
    trust: bool,
}

impl WorktreeFlags {
    pub(super) const fn is_wanted(&self) -> bool {
        self.worktree.is_some()
    }

    /// The worktree to ask for, if one is wanted. What the repository asks for in it is shown, and allowed if a person says
    /// so; the daemon refuses what is not.
    pub(super) async fn wanted(
        self,
        context: &Context,
        client: &mut Client<'_>,
        workspace: Option<&str>,
    ) -> Result<Option<NewWorktree>, Failure> {
        let Some(branch) = self.worktree else { return Ok(None) };
        let Some(workspace) = workspace else {
            return Err(Failure::usage(
                "a worktree needs a folder to be made from",
                "name one with --workspace",
            ));
        };
        allow_setup(context, client, workspace, self.trust).await?;
        let branch = Some(branch).filter(|branch| !branch.is_empty());
        Ok(Some(NewWorktree { branch, base: self.base }))
    }
}

/// Shows what the repository asks for in a new worktree, and allows it if a person says so.
pub(super) async fn allow_setup(
    context: &Context,
    client: &mut Client<'_>,
    workspace: &str,
    trust: bool,
) -> Result<(), Failure> {
    let setup = setup_of(client, workspace).await?;
    let mut trusted = setup.trusted;
    if let Some(hash) = setup.hash.clone().filter(|_| !trusted) {
        trusted = trust || asked(context, &setup)?;
        if trusted {
            allow(client, workspace.to_owned(), hash, false).await?;
        }
    }
    // Commands that are not allowed are refused by the daemon, which says what they are.
    for command in setup.setup.iter().filter(|_| trusted) {
        context.out.note(&format!("setup: {}", one_line(command)));
    }
    Ok(())
}

/// Asks a person, where one is there.
fn asked(context: &Context, setup: &WorktreeSetup) -> Result<bool, Failure> {
    if !can_ask() || context.out.is_json() {
        return Ok(false);
    }
    context.out.question(&format!(
        "{}/.lanyard/worktree.toml is not allowed yet. In each new worktree of this repository it would\n{}",
        one_line(&setup.repository),
        asks(setup)
    ));
    agreed(context, "Allow this content?")
}

/// Makes the session, with patience for the setup of its worktree, and tells where it works. `part` names the request
/// among others of the same command.
pub(super) async fn create(
    context: &Context,
    client: &mut Client<'_>,
    part: Option<&str>,
    new: &lanyard_core::session::NewSession,
) -> Result<Outcome, Failure> {
    let route = Route::to(&["sessions"]);
    let made: Outcome = match (part, new.worktree.is_some()) {
        (Some(part), false) => return client.post_part(part, &route, new).await,
        (None, false) => return client.post(&route, new).await,
        (Some(part), true) => client.post_part_patiently(part, &route, new).await?,
        (None, true) => client.post_patiently(&route, new).await?,
    };
    let first = page(client, &made.session.to_string(), 0, 1).await?;
    let created = first.events.first().and_then(|event| serde_json::from_str::<Envelope>(event.get()).ok());
    if let Some(Event::Change(ChangeEvent::Created(created))) = created.map(|envelope| envelope.event) {
        for step in &created.setup {
            for line in step.output.trim_end().lines() {
                context.out.note(&format!("  {}", harmless(line)));
            }
            context.out.note(&format!("setup: {} done in {}", one_line(&step.command), span(step.ms)));
        }
        if let Some(tree) = &created.tree {
            context.out.note(&format!("worktree {} on branch {}", tree.path, one_line(&tree.branch)));
        }
    }
    Ok(made)
}
