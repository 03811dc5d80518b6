//! Conversations in the agents' own histories: what there is, and making a session of one.
//!
//! The daemon reads them, where the agents it starts look for them. What was read is written like every other event:
//! without secrets, in one commit with the session it belongs to.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use lanyard_agents::history::{
    self, HistoryError, HistoryHeader, HistoryKind, HistoryListing, HistoryMark, HistoryPlaces, HistoryQuery,
    PastConversation, history_of, runs,
};
use lanyard_api::types::{HistoryEntry, HistoryPage, HistoryProblem, ImportReceipt, NewImport};
use lanyard_core::redact::RedactionScope;
use lanyard_core::session::{IMPORTED, NewSession};
use lanyard_core::{Address, SessionId};
use lanyard_git::workspace_path;
use lanyard_store::{Filter, Store, StoreError};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::api::App;
use crate::api::context::{Change, missing, on_disk, query};
use crate::problem::Problem;
use lanyard_engine::engine::{Ask, Request};

type Shared = State<Arc<App>>;

const PAGE_DEFAULT: usize = 20;
pub(super) const PAGE_MAX: usize = 100;
/// Sessions of one folder whose conversations are compared with a history.
const SAME_FOLDER_MAX: usize = 2_000;
/// Rows of the directory that are read at a time.
const ROWS: usize = 256;
/// Histories that are read at once: each may be large.
const READERS_MAX: usize = 2;
/// How long reading one may take.
const READ_WAIT: Duration = Duration::from_mins(2);

static READERS: Semaphore = Semaphore::const_new(READERS_MAX);

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Asked {
    agent: Option<String>,
    workspace: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
}

pub(super) async fn list(State(app): Shared, uri: Uri) -> Result<Json<HistoryPage>, Problem> {
    let Asked { agent, workspace, cursor, limit } = query(&uri)?;
    let limit = limit.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&limit) {
        let title = format!("`limit` is {limit}");
        return Err(Problem::bad_request("query_invalid", title, format!("use 1 to {PAGE_MAX}")));
    }
    let unreadable = || {
        Problem::bad_request("cursor_unreadable", "the cursor cannot be read", "start again without a cursor")
    };
    let after = cursor.map(|cursor| HistoryMark::read(&cursor).ok_or_else(unreadable)).transpose()?;
    let kinds = match agent {
        Some(agent) => vec![kind(&app, &agent)?],
        None => Vec::new(),
    };
    let folder = workspace.map(|folder| workspace_path::expanded(&folder));
    let places = places(&app);
    let wanted = HistoryQuery { kinds, folder, after, limit };
    let HistoryListing { items, next, problems } = reading(move || history::list(&places, &wanted)).await?;
    let (known, items) = on_disk(&app, move |store| Ok((sessions(store, &items)?, items))).await?;
    let problems = problems.into_iter();
    Ok(Json(HistoryPage {
        items: items.into_iter().map(|item| entry(item, &known)).collect(),
        next: next.map(|mark| mark.write()),
        problems: problems
            .map(|(kind, what)| HistoryProblem { agent: kind.as_str().to_owned(), what })
            .collect(),
    }))
}

pub(super) async fn import(State(app): Shared, change: Change<NewImport>) -> Result<Response, Problem> {
    let NewImport { agent, native, title, .. } = change.body.clone();
    let kind = kind(&app, &agent)?;
    let places = places(&app);
    let past = reading(move || history::read(&places, kind, &native)).await??;
    // One of two requests for the same conversation waits for the other.
    let place = format!("import\0{}\0{}", kind.as_str(), past.header.native);
    let mut key = [0; 16];
    key.copy_from_slice(&blake3::hash(place.as_bytes()).as_bytes()[..16]);
    let lock = app.underway.lock(key);
    let _held = lock.lock().await;
    let headers = vec![past.header.clone()];
    let known = on_disk(&app, move |store| sessions(store, &headers)).await?;
    if let Some(session) = known.get(&past.header.native) {
        let receipt = receipt(*session, &past, (true, Vec::new()));
        return Ok((StatusCode::OK, Json(receipt)).into_response());
    }
    let (agent, mut warnings) = goes_on(&app, &agent, kind);
    match &past.header.folder {
        Some(folder) => {
            warnings.extend(workspace_path::check(folder).await.err().map(|missing| missing.to_string()));
        }
        None => warnings.push("its history does not name the folder it worked in".to_owned()),
    }
    let id = SessionId::mint(app.clock.now(), app.clock.random());
    // The words of the conversation may hold a secret, and its title is made of them.
    let shown = past.header.title.clone();
    let shown = shown.map(|title| app.hub.redaction.text(title, RedactionScope::All));
    let new = NewSession {
        title: title.or(shown),
        agent: Some(agent),
        source: Some(IMPORTED.to_owned()),
        workspace: past.header.folder.clone(),
        aliases: vec![past.header.native.clone()],
        native: Some(past.header.native.clone()),
        ..NewSession::default()
    };
    let receipt = receipt(id, &past, (false, warnings));
    let PastConversation { import, events, .. } = past;
    let ask = Ask::Import { id, new: Box::new(new), import: Box::new(import), past: events };
    let request = Request { ask, actor: change.actor, cause: change.cause, keys: Vec::new() };
    app.engine.ask(request).await?;
    Ok((StatusCode::CREATED, Json(receipt)).into_response())
}

