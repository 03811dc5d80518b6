//! Memory over HTTP. Operators reach all of it; an agent reaches it through its own session, whose policy judges it.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use lanyard_api::types::{
    Forget, Forgotten, Imported, MemoryImport, MemoryPage, MemoryPolicyEdit, MemoryPolicySet,
    MemoryPolicyView, MemoryRow, MemoryStatus, NewMemory, NewSessionMemory, NotImported, Reason,
};
use lanyard_core::memory::{MemoryEntry, MemoryRefusal, MemoryScope, Rule, Source, Where, readable, tag};
use lanyard_core::{Actor, Address, MemoryId, SessionId};
use lanyard_store::{MemoryFilter, Store};
use serde::Deserialize;

use crate::api::App;
use crate::api::context::{Change, Repeats, Target, missing, query};
use crate::api::guard::resolve;
use crate::memory::{self, Brought, Judged, MemoryError, Wish};
use crate::problem::Problem;
use lanyard_engine::engine::Key;

type Shared = State<Arc<App>>;

/// Entries of one page, and of one search.
const PAGE_DEFAULT: usize = 50;
pub(super) const PAGE_MAX: usize = 500;
/// Entries one request may forget, or bring in.
const FORGET_MAX: usize = 1_000;
const IMPORT_MAX: usize = 500;
/// Characters of a refused entry's fault that are told.
const FAULT_CHARS_MAX: usize = 200;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Asked {
    query: Option<String>,
    store: Option<Where>,
    scope: Option<MemoryScope>,
    workspace: Option<String>,
    owner: Option<String>,
    plan: Option<String>,
    session: Option<String>,
    /// Tags the entry has, separated by commas.
    tags: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
}

/// Works with the store without holding up the runtime's threads.
async fn on_disk<T: Send + 'static>(
    app: &Arc<App>,
    work: impl FnOnce(&Arc<App>, &dyn Store) -> Result<T, MemoryError> + Send + 'static,
) -> Result<T, Problem> {
    let app = app.clone();
    let done = tokio::task::spawn_blocking(move || work(&app, &*app.store)).await;
    done.map_err(|_| missing("worker"))?.map_err(Problem::from)
}

async fn found_session(app: &Arc<App>, named: Option<String>) -> Result<Option<SessionId>, Problem> {
    match named {
        Some(named) => resolve(app, Address::of(named)).await.map(Some),
        None => Ok(None),
    }
}

fn tags_of(text: Option<&str>) -> Result<lanyard_core::memory::Tags, MemoryError> {
    let texts: Vec<&str> =
        text.unwrap_or_default().split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
    Ok(tag::parse("tags", &texts)?)
}

pub(super) async fn status(State(app): Shared) -> Result<Json<MemoryStatus>, Problem> {
    let status = on_disk(&app, |app, store| {
        let count =
            |which| store.count_memories(&MemoryFilter { store: Some(which), ..MemoryFilter::default() });
        Ok(MemoryStatus {
            mode: app.memories.memory.switch(),
            session_entries: count(Where::Session)?,
            long_term_entries: count(Where::LongTerm)?,
            refused: app.memories.memory.refused(),
            embeddings: app.memories.memory.embedder().map(|embedder| embedder.model().to_owned()),
            embeddings_trouble: app.memories.memory.embedder().and_then(memory::Embedder::trouble),
        })
    });
    status.await.map(Json)
}

pub(super) async fn list(State(app): Shared, uri: Uri) -> Result<Json<MemoryPage>, Problem> {
    let mut asked: Asked = query(&uri)?;
    let filter = MemoryFilter {
        store: asked.store,
        scope: asked.scope,
        workspace: asked.workspace.take(),
        owner: asked.owner.take(),
        plan: asked.plan.take(),
        session: found_session(&app, asked.session.take()).await?,
        tags: tags_of(asked.tags.as_deref())?,
        seen_by: None,
    };
    page(&app, filter, asked).await
}

