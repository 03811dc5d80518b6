//! Which sandbox and which bounds a run gets: what the session, its agent and the sessions above ask for, on this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanyard_api::agents::settings::AgentSettings;
use lanyard_core::session::{
    BoundsMode, Containment, HeldBound, NetworkReach, ResourceBounds, SandboxLevel, SandboxMechanism,
    SandboxRule,
};
use lanyard_core::{RunId, Session};

use super::shared::Shared;
use crate::runs::bounds::{self, BoundMeans, BoundPlan, ProcessLimits, RunLimits};
use crate::runs::cgroup::{self, GroupController};
use crate::sandbox::{self, Enclosure, OwnFiles, SandboxAsk};

/// Sessions above that are looked at. Families are not that deep.
const ABOVE_MAX: usize = 32;
/// The code of a sandbox that this machine cannot give.
pub(super) const UNAVAILABLE: &str = "sandbox_unavailable";
/// The code of a sandbox that cannot be made for this workspace or these settings.
pub(super) const IMPOSSIBLE: &str = "sandbox_impossible";
/// The code of bounds that this machine cannot hold.
pub(super) const UNBOUNDED: &str = "bounds_unavailable";
/// Why an abstract socket can be reached.
const ABSTRACT: &str = "abstract Unix sockets of this machine can be reached, because the network is shared";

/// What is around a run before it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Confined {
    /// For the record; nothing where nothing was asked for.
    pub(super) containment: Option<Containment>,
    /// Without the folder and the relay of the run, which are not there yet.
    pub(super) enclosure: Option<Enclosure>,
    pub(super) bounds: Option<RunLimits>,
}

impl Confined {
    /// The control group that was made for the run.
    pub(super) fn group_of(made: &Result<Self, (String, String)>) -> Option<PathBuf> {
        made.as_ref().ok()?.bounds.as_ref()?.group.clone()
    }
}

/// What a family asks of a session's sandbox.
#[derive(Debug, Default)]
struct WantedSandbox {
    rule: SandboxRule,
    /// The workspace of the nearest session above that is in a sandbox.
    within: Option<PathBuf>,
}

/// Decides on the sandbox and the bounds of a session's next run.
pub(super) async fn of_session(
    shared: &Arc<Shared>,
    session: &Session,
    settings: &AgentSettings,
    workspace: &Path,
    run: RunId,
) -> Result<Confined, (String, String)> {
    let wanted = wanted(shared, session, settings).await;
    let mut own = OwnFiles::clone(&shared.addresses.own_files);
    let (settings, workspace) = (settings.clone(), workspace.to_owned());
    let (attachments, session) = (shared.attachments.clone(), session.id);
    let made = tokio::task::spawn_blocking(move || {
        // Copies of what is attached to later messages appear in the same folder.
        if wanted.rule.encloses() {
            own.shown.extend(attachments.shown(session).ok());
        }
        make(&wanted.rule, &settings, &workspace, (&own, wanted.within.as_deref()), &run.to_string())
    });
    made.await.map_err(|error| ("defect".to_owned(), error.to_string()))?
}

async fn wanted(shared: &Shared, session: &Session, settings: &AgentSettings) -> WantedSandbox {
    let mut wanted =
        WantedSandbox { rule: session.policy.sandbox.and(&settings.sandbox_rule()), within: None };
    let mut above = session.parent;
    for _ in 0..ABOVE_MAX {
        let Some(id) = above else { break };
        let Some(parent) = shared.session(id).await else { break };
        let agent = parent.hands.agent.as_deref().and_then(|agent| shared.settings.agent(agent));
        let rule = agent.map(|agent| agent.sandbox_rule()).unwrap_or_default().and(&parent.policy.sandbox);
        if rule.encloses() && wanted.within.is_none() {
            wanted.within = parent.workspace.as_ref().map(PathBuf::from);
        }
        wanted.rule = wanted.rule.and(&rule);
        above = parent.parent;
    }
    wanted
}

