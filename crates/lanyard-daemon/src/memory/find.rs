//! Finding things again: by words, and by vectors where there are any; where neither finds anything, by letters. A source
//! that fails costs what it would have found, and is told.

use std::sync::Arc;

use lanyard_api::types::FoundBy;
use lanyard_core::MemoryId;
use lanyard_core::memory::MemoryEntry;
use lanyard_core::memory::rank::fuse;
use lanyard_core::text::cut;
use lanyard_store::MemoryFilter;

use crate::memory::policy::on_disk;
use crate::memory::{MemoryContext, MemoryError};

/// Characters of a query that are looked for.
const QUERY_CHARS_MAX: usize = 1_000;
/// The newest entries whose vectors are compared.
const COMPARED_MAX: usize = 20_000;
/// The newest entries that are read through when words find nothing.
const READ_MAX: usize = 2_000;

#[derive(Debug, Clone)]
pub(crate) struct Hit {
    pub(crate) entry: MemoryEntry,
    pub(crate) excerpt: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// Best first.
    pub(crate) hits: Vec<Hit>,
    pub(crate) by: Vec<FoundBy>,
    pub(crate) warnings: Vec<String>,
}

pub(crate) async fn search(
    context: &Arc<MemoryContext>,
    filter: MemoryFilter,
    query: &str,
    limit: usize,
) -> Result<Found, MemoryError> {
    context.memory.on()?;
    let query = cut(query.trim(), QUERY_CHARS_MAX).0.to_owned();
    let (asked, wanted) = (filter.clone(), query.clone());
    let words = on_disk(context, move |store| Ok(store.search_memories(&asked, &wanted, limit)?)).await?;
    let mut found = Found::default();
    let vectors = match context.memory.embedder() {
        Some(embedder) if !query.is_empty() => match embedder.embed(std::slice::from_ref(&query)).await {
            Ok(mut vectors) => {
                let (asked, model) = (filter.clone(), embedder.model().to_owned());
                let vector = vectors.pop().unwrap_or_default();
                on_disk(context, move |store| {
                    Ok(store.nearest_memories(&asked, (&model, &vector), COMPARED_MAX, limit)?)
                })
                .await?
            }
            Err(why) => {
                found.warnings.push(format!("found by words alone: the embeddings endpoint {why}"));
                Vec::new()
            }
        },
        Some(_) | None => Vec::new(),
    };
    let mut by = Vec::new();
    by.extend((!words.is_empty()).then_some(FoundBy::Words));
    by.extend((!vectors.is_empty()).then_some(FoundBy::Vectors));
    let mut entries = together(words, vectors, limit);
    if entries.is_empty() && !query.is_empty() {
        let wanted = query.clone();
        entries = on_disk(context, move |store| {
            let mut newest = store.memories(&filter, None, READ_MAX)?;
            newest.retain(|entry| entry.find(&wanted).is_some());
            newest.truncate(limit);
            Ok(newest)
        })
        .await?;
        by.extend((!entries.is_empty()).then_some(FoundBy::Letters));
    }
    found.by = by;
    found.hits = entries.into_iter().map(|entry| Hit { excerpt: entry.excerpt(&query), entry }).collect();
    Ok(found)
}

/// Both rankings as one.
fn together(words: Vec<MemoryEntry>, vectors: Vec<MemoryEntry>, limit: usize) -> Vec<MemoryEntry> {
    if vectors.is_empty() {
        return words;
    }
    let ids = |entries: &[MemoryEntry]| -> Vec<MemoryId> { entries.iter().map(|entry| entry.id).collect() };
    let order = fuse(&[ids(&words), ids(&vectors)]);
    let mut all = words;
    all.extend(vectors);
    let place = |entry: &MemoryEntry| order.iter().position(|(id, _)| *id == entry.id);
    all.sort_by_key(place);
    all.dedup_by_key(|entry| entry.id);
    all.truncate(limit);
    all
}