/// What one session sees, as its policy has it.
pub(super) async fn of_session(
    State(app): Shared,
    target: Target,
    uri: Uri,
) -> Result<Json<MemoryPage>, Problem> {
    let asked: Asked = query(&uri)?;
    let store = asked.store;
    let viewer = on_disk(&app, move |app, disk| {
        app.memories.memory.on()?;
        let standing = memory::standing(disk, target.0)?;
        let policy = &standing.policy;
        let open = |which: Where| store.is_none_or(|wanted| wanted == which) && readable(policy, which);
        if !Where::ALL.into_iter().any(open) {
            let off = policy.mode == lanyard_core::MemoryMode::Off;
            let rule = if off { Rule::Off } else { Rule::NoSessionMemory };
            return Err(MemoryRefusal::Forbidden(rule).into());
        }
        let plan = standing.session.plan.clone();
        standing.viewer(disk, plan)
    })
    .await?;
    let filter = MemoryFilter {
        store,
        scope: asked.scope,
        tags: tags_of(asked.tags.as_deref())?,
        seen_by: Some(viewer),
        ..MemoryFilter::default()
    };
    page(&app, filter, asked).await
}

async fn page(app: &Arc<App>, filter: MemoryFilter, asked: Asked) -> Result<Json<MemoryPage>, Problem> {
    app.memories.memory.on()?;
    let limit = asked.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    if let Some(words) = asked.query.filter(|words| !words.trim().is_empty()) {
        let found = memory::search(&app.memories, filter, &words, limit).await?;
        let row = |hit: memory::Hit| MemoryRow { entry: hit.entry, excerpt: Some(hit.excerpt) };
        return Ok(Json(MemoryPage {
            entries: found.hits.into_iter().map(row).collect(),
            found_by: found.by,
            warnings: found.warnings,
            next: None,
        }));
    }
    let before = asked.cursor.as_deref().map(memory_id).transpose()?;
    let mut entries = on_disk(app, move |_, store| Ok(store.memories(&filter, before, limit + 1)?)).await?;
    let more = entries.len() > limit;
    entries.truncate(limit);
    let next = entries.last().filter(|_| more).map(|entry| entry.id.to_string());
    let entries = entries.into_iter().map(|entry| MemoryRow { entry, excerpt: None }).collect();
    Ok(Json(MemoryPage { entries, found_by: Vec::new(), warnings: Vec::new(), next }))
}

fn memory_id(text: &str) -> Result<MemoryId, Problem> {
    text.parse().map_err(|error| {
        Problem::bad_request(
            "memory_id_bad",
            format!("`{text}` is not the id of an entry: {error}"),
            "list what there is with `lanyard memory search`",
        )
    })
}

pub(super) async fn get(State(app): Shared, Path(id): Path<String>) -> Result<Json<MemoryEntry>, Problem> {
    let id = memory_id(&id)?;
    let entry = on_disk(&app, move |app, store| {
        app.memories.memory.on()?;
        store.memory(id)?.ok_or(MemoryError::NoEntry(id))
    });
    entry.await.map(Json)
}

pub(super) async fn add(State(app): Shared, change: Change<NewMemory>) -> Result<Response, Problem> {
    if let Some(repeats) = &change.repeats {
        return again(&app, repeats).await;
    }
    let NewMemory { text, name, scope, tags, session, workspace, owner, plan, version } = change.body;
    let session = found_session(&app, session).await?;
    let scope =
        scope.unwrap_or(if session.is_some() { MemoryScope::Session } else { MemoryScope::Workspace });
    let owner = owner.unwrap_or_else(|| change.actor.name.clone());
    let workspace = workspace.unwrap_or_default();
    let (by, source, request) = (change.actor, Source::Api, request_of(&change.keys));
    let wish =
        Wish { session, scope, plan, name, text, tags, workspace, owner, by, source, request, version };
    write(&app, wish).await
}

/// In the session's name, by its own agent or an operator.
pub(super) async fn add_to_session(
    State(app): Shared,
    target: Target,
    change: Change<NewSessionMemory>,
) -> Result<Response, Problem> {
    if let Some(repeats) = &change.repeats {
        return again(&app, repeats).await;
    }
    let NewSessionMemory { text, name, scope, tags, version } = change.body;
    let plan = on_disk(&app, move |_, store| Ok(memory::standing(store, target.0)?.session.plan)).await?;
    let wish = Wish {
        session: Some(target.0),
        scope: scope.unwrap_or(MemoryScope::Session),
        plan,
        name,
        text,
        tags,
        workspace: String::new(),
        owner: String::new(),
        by: change.actor,
        source: Source::Api,
        request: request_of(&change.keys),
        version,
    };
    write(&app, wish).await
}

