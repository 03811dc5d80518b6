//! `gc`: finding and removing what belongs to nothing. Everything is counted first; a dry run ends there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanyard_api::types::{GcCount, GcReport, NewGc};
use lanyard_core::session::Envelope;
use lanyard_core::{AttachmentId, SessionId};
use lanyard_git::snapshot::{SnapshotError, old_refs};
use lanyard_store::{Filter, Store, StoreError};

use crate::storage::StorageContext;
use crate::storage::traces::session_of;
use lanyard_agents::runs::Runs;

/// Sessions read at a time, to learn in which workspaces they work.
const SESSIONS_PAGE: usize = 1_000;
/// Repositories whose refs are looked at.
const WORKSPACES_MAX: usize = 1_000;
/// Events of a log read at a time.
const EVENTS_PAGE: usize = 256;
/// How old a mark is before it may be without an event: longer than any request.
const MARK_WAIT_MS: u64 = 600_000;
/// Old outcomes forgotten at a time.
const OUTCOMES_PAGE: usize = 1_000;

/// Blocks.
pub(crate) fn collect(context: &Arc<StorageContext>, wanted: &NewGc) -> Result<GcReport, StoreError> {
    let store = &*context.store;
    let before = store.size()?;
    let mut notes = Vec::new();
    let run_folders = run_folders(store, &context.agents.runs(), wanted.dry_run);
    let mcp_files = context.gateway.sweep_book(store, wanted.dry_run);
    let snapshot_refs = checkpoints(context, wanted.dry_run, &mut notes)?;
    notes.extend(context.trees.left_behind());
    let attachments = attachments(context, wanted.dry_run, &mut notes);
    let outcomes = if wanted.dry_run {
        0
    } else {
        let old = context.clock.now().minus_millis(context.config.storage().keep_outcomes_ms);
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
        ended: 0,
        run_folders,
        snapshot_refs,
        mcp_files,
        attachments,
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

/// Attachments that no session has use for.
fn attachments(context: &StorageContext, dry_run: bool, notes: &mut Vec<String>) -> GcCount {
    let found = (|| {
        if !dry_run {
            unmark(context)?;
        }
        let before = context.clock.now().minus_millis(context.config.storage().storage.keep_uploads_ms);
        context.attachments.collect(before, dry_run)
    })();
    match found {
        Ok(found) => GcCount { count: found.count, bytes: found.bytes },
        Err(error) => {
            notes.push(format!("attachments: {error}"));
            GcCount::default()
        }
    }
}

/// Removes marks of sessions that do not exist, and those of a message that was refused after its mark was made. A mark
/// that is younger than the wait for a message stays: its event may be on its way.
fn unmark(context: &StorageContext) -> std::io::Result<()> {
    let store = &*context.store;
    let before = context.clock.now().minus_millis(MARK_WAIT_MS);
    for (session, marked) in context.attachments.marks()? {
        if is_nobody(store, session) {
            context.attachments.release(session)?;
            continue;
        }
        let settled =
            |id: &AttachmentId| context.attachments.marked_at(session, *id).is_some_and(|at| at < before);
        let old: Vec<AttachmentId> = marked.into_iter().filter(settled).collect();
        if old.is_empty() {
            continue;
        }
        // A log that cannot be read in full keeps all of its marks.
        let Some(named) = named_in(store, session) else { continue };
        let unused: Vec<AttachmentId> = old.into_iter().filter(|id| !named.contains(id)).collect();
        context.attachments.unmark(session, &unused)?;
    }
    Ok(())
}

/// The attachments that a session's log names.
fn named_in(store: &dyn Store, session: SessionId) -> Option<BTreeSet<AttachmentId>> {
    let mut named = BTreeSet::new();
    let mut after = 0;
    loop {
        let page = store.events(session, after, EVENTS_PAGE).ok()?;
        if page.events.is_empty() {
            return Some(named);
        }
        for event in page.events {
            after = event.seq;
            let envelope: Envelope = serde_json::from_slice(&event.body.ok()?).ok()?;
            named.extend(envelope.event.attachments());
        }
    }
}

/// Checkpoints of sessions that do not exist: in the stores, and, left there by an older version, among the refs of the
/// repositories that sessions work in.
fn checkpoints(
    context: &StorageContext,
    dry_run: bool,
    notes: &mut Vec<String>,
) -> Result<GcCount, StoreError> {
    let (store, kept) = (&*context.store, &context.checkpoints);
    let mut found = GcCount::default();
    let is_orphan = |name: &String| name.parse().is_ok_and(|session| is_nobody(store, session));
    let mut add = |place: &str, removed: Result<u32, SnapshotError>| match removed {
        Ok(count) => found.count += u64::from(count),
        Err(error) => notes.push(format!("{place}: {error}")),
    };
    for name in kept.sessions().iter().filter(|name| is_orphan(name)) {
        add(name, if dry_run { kept.count(name) } else { kept.remove_all(name) });
    }
    for workspace in workspaces(store)? {
        let Ok(sessions) = old_refs::sessions(&workspace) else { continue };
        for name in sessions.iter().filter(|name| is_orphan(name)) {
            let removed =
                if dry_run { old_refs::count(&workspace, name) } else { old_refs::remove(&workspace, name) };
            add(&workspace.display().to_string(), removed);
        }
    }
    if !dry_run {
        kept.mark_all();
        if let Err(error) = kept.tidy() {
            notes.push(format!("objects of removed checkpoints stay: {error}"));
        }
    }
    Ok(found)
}

/// Moves the checkpoints that an older version kept as refs of the repositories that sessions work in. Done once; those of
/// a folder that is missing now are moved when their session is used.
pub(crate) fn move_old_checkpoints(context: &StorageContext) -> Result<(), StoreError> {
    if context.checkpoints.has_moved() {
        return Ok(());
    }
    for workspace in workspaces(&*context.store)? {
        let Ok(sessions) = old_refs::sessions(&workspace) else { continue };
        for name in sessions {
            // Refs of a session that this journal does not know may be another data folder's.
            let known = name.parse().is_ok_and(|session: SessionId| !is_nobody(&*context.store, session));
            if known && let Err(error) = old_refs::migrate(&context.checkpoints, &workspace, &name) {
                let workspace = workspace.display();
                tracing::warn!(session = name, %workspace, %error, "old checkpoints stay in the repository");
            }
        }
    }
    context.checkpoints.set_moved();
    Ok(())
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
