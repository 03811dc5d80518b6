//! Creating, linking and forking: decisions that concern two sessions. Depth and level are derived from the chain of
//! parents, never counted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{ComparisonId, SessionId, TaskId, WorkerId};
use crate::memory::{MemoryAsk, MemoryPolicy};
use crate::policy::{Limits, MemoryMode};
use crate::session::bounds::ResourceBounds;
use crate::session::choice::AgentChoice;
use crate::session::decide::{ALIASES_MAX, ANCHORS_MAX, alive, exists, names, optional_name};
use crate::session::driven::DrivenBy;
use crate::session::event::{ChangeEvent, ControlEvent, Created, Event, Fork};
use crate::session::governance::Language;
use crate::session::record::{Policy, Session, is_default};
use crate::session::refusal::Refusal;
use crate::session::sandbox::{NetworkReach, SandboxLevel, SandboxRule};
use crate::session::state::StateName;
use crate::session::stop::StopScope;
use crate::session::terminal_program::TerminalProgram;
use crate::tree::{SetupStep, Tree};

/// The request for a new session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewSession {
    pub title: Option<String>,
    pub agent: Option<String>,
    /// The owner; the caller's own name when absent.
    pub owner: Option<String>,
    /// The source: `chat`, `telegram`, `api`, `cli` … `api` when absent.
    pub source: Option<String>,
    pub workspace: Option<String>,
    /// A git worktree of its own, made from the repository around `workspace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<NewWorktree>,
    pub plan: Option<String>,
    pub phase: Option<String>,
    pub purpose: Option<String>,
    /// The parent's id or alias.
    pub parent: Option<String>,
    /// Foreign ids by which the session can be found as well.
    pub aliases: Vec<String>,
    /// The agent's own id of a conversation it already has: the first turn resumes it. Without one the first turn
    /// begins a new conversation, whatever the aliases are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    /// Facts that must survive a compaction of the agent's context.
    pub anchors: Vec<String>,
    /// Governance level of the agent, in the maker's own word; the parent's when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governance_level: Option<String>,
    /// The languages its agent uses; the parent's where left out.
    #[serde(skip_serializing_if = "is_default")]
    pub language: Language,
    pub memory_mode: Option<MemoryMode>,
    /// The memory policy in full; a child's never allows more than its parent's.
    pub memory: Option<MemoryAsk>,
    /// The least sandbox of its runs. The agent's settings and the parent's sandbox hold besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxLevel>,
    /// The most of the network that its runs may reach. Less than `all` asks for a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkReach>,
    /// The most that its runs may use. The agent's settings and the parent's bounds hold besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<ResourceBounds>,
    /// A program on a terminal of its own, which runs in the session in the place of the agent's usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalProgram>,
    /// The model, mode and effort of the session; the agent's defaults when absent.
    #[serde(skip_serializing_if = "is_default")]
    pub choice: AgentChoice,
    /// A leaf does its own work and cannot delegate.
    pub leaf: bool,
    /// A tighter depth limit for the family below; never wider than the parent's.
    pub depth_limit: Option<u32>,
    /// The task it is made for, and who works at it. Only Lanyard itself says so.
    #[serde(skip)]
    pub task: Option<(TaskId, WorkerId)>,
    /// The worktree that was made for it. Only Lanyard itself says so.
    #[serde(skip)]
    pub tree: Option<Tree>,
    /// The commands that prepared that worktree.
    #[serde(skip)]
    pub setup: Vec<SetupStep>,
    /// The comparison it is made for. Only Lanyard itself says so.
    #[serde(skip)]
    pub comparison: Option<ComparisonId>,
    /// An agent's own subagent: it is at work already, whatever its parent may do. Only Lanyard itself says so.
    #[serde(skip)]
    pub observed: bool,
    /// The party that runs the agent, where the other fields do not determine it. A caller may choose `nobody`: a
    /// client of the API then carries out the turns and reports on them, whatever the agent is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driven_by: Option<DrivenBy>,
}

/// The worktree a new session asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewWorktree {
    /// The branch: a new one, or one that is checked out nowhere. Made from the session's name or title when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch, tag or commit a new branch begins at; the folder's HEAD when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// A session's place in its family: its ancestors, nearest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lineage {
    pub ancestors: Vec<SessionId>,
}

