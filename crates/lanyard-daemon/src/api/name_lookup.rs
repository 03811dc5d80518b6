//! The things a name means. Each kind has its source; [`naming::choose`] decides between the candidates.

mod sources;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use lanyard_api::types::{NameMatches, NamedItem};
use lanyard_core::Timestamp;
use lanyard_core::naming::{self, MatchedBy, NameCandidate, NameKind, SHORT_CHARS, how_far, short};
use serde::Deserialize;

use crate::api::App;
use crate::api::context::query;
use crate::api::directory::bounded;
use crate::api::gates;
use crate::api::plans::on_families_disk;
use crate::families::FamilyError;
use crate::problem::Problem;
use sources::{NameHit, Sources};

/// Things of one answer.
pub(super) const LIMIT_MAX: usize = 100;
const LIMIT_DEFAULT: usize = 20;
/// The newest of a kind among which names are completed and the nearest name is looked for.
const NEWEST_MAX: usize = 200;
/// The nearest names of one answer.
const NEAREST_MAX: usize = 5;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct NameQuestion {
    name: Option<String>,
    kind: Option<String>,
    workspace: Option<String>,
    plan: Option<String>,
    here: Option<String>,
    starting: Option<String>,
    limit: Option<usize>,
}

pub(super) async fn find(State(app): State<Arc<App>>, uri: Uri) -> Result<Json<NameMatches>, Problem> {
    let asked: NameQuestion = query(&uri)?;
    let limit = bounded("limit", asked.limit, LIMIT_DEFAULT, LIMIT_MAX)?;
    let kinds = kinds(asked.kind.as_deref())?;
    let gates =
        if kinds.contains(&NameKind::Gate) { Some(gates::list(State(app.clone())).await?.0) } else { None };
    let now = app.clock.now();
    let found = on_families_disk(&app, move |store| {
        let NameQuestion { name, workspace, plan, here, starting, .. } = asked;
        let sources = Sources { store, gates, workspace, plan, here };
        match name {
            Some(name) => named(&sources, &kinds, name.trim(), limit, now),
            None => newest(&sources, &kinds, starting.as_deref().unwrap_or_default(), limit, now),
        }
    });
    Ok(Json(found.await?))
}

fn kinds(asked: Option<&str>) -> Result<Vec<NameKind>, Problem> {
    let Some(asked) = asked else { return Ok(NameKind::ALL.to_vec()) };
    let known = asked.split(',').map(|word| {
        NameKind::named(word).ok_or_else(|| {
            let kinds = NameKind::ALL.map(NameKind::as_str).join(", ");
            Problem::bad_request("query_invalid", format!("`kind` is `{word}`"), format!("use {kinds}"))
        })
    });
    known.collect()
}

fn named(
    sources: &Sources<'_>,
    kinds: &[NameKind],
    name: &str,
    limit: usize,
    now: Timestamp,
) -> Result<NameMatches, FamilyError> {
    let mut hits: Vec<NameHit> = Vec::new();
    for kind in kinds {
        hits.extend(sources.named(*kind, name)?);
    }
    let best = hits.iter().map(|hit| hit.by).min();
    hits.retain(|hit| Some(hit.by) == best);
    let mut hits = without_twins(hits);
    // Of several kinds, `last` is the newest of the first that has any.
    if best == Some(MatchedBy::Newest) {
        hits.truncate(1);
    }
    hits.sort_by_key(|hit| std::cmp::Reverse(hit.item.created_at));
    let candidates =
        hits.into_iter().map(|hit| NameCandidate { by: hit.by, ended: hit.ended, item: hit.item });
    let Some((by, mut items)) = naming::choose(candidates.collect()) else {
        let items = nearest(sources, kinds, name)?;
        return Ok(NameMatches { matched: None, items, more: false, now });
    };
    let more = items.len() > limit;
    items.truncate(limit);
    Ok(NameMatches { matched: Some(by), items, more, now })
}

/// A task, its worker and its session are the same work: of those, the kind that was asked for first counts.
fn without_twins(hits: Vec<NameHit>) -> Vec<NameHit> {
    let mut kept: Vec<NameHit> = Vec::new();
    for hit in hits {
        let is_twin = |other: &NameHit| {
            other.item.id == hit.item.id
                || other.same.contains(&hit.item.id)
                || hit.same.contains(&other.item.id)
        };
        if !kept.iter().any(is_twin) {
            kept.push(hit);
        }
    }
    kept
}

fn newest(
    sources: &Sources<'_>,
    kinds: &[NameKind],
    starting: &str,
    limit: usize,
    now: Timestamp,
) -> Result<NameMatches, FamilyError> {
    let starting = starting.to_lowercase();
    let mut items: Vec<NamedItem> = Vec::new();
    for kind in kinds {
        let found = sources.newest(*kind, NEWEST_MAX)?.into_iter().map(|hit| hit.item);
        items.extend(
            found.filter(|item| names_of(item).any(|name| name.to_lowercase().starts_with(&starting))),
        );
    }
    items.sort_by_key(|item| std::cmp::Reverse(item.created_at));
    let more = items.len() > limit;
    items.truncate(limit);
    Ok(NameMatches { matched: None, items, more, now })
}

/// Everything a person may call it.
fn names_of(item: &NamedItem) -> impl Iterator<Item = &str> {
    let key = item.name.as_deref().and_then(|name| name.rsplit_once('/')).map(|(_, key)| key);
    let names = [item.name.as_deref(), item.title.as_deref(), key].into_iter().flatten();
    names.chain([short(&item.id, SHORT_CHARS), item.id.as_str()])
}

fn nearest(sources: &Sources<'_>, kinds: &[NameKind], name: &str) -> Result<Vec<NamedItem>, FamilyError> {
    let mut near: Vec<(usize, std::cmp::Reverse<Timestamp>, NamedItem)> = Vec::new();
    for kind in kinds {
        for hit in sources.newest(*kind, NEWEST_MAX)? {
            let far = names_of(&hit.item).filter_map(|own| how_far(name, own)).min();
            if let Some(far) = far {
                near.push((far, std::cmp::Reverse(hit.item.created_at), hit.item));
            }
        }
    }
    near.sort_by_key(|(far, age, _)| (*far, *age));
    Ok(near.into_iter().take(NEAREST_MAX).map(|(_, _, item)| item).collect())
}
