//! Searching the texts of all sessions, or of one. The index is read beside the engine; a search ends at its deadline, and
//! when its client leaves.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use lanyard_api::types::{SearchHit, SearchIndex, SearchPage};
use lanyard_core::journal::Row;
use lanyard_core::search::{SearchFilters, SearchKind, SearchQuery};
use lanyard_core::{Address, SessionId, Timestamp};
use lanyard_git::workspace_path;
use lanyard_store::{
    Filter, IndexState, SearchStop, Store, StoreError, TextCursor, TextFound, TextPage, TextQuery,
};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::api::App;
use crate::api::context::{Target, load, missing, query};
use crate::api::guard::resolve;
use crate::problem::Problem;

type Shared = State<Arc<App>>;

const PAGE_DEFAULT: usize = 20;
pub(super) const PAGE_MAX: usize = 100;
/// Searches at a time; others wait for their turn within their deadline.
const SEARCHES_MAX: usize = 2;
/// The longest that a search takes, its waiting included.
const DEADLINE: Duration = Duration::from_secs(5);

static SEARCHES: Semaphore = Semaphore::const_new(SEARCHES_MAX);

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Asked {
    q: Option<String>,
    agent: Option<String>,
    #[serde(rename = "in")]
    folder: Option<String>,
    session: Option<String>,
    kind: Option<SearchKind>,
    since: Option<Timestamp>,
    cursor: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AskedOfSession {
    q: Option<String>,
    kind: Option<SearchKind>,
    since: Option<Timestamp>,
    cursor: Option<String>,
    limit: Option<usize>,
    // They narrow the address.
    #[serde(rename = "workspace")]
    _workspace: Option<String>,
    #[serde(rename = "plan")]
    _plan: Option<String>,
}

pub(super) async fn all(State(app): Shared, uri: Uri) -> Result<Json<SearchPage>, Problem> {
    let Asked { q, agent, folder, session, kind, since, cursor, limit } = query(&uri)?;
    let beside = SearchFilters { agent, folder, session, kind, since };
    search(&app, q, beside, None, (cursor, limit)).await
}

pub(super) async fn of_session(
    State(app): Shared,
    target: Target,
    uri: Uri,
) -> Result<Json<SearchPage>, Problem> {
    // One that is deleted is gone for searches too.
    load(&app, target.0).await?;
    let AskedOfSession { q, kind, since, cursor, limit, .. } = query(&uri)?;
    let session = Some(target.0.to_string());
    let beside = SearchFilters { session, kind, since, ..SearchFilters::default() };
    search(&app, q, beside, Some(target.0), (cursor, limit)).await
}

async fn search(
    app: &Arc<App>,
    q: Option<String>,
    beside: SearchFilters,
    only: Option<SessionId>,
    (cursor, limit): (Option<String>, Option<usize>),
) -> Result<Json<SearchPage>, Problem> {
    let limit = limit.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&limit) {
        let title = format!("`limit` is {limit}");
        return Err(Problem::bad_request("query_invalid", title, format!("use 1 to {PAGE_MAX}")));
    }
    let mut query = SearchQuery::parse(q.as_deref().unwrap_or_default(), app.clock.now())?;
    let filters = std::mem::take(&mut query.filters).and(beside)?;
    let session = match (only, filters.session) {
        (Some(only), _) => Some(only),
        (None, Some(named)) => Some(resolve(app, Address::of(named)).await?),
        (None, None) => None,
    };
    let wanted = TextQuery {
        query,
        session,
        agent: filters.agent,
        folder: filters.folder.map(|folder| workspace_path::expanded(&folder)),
        kind: filters.kind,
        since: filters.since,
    };
    let from = cursor.map(|cursor| TextCursor::parse(&cursor, &wanted)).transpose()?;
    let found = within_deadline(app, move |store, stop| {
        let TextFound::Page(page) = store.search_texts(&wanted, from.as_ref(), limit, stop)? else {
            return Ok(None);
        };
        let mut sessions: Vec<SessionId> = page.hits.iter().map(|hit| hit.session).collect();
        sessions.sort_unstable();
        sessions.dedup();
        Ok(Some((store.rows(&sessions, &Filter::default())?, page)))
    });
    let (rows, page) = found.await?;
    Ok(Json(shown(rows, page)))
}

fn shown(rows: Vec<Row>, page: TextPage) -> SearchPage {
    let rows: HashMap<SessionId, Row> = rows.into_iter().map(|row| (row.id, row)).collect();
    let hits = page.hits.into_iter().filter_map(|hit| {
        // Deleted since it was found.
        let row = rows.get(&hit.session)?;
        Some(SearchHit {
            session: hit.session,
            title: row.title.clone(),
            agent: row.agent.clone(),
            workspace: row.workspace.clone(),
            seq: hit.seq,
            last_seq: hit.last_seq,
            at: hit.at,
            kind: hit.kind,
            snippet: hit.snippet,
        })
    });
    let IndexState { indexed, end } = page.state;
    SearchPage {
        items: hits.collect(),
        next: page.next.map(|next| next.to_string()),
        index: SearchIndex { complete: page.state.is_complete(), indexed, events: end },
    }
}

/// Stops the search when nobody waits for it any more.
struct StopOnLeaving(Arc<SearchStop>);

impl Drop for StopOnLeaving {
    fn drop(&mut self) {
        self.0.stop();
    }
}

async fn within_deadline<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&dyn Store, &SearchStop) -> Result<Option<T>, StoreError> + Send + 'static,
) -> Result<T, Problem> {
    let (store, stop) = (app.store.clone(), Arc::new(SearchStop::default()));
    let _waiting = StopOnLeaving(stop.clone());
    let done = async {
        let place = SEARCHES.acquire().await.map_err(|_| missing("searcher"))?;
        let searched = tokio::task::spawn_blocking(move || {
            // Given back when the thread comes back, not when nobody waits for it any more.
            let _place = place;
            work(&*store, &stop)
        });
        searched.await.map_err(|_| missing("searcher"))?.map_err(Problem::from)
    };
    match tokio::time::timeout(DEADLINE, done).await {
        Ok(found) => found?.ok_or_else(slow),
        Err(_) => Err(slow()),
    }
}

fn slow() -> Problem {
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "search_slow",
        format!("the search was not done within {} s", DEADLINE.as_secs()),
        "look for rarer words, or in one session, folder or time",
    )
}
