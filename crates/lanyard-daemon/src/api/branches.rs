//! The branch of a session that works in a worktree of its own: looked at, merged, discarded. Git does the work aside; the
//! session's log is told what became of it. Each change can be repeated after a crash and then finishes what was begun.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use lanyard_api::types::{
    BranchView, DiffCommit, DiscardSession, DiscardedSession, EditSession, MergeSession, MergedSession,
};
use lanyard_core::session::{Command, Session, Signal};
use lanyard_core::tree::{Captured, Tree};
use lanyard_core::{Actor, Cause, ComparisonId, SessionId, refusals};
use lanyard_git::worktree;

use crate::api::App;
use crate::api::context::{Change, Target, load};
use crate::api::sessions::command_on;
use crate::api::snapshots::{WorkspaceHold, at_rest, undisturbed};
use crate::api::tasks::{diff_file, with_git};
use crate::problem::Problem;
use crate::refusal::refuses;
use lanyard_engine::engine::{Ask, Request};

type Shared = State<Arc<App>>;

/// Files that a refusal names; it says how many more there are.
const NAMED_FILES_MAX: usize = 10;
/// How long a discard waits for the agent's process to end.
const RUN_END_WAIT: Duration = Duration::from_secs(20);
/// How often it looks.
const RUN_END_LOOK: Duration = Duration::from_millis(100);

refusals! {
    /// Why a branch or a comparison was left as it is.
    #[derive(Debug, thiserror::Error)]
    pub(crate) enum BranchRefusal {
        NoWorktree { session: SessionId } => "no_worktree", Conflict
            ("session {session} has no worktree of its own")
            ("start one with `lanyard run --worktree`; the branch of a task is merged with `lanyard task merge`");
        Discarded { session: SessionId, branch: String } => "branch_discarded", Conflict
            ("the branch `{branch}` of session {session} was discarded")
            ("look for its commits with `git for-each-ref refs/lanyard/discarded`");
        Uncommitted { session: SessionId, files: Vec<String> } => "uncommitted_work", Conflict
            ("the worktree of session {session} has work that is in no commit: {}", named(files))
            ("commit it; `--commit` has Lanyard commit it before a merge, `--force` discards it");
        Running { session: SessionId } => "session_working", Conflict
            ("session {session} is still working")
            ("wait for it, or stop it with `lanyard stop`");
        ComparisonUnknown { comparison: String } => "comparison_not_found", NotFound
            ("there is no comparison {comparison}")
            ("list them with `lanyard compare ls`");
        ComparedCount { count: usize } => "comparison_size", Invalid
            ("a comparison has two to four agents, and {count} are named")
            ("name two to four agents; the same one may be named again");
        NotCompared { session: SessionId, comparison: ComparisonId } => "session_not_compared", Conflict
            ("session {session} is not part of the comparison {comparison}")
            ("name one of its sessions, as `lanyard compare show` lists them");
        KeptOther { kept: SessionId } => "comparison_kept", Conflict
            ("session {kept} of this comparison was kept already")
            ("merge or discard single sessions with `lanyard worktree`");
    }
}
refuses!(BranchRefusal);

