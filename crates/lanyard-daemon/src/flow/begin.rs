//! Beginning a flow: the plan is read, those who are to work are looked for, and nobody else works at the plan.

use std::path::{Path, PathBuf};

use lanyard_api::agents::naming::AgentRefusal;
use lanyard_core::Record as _;
use lanyard_core::flow::plan::{self, FlowPlanText};
use lanyard_core::flow::{
    Asking, Flow, FlowEnvelope, FlowKind, FlowRefusal, FlowSettings, NewFlow, Phase, PhaseState, create,
};
use lanyard_core::session::Refusal;
use lanyard_core::text::content_hash;
use lanyard_core::{Actor, FlowId};
use lanyard_git::{workspace_files, workspace_path};
use lanyard_store::{FlowBatch, FlowFilter};

use crate::flow::plan_lock::PlanLock;
use crate::flow::{FlowError, FlowHandle, OPEN_MAX, bad};
use lanyard_base::failpoint;
use lanyard_engine::engine::AskError;

/// Flows of one plan that are looked through for a repeat of a request.
const REPEATS_MAX: usize = 100;

/// What a flow is asked to be.
#[derive(Debug, Clone)]
pub(crate) struct Beginning {
    pub(crate) kind: FlowKind,
    pub(crate) plan: String,
    pub(crate) workspace: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) reviewer: Option<String>,
    pub(crate) from: Option<String>,
    pub(crate) phase_gate: Option<Asking>,
    pub(crate) review_gate: Option<Asking>,
    pub(crate) worktree: Option<bool>,
    pub(crate) quality: Option<bool>,
    /// The key it was asked for with, and the content.
    pub(crate) request: Option<(String, String)>,
}

impl FlowHandle {
    pub(crate) async fn begin(&self, asked: Beginning, by: Actor) -> Result<Flow, FlowError> {
        let _one = self.0.beginning.lock().await;
        let plan = absolute("plan", &asked.plan)?;
        if let Some(flow) = self.repeated(&plan, asked.request.as_ref()).await? {
            return Ok(flow);
        }
        if self.0.tools.engine.halting.is_on() {
            return Err(AskError::Refused(Refusal::Halted).into());
        }
        let settings = self.settings(&asked)?;
        let text = plan_text(&plan).await?;
        let read = tokio::task::spawn_blocking(move || prepare(asked, &plan, &text, settings));
        let new = read.await.map_err(|_| FlowError::Closing)??;
        self.is_free(&new.plan, None).await?;
        let event = create(new)?;
        let now = self.0.tools.clock.now();
        let id = FlowId::mint(now, self.0.tools.clock.random());
        let envelope = FlowEnvelope { flow: id, seq: 1, at: now, actor: by, event };
        let flow = Flow::born(&envelope).map_err(|error| FlowError::Defect(error.to_string()))?;
        let records = FlowBatch { entries: vec![envelope], flows: vec![flow.clone()] }.records()?;
        failpoint::hit("flows_before_write");
        self.0.tools.engine.write(records).await?;
        failpoint::hit("flows_after_write");
        self.seat(flow.clone(), None);
        self.wrote();
        Ok(flow)
    }

    /// The flow a request has made before.
    async fn repeated(
        &self,
        plan: &Path,
        request: Option<&(String, String)>,
    ) -> Result<Option<Flow>, FlowError> {
        let Some((key, content)) = request.cloned() else { return Ok(None) };
        let filter = FlowFilter { plan: plan.to_str().map(str::to_owned), ..FlowFilter::default() };
        let flows = self.0.tools.on_disk(move |store| Ok(store.flows(&filter, None, REPEATS_MAX)?)).await?;
        let of_key = |flow: &Flow| flow.request.as_ref().is_some_and(|(held, _)| *held == key);
        match flows.into_iter().find(of_key) {
            Some(flow) if flow.request.as_ref().is_some_and(|(_, held)| *held == content) => Ok(Some(flow)),
            Some(_) => Err(AskError::KeyConflict.into()),
            None => Ok(None),
        }
    }

    /// Nobody works at the plan: no flow of this daemon, and no other daemon.
    async fn is_free(&self, plan: &str, except: Option<FlowId>) -> Result<(), FlowError> {
        let filter = FlowFilter { ended: Some(false), ..FlowFilter::default() };
        let open = self.0.tools.on_disk(move |store| Ok(store.flows(&filter, None, OPEN_MAX + 1)?)).await?;
        if let Some(flow) = open.iter().find(|flow| flow.plan == plan && Some(flow.id) != except) {
            return Err(FlowRefusal::PlanTaken { flow: flow.id }.into());
        }
        if open.len() >= OPEN_MAX {
            let what = format!("{OPEN_MAX} flows are open already");
            return Err(bad("flows_too_many", what, "end some with `lanyard flow cancel`"));
        }
        // Tried, not kept: the flow's driver takes it.
        let (plan, holder, id) = (plan.to_owned(), self.0.tools.holder.clone(), FlowId::from_u128(0));
        let tried = tokio::task::spawn_blocking(move || match PlanLock::take(&plan, id, &holder) {
            // A flow of this daemon that has just ended still puts its folder in order; the next one waits for that.
            Err(FlowError::Bad(stated)) if stated.what.contains(&holder) => Ok(()),
            tried => tried.map(drop),
        });
        tried.await.map_err(|_| FlowError::Closing)?
    }