/// Makes what `rule` asks for, or says why it cannot be made: the sandbox, and a control group with bounds. Blocks.
pub(super) fn make(
    rule: &SandboxRule,
    settings: &AgentSettings,
    workspace: &Path,
    (own, within): (&OwnFiles, Option<&Path>),
    run: &str,
) -> Result<Confined, (String, String)> {
    let mut weaker = Vec::new();
    let enclosure = if rule.encloses() {
        Some(enclose(rule, settings, workspace, (own, within), &mut weaker)?)
    } else {
        None
    };
    let (bounds, held) = bound(&rule.bounds, enclosure.is_some(), run, &mut weaker)?;
    let (level, network) = (rule.level, rule.network.clone());
    let mechanism = enclosure.as_ref().map(|_| SandboxMechanism::Bubblewrap);
    let containment = Containment { level, mechanism, network, bounds: held, weaker };
    Ok(Confined { containment: Some(containment).filter(|_| !rule.is_open()), enclosure, bounds })
}

fn enclose(
    rule: &SandboxRule,
    settings: &AgentSettings,
    workspace: &Path,
    (own, within): (&OwnFiles, Option<&Path>),
    weaker: &mut Vec<String>,
) -> Result<Enclosure, (String, String)> {
    let SandboxRule { level, network, .. } = rule.clone();
    let bwrap = sandbox::machine().bubblewrap.map_err(|why| (UNAVAILABLE.to_owned(), why))?;
    let ask = SandboxAsk {
        level,
        workspace,
        settings,
        lanyard: &own.hidden,
        worktrees: &own.worktrees,
        shown: &own.shown,
        within,
    };
    let impossible = |error: sandbox::SandboxPlanError| (IMPOSSIBLE.to_owned(), error.to_string());
    let around = sandbox::look_around(&ask).map_err(impossible)?;
    let rules = sandbox::rules(&around.facts).map_err(impossible)?;
    weaker.extend(around.weaker);
    if network == NetworkReach::All {
        weaker.push(ABSTRACT.to_owned());
    }
    Ok(Enclosure {
        level,
        mechanism: SandboxMechanism::Bubblewrap,
        bwrap,
        rules,
        links: around.links,
        network,
        helper: crate::agents::program(),
        door: PathBuf::new(),
        relay: None,
        // Some agents have a sandbox of their own. Root cannot map itself in a namespace here, so none works for it.
        nests: level == SandboxLevel::Workspace && !rustix::process::geteuid().is_root(),
        unset: sandbox::unset(),
    })
}

/// The bounds of a run, and its control group where one can be made: also without bounds, since a stop finds in it what
/// hides everywhere else.
fn bound(
    asked: &ResourceBounds,
    sandboxed: bool,
    run: &str,
    weaker: &mut Vec<String>,
) -> Result<(Option<RunLimits>, Vec<HeldBound>), (String, String)> {
    let root = rustix::process::geteuid().is_root();
    let means = |controllers: &[GroupController], lacking: &str| BoundMeans {
        controllers: controllers.to_vec(),
        lacking: lacking.to_owned(),
        sandboxed,
        root,
    };
    let grouped = cgroup::delegated().map_err(str::to_owned).and_then(|delegated| {
        let plan = bounds::plan(asked, &means(&delegated.controllers, bounds::NO_CONTROLLERS));
        let made = delegated.make(run, &plan.files);
        made.map(|group| (plan, Some(group))).map_err(|error| {
            tracing::warn!(run, %error, "the run has no cgroup of its own");
            format!("the cgroup of the run could not be made: {error}")
        })
    });
    let (plan, group) = grouped.unwrap_or_else(|lacking| (bounds::plan(asked, &means(&[], &lacking)), None));
    let BoundPlan { held, limits, missing, weaker: less, .. } = plan;
    if asked.mode == BoundsMode::Required && !missing.is_empty() {
        if let Some(group) = &group {
            cgroup::remove(group);
        }
        return Err((UNBOUNDED.to_owned(), missing.join("; ")));
    }
    weaker.extend(less);
    weaker.extend(missing.into_iter().map(|what| format!("not bounded: {what}")));
    let needed = group.is_some() || limits != ProcessLimits::default();
    let limits = RunLimits { group, each: limits, helper: crate::agents::program() };
    Ok((Some(limits).filter(|_| needed), held))
}
