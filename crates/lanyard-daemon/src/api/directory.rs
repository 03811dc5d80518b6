//! Looking at sessions: one, a page, a family, a log. Everything is read from the journal; the engine is not asked.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{Runtime, SessionDetail, SessionPage, SessionRow, TreeNode};
use lanyard_core::journal::Row;
use lanyard_core::session::{Lifecycle, OperatorState, Pending, StateName, Status, view};
use lanyard_core::{Address, MemoryMode, SessionId};
use lanyard_store::{Cursor, EventPage, Filter, Loaded, PlanWord, Sort, Store, StoreError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::App;
use crate::api::choices::offer_of;
use crate::api::context::{Target, load, on_disk, query};
use crate::api::guard::resolve;
use crate::api::lacks;
use crate::families::plans;
use crate::problem::Problem;
use lanyard_engine::hub::{EventReader, ReaderWant, events_json};

/// Sessions of one page.
pub(super) const PAGE_MAX: usize = 1_000;
const PAGE_DEFAULT: usize = 100;
/// Events of one page.
pub(super) const EVENTS_MAX: usize = 1_000;
/// Bytes of events after which a page is full, and how many are read before looking.
const EVENTS_BYTES_MAX: usize = 4 << 20;
const EVENTS_STEP: usize = 64;
/// Sessions of one tree.
const TREE_MAX: usize = 1_000;

type Shared = State<Arc<App>>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ListQuery {
    status: Option<StatusWord>,
    lifecycle: Option<Lifecycle>,
    state: Option<StateName>,
    operator_state: Option<OperatorState>,
    source: Option<String>,
    owner: Option<String>,
    agent: Option<String>,
    workspace: Option<String>,
    plan: Option<String>,
    parent: Option<String>,
    memory_mode: Option<MemoryMode>,
    archived: Option<bool>,
    text: Option<String>,
    live: Option<bool>,
    attention: Option<bool>,
    sort: Option<Sort>,
    pub(super) cursor: Option<String>,
    pub(super) limit: Option<usize>,
}

/// The values of `status` in a listing: the status words and the lifecycle markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StatusWord {
    Active,
    Stopping,
    Stopped,
    Completed,
    Running,
    Idle,
    Terminal,
}

impl StatusWord {
    const fn status(self) -> Option<Status> {
        match self {
            Self::Active => Some(Status::Active),
            Self::Stopping => Some(Status::Stopping),
            Self::Stopped => Some(Status::Stopped),
            Self::Completed => Some(Status::Completed),
            Self::Running | Self::Idle | Self::Terminal => None,
        }
    }

