//! `lanyard new`: make a session.

use lanyard_client::names::A_SESSION;
use lanyard_core::session::{DrivenBy, EXTERNAL, Language, NewSession};

use super::choice_flags::ChoiceFlags;
use super::memory::flags::MemoryFlags;
use super::sandbox_flags::SandboxFlags;
use super::target::{folder, workspace};
use super::worktree::{WorktreeFlags, create};
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  lanyard new --title \"fix the login test\" --workspace .
  id=$(lanyard new --agent opencode --alias review)
  lanyard new --agent claude --native 1b2c3d4e-0000-4000-8000-123456789abc --workspace .
  lanyard new --agent claude --workspace . --worktree=fix/login
  lanyard new --parent \"$id\" --purpose review --leaf";

/// Make a session and print its id
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct NewArgs {
    /// What people see it under
    #[arg(long)]
    title: Option<String>,
    /// The agent that works in it, as `lanyard agents` lists them
    #[arg(long)]
    agent: Option<String>,
    /// Owner [default: the token's name]
    #[arg(long)]
    owner: Option<String>,
    /// Where it comes from
    #[arg(long, default_value = "cli")]
    source: String,
    /// The folder it works in (`.` for this one), or a name for it
    #[arg(long, value_parser = workspace)]
    workspace: Option<String>,
    /// The plan it works on
    #[arg(long)]
    plan: Option<String>,
    /// The phase of the plan
    #[arg(long)]
    phase: Option<String>,
    /// What it is for
    #[arg(long)]
    purpose: Option<String>,
    /// The session that delegates to it: id or alias
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// A foreign id by which it can be found too; may be given more than once
    #[arg(long = "alias", value_name = "ALIAS")]
    aliases: Vec<String>,
    /// The agent's own id of a conversation it already has; the first turn resumes it
    #[arg(long, value_name = "ID")]
    native: Option<String>,
    /// A fact that must survive when the agent's context is compacted; may be given more than once
    #[arg(long = "anchor", value_name = "FACT")]
    anchors: Vec<String>,
    /// How strictly its agent is governed [default: the parent's]
    #[arg(long, value_name = "LEVEL")]
    governance: Option<String>,
    /// The language of its agent's messages [default: the parent's]
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<String>,
    /// The language of its agent's documents [default: the parent's]
    #[arg(long, value_name = "LANGUAGE")]
    documents: Option<String>,
    #[command(flatten)]
    tree: WorktreeFlags,
    #[command(flatten)]
    choice: ChoiceFlags,
    #[command(flatten)]
    memory: MemoryFlags,
    #[command(flatten)]
    sandbox: SandboxFlags,
    /// It does its own work and cannot delegate
    #[arg(long)]
    leaf: bool,
    /// Lanyard does not run its turns: a client of the API carries them out and reports on them
    #[arg(long)]
    not_run: bool,
    /// How deep its family may grow; never deeper than the parent's
    #[arg(long, value_name = "N")]
    depth_limit: Option<u32>,
}

impl NewArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        // An agent works in a folder; sessions that nothing runs in may have a name instead.
        let runs = self.agent.is_some() && !self.not_run && self.source != EXTERNAL;
        let workspace = match self.workspace {
            Some(path) if runs || self.tree.is_wanted() => Some(folder(Some(path.into()), "--workspace")?),
            named => named,
        };
        let mut client = context.client().await?;
        let parent = client.id_if(A_SESSION, self.parent).await?;
        let worktree = self.tree.wanted(context, &mut client, workspace.as_deref()).await?;
        let new = NewSession {
            worktree,
            tree: None,
            setup: Vec::new(),
            comparison: None,
            task: None,
            observed: false,
            driven_by: self.not_run.then_some(DrivenBy::Nobody),
            native: self.native,
            terminal: None,
            title: self.title,
            agent: self.agent,
            owner: self.owner,
            source: Some(self.source),
            workspace,
            plan: self.plan,
            phase: self.phase,
            purpose: self.purpose,
            parent,
            aliases: self.aliases,
            anchors: self.anchors,
            governance_level: self.governance,
            language: Language { communication: self.language, documents: self.documents },
            memory_mode: None,
            memory: self.memory.ask(),
            choice: self.choice.choice(),
            sandbox: self.sandbox.sandbox,
            network: self.sandbox.network(),
            bounds: self.sandbox.bounds(),
            leaf: self.leaf,
            depth_limit: self.depth_limit,
        };
        let outcome = create(context, &mut client, None, &new).await?;
        context.out.receipt(&outcome, Some(&outcome.session.to_string()), "")
    }
}
