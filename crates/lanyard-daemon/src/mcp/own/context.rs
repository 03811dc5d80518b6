//! `memory_context`: named pieces of text agents leave for each other, with who left them and when.

use lanyard_core::SessionId;
use lanyard_core::paper::context::PIECES_MAX;
use lanyard_core::paper::{NewPiece, Piece, Scope};
use lanyard_core::text::cut;
use lanyard_store::Put;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine::Store;
use crate::mcp::own::args::{need, session_id};
use crate::mcp::own::caller::{Caller, on_disk};
use crate::mcp::own::refused::Refused;
use crate::mcp::own::schema::{About, tool as describe};
use crate::mcp::own::{Told, shelf};

pub(super) const NAME: &str = "memory_context";

/// Pieces a search answers with.
const FOUND_MAX: usize = 20;
/// How often a piece is written against others.
const TRIES_MAX: u32 = 16;
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
    /// Pieces in which `query` occurs, in any case.
    Search,
    /// Remove a piece.
    Delete,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to do.
    action: Action,
    /// Who it is for; the workspace when left out. `list` and `search` look everywhere you can see.
    scope: Option<Scope>,
    /// What it is called.
    name: Option<String>,
    /// `store`: the text, up to 32 Ki characters.
    text: Option<String>,
    /// `store`: words to sort it by.
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
    scope: Scope,
    plan: Option<String>,
    owner: Option<SessionId>,
}

impl Where {
    async fn of(caller: &Caller, args: &Args) -> Result<Self, Refused> {
        let workspace = caller.workspace(args.workspace.as_deref())?;
        let scope = args.scope.unwrap_or_default();
        let (mut plan, mut owner) = (None, None);
        match scope {
            Scope::Workspace => {}
            Scope::Plan => {
                let (name, place) = (caller.plan_name(args.plan.clone())?, workspace.clone());
                // By its id, whatever it is called.
                let found = on_disk(&caller.app, move |store| shelf::plan(store, &place, &name)).await?;
                plan = Some(found.id.to_string());
            }
            Scope::Session => {
                let asked = args.session.as_deref().map(session_id).transpose()?;
                let id = asked.or(caller.id()).ok_or_else(|| Refused::missing("session"))?;
                caller.visible(id).await?;
                owner = Some(id);
            }
        }
        Ok(Self { workspace, scope, plan, owner })
    }

    fn place(&self, name: &str) -> lanyard_store::Place {
        let key = Piece::key(self.scope, self.plan.as_deref(), self.owner, name);
        shelf::place(shelf::CONTEXT, &self.workspace, key)
    }
}

pub(super) async fn call(caller: &Caller, args: Args) -> Told {
    match args.action {
        Action::Store => store(caller, args).await,
        Action::Get => get(caller, args).await,
        Action::List => list(caller, args).await,
        Action::Search => search(caller, args).await,
        Action::Delete => delete(caller, args).await,
    }
}