    /// Whether a flow that was aborted may be taken up again.
    pub(super) async fn may_take(&self, flow: &Flow) -> Result<(), FlowError> {
        self.is_free(&flow.plan, Some(flow.id)).await
    }

    /// The config's settings with what was asked for in their place.
    fn settings(&self, asked: &Beginning) -> Result<FlowSettings, FlowError> {
        let mut settings = self.0.tools.settings.clone();
        let roles = [(&mut settings.author, &asked.author), (&mut settings.reviewer, &asked.reviewer)];
        for (role, agent) in roles {
            if agent.is_some() {
                role.agent.clone_from(agent);
            }
            let agents = &self.0.tools.agents;
            let unusable = |refusal: AgentRefusal| bad(refusal.code, refusal.title, refusal.advice);
            let name = match role.agent.take() {
                Some(name) => name,
                None => agents.default_name().map_err(unusable)?,
            };
            agents.can_start(&name, None).map_err(unusable)?;
            role.agent = Some(name);
        }
        settings.rules.phase_gate = asked.phase_gate.unwrap_or(settings.rules.phase_gate);
        settings.rules.review_gate = asked.review_gate.unwrap_or(settings.rules.review_gate);
        settings.rules.worktree = asked.worktree.unwrap_or(settings.rules.worktree);
        if asked.quality == Some(false) {
            settings.quality.clear();
        }
        Ok(settings)
    }
}

fn absolute(what: &str, path: &str) -> Result<PathBuf, FlowError> {
    let path = PathBuf::from(workspace_path::expanded(path));
    let whole = path.is_absolute() && path.components().all(|part| part != std::path::Component::ParentDir);
    if !whole || path.to_str().is_none_or(|text| text.chars().any(char::is_control)) {
        let what = format!("the {what} `{}` is not a whole path", path.display());
        return Err(bad("path_bad", what, "give the path from the root, without `..`"));
    }
    // One file has one name, whatever links lead to it.
    Ok(path.canonicalize().unwrap_or(path))
}

async fn plan_text(plan: &Path) -> Result<String, FlowError> {
    let unreadable = |why: String| {
        let what = format!("the plan {} cannot be read: {why}", plan.display());
        bad("plan_unreadable", what, "name a Markdown file that the daemon may read")
    };
    let folder = plan.parent().unwrap_or(plan);
    let bytes = workspace_files::read(folder, plan, plan::BYTES_MAX as u64).await;
    let bytes = bytes.map_err(|error| unreadable(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".to_owned()))
}

/// Takes the plan apart and finds its folder. Blocks.
fn prepare(asked: Beginning, plan: &Path, text: &str, settings: FlowSettings) -> Result<NewFlow, FlowError> {
    let read = plan::read(text).map_err(|error| {
        let advice = error.what.advice();
        bad(error.what.code(), format!("the plan {}: {error}", plan.display()), advice)
    })?;
    let workspace = workspace(asked.workspace.as_deref(), plan)?;
    let phases = match asked.kind {
        FlowKind::Phases => phases(&read, asked.from.as_deref())?,
        FlowKind::PlanReview => Vec::new(),
    };
    Ok(NewFlow {
        kind: asked.kind,
        title: read.title,
        plan: plan.display().to_string(),
        plan_hash: content_hash(text.as_bytes()),
        workspace,
        settings,
        phases,
        request: asked.request,
    })
}

/// The folder that was asked for, else the plan's repository, else its folder.
fn workspace(asked: Option<&str>, plan: &Path) -> Result<String, FlowError> {
    let folder = if let Some(asked) = asked {
        absolute("workspace", asked)?
    } else {
        let folder = plan.parent().unwrap_or(plan);
        lanyard_git::worktree::top(folder).unwrap_or_else(|| folder.to_owned())
    };
    if !folder.is_dir() {
        let what = format!("the workspace {} is no folder", folder.display());
        return Err(bad("workspace_bad", what, "name the folder the agents are to work in"));
    }
    Ok(folder.display().to_string())
}

/// The plan's phases; those before `from` are skipped, as are those that are done.
fn phases(read: &FlowPlanText, from: Option<&str>) -> Result<Vec<Phase>, FlowError> {
    let named = |from: &str| {
        let by_number = from.parse::<usize>().ok().filter(|number| (1..=read.phases.len()).contains(number));
        let by_title = || read.phases.iter().position(|phase| phase.title.eq_ignore_ascii_case(from.trim()));
        by_number.map(|number| number - 1).or_else(by_title)
    };
    let first = match from {
        Some(from) => named(from).ok_or_else(|| {
            let what = format!("the plan has no phase `{from}`");
            bad(
                "phase_unknown",
                what,
                format!("name one of its {} phases by number or title", read.phases.len()),
            )
        })?,
        None => 0,
    };
    let phase = |(place, phase): (usize, &plan::PhaseText)| {
        let skipped = place < first || (from.is_none() && phase.done);
        let state = if skipped { PhaseState::Skipped } else { PhaseState::Open };
        Phase { title: phase.title.clone(), text: phase.text.clone(), state, commit: None }
    };
    Ok(read.phases.iter().enumerate().map(phase).collect())
}
