//! Who calls a tool, and how far that reaches. An agent acts as itself and as nobody else; it may look at what is below it
//! and at its own workspace and plan.

use std::sync::Arc;

use lanyard_core::session::{Lineage, Signal};
use lanyard_core::{Actor, ActorKind, Cause, Outcome, Session, SessionId};
use lanyard_store::{Loaded, Store};

pub(super) use crate::memory::place;
use crate::own_tools::ToolContext;
use crate::shelf;
use crate::tool_refusal::Refused;
use lanyard_engine::engine::{Ask, Request};

pub(super) struct ToolCaller {
    pub(super) app: Arc<ToolContext>,
    /// The session whose agent calls; nothing for an operator.
    pub(super) me: Option<Me>,
    pub(super) actor: Actor,
}

/// The session whose agent calls.
#[derive(Clone)]
pub(super) struct Me {
    pub(super) session: Session,
    pub(super) lineage: Lineage,
    /// Where its papers are kept.
    pub(super) place: String,
    /// The plan it was made for, or joined.
    pub(super) plan: Option<String>,
    /// What its agent says it is.
    pub(super) agent_type: Option<String>,
}

impl ToolCaller {
    pub(super) async fn of(app: &Arc<ToolContext>, session: Option<SessionId>) -> Result<Self, Refused> {
        let Some(id) = session else {
            return Ok(Self { app: app.clone(), me: None, actor: Actor::operator("local") });
        };
        let me = on_disk(app, move |store| {
            let Loaded { session, lineage, .. } = load(store, id)?;
            let place = place(store, &session, &lineage)?;
            let seat = shelf::seat(store, &place, id)?;
            let plan = session.plan.clone().or(seat.plan);
            let agent_type = seat.agent_type.or_else(|| session.hands.agent.clone());
            Ok(Me { session, lineage, place, plan, agent_type })
        })
        .await?;
        let actor = Actor { kind: ActorKind::Agent, name: id.to_string() };
        Ok(Self { app: app.clone(), me: Some(me), actor })
    }

    pub(super) fn id(&self) -> Option<SessionId> {
        self.me.as_ref().map(|me| me.session.id)
    }

    pub(super) fn me(&self) -> Result<&Me, Refused> {
        self.me.as_ref().ok_or_else(Refused::no_session)
    }