/// The entry that a request made earlier, as it is now. Its words are kept nowhere else, and a repeat brings none back.
async fn again(app: &Arc<App>, repeats: &Repeats) -> Result<Response, Problem> {
    let id = repeats.id.as_deref().map(memory_id).transpose()?;
    let held = on_disk(app, move |_, store| Ok(id.map(|id| store.memory(id)).transpose()?.flatten()));
    match held.await? {
        Some(entry) => Ok((StatusCode::CREATED, Json(entry)).into_response()),
        None => Err(Problem::new(
            StatusCode::GONE,
            "memory_forgotten",
            "the entry that was made under this key was forgotten since",
            "use another key to remember it again",
        )),
    }
}

/// The name of a request that has a key.
fn request_of(keys: &[Key]) -> Option<String> {
    keys.first().map(|key| format!("{:032x}", u128::from_be_bytes(key.key)))
}

async fn write(app: &Arc<App>, wish: Wish) -> Result<Response, Problem> {
    let entry =
        on_disk(app, move |app, store| memory::write(&app.memories.memory, store, &app.clock, wish)).await?;
    Ok((StatusCode::CREATED, Json(entry)).into_response())
}

pub(super) async fn forget_one(
    State(app): Shared,
    Path(id): Path<String>,
    _: Change<Reason>,
) -> Result<Json<Forgotten>, Problem> {
    let id = memory_id(&id)?;
    let forgotten = on_disk(&app, move |app, store| {
        match memory::forget(&app.memories.memory, store, &app.clock, None, &[id])? {
            0 => Err(MemoryError::NoEntry(id)),
            gone => Ok(Forgotten { forgotten: gone as u64, more: false }),
        }
    });
    forgotten.await.map(Json)
}

pub(super) async fn forget(State(app): Shared, change: Change<Forget>) -> Result<Json<Forgotten>, Problem> {
    let Forget { ids, tags, session, workspace, owner, store: which, dry_run } = change.body;
    let conditions =
        !tags.is_empty() || session.is_some() || workspace.is_some() || owner.is_some() || which.is_some();
    if ids.len() > FORGET_MAX || conditions != ids.is_empty() {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "forget_what",
            format!("either up to {FORGET_MAX} ids are named, or conditions; all there is is never meant"),
            "name `ids`, or `tags`, `session`, `workspace`, `owner` or `store`",
        ));
    }
    let session = found_session(&app, session).await?;
    let tags = tag::parse("tags", &tags).map_err(MemoryError::from)?;
    let filter = MemoryFilter { store: which, workspace, owner, session, tags, ..MemoryFilter::default() };
    let forgotten = on_disk(&app, move |app, store| {
        app.memories.memory.on()?;
        let (ids, more) = if conditions {
            let found = store.memories(&filter, None, FORGET_MAX + 1)?;
            let more = found.len() > FORGET_MAX;
            (found.iter().take(FORGET_MAX).map(|entry| entry.id).collect(), more)
        } else {
            (ids, false)
        };
        if dry_run {
            let mut there = 0;
            for id in &ids {
                there += u64::from(store.memory(*id)?.is_some());
            }
            return Ok(Forgotten { forgotten: there, more });
        }
        let gone = memory::forget(&app.memories.memory, store, &app.clock, None, &ids)?;
        Ok(Forgotten { forgotten: gone as u64, more })
    });
    forgotten.await.map(Json)
}

