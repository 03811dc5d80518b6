//! The open gates of the sessions that work at the followed tasks and flows. They are in the sessions' logs, not in those of
//! the records, so they have no position here; a client that follows a flow sees all the same when its agent asks something.

use std::sync::Arc;
use std::time::Duration;

use lanyard_core::{FlowId, FollowedKind, GateId, PlanId, TaskId};
use lanyard_store::{ChangeFilter, FollowedRef, Store, StoreError, TaskFilter};
use tokio::time::{Instant, sleep_until};

use crate::api::App;
use crate::api::context::on_disk;
use crate::approvals;
use crate::families::plans::PLANS_MAX;
use crate::problem::Problem;
use lanyard_engine::hub::{Changes, Hub, Of};

/// How often the gates are looked at while sessions change.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Changed sessions taken at a time.
const CHANGED_MAX: usize = 1_000;

pub(super) struct OpenGates {
    hub: Arc<Hub>,
    /// Records at which sessions work.
    records: Arc<[FollowedRef]>,
    /// A plan whose tasks are followed, as many as it has at the moment.
    plan: Option<PlanId>,
    /// Sessions that changed; none where neither a record nor a plan is named.
    changes: Option<Changes>,
    known: Vec<GateId>,
    /// They may be others than those the client knows.
    pub(super) stale: bool,
    looked_at: Instant,
}

impl OpenGates {
    pub(super) fn of(app: &App, filter: &ChangeFilter) -> Self {
        let worked = |of: &FollowedRef| matches!(of.kind, FollowedKind::Task | FollowedKind::Flow);
        let records: Arc<[FollowedRef]> = filter.records.iter().copied().filter(worked).collect();
        let plan = filter.plan;
        let changes = (!records.is_empty() || plan.is_some()).then(|| app.hub.changes(Of::Structure));
        let (hub, known) = (app.hub.clone(), Vec::new());
        Self { hub, stale: changes.is_some(), records, plan, changes, known, looked_at: Instant::now() }
    }

    /// The open gates, if they are others than before.
    pub(super) async fn changed(&mut self, app: &Arc<App>) -> Result<Option<Vec<GateId>>, Problem> {
        if !std::mem::take(&mut self.stale) || self.changes.is_none() {
            return Ok(None);
        }
        self.looked_at = Instant::now();
        let (records, plan) = (self.records.clone(), self.plan);
        let open = on_disk(app, move |store| open(store, &records, plan)).await?;
        if open == self.known {
            return Ok(None);
        }
        self.known.clone_from(&open);
        Ok(Some(open))
    }

    /// Comes back when sessions changed; never, where there are none to look at.
    pub(super) async fn stir(&mut self) {
        let Some(changes) = &self.changes else { return std::future::pending().await };
        // A daemon that ends, or more changes than are kept: the gates are looked at once more, from here on.
        if changes.wait().await.is_err() {
            sleep_until(self.looked_at + LOOK_EVERY).await;
            self.changes = Some(self.hub.changes(Of::Structure));
        } else {
            sleep_until(self.looked_at + LOOK_EVERY).await;
            while changes.take(CHANGED_MAX).len() == CHANGED_MAX {}
        }
        self.stale = true;
    }
}

fn open(store: &dyn Store, records: &[FollowedRef], plan: Option<PlanId>) -> Result<Vec<GateId>, StoreError> {
    let mut sessions = Vec::new();
    if plan.is_some() {
        let at_work = TaskFilter { plan, ended: Some(false), ..TaskFilter::default() };
        sessions.extend(store.tasks(&at_work, None, PLANS_MAX)?.into_iter().filter_map(|task| task.session));
    }
    for of in records {
        if of.kind == FollowedKind::Flow {
            let flow = store.flow(FlowId::from_u128(of.id))?;
            sessions.extend(flow.into_iter().flat_map(|flow| flow.sessions_at_work()));
        } else {
            let task = store.task(TaskId::from_u128(of.id))?.filter(|task| !task.state.is_ended());
            sessions.extend(task.and_then(|task| task.session));
        }
    }
    Ok(approvals::open(store, sessions)?.into_iter().map(|entry| entry.gate.id).collect())
}