impl Lineage {
    /// 1 for a root.
    #[must_use]
    pub fn depth(&self) -> u32 {
        u32::try_from(self.ancestors.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Delegation level: 1 for a person with an agent, 2 for its delegate, 3 for every session below.
    #[must_use]
    pub fn level(&self) -> u32 {
        self.depth().min(3)
    }

    /// The session that started it all.
    #[must_use]
    pub fn root(&self) -> Option<SessionId> {
        self.ancestors.last().copied()
    }
}

/// The event that makes a session, under a parent or as a root.
pub fn create(
    new: &NewSession,
    owner: &str,
    parent: Option<(&Session, &Lineage)>,
    limits: &Limits,
) -> Result<ChangeEvent, Refusal> {
    for (field, text) in [
        ("title", &new.title),
        ("agent", &new.agent),
        ("owner", &new.owner),
        ("source", &new.source),
        ("workspace", &new.workspace),
        ("plan", &new.plan),
        ("phase", &new.phase),
        ("purpose", &new.purpose),
        ("native", &new.native),
        ("governance_level", &new.governance_level),
    ] {
        optional_name(field, text.as_deref())?;
    }
    new.language.check()?;
    new.terminal.as_ref().map_or(Ok(()), TerminalProgram::check)?;
    names("aliases", &new.aliases, ALIASES_MAX)?;
    names("anchors", &new.anchors, ANCHORS_MAX)?;
    if let Some((parent, lineage)) = parent {
        // What is there is shown; not to see it would not make it go away.
        if new.observed { may_have_below(parent, lineage, 1) } else { may_delegate(parent, lineage, 1) }?;
    }
    let wanted = new.depth_limit.unwrap_or(limits.depth).min(limits.depth).max(1);
    let inherited = parent.map(|(parent, _)| &parent.policy);
    let above = parent.map(|(parent, _)| parent.governance.clone()).unwrap_or_default();
    let source = new.source.clone().unwrap_or_else(|| "api".to_owned());
    let born_to = || DrivenBy::at_birth(&source, new.agent.as_deref(), new.observed);
    let driven_by = new.driven_by.unwrap_or_else(born_to);
    let asked_for = parent.is_some() || new.phase.is_some() || new.purpose.is_some();
    let mut aliases: Vec<String> = Vec::new();
    for alias in &new.aliases {
        if !aliases.contains(alias) {
            aliases.push(alias.clone());
        }
    }
    // A child that works where its parent does shares the parent's worktree.
    let inherited_tree = || match new.workspace {
        None => parent.and_then(|(parent, _)| parent.tree.clone()),
        Some(_) => None,
    };
    Ok(ChangeEvent::Created(Box::new(Created {
        state: if asked_for { StateName::Custom } else { StateName::Beginning },
        title: new.title.clone(),
        agent: new.agent.clone(),
        owner: new.owner.clone().unwrap_or_else(|| owner.to_owned()),
        driven_by: Some(driven_by),
        native: new.native.clone(),
        terminal: new.terminal.clone(),
        source,
        workspace: new.workspace.clone().or_else(|| parent.and_then(|(parent, _)| parent.workspace.clone())),
        tree: new.tree.clone().or_else(inherited_tree),
        setup: new.setup.clone(),
        plan: new.plan.clone().or_else(|| parent.and_then(|(parent, _)| parent.plan.clone())),
        // A session created through the API without a phase is in phase "custom".
        phase: new.phase.clone().or_else(|| asked_for.then(|| "custom".to_owned())),
        purpose: new.purpose.clone(),
        task: new.task.map(|(task, _)| task),
        worker: new.task.map(|(_, worker)| worker),
        parent: parent.map(|(parent, _)| parent.id),
        forked_from: None,
        comparison: new.comparison,
        aliases,
        anchors: new.anchors.clone(),
        governance_level: new.governance_level.clone().or_else(|| above.level.clone()),
        language: new.language.under(&above.language),
        choice: new.choice.clone(),
        policy: Policy {
            depth_limit: inherited.map_or(wanted, |policy| wanted.min(policy.depth_limit)),
            leaf: new.leaf,
            sandbox: sandbox(new, parent.map(|(parent, _)| parent))?,
            memory: memory(new, inherited.map(|policy| &policy.memory))?,
        },
    })))
}

/// A new session that goes on from a place in another's log. It has no parent and no aliases of its own.
pub fn fork(source: &Session, at: Option<u64>, title: Option<String>) -> Result<ChangeEvent, Refusal> {
    exists(source)?;
    let seq = at.unwrap_or(source.seq);
    if seq == 0 || seq > source.seq {
        return Err(Refusal::ForkAhead { head: source.seq });
    }
    optional_name("title", title.as_deref())?;
    Ok(ChangeEvent::Created(Box::new(Created {
        state: StateName::Custom,
        title: title.or_else(|| source.title.clone()),
        agent: source.hands.agent.clone(),
        owner: source.hands.owner.clone(),
        source: source.source.clone(),
        // The other's host knows nothing of the fork.
        driven_by: Some(DrivenBy::at_birth("", source.hands.agent.as_deref(), false)),
        native: None,
        terminal: source.terminal.clone(),
        workspace: source.workspace.clone(),
        tree: source.tree.clone(),
        setup: Vec::new(),
        plan: source.plan.clone(),
        phase: source.phase.clone(),
        purpose: Some("fork".to_owned()),
        task: None,
        worker: None,
        parent: None,
        forked_from: Some(Fork { session: source.id, seq }),
        comparison: None,
        aliases: Vec::new(),
        anchors: source.anchors.clone(),
        governance_level: source.governance.level.clone(),
        language: source.governance.language.clone(),
        choice: source.choice.clone(),
        policy: source.policy.clone(),
    })))
}

/// The first event belongs to the child, the second to the parent, a third to the parent it had before.
pub type LinkEvents = (Event, Event, Option<(SessionId, Event)>);

/// Makes `child` a child of `parent`. `height` is how many generations the child's own family has, itself included.
pub fn link(
    child: &Session,
    parent: &Session,
    lineage: &Lineage,
    height: u32,
) -> Result<LinkEvents, Refusal> {
    exists(child)?;
    alive(child)?;
    if parent.id == child.id || lineage.ancestors.contains(&child.id) {
        return Err(Refusal::Cycle { parent: parent.id });
    }
    if child.parent == Some(parent.id) {
        return Err(Refusal::AlreadyLinked { parent: parent.id });
    }
    may_delegate(parent, lineage, height)?;
    if is_wider(&child.policy, &parent.policy) {
        return Err(Refusal::PolicyWider { parent: parent.id });
    }
    let agent = child.hands.agent.clone();
    Ok((
        ChangeEvent::Linked { parent: parent.id, previous: child.parent }.into(),
        ChangeEvent::ChildLinked { child: child.id, agent }.into(),
        child.parent.map(|previous| (previous, ChangeEvent::ChildUnlinked { child: child.id }.into())),
    ))
}

/// The stop a child is born with: one of its parent's whole family reaches those born later too.
#[must_use]
pub fn inherited(parent: &Session) -> Option<Event> {
    let stop = parent.stop.as_ref().filter(|stop| stop.scope == StopScope::Subtree)?;
    let (level, scope, reason) = (stop.level, stop.scope, stop.reason.clone());
    Some(ControlEvent::StopRequested { level, scope, reason, inherited: Some(parent.id) }.into())
}

fn may_delegate(parent: &Session, lineage: &Lineage, generations: u32) -> Result<(), Refusal> {
    if parent.policy.leaf && !parent.state.is_ended() && !parent.deleted {
        return Err(Refusal::LeafCannotDelegate { parent: parent.id });
    }
    may_have_below(parent, lineage, generations)
}

fn may_have_below(parent: &Session, lineage: &Lineage, generations: u32) -> Result<(), Refusal> {
    if parent.state.is_ended() || parent.deleted {
        return Err(Refusal::ParentEnded { parent: parent.id });
    }
    let depth = lineage.depth().saturating_add(generations);
    if depth > parent.policy.depth_limit {
        return Err(Refusal::DepthExceeded { depth, limit: parent.policy.depth_limit });
    }
    Ok(())
}

/// Whether a session with this policy would be allowed more than its parent. A family is never widened from below, and
/// linking changes no policy: the sessions under the child got theirs from it.
fn is_wider(child: &Policy, parent: &Policy) -> bool {
    child.depth_limit > parent.depth_limit
        || child.memory.is_wider_than(&parent.memory)
        || child.sandbox.is_wider_than(&parent.sandbox)
}

/// A child is in a sandbox that is at least its parent's, as fixed at birth and as held in the parent's newest run.
fn sandbox(new: &NewSession, parent: Option<&Session>) -> Result<SandboxRule, Refusal> {
    let network = new.network.clone().unwrap_or_default();
    network.check()?;
    let bounds = new.bounds.unwrap_or_default();
    bounds.check()?;
    let asked = SandboxRule::new(new.sandbox.unwrap_or_default(), network).bounded(bounds);
    let Some(parent) = parent else { return Ok(asked) };
    let held = parent.run.as_ref().and_then(|run| run.sandbox.as_ref());
    let held = held.map(|held| held.rule()).unwrap_or_default();
    Ok(asked.and(&parent.policy.sandbox).and(&held))
}

/// A child remembers no more than its parent may.
fn memory(new: &NewSession, inherited: Option<&MemoryPolicy>) -> Result<MemoryPolicy, Refusal> {
    let asked = MemoryAsk { mode: new.memory_mode, ..MemoryAsk::default() };
    let mut asked = new.memory.clone().unwrap_or(asked);
    asked.mode = asked.mode.or(new.memory_mode);
    let base = inherited.cloned().unwrap_or_default();
    let wanted = asked.onto(&base)?;
    Ok(match inherited {
        Some(above) => wanted.under(above),
        None => wanted,
    })
}
