//! `memory_context`: named pieces of text agents leave for each other, with who left them and when. What a piece may reach
//! is judged by the session's memory policy: the scope session is its own memory, workspace and plan are long-term memory.

use lanyard_core::SessionId;
use lanyard_core::memory::entry::named_key;
use lanyard_core::memory::{MemoryEntry, MemoryRefusal, MemoryScope, Rule, Source, Where as Store, readable};
use lanyard_core::text::cut;
use lanyard_store::MemoryFilter;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::memory::{self, Standing, Wish};
use crate::own_tools::Told;
use crate::own_tools::args::{need, session_id};
use crate::own_tools::caller::{ToolCaller, on_disk};
use crate::own_tools::schema::{About, tool as describe};
use crate::shelf;
use crate::tool_refusal::Refused;

pub(super) const NAME: &str = "memory_context";

/// Pieces a list or a search answers with.
const LISTED_MAX: usize = 500;
const FOUND_MAX: usize = 20;
/// Characters of each piece in a list.
const PREVIEW: usize = 120;

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// Keep `text` under a `name`, for the `scope`. Replaces what was there; with `version`, only that one.
    Store,
    /// One piece by its `name`, whole.
    Get,
    /// The names, with the beginning of each.
    List,
    /// Pieces that hold the words of `query`, best first.
    Search,
    /// Remove a piece.
    Delete,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to do.
    action: Action,
    /// Who it is for; the workspace when left out, which is long-term memory and may not be allowed to you: `session`
    /// is your own. `list` and `search` look everywhere you can see.
    scope: Option<MemoryScope>,
    /// What it is called.
    name: Option<String>,
    /// `store`: the text, up to 32 Ki characters.
    text: Option<String>,
    /// `store`: words to sort it by; `retain`, `dev_test` and `discard` say how long it is kept.
    #[serde(default)]
    tags: Vec<String>,
    /// `search`: what to look for.
    query: Option<String>,
    /// The plan, for that scope; your session's own when left out.
    plan: Option<String>,
    /// The session, for that scope; your own when left out. One below you can be read.
    session: Option<String>,
    /// Only for callers without a session.
    workspace: Option<String>,
    /// `store`: the version you have read; refused when the piece has changed since.
    version: Option<u64>,
}

pub(super) fn tool() -> Value {
    describe::<Args>(&About {
        name: NAME,
        title: "Context",
        description: "Leave what others should know: findings, decisions, interfaces. Pieces have a name and a scope \
                      (workspace, plan or session) and carry who stored them and when. Read before you rediscover.",
        reads_only: false,
        destructive: true,
    })
}

/// Where a piece is, checked against what the caller may see.
#[derive(Clone)]
struct Where {
    workspace: String,
    person: String,
    scope: MemoryScope,
    plan: Option<String>,
    owner: Option<SessionId>,
}

impl Where {
    async fn of(caller: &ToolCaller, args: &Args) -> Result<Self, Refused> {
        let mut workspace = caller.workspace(args.workspace.as_deref())?;
        let scope = args.scope.unwrap_or_default();
        let (mut plan, mut owner) = (None, None);
        match scope {
            MemoryScope::Workspace => {}
            MemoryScope::Plan => {
                let (name, place) = (caller.plan_name(args.plan.clone())?, workspace.clone());
                // By its id, whatever it is called.
                let found = on_disk(&caller.app, move |store| shelf::plan(store, &place, &name)).await?;
                plan = Some(found.id.to_string());
            }
            MemoryScope::Session => {
                let asked = args.session.as_deref().map(session_id).transpose()?;
                let id = asked.or(caller.id()).ok_or_else(|| Refused::missing("session"))?;
                caller.is_below(id).await?;
                // Its memory is where it works, wherever the caller does.
                let standing = on_disk(&caller.app, move |store| Ok(memory::standing(store, id)?)).await?;
                workspace = standing.workspace;
                owner = Some(id);
            }
        }
        let person = match caller.id() {
            Some(me) => on_disk(&caller.app, move |store| Ok(memory::standing(store, me)?)).await?.owner,
            None => caller.name(),
        };
        Ok(Self { workspace, person, scope, plan, owner })
    }

    fn key(&self, name: &str) -> String {
        named_key(self.scope, &self.person, self.plan.as_deref(), self.owner, name)
    }
}

pub(super) async fn call(caller: &ToolCaller, args: Args) -> Told {
    caller.app.memory.on()?;
    match args.action {
        Action::Store => store(caller, args).await,
        Action::Get => get(caller, args).await,
        Action::List => list(caller, args).await,
        Action::Search => search(caller, args).await,
        Action::Delete => delete(caller, args).await,
    }
}

/// An agent writes into its own session and into no other.
fn may_write_to(caller: &ToolCaller, place: &Where) -> Result<(), Refused> {
    caller.may_write()?;
    match (place.owner, caller.id()) {
        (Some(owner), Some(me)) if owner != me => Err(Refused::new(
            "not_your_session",
            format!("session {owner} is not yours to write into"),
            "use the scope workspace or plan, or your own session",
        )),
        (Some(_) | None, _) => Ok(()),
    }
}

async fn store(caller: &ToolCaller, args: Args) -> Told {
    let place = Where::of(caller, &args).await?;
    may_write_to(caller, &place)?;
    let wish = Wish {
        session: caller.id().or(place.owner),
        scope: place.scope,
        plan: place.plan,
        name: Some(need("name", args.name)?),
        text: need("text", args.text)?,
        tags: args.tags,
        workspace: place.workspace,
        owner: place.person,
        by: caller.actor.clone(),
        source: Source::Tool,
        request: None,
        version: args.version,
    };
    let app = caller.app.clone();
    on_disk(&caller.app, move |store| {
        let entry = memory::write(&app.memory, store, &app.clock, wish)?;
        Ok(shown(&entry, Show::Head).into())
    })
    .await
}