/// All of it as JSON lines, newest first, a page at a time.
pub(super) async fn export(State(app): Shared, uri: Uri) -> Result<Response, Problem> {
    app.memories.memory.on()?;
    let mut asked: Asked = query(&uri)?;
    let filter = MemoryFilter {
        store: asked.store,
        workspace: asked.workspace.take(),
        owner: asked.owner.take(),
        session: found_session(&app, asked.session.take()).await?,
        tags: tags_of(asked.tags.as_deref())?,
        ..MemoryFilter::default()
    };
    let begin = (app, filter, Some(None));
    let pages = futures_util::stream::try_unfold(begin, |(app, filter, before)| async move {
        let Some(before) = before else { return Ok(None) };
        let asked = filter.clone();
        let page = on_disk(&app, move |_, store| Ok(store.memories(&asked, before, PAGE_MAX)?)).await;
        // The answer has begun: all that can be done is to break it off, so that it is not taken for whole.
        let page = page.map_err(|problem| std::io::Error::other(problem.title))?;
        let next = page.last().filter(|_| page.len() == PAGE_MAX).map(|entry| Some(entry.id));
        let mut lines = Vec::new();
        for entry in &page {
            serde_json::to_writer(&mut lines, entry)?;
            lines.push(b'\n');
        }
        Ok::<_, std::io::Error>(Some((Bytes::from(lines), (app, filter, next))))
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(pages)).into_response())
}

pub(super) async fn import(
    State(app): Shared,
    change: Change<MemoryImport>,
) -> Result<Json<Imported>, Problem> {
    let values = change.body.entries;
    if values.len() > IMPORT_MAX {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "field_too_many",
            format!("entries has more than {IMPORT_MAX} entries"),
            "send fewer at a time, as `lanyard memory import` does",
        ));
    }
    let mut answer = Imported::default();
    let (mut entries, mut places) = (Vec::new(), Vec::new());
    for (index, value) in (0_u64..).zip(values) {
        match serde_json::from_value::<MemoryEntry>(value) {
            Ok(entry) => {
                entries.push(entry);
                places.push(index);
            }
            Err(error) => answer.refused.push(NotImported {
                index,
                code: "entry_invalid".to_owned(),
                title: lanyard_core::text::cut(&error.to_string(), FAULT_CHARS_MAX).0.to_owned(),
                advice: "compare it with a line of `lanyard memory export`".to_owned(),
            }),
        }
    }
    let brought =
        on_disk(&app, move |app, store| memory::import(&app.memories.memory, store, &app.clock, entries))
            .await?;
    for (index, brought) in places.into_iter().zip(brought) {
        match brought {
            Brought::In => answer.imported += 1,
            Brought::Known => answer.known += 1,
            Brought::Refused(error) => answer.refused.push(NotImported {
                index,
                code: error.code().to_owned(),
                title: error.to_string(),
                advice: error.advice(),
            }),
        }
    }
    answer.refused.sort_by_key(|refused| refused.index);
    Ok(Json(answer))
}

fn shown(judged: Judged) -> MemoryPolicyView {
    let Judged { standing, above, ledger } = judged;
    let policy = standing.session.policy.memory;
    let warnings = standing.policy.unreadable.iter().map(|why| {
        format!(
            "the stored policy cannot be read ({why}), so nothing is remembered; set it again with \
             `lanyard memory policy {} --mode …`",
            standing.session.id
        )
    });
    MemoryPolicyView {
        session: standing.session.id,
        warnings: warnings.collect(),
        policy,
        effective: standing.policy,
        above,
        refused: ledger.refused,
    }
}

pub(super) async fn policy(State(app): Shared, target: Target) -> Result<Json<MemoryPolicyView>, Problem> {
    on_disk(&app, move |_, store| memory::look_up(store, target.0).map(shown)).await.map(Json)
}

/// Changes the memory policy of a session.
pub(super) async fn set_policy(
    State(app): Shared,
    target: Target,
    change: Change<MemoryPolicyEdit>,
) -> Result<Json<MemoryPolicySet>, Problem> {
    let Change { actor, cause, keys, body, .. }: Change<MemoryPolicyEdit> = change;
    let by: (Actor, _, _) = (actor, cause, keys);
    let outcome = memory::set_policy(&app.memories, target.0, body, by).await?;
    let view = on_disk(&app, move |_, store| memory::look_up(store, target.0).map(shown)).await?;
    Ok(Json(MemoryPolicySet { view, outcome }))
}
