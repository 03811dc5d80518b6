//! `gc`: finding and removing what belongs to nothing. Everything is counted first; a dry run ends there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanyard_core::SessionId;
use lanyard_store::{Filter, StoreError};

use crate::api::App;
use crate::api::types::{GcCount, GcReport, NewGc};
use crate::engine::Store;
use crate::runs::Runs;
use crate::snapshot;
use crate::storage::traces::session_of;

/// Sessions read at a time, to learn in which workspaces they work.
const SESSIONS_PAGE: usize = 1_000;
/// Repositories whose refs are looked at.
const WORKSPACES_MAX: usize = 1_000;
/// Old outcomes forgotten at a time.
const OUTCOMES_PAGE: usize = 1_000;

/// Blocks.
pub(crate) fn collect(app: &Arc<App>, wanted: &NewGc) -> Result<GcReport, StoreError> {
    let store = &*app.store;
    let before = store.size()?;
    let mut notes = Vec::new();
    let run_folders = run_folders(store, &app.agents.runs(), wanted.dry_run);
    let mcp_files = app.gateway.sweep_book(store, wanted.dry_run);
    let snapshot_refs = snapshot_refs(store, wanted.dry_run, &mut notes)?;
    let outcomes = if wanted.dry_run {
        0
    } else {
        let old = app.clock.now().minus_millis(app.storage.keep_outcomes_ms);
        let mut swept = 0;
        loop {
            let some = store.sweep(old, OUTCOMES_PAGE)?;
            swept += some as u64;
            if some < OUTCOMES_PAGE {
                break swept;
            }
        }
    };
    let after = if wanted.compact && !wanted.dry_run { store.compact()? } else { store.size()? };
    let (tombstones, purging) = store.tombstones()?;
    Ok(GcReport {
        dry_run: wanted.dry_run,
        run_folders,
        snapshot_refs,
        mcp_files,
        outcomes,
        journal_before: before,
        journal_after: after,
        tombstones,
        purging,
        notes,
    })
}

/// Whether nothing is left of a session, or never was anything.
fn is_nobody(store: &dyn Store, session: SessionId) -> bool {
    match store.load(session) {
        Ok(Some(loaded)) => loaded.session.deleted,
        Ok(None) => true,
        // One that cannot be read may live.
        Err(_) => false,
    }
}

/// Folders of runs that are over and whose session does not know them.
fn run_folders(store: &dyn Store, runs: &Runs, dry_run: bool) -> GcCount {
    let mut found = GcCount::default();
    for known in runs.list().unwrap_or_default() {
        let orphan = session_of(&known).is_none_or(|session| is_nobody(store, session));
        if !orphan || !runs.is_over(&known.run) {
            continue;
        }
        let bytes = runs.bytes(&known.run);
        if dry_run || runs.forget(&known.run).is_ok() {
            found.add(bytes);
        }
    }
    found
}

/// Snapshots of sessions that do not exist, in the repositories that sessions work in.
fn snapshot_refs(store: &dyn Store, dry_run: bool, notes: &mut Vec<String>) -> Result<GcCount, StoreError> {
    let mut found = GcCount::default();
    for workspace in workspaces(store)? {
        let Ok(sessions) = snapshot::sessions(&workspace) else { continue };
        for name in sessions {
            let Ok(session) = name.parse::<SessionId>() else { continue };
            if !is_nobody(store, session) {
                continue;
            }
            let removed = if dry_run {
                snapshot::list(&workspace, &name).map(|list| u32::try_from(list.len()).unwrap_or(u32::MAX))
            } else {
                snapshot::remove_all(&workspace, &name)
            };
            match removed {
                Ok(count) => found.count += u64::from(count),
                Err(error) => notes.push(format!("{}: {error}", workspace.display())),
            }
        }
    }
    Ok(found)
}

/// One folder per repository is enough, and most sessions share a few.
fn workspaces(store: &dyn Store) -> Result<BTreeSet<PathBuf>, StoreError> {
    let mut found = BTreeSet::new();
    let mut cursor = None;
    loop {
        let page = store.list(&Filter::default(), cursor.as_ref(), SESSIONS_PAGE)?;
        let paths = page.rows.into_iter().filter_map(|row| row.workspace).map(PathBuf::from);
        found.extend(paths.filter(|path| path.is_absolute() && Path::is_dir(path)));
        cursor = page.next;
        if cursor.is_none() || found.len() >= WORKSPACES_MAX {
            return Ok(found);
        }
    }
}