/// The piece of that name, if the caller's policy lets it look.
async fn named(caller: &ToolCaller, args: &Args) -> Result<MemoryEntry, Refused> {
    let place = Where::of(caller, args).await?;
    let name = need("name", args.name.clone())?;
    let me = caller.id();
    on_disk(&caller.app, move |store| {
        if let Some(me) = me {
            may_read(&memory::standing(store, me)?, Some(place.scope))?;
        }
        let entry = store.memory_at(&place.workspace, &place.key(&name))?;
        entry.ok_or_else(|| none(&name))
    })
    .await
}

async fn get(caller: &ToolCaller, args: Args) -> Told {
    Ok(shown(&named(caller, &args).await?, Show::Whole).into())
}

fn none(name: &str) -> Refused {
    Refused::new(
        "context_not_found",
        format!("nothing is kept under `{name}` there"),
        "list the names with action list, or name another scope",
    )
}

/// Reads are allowed from enabled stores only. A scope that is not enabled is refused with the rule; without a scope at
/// least one store must be enabled.
fn may_read(standing: &Standing, scope: Option<MemoryScope>) -> Result<(), Refused> {
    let policy = &standing.policy;
    let open = match scope {
        Some(scope) => readable(policy, scope.store()),
        None => Store::ALL.into_iter().any(|store| readable(policy, store)),
    };
    if open {
        return Ok(());
    }
    let on = policy.mode != lanyard_core::MemoryMode::Off;
    let rule = match (policy.unreadable.is_some(), on) {
        (true, _) => Rule::Unreadable,
        (false, true) => Rule::NoSessionMemory,
        (false, false) => Rule::Off,
    };
    Err(memory::MemoryError::from(MemoryRefusal::Forbidden(rule)).into())
}

async fn list(caller: &ToolCaller, args: Args) -> Told {
    let filter = seen(caller, &args).await?;
    let entries = on_disk(&caller.app, move |store| Ok(store.memories(&filter, None, LISTED_MAX)?)).await?;
    let pieces: Vec<Value> = entries.iter().map(|entry| shown(entry, Show::Preview)).collect();
    Ok(json!({ "pieces": pieces }).into())
}

async fn search(caller: &ToolCaller, args: Args) -> Told {
    let query = need("query", args.query.clone())?;
    let filter = seen(caller, &args).await?;
    let found = memory::search(&caller.app.memories, filter, &query, FOUND_MAX).await?;
    let pieces: Vec<Value> = found
        .hits
        .iter()
        .map(|hit| {
            let mut shown = shown(&hit.entry, Show::Head);
            shown["excerpt"] = hit.excerpt.clone().into();
            shown
        })
        .collect();
    let mut value = json!({ "query": query, "found": pieces.len(), "pieces": pieces });
    if !found.warnings.is_empty() {
        value["warnings"] = found.warnings.into();
    }
    Ok(value.into())
}

/// All the caller can see: of its workspace, its plan, its own session and those below; or of the scope it names.
async fn seen(caller: &ToolCaller, args: &Args) -> Result<MemoryFilter, Refused> {
    let workspace = caller.workspace(args.workspace.as_deref())?;
    let place = match args.scope {
        Some(_) => Some(Where::of(caller, args).await?),
        None => None,
    };
    let me = caller.me.clone();
    let mut filter = match place {
        Some(place) => MemoryFilter {
            scope: Some(place.scope),
            workspace: Some(place.workspace),
            plan: place.plan,
            session: place.owner,
            ..MemoryFilter::default()
        },
        None if me.is_none() => {
            MemoryFilter { workspace: Some(workspace.clone()), ..MemoryFilter::default() }
        }
        None => MemoryFilter::default(),
    };
    let Some(me) = me else { return Ok(filter) };
    let scope = args.scope;
    filter.seen_by = Some(
        on_disk(&caller.app, move |store| {
            let standing = memory::standing(store, me.session.id)?;
            may_read(&standing, scope)?;
            let plan = match &me.plan {
                Some(plan) => shelf::find_plan(store, &workspace, plan)?.map(|plan| plan.id.to_string()),
                None => None,
            };
            Ok(standing.viewer(store, plan)?)
        })
        .await?,
    );
    Ok(filter)
}

async fn delete(caller: &ToolCaller, args: Args) -> Told {
    let place = Where::of(caller, &args).await?;
    may_write_to(caller, &place)?;
    let entry = named(caller, &args).await?;
    let (app, me) = (caller.app.clone(), caller.id());
    on_disk(&caller.app, move |store| {
        if memory::forget(&app.memory, store, &app.clock, me, &[entry.id])? == 0 {
            return Err(none(entry.name.as_deref().unwrap_or_default()));
        }
        Ok(json!({ "deleted": entry.name, "scope": entry.scope }).into())
    })
    .await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Show {
    Head,
    Preview,
    Whole,
}

/// As agents have always got it: `owner` is the session whose a piece of that scope is.
fn shown(entry: &MemoryEntry, show: Show) -> Value {
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        for ours in ["workspace", "owner", "source", "request"] {
            fields.remove(ours);
        }
        if let (MemoryScope::Session, Some(session)) = (entry.scope, entry.session) {
            fields.insert("owner".to_owned(), session.to_string().into());
        }
        match show {
            Show::Whole => {}
            Show::Head => drop(fields.remove("text")),
            Show::Preview => {
                fields.remove("text");
                fields.insert("begins".to_owned(), cut(&entry.text, PREVIEW).0.into());
                fields.insert("chars".to_owned(), entry.text.chars().count().into());
            }
        }
    }
    value
}