    const fn lifecycle(self) -> Option<Lifecycle> {
        match self {
            Self::Running => Some(Lifecycle::Running),
            Self::Idle => Some(Lifecycle::Idle),
            Self::Terminal => Some(Lifecycle::Terminal),
            Self::Active | Self::Stopping | Self::Stopped | Self::Completed => None,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EventsQuery {
    after: Option<u64>,
    tail: Option<u64>,
    limit: Option<usize>,
}

pub(super) async fn list(State(app): Shared, uri: Uri) -> Result<Json<SessionPage>, Problem> {
    let query: ListQuery = query(&uri)?;
    let limit = bounded("limit", query.limit, PAGE_DEFAULT, PAGE_MAX)?;
    let cursor = query.cursor.clone();
    let filter = filter(&app, query).await?;
    let cursor = cursor.map(|text| Cursor::parse(&text, &filter)).transpose()?;
    let trees = app.trees.clone();
    let (listing, branches) = on_disk(&app, move |store| {
        let listing = store.list(&filter, cursor.as_ref(), limit)?;
        let branches = trees.branches(&listing.rows)?;
        Ok((listing, branches))
    })
    .await?;
    let mut sessions = with_runtime(&app, listing.rows);
    for (session, branch) in sessions.iter_mut().zip(branches) {
        session.branch = branch;
    }
    Ok(Json(SessionPage { sessions, next: listing.next.map(|next| next.to_string()) }))
}

/// Rows with what is not in the journal.
pub(super) fn with_runtime(app: &App, rows: Vec<Row>) -> Vec<SessionRow> {
    let counts = app.presence.counts(rows.iter().map(|row| row.id));
    rows.into_iter()
        .zip(counts)
        .map(|(row, count)| SessionRow {
            runtime: Runtime::new(row.state, row.last_seq, count),
            branch: None,
            glance: None,
            row,
        })
        .collect()
}

pub(super) async fn filter(app: &Arc<App>, query: ListQuery) -> Result<Filter, Problem> {
    let parent = match query.parent {
        Some(parent) => Some(resolve(app, Address::of(parent)).await?),
        None => None,
    };
    let plan_also = match &query.plan {
        Some(plan) => other_word(app, plan.clone(), query.workspace.clone()).await?,
        None => None,
    };
    let marker = query.status.and_then(StatusWord::lifecycle);
    if let (Some(marker), Some(asked)) = (marker, query.lifecycle)
        && marker != asked
    {
        return Err(Problem::bad_request(
            "query_conflict",
            "`status` and `lifecycle` ask for different lifecycles",
            "send one of them",
        ));
    }
    let live_since = query
        .live
        .filter(|live| *live)
        .map(|_| app.clock.now().minus_millis(app.config.rules().staleness.prune_after_ms));
    Ok(Filter {
        status: query.status.and_then(StatusWord::status),
        lifecycle: marker.or(query.lifecycle),
        state: query.state,
        operator_state: query.operator_state,
        source: query.source,
        owner: query.owner,
        agent: query.agent,
        workspace: query.workspace,
        plan: query.plan,
        plan_also,
        parent,
        memory_mode: query.memory_mode,
        archived: query.archived,
        owed: None,
        live_since,
        text: query.text,
        attention: query.attention.unwrap_or(false),
        silent_since: Some(app.clock.now().minus_millis(app.config.rules().staleness.suspect_after_ms)),
        sort: query.sort.unwrap_or_default(),
    })
}

/// A plan has an id and may have a name; sessions know it by either. The name counts in the plan's workspace alone.
async fn other_word(
    app: &Arc<App>,
    word: String,
    workspace: Option<String>,
) -> Result<Option<PlanWord>, Problem> {
    on_disk(app, move |store| {
        // A word that names no plan, or several, stands for itself.
        let Ok((place, plan)) = plans::find(store, &word, workspace.as_deref()) else { return Ok(None) };
        if word.parse() == Ok(plan.id) {
            return Ok(plan.name.map(|name| PlanWord { plan: name, workspace: Some(place) }));
        }
        Ok(Some(PlanWord { plan: plan.id.to_string(), workspace: None }))
    })
    .await
}

pub(super) async fn get(State(app): Shared, target: Target) -> Result<Json<SessionDetail>, Problem> {
    let loaded = load(&app, target.0).await?;
    let id = loaded.session.id;
    let waits_below = on_disk(&app, move |store| store.waits_below(id)).await?;
    let mut view = view(&loaded.session, &loaded.lineage, app.clock.now(), &app.config.rules().staleness);
    // Whose child waits for a person waits with it.
    view.suspected_orphan &= !waits_below;
    let runtime = Runtime::new(view.state, view.last_seq, app.presence.count(view.id));
    let offer = offer_of(&app, &loaded.session).await?;
    let lacks = lacks::of(&app, &loaded.session, offer.as_ref()).await?;
    Ok(Json(SessionDetail { view, runtime, offer, lacks, damage: loaded.damage }))
}

pub(super) async fn tree(State(app): Shared, target: Target) -> Result<Json<TreeNode>, Problem> {
    let root = row(&load(&app, target.0).await?);
    let tree = on_disk(&app, move |store| grow(store, root, &mut TREE_MAX.clone())).await?;
    Ok(Json(tree))
}

/// Adds the children, and theirs, while `room` lasts.
fn grow(store: &dyn Store, session: Row, room: &mut usize) -> Result<TreeNode, StoreError> {
    let filter = Filter { parent: Some(session.id), ..Filter::default() };
    let listing = store.list(&filter, None, (*room).clamp(1, PAGE_MAX))?;
    let mut truncated = listing.next.is_some();
    let mut children = Vec::new();
    // Listed newest first; a tree reads from the oldest.
    for child in listing.rows.into_iter().rev() {
        if *room == 0 {
            truncated = true;
            break;
        }
        *room -= 1;
        children.push(grow(store, child, room)?);
    }
    Ok(TreeNode { session, children, truncated })
}

fn row(loaded: &Loaded) -> Row {
    let session = &loaded.session;
    let pending = Pending::of(session);
    let attention = pending.attention(session.state.name(), session.state.cause(), false);
    Row {
        id: session.id,
        title: session.title.clone(),
        agent: session.hands.agent.clone(),
        owner: session.hands.owner.clone(),
        source: session.source.clone(),
        driven_by: Some(session.driver()),
        workspace: session.workspace.clone(),
        plan: session.plan.clone(),
        parent: session.parent,
        state: session.state.name(),
        cause: session.state.cause(),
        status: session.status(),
        lifecycle: session.state.name().lifecycle(),
        operator_state: session.operator_state(),
        unread: pending.unread,
        level: loaded.lineage.level(),
        memory_mode: session.policy.memory.mode,
        archived: session.archived,
        turns: session.turns,
        since: session.since,
        created_at: session.created_at,
        last_activity_at: session.last_activity_at,
        last_seq: session.seq,
        pending,
        attention,
    }
}

/// A page as JSON, or a live stream for clients that accept `text/event-stream`.
pub(super) async fn events(
    State(app): Shared,
    target: Target,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query: EventsQuery = query(&uri)?;
    let limit = bounded("limit", query.limit, PAGE_DEFAULT, EVENTS_MAX)?;
    let streaming = accepts_stream(&headers);
    let resumed = last_event_id(&headers)?;
    let id = target.0;
    let (known, head) = on_disk(&app, move |store| {
        let known = store.find(&Address::of(id.to_string()))?.first().copied();
        Ok((known, store.events(id, 0, 0)?.head))
    })
    .await?;
    match known {
        None => return Err(Problem::not_found(id)),
        Some(found) if found.deleted => return Err(Problem::deleted(id)),
        Some(_) => {}
    }
    // Where the client left off says more than where it once began.
    let after = match (resumed, query.after, query.tail) {
        (Some(seq), _, _) => seq,
        (None, Some(_), Some(_)) => {
            return Err(Problem::bad_request(
                "query_invalid",
                "`after` and `tail` exclude each other",
                "send one",
            ));
        }
        (None, Some(after), None) => after,
        (None, None, Some(tail)) => head.saturating_sub(tail),
        (None, None, None) => 0,
    };
    if after > head {
        return Err(Problem::bad_request(
            "position_ahead_of_log",
            format!("position {after} is past the end of the log, which is {head}"),
            "start from a position that exists",
        ));
    }
    if streaming {
        // The end was read before the place was taken, so the journal is asked again.
        let place = app.hub.join(id, ReaderWant::Events);
        let body = Body::new(EventReader::new(place, app.store.clone(), after, u64::MAX));
        let kind = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
        return Ok((StatusCode::OK, kind, body).into_response());
    }
    let page = on_disk(&app, move |store| page_of(store, id, after, limit)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], events_json(id, &page)).into_response())
}

/// Up to `limit` events, or as many as fit: a page of large events is shorter, and says by its head that there is more.
fn page_of(store: &dyn Store, id: SessionId, after: u64, limit: usize) -> Result<EventPage, StoreError> {
    let mut page = store.events(id, after, limit.min(EVENTS_STEP))?;
    let mut bytes: usize = size(&page);
    while let Some(last) = page.events.last().map(|event| event.seq)
        && last < page.head
        && page.events.len() < limit
        && bytes < EVENTS_BYTES_MAX
    {
        let more = store.events(id, last, EVENTS_STEP.min(limit - page.events.len()))?;
        if more.events.is_empty() {
            break;
        }
        bytes += size(&more);
        page.events.extend(more.events);
        page.head = more.head;
    }
    Ok(page)
}

fn size(page: &EventPage) -> usize {
    page.events.iter().filter_map(|event| event.body.as_ref().ok()).map(bytes::Bytes::len).sum()
}

fn accepts_stream(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "text/event-stream"))
}

pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let seq = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    seq.map(Some).ok_or_else(|| {
        Problem::bad_request(
            "last_event_id_bad",
            "the Last-Event-ID is not a position in the log",
            "send the `id` of the last event that arrived",
        )
    })
}

pub(super) fn bounded(
    name: &str,
    asked: Option<usize>,
    default: usize,
    max: usize,
) -> Result<usize, Problem> {
    match asked {
        None => Ok(default),
        Some(asked) if (1..=max).contains(&asked) => Ok(asked),
        Some(asked) => Err(Problem::bad_request(
            "query_invalid",
            format!("`{name}` is {asked}"),
            format!("use 1 to {max}"),
        )),
    }
}
