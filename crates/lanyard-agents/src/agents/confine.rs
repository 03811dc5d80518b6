//! Which sandbox a run gets: what the session, its agent and the sessions above ask for, on this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanyard_api::agents::settings::AgentSettings;
use lanyard_core::Session;
use lanyard_core::session::{Containment, NetworkReach, SandboxMechanism, SandboxRule};

use super::shared::Shared;
use crate::sandbox::{self, Enclosure, OwnFiles, SandboxAsk};

/// Sessions above that are looked at. Families are not that deep.
const ABOVE_MAX: usize = 32;
/// The code of a sandbox that this machine cannot give.
pub(super) const UNAVAILABLE: &str = "sandbox_unavailable";
/// The code of a sandbox that cannot be made for this workspace or these settings.
pub(super) const IMPOSSIBLE: &str = "sandbox_impossible";
/// Why an abstract socket can be reached.
const ABSTRACT: &str = "abstract Unix sockets of this machine can be reached, because the network is shared";

/// The sandbox of a run before it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Confined {
    pub(super) containment: Containment,
    /// Without the folder and the relay of the run, which are not there yet.
    pub(super) enclosure: Enclosure,
}

/// What a family asks of a session's sandbox.
#[derive(Debug, Default)]
struct WantedSandbox {
    rule: SandboxRule,
    /// The workspace of the nearest session above that is in a sandbox.
    within: Option<PathBuf>,
}

/// Decides on the sandbox of a session's next run: nothing where none is asked for.
pub(super) async fn of_session(
    shared: &Arc<Shared>,
    session: &Session,
    settings: &AgentSettings,
    workspace: &Path,
) -> Result<Option<Confined>, (String, String)> {
    let wanted = wanted(shared, session, settings).await;
    let mut own = OwnFiles::clone(&shared.addresses.own_files);
    let (settings, workspace) = (settings.clone(), workspace.to_owned());
    let (attachments, session) = (shared.attachments.clone(), session.id);
    let made = tokio::task::spawn_blocking(move || {
        // Copies of what is attached to later messages appear in the same folder.
        if !wanted.rule.is_open() {
            own.shown.extend(attachments.shown(session).ok());
        }
        make(&wanted.rule, &settings, &workspace, &own, wanted.within.as_deref())
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
        if !rule.is_open() && wanted.within.is_none() {
            wanted.within = parent.workspace.as_ref().map(PathBuf::from);
        }
        wanted.rule = wanted.rule.and(&rule);
        above = parent.parent;
    }
    wanted
}

/// Makes a sandbox that follows `rule`, or says why there is none. Blocks.
pub(super) fn make(
    rule: &SandboxRule,
    settings: &AgentSettings,
    workspace: &Path,
    own: &OwnFiles,
    within: Option<&Path>,
) -> Result<Option<Confined>, (String, String)> {
    if rule.is_open() {
        return Ok(None);
    }
    let SandboxRule { level, network } = rule.clone();
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
    let mut weaker = around.weaker;
    if network == NetworkReach::All {
        weaker.push(ABSTRACT.to_owned());
    }
    let mechanism = SandboxMechanism::Bubblewrap;
    let enclosure = Enclosure {
        level,
        mechanism,
        bwrap,
        rules,
        links: around.links,
        network: network.clone(),
        helper: crate::agents::program(),
        door: PathBuf::new(),
        relay: None,
        unset: sandbox::unset(),
    };
    let containment = Containment { level, mechanism: Some(mechanism), network, bounds: Vec::new(), weaker };
    Ok(Some(Confined { containment, enclosure }))
}