    /// A session that has ended changes nothing any more.
    pub(super) fn may_write(&self) -> Result<(), Refused> {
        match &self.me {
            Some(me) if me.session.state.is_ended() => Err(Refused::new(
                "session_ended",
                format!("session {} has ended as {}", me.session.id, me.session.state.name()),
                "end your work; whoever coordinates can spawn another agent",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Where the papers are that are meant: in an agent's own workspace, or in the one an operator names.
    pub(super) fn workspace(&self, asked: Option<&str>) -> Result<String, Refused> {
        let Some(me) = &self.me else { return Ok(asked.unwrap_or_default().to_owned()) };
        match asked {
            Some(asked) if me.session.workspace.as_deref() != Some(asked) => Err(Refused::new(
                "workspace_mismatch",
                format!("your session does not work in `{asked}`"),
                "leave `workspace` out",
            )),
            Some(_) | None => Ok(me.place.clone()),
        }
    }

    /// The plan that is meant: the one named, or the caller's own.
    pub(super) fn plan_name(&self, asked: Option<String>) -> Result<String, Refused> {
        asked.or_else(|| self.me.as_ref().and_then(|me| me.plan.clone())).ok_or_else(|| {
            Refused::new(
                "plan_required",
                "no plan is named, and your session belongs to none",
                "name one with `plan`, or make one with memory_plan, action create",
            )
        })
    }

    /// A root session coordinates; so does a person.
    pub(super) fn is_hub(&self) -> bool {
        self.me.as_ref().is_none_or(|me| me.lineage.ancestors.is_empty())
    }

    /// How the caller is called in papers.
    pub(super) fn name(&self) -> String {
        self.actor.name.clone()
    }

    pub(super) async fn ask(&self, ask: Ask) -> Result<Outcome, Refused> {
        let cause = Some(Cause::Request(format!("req_{:032x}", self.app.clock.random())));
        let request = Request { ask, actor: self.actor.clone(), cause, keys: Vec::new() };
        Ok(self.app.engine.ask(request).await?.outcome)
    }

    /// Writes into the session's record which plan it works on, so that people find it by its plan. A session
    /// that was made for a plan keeps that one.
    pub(super) async fn join(&self, plan: &str) -> Result<(), Refused> {
        let Some(me) = &self.me else { return Ok(()) };
        let (aliases, workspace, wanted) =
            (me.session.aliases.clone(), me.session.workspace.clone(), plan.to_owned());
        // Within a plan an alias names one session. The record stays as it is where it would name two.
        let taken = on_disk(&self.app, move |store| {
            for alias in &aliases {
                if store.alias_taken(alias, workspace.as_deref(), Some(&wanted))? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .await?;
        if taken && me.session.plan.as_deref() != Some(plan) {
            tracing::warn!(session = %me.session.id, plan, "an alias of the session is taken in the plan it joined");
            return Ok(());
        }
        let signals = vec![Signal::PlanJoined { plan: plan.to_owned() }];
        self.ask(Ask::Tell { session: me.session.id, signals }).await.map(drop)
    }

    /// Another session, if what is its own is the caller's too: itself or one below it. Operators are above all.
    pub(super) async fn is_below(&self, id: SessionId) -> Result<Loaded, Refused> {
        let me = self.id();
        on_disk(&self.app, move |store| {
            let loaded = load(store, id)?;
            match me {
                Some(me) if me != id && !loaded.lineage.ancestors.contains(&me) => Err(Refused::new(
                    "not_your_session",
                    format!(
                        "session {id} is neither yours nor below you, so its own memory is not yours to read"
                    ),
                    "use the scope workspace or plan for what others should read",
                )),
                Some(_) | None => Ok(loaded),
            }
        })
        .await
    }

    /// Another session, if the caller may look at it: itself, one below it, or one of its workspace and plan.
    pub(super) async fn visible(&self, id: SessionId) -> Result<Loaded, Refused> {
        let me = self.me.clone();
        on_disk(&self.app, move |store| {
            let loaded = load(store, id)?;
            match &me {
                Some(me) if !reaches(store, me, &loaded)? => Err(Refused::not_yours(id)),
                Some(_) | None => Ok(loaded),
            }
        })
        .await
    }
}

pub(super) fn load(store: &dyn Store, id: SessionId) -> Result<Loaded, Refused> {
    let loaded = store.load(id)?.ok_or_else(|| Refused::no_such_session(id))?;
    if loaded.session.deleted {
        return Err(Refused::new("session_deleted", format!("session {id} was deleted"), "name another one"));
    }
    Ok(loaded)
}

fn reaches(store: &dyn Store, me: &Me, other: &Loaded) -> Result<bool, Refused> {
    let session = &other.session;
    if session.id == me.session.id || other.lineage.ancestors.contains(&me.session.id) {
        return Ok(true);
    }
    if place(store, session, &other.lineage)? != me.place {
        return Ok(false);
    }
    let mates = Mates::in_workspace(store, &me.place)?;
    mates.is_at(session.id, session.plan.as_deref(), me.plan.as_deref())
}

/// Which plan the sessions of a workspace are at, whatever they call it.
pub(super) struct Mates<'a> {
    store: &'a dyn Store,
    workspace: &'a str,
    plans: Vec<lanyard_core::paper::Plan>,
}

impl<'a> Mates<'a> {
    pub(super) fn in_workspace(store: &'a dyn Store, workspace: &'a str) -> Result<Self, Refused> {
        Ok(Self { store, workspace, plans: shelf::plans(store, workspace)? })
    }

    /// Whether a session of this workspace is at the plan: it was made for it, or joined it.
    pub(super) fn is_at(
        &self,
        session: SessionId,
        made_for: Option<&str>,
        plan: Option<&str>,
    ) -> Result<bool, Refused> {
        if made_for.is_some() {
            return Ok(self.same(made_for, plan));
        }
        let joined = shelf::seat(self.store, self.workspace, session)?.plan;
        Ok(self.same(joined.as_deref(), plan))
    }

    /// Whether two names stand for one plan. No plan is a plan of its own.
    fn same(&self, one: Option<&str>, other: Option<&str>) -> bool {
        match (one, other) {
            (None, None) => true,
            (Some(one), Some(other)) => {
                one == other || self.plans.iter().any(|plan| plan.is_called(one) && plan.is_called(other))
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

/// Works with the store without holding up the runtime's threads.
pub(super) async fn on_disk<T: Send + 'static>(
    app: &Arc<ToolContext>,
    work: impl FnOnce(&dyn Store) -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refused> {
    let store = app.store.clone();
    let done = tokio::task::spawn_blocking(move || work(&*store)).await;
    done.map_err(|_| Refused::new("defect", "the work was cut off", "tell the user"))?
}