/// An agent writes into its own session and into no other.
fn may_write_to(caller: &Caller, place: &Where) -> Result<(), Refused> {
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

async fn store(caller: &Caller, args: Args) -> Told {
    let place = Where::of(caller, &args).await?;
    may_write_to(caller, &place)?;
    let new = NewPiece {
        name: need("name", args.name)?,
        scope: place.scope,
        plan: place.plan.clone(),
        owner: place.owner,
        text: need("text", args.text)?,
        tags: args.tags,
    };
    let now = caller.app.clock.now();
    let piece = Piece::new(new, caller.actor.clone(), caller.id(), now)?;
    let asked = args.version;
    on_disk(&caller.app, move |store| {
        let here = place.place(&piece.name);
        let body = serde_json::to_string(&piece).unwrap_or_default();
        let mut from = match asked {
            Some(version) => version,
            None => store.paper(&here)?.map_or(0, |paper| paper.version),
        };
        if from == 0 && shelf::pieces(store, &place.workspace, PIECES_MAX)?.len() >= PIECES_MAX {
            let what = format!("this workspace has {PIECES_MAX} pieces already");
            return Err(Refused::new("context_full", what, "delete some that are no longer true"));
        }
        for _ in 0..TRIES_MAX {
            match (store.put_paper(&here, from, now, &body)?, asked) {
                (Put::Kept(version), _) => return Ok(shown(&piece, version, Show::Head).into()),
                (Put::Moved(version), Some(asked)) => {
                    return Err(Refused::new(
                        "version_conflict",
                        format!("the piece has version {version} by now, not {asked}"),
                        "read it again, and store what is true then",
                    ));
                }
                // The last word counts where nobody asked for more.
                (Put::Moved(version), None) => from = version,
            }
        }
        Err(Refused::new("paper_busy", "others keep changing it at the same time", "try again in a moment"))
    })
    .await
}

async fn get(caller: &Caller, args: Args) -> Told {
    let place = Where::of(caller, &args).await?;
    let name = need("name", args.name)?;
    on_disk(&caller.app, move |store| {
        let paper = store.paper(&place.place(&name))?.ok_or_else(|| none(&name))?;
        Ok(shown(&shelf::decode(&paper)?, paper.version, Show::Whole).into())
    })
    .await
}

fn none(name: &str) -> Refused {
    Refused::new(
        "context_not_found",
        format!("nothing is kept under `{name}` there"),
        "list the names with action list, or name another scope",
    )
}

async fn list(caller: &Caller, args: Args) -> Told {
    let pieces = seen(caller, &args).await?;
    let pieces: Vec<Value> =
        pieces.iter().map(|(version, piece)| shown(piece, *version, Show::Preview)).collect();
    Ok(json!({ "pieces": pieces }).into())
}

async fn search(caller: &Caller, args: Args) -> Told {
    let query = need("query", args.query.clone())?;
    let found: Vec<Value> = seen(caller, &args)
        .await?
        .iter()
        .filter_map(|(version, piece)| {
            let excerpt = piece.find(&query)?;
            let mut shown = shown(piece, *version, Show::Head);
            shown["excerpt"] = excerpt.into();
            Some(shown)
        })
        .collect();
    let mut value = json!({ "query": query, "found": found.len(), "pieces": found });
    if let Some(pieces) = value["pieces"].as_array_mut() {
        pieces.truncate(FOUND_MAX);
    }
    Ok(value.into())
}

/// All pieces the caller can see: of its workspace, its plan, its own session and those below; or of the scope it names.
async fn seen(caller: &Caller, args: &Args) -> Result<Vec<(u64, Piece)>, Refused> {
    let workspace = caller.workspace(args.workspace.as_deref())?;
    let named = match args.scope {
        Some(_) => Some(Where::of(caller, args).await?),
        None => None,
    };
    let me = caller.me.clone();
    on_disk(&caller.app, move |store| {
        let mut pieces = shelf::pieces(store, &workspace, PIECES_MAX)?;
        if let Some(place) = named {
            pieces.retain(|(_, piece)| {
                piece.scope == place.scope && piece.plan == place.plan && piece.owner == place.owner
            });
            return Ok(pieces);
        }
        let Some(me) = me else { return Ok(pieces) };
        let plan = match &me.plan {
            Some(plan) => shelf::find_plan(store, &workspace, plan)?.map(|plan| plan.id.to_string()),
            None => None,
        };
        let mut kept = Vec::new();
        for (version, piece) in pieces {
            let visible = match piece.scope {
                Scope::Workspace => true,
                Scope::Plan => piece.plan == plan,
                Scope::Session => is_mine_or_below(store, me.session.id, piece.owner)?,
            };
            if visible {
                kept.push((version, piece));
            }
        }
        Ok(kept)
    })
    .await
}

fn is_mine_or_below(store: &dyn Store, me: SessionId, owner: Option<SessionId>) -> Result<bool, Refused> {
    let Some(owner) = owner else { return Ok(false) };
    let above = store.lineages(&[owner])?;
    Ok(owner == me || above.first().is_some_and(|lineage| lineage.ancestors.contains(&me)))
}

async fn delete(caller: &Caller, args: Args) -> Told {
    let place = Where::of(caller, &args).await?;
    may_write_to(caller, &place)?;
    let name = need("name", args.name)?;
    on_disk(&caller.app, move |store| {
        if !store.remove_paper(&place.place(&name))? {
            return Err(none(&name));
        }
        Ok(json!({ "deleted": name, "scope": place.scope }).into())
    })
    .await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Show {
    Head,
    Preview,
    Whole,
}

fn shown(piece: &Piece, version: u64, show: Show) -> Value {
    let mut value = serde_json::to_value(piece).unwrap_or_default();
    value["version"] = version.into();
    if let Some(fields) = value.as_object_mut() {
        match show {
            Show::Whole => {}
            Show::Head => drop(fields.remove("text")),
            Show::Preview => {
                fields.remove("text");
                fields.insert("begins".to_owned(), cut(&piece.text, PREVIEW).0.into());
                fields.insert("chars".to_owned(), piece.text.chars().count().into());
            }
        }
    }
    value
}