/// A program by its own name, or by that of an agent of the config.
fn kind(app: &App, name: &str) -> Result<HistoryKind, HistoryError> {
    let configured = || app.agents.settings(name).as_ref().and_then(history_of);
    HistoryKind::named(name).or_else(|unknown| configured().ok_or(unknown))
}

fn places(app: &App) -> HistoryPlaces {
    HistoryPlaces::new(app.config.now().agents.iter())
}

/// The agent that goes on with an imported conversation, and what is wrong with it.
fn goes_on(app: &App, asked: &str, kind: HistoryKind) -> (String, Vec<String>) {
    let in_use = app.config.now();
    let named = app.agents.settings(asked).filter(|settings| history_of(settings) == Some(kind));
    let chosen = named.map(|_| asked.to_owned());
    let chosen = chosen.or_else(|| runs(kind, in_use.agents.iter()).map(|(name, _)| name.clone()));
    if let Some(name) = chosen {
        return (name, Vec::new());
    }
    let why = format!("no agent of the config runs {}: add it with `lanyard init`", kind.title());
    (kind.as_str().to_owned(), vec![why])
}

/// Reads on a thread of its own, with a bound on the time and on the readers.
async fn reading<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    let done = async {
        let place = READERS.acquire().await.map_err(|_| missing("reader"))?;
        let read = tokio::task::spawn_blocking(move || {
            // Given back when the thread comes back, not when nobody waits for it any more.
            let _place = place;
            read()
        });
        read.await.map_err(|_| missing("reader"))
    };
    tokio::time::timeout(READ_WAIT, done).await.unwrap_or_else(|_| {
        Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "history_slow",
            format!("the history was not read within {} s", READ_WAIT.as_secs()),
            "see whether the disk of the history answers, and try again",
        ))
    })
}

/// The sessions of these conversations, by the agents' own ids: imported ones and those of hooks by their alias, those of
/// Lanyard's runs by what their records say.
fn sessions(store: &dyn Store, headers: &[HistoryHeader]) -> Result<HashMap<String, SessionId>, StoreError> {
    let mut known = HashMap::new();
    let mut wanted: HashMap<&str, HashSet<&str>> = HashMap::new();
    for header in headers {
        let found = store.find(&Address::of(header.native.clone()))?;
        match (found.iter().find(|found| !found.deleted), &header.folder) {
            (Some(found), _) => {
                known.insert(header.native.clone(), found.session);
            }
            (None, Some(folder)) => {
                wanted.entry(folder).or_default().insert(&header.native);
            }
            (None, None) => {}
        }
    }
    for (folder, mut natives) in wanted {
        let filter = Filter { workspace: Some(folder.to_owned()), ..Filter::default() };
        let (mut cursor, mut looked) = (None, 0);
        while !natives.is_empty() && looked < SAME_FOLDER_MAX {
            let page = store.list(&filter, cursor.as_ref(), ROWS)?;
            for row in &page.rows {
                let held = store.load(row.id)?.and_then(|loaded| loaded.session.native);
                if let Some(native) = held.filter(|native| natives.remove(native.as_str())) {
                    known.insert(native, row.id);
                }
            }
            looked += page.rows.len();
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(known)
}

fn entry(header: HistoryHeader, known: &HashMap<String, SessionId>) -> HistoryEntry {
    let session = known.get(&header.native).copied();
    let HistoryHeader { kind, native, title, folder, updated_at, bytes, messages, .. } = header;
    let agent = kind.as_str().to_owned();
    HistoryEntry { agent, native, title, workspace: folder, updated_at, messages, bytes, session }
}

fn receipt(
    session: SessionId,
    past: &PastConversation,
    (existing, warnings): (bool, Vec<String>),
) -> ImportReceipt {
    let import = &past.import;
    let taken = |n: u64| if existing { 0 } else { n };
    ImportReceipt {
        session,
        agent: import.from.clone(),
        native: past.header.native.clone(),
        existing,
        messages: taken(import.messages),
        events: taken(import.events),
        left_out: taken(import.left_out),
        unreadable: taken(import.unreadable),
        warnings,
    }
}
