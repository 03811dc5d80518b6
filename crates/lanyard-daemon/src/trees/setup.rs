//! Setting a new worktree up as `.lanyard/worktree.toml` of its repository says. Each command is a run under a shim of its
//! own, so that a daemon that starts later finds it and ends it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lanyard_api::names::SESSION;
use lanyard_core::redact::RedactionScope;
use lanyard_core::task::Tree;
use lanyard_core::tree::SetupStep;
use lanyard_git::worktree::{self, SetupContent, SetupFile, WorktreeError};

use super::{OwnTrees, name_of, with_git};
use lanyard_agents::runs::{How, Link, Spec, SpoolLimits, last_output};

/// How long one command may take.
const COMMAND_MAX: Duration = Duration::from_mins(10);
/// How long its processes have after SIGTERM, before SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Bytes at the end of a command's output that are shown and kept.
const OUTPUT_MAX: usize = 4 * 1024;
/// What a setup command finds as its session: none there can be.
const NO_SESSION: &str = "setup";

impl OwnTrees {
    /// Sets a worktree up, unless that was done before. Answers what was run. After a failure it can be called again: what
    /// was brought along stays, and the commands are run from the first.
    pub(crate) async fn prepare(&self, tree: &Tree) -> Result<Vec<SetupStep>, WorktreeError> {
        let (trees, wanted) = (self.clone(), tree.clone());
        let file = with_git(move || {
            if worktree::is_set_up(&wanted)? {
                return Ok(None);
            }
            let Some(file) = worktree::setup_file(Path::new(&wanted.path))? else {
                worktree::set_up(&wanted)?;
                return Ok(None);
            };
            trees.check_trust(&file)?;
            worktree::bring_files(&file, &wanted)?;
            Ok(Some(file))
        });
        let Some(SetupFile { content, .. }) = file.await? else { return Ok(Vec::new()) };
        let mut steps = Vec::new();
        for (place, command) in content.setup.iter().enumerate() {
            tracing::info!(tree = name_of(tree), command, "a worktree is set up");
            steps.push(self.run(tree, place, command).await?);
        }
        let ready = tree.clone();
        with_git(move || worktree::set_up(&ready)).await?;
        Ok(steps)
    }

    async fn run(&self, tree: &Tree, place: usize, command: &str) -> Result<SetupStep, WorktreeError> {
        let run = format!("{}_{place}", name_of(tree));
        let failed = |how: String, output: String| WorktreeError::SetupFailed {
            command: command.to_owned(),
            how,
            output,
        };
        self.clear(&run).await;
        let spec = Spec {
            argv: ["sh", "-c", command].map(str::to_owned).to_vec(),
            // It runs what is in the repository: `lanyard` in there is nobody, and no operator.
            env: BTreeMap::from([(SESSION.to_owned(), NO_SESSION.to_owned())]),
            clear_env: false,
            cwd: PathBuf::from(&tree.path),
            grace_ms: u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX),
            limits: SpoolLimits::default(),
            sandbox: None,
            bounds: None,
            terminal: None,
        };
        let begun = self.clock.now();
        let about = serde_json::json!({ "tree": name_of(tree) });
        let started = self.setups.start(&run, &about, &spec).await;
        let link = started.map_err(|error| failed(format!("was not started: {error}"), String::new()))?;
        let _ = link.close_input().await;
        let (how, output) = self.watch(link).await;
        self.clear(&run).await;
        match how {
            None => Ok(SetupStep {
                command: command.to_owned(),
                output,
                ms: self.clock.now().millis_since(begun),
            }),
            Some(how) => Err(failed(how, output)),
        }
    }

    /// Waits for a command's end. Answers why it counts as failed, and the end of its output.
    async fn watch(&self, link: Link) -> (Option<String>, String) {
        let mut reading = tokio::spawn(last_output(link.clone()));
        let mut late = false;
        let read = if let Ok(read) = tokio::time::timeout(COMMAND_MAX, &mut reading).await {
            read
        } else {
            late = true;
            // Everything it started goes with it.
            let _ = link.end(GRACE).await;
            reading.await
        };
        let Ok(tail) = read else { return (Some("was lost".to_owned()), String::new()) };
        let text = self.redaction.text(tail.text, RedactionScope::All);
        let from = text.ceil_char_boundary(text.len().saturating_sub(OUTPUT_MAX));
        let how = match tail.exit.map(|exit| exit.how) {
            _ if late => Some(format!("took longer than {} s and was ended", COMMAND_MAX.as_secs())),
            Some(How::Exited(0)) => None,
            Some(How::Exited(code)) => Some(format!("ended with code {code}")),
            Some(How::Signalled(signal)) => Some(format!("was ended by signal {signal}")),
            Some(How::Lost) | None => Some("was lost".to_owned()),
        };
        (how, text[from..].to_owned())
    }

    /// Ends what is left of a run, and forgets it.
    async fn clear(&self, run: &str) {
        let known = self.setups.list().unwrap_or_default();
        if !known.iter().any(|known| known.run == run) {
            return;
        }
        let swept = self.setups.sweep(run, GRACE).await;
        if let Err(error) = swept.and_then(|_| self.setups.forget(run)) {
            tracing::warn!(run, %error, "what is left of a setup command could not be ended");
        }
    }

    /// Ends the setup commands that an earlier daemon left; their worktrees are set up again or taken back.
    pub(super) async fn end_setups(&self) {
        for known in self.setups.list().unwrap_or_default() {
            self.clear(&known.run).await;
        }
    }
}

/// What a setup file asks for, in words.
pub(super) fn asks(content: &SetupContent) -> String {
    let named = |verb: &str, names: &[String]| {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| format!("{verb} {}", names.join(", ")))
    };
    let parts = [named("run", &content.setup), named("copy", &content.copy), named("link", &content.link)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