fn named(files: &[String]) -> String {
    let shown: Vec<String> = files.iter().take(NAMED_FILES_MAX).map(|file| format!("`{file}`")).collect();
    match files.len().saturating_sub(NAMED_FILES_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The actor of a change and the request that caused it, for the log.
#[derive(Debug, Clone)]
pub(super) struct ChangeAuthor {
    pub(super) actor: Actor,
    pub(super) cause: Option<Cause>,
}

impl<T> Change<T> {
    pub(super) fn author(&self) -> ChangeAuthor {
        ChangeAuthor { actor: self.actor.clone(), cause: self.cause.clone() }
    }
}

impl ChangeAuthor {
    pub(super) async fn asks(&self, app: &App, ask: Ask) -> Result<(), Problem> {
        let (actor, cause) = (self.actor.clone(), self.cause.clone());
        app.engine.ask(Request { ask, actor, cause, keys: Vec::new() }).await?;
        Ok(())
    }

    pub(super) async fn commands(
        &self,
        app: &App,
        session: SessionId,
        command: Command,
    ) -> Result<(), Problem> {
        self.asks(app, Ask::Do { session, command }).await
    }
}

pub(super) async fn rename(
    State(app): Shared,
    target: Target,
    change: Change<EditSession>,
) -> Result<Response, Problem> {
    let command = Command::Rename { title: change.body.title.trim().to_owned() };
    command_on(&app, target, change, command, axum::http::StatusCode::OK).await
}

pub(super) fn own_tree(session: &Session) -> Result<Tree, BranchRefusal> {
    session.tree.clone().ok_or(BranchRefusal::NoWorktree { session: session.id })
}

fn standing_tree(session: &Session) -> Result<Tree, BranchRefusal> {
    let tree = own_tree(session)?;
    if tree.removed {
        return Err(BranchRefusal::Discarded { session: session.id, branch: tree.branch });
    }
    Ok(tree)
}

pub(super) async fn view(State(app): Shared, target: Target) -> Result<Json<BranchView>, Problem> {
    let session = load(&app, target.0).await?.session;
    let tree = own_tree(&session)?;
    let mut view = BranchView {
        session: session.id,
        branch: tree.branch.clone(),
        base: tree.base.clone(),
        path: tree.path.clone(),
        repository: tree.repository.clone(),
        into: None,
        commits: Vec::new(),
        files: Vec::new(),
        uncommitted: Vec::new(),
        merged: false,
        discarded: tree.removed,
        truncated: false,
    };
    if tree.removed {
        return Ok(Json(view));
    }
    let (changes, uncommitted, standing) = with_git(move || {
        let into = PathBuf::from(&tree.repository);
        Ok((worktree::changes(&tree)?, worktree::uncommitted(&tree)?, worktree::standing(&tree, &into)?))
    })
    .await?;
    let commits =
        changes.commits.into_iter().map(|one| DiffCommit { commit: one.hash, subject: one.subject });
    view.commits = commits.collect();
    view.files = changes.files.into_iter().map(diff_file).collect();
    view.truncated = changes.truncated;
    view.uncommitted = uncommitted;
    view.into = standing.into;
    view.merged = standing.merged;
    Ok(Json(view))
}

pub(super) async fn merge(
    State(app): Shared,
    target: Target,
    change: Change<MergeSession>,
) -> Result<Json<MergedSession>, Problem> {
    let author = change.author();
    let MergeSession { into, commit, reason: _ } = change.body;
    merge_branch(&app, target.0, (into, commit), &author).await.map(Json)
}

/// Merges the branch of a session at rest, and tells its log. `commit` is whether uncommitted work is committed first.
pub(super) async fn merge_branch(
    app: &Arc<App>,
    id: SessionId,
    (into, commit): (Option<String>, bool),
    author: &ChangeAuthor,
) -> Result<MergedSession, Problem> {
    let _hold = WorkspaceHold::begin(app, id)?;
    let session = load(app, id).await?.session;
    let tree = standing_tree(&session)?;
    at_rest(&session)?;
    undisturbed(app, &session).await?;
    let title = session.title.clone().unwrap_or_else(|| id.to_string());
    let into = PathBuf::from(into.unwrap_or_else(|| tree.repository.clone()));
    let branch = tree.branch.clone();
    let done = with_git(move || {
        let files = worktree::uncommitted(&tree)?;
        if !files.is_empty() && !commit {
            return Ok(Err(files));
        }
        let captured = if files.is_empty() { None } else { capture(&tree, &title, id)? };
        let merged = worktree::merge(&tree, &into, &format!("Merge {}: {title}", tree.branch))?;
        Ok(Ok((captured, merged)))
    })
    .await?;
    let (captured, merged) = done.map_err(|files| BranchRefusal::Uncommitted { session: id, files })?;
    lanyard_base::failpoint::hit("branch_after_git");
    if !merged.nothing {
        let (commit, into) = (merged.commit.clone(), merged.into.clone());
        let signal = Signal::BranchMerged { branch: branch.clone(), commit, into };
        author.asks(app, Ask::Tell { session: id, signals: vec![signal] }).await?;
    }
    let (commit, into, nothing) = (merged.commit, merged.into, merged.nothing);
    Ok(MergedSession { session: id, branch, commit, into, nothing, captured })
}

fn capture(tree: &Tree, title: &str, id: SessionId) -> Result<Option<Captured>, worktree::WorktreeError> {
    worktree::capture(tree, &format!("{title}\n\nWork of {id} that was not committed, kept by Lanyard."))
}

pub(super) async fn discard(
    State(app): Shared,
    target: Target,
    change: Change<DiscardSession>,
) -> Result<Json<DiscardedSession>, Problem> {
    let author = change.author();
    discard_branch(&app, target.0, change.body.force, &author).await.map(Json)
}

/// Removes the worktree and the branch of a session at rest, archives it, and tells its log. Git keeps what they held under
/// the ref that is answered. Uncommitted work is discarded by force only.
pub(super) async fn discard_branch(
    app: &Arc<App>,
    id: SessionId,
    force: bool,
    author: &ChangeAuthor,
) -> Result<DiscardedSession, Problem> {
    let _hold = WorkspaceHold::begin(app, id)?;
    let session = load(app, id).await?.session;
    let tree = own_tree(&session)?;
    at_rest(&session)?;
    undisturbed(app, &session).await?;
    if !force {
        no_loose_work(&session).await?;
    }
    if !session.archived {
        author.commands(app, id, Command::Archive).await?;
    }
    let discarded = match without_run(app, id).await {
        Ok(()) => {
            let tree = tree.clone();
            with_git(move || worktree::discard(&tree)).await
        }
        Err(problem) => Err(problem),
    };
    lanyard_base::failpoint::hit("branch_after_git");
    let reference = match discarded {
        Ok(reference) => reference,
        Err(problem) => {
            // It stays as it was.
            if !session.archived {
                author.commands(app, id, Command::Unarchive).await?;
            }
            return Err(problem);
        }
    };
    let signal = Signal::BranchDiscarded { branch: tree.branch.clone(), reference: reference.clone() };
    author.asks(app, Ask::Tell { session: id, signals: vec![signal] }).await?;
    Ok(DiscardedSession { session: id, branch: tree.branch, reference })
}

/// Refuses a worktree with work that is in no commit.
pub(super) async fn no_loose_work(session: &Session) -> Result<(), Problem> {
    let tree = own_tree(session)?;
    if tree.removed {
        return Ok(());
    }
    let files = with_git(move || worktree::uncommitted(&tree)).await?;
    if files.is_empty() {
        return Ok(());
    }
    Err(BranchRefusal::Uncommitted { session: session.id, files }.into())
}

/// Comes back when no process of the session is left: it would write into a folder that is being removed.
async fn without_run(app: &Arc<App>, id: SessionId) -> Result<(), Problem> {
    let gone = async {
        while load(app, id).await?.session.live_run().is_some() {
            tokio::time::sleep(RUN_END_LOOK).await;
        }
        Ok(())
    };
    let waited = tokio::time::timeout(RUN_END_WAIT, gone).await;
    waited.unwrap_or_else(|_| Err(BranchRefusal::Running { session: id }.into()))
}
