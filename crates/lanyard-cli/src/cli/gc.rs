//! `lanyard gc`: remove what belongs to nothing.

use lanyard_api::types::{GcCount, GcReport, NewGc};
use lanyard_client::Route;

use super::duration::duration_ms;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{count, one_line, pad};

const EXAMPLES: &str = "\
Removes folders of runs, checkpoints and introductions of MCP clients whose session does not exist or is deleted, and
outcomes of requests that are older than the config keeps them. Deleted sessions are purged by themselves; this shows how
many are not done yet. No session that exists is touched, except by --ended-after: it deletes sessions that have been
completed, failed or stopped for that long, and says how many. Archived ones are kept, unless [retention] says otherwise.
--compact also rewrites the journal without free space. The daemon writes nothing meanwhile: about a second per 100 MB.

Examples:
  lanyard gc --dry-run
  lanyard gc
  lanyard gc --ended-after 30d --dry-run
  lanyard gc --compact --json | jq .journal_after.bytes";

/// Remove what belongs to no session, and say what was freed
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Gc {
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Rewrite the journal without free space
    #[arg(long, conflicts_with = "dry_run")]
    compact: bool,
    /// Delete sessions that ended at least this long ago: a number with s, m, h or d
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    ended_after: Option<u64>,
}

impl Gc {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let body = NewGc { dry_run: self.dry_run, compact: self.compact, ended_after_ms: self.ended_after };
        if self.compact {
            context.out.note("rewriting the journal; the daemon answers again when it is done");
        }
        let report: GcReport = client.post_patiently(&Route::to(&["gc"]), &body).await?;
        if context.out.is_json() {
            return context.out.json(&report);
        }
        for note in &report.notes {
            context.out.warn(&one_line(note));
        }
        context.out.data(&lines(&report, self.ended_after.is_some()))
    }
}

fn lines(report: &GcReport, with_ended: bool) -> String {
    let size = |bytes: u64| format!("{} kB", bytes.div_ceil(1_024));
    let with_size = |found: GcCount| format!("{} ({})", found.count, size(found.bytes));
    let verb = if report.dry_run { "would remove" } else { "removed" };
    let mut rows = Vec::new();
    if with_ended {
        rows.push(("sessions", format!("{verb} {}", report.ended)));
    }
    rows.extend([
        ("run folders", format!("{verb} {}", with_size(report.run_folders))),
        ("checkpoints", format!("{verb} {}", report.snapshot_refs.count)),
        ("mcp files", format!("{verb} {}", with_size(report.mcp_files))),
        ("attachments", format!("{verb} {}", with_size(report.attachments))),
    ]);
    if !report.dry_run {
        rows.push(("outcomes", format!("removed {}", report.outcomes)));
    }
    let (before, after) = (report.journal_before.total(), report.journal_after.total());
    let journal =
        if before == after { size(after) } else { format!("{} before, {} now", size(before), size(after)) };
    rows.push(("journal", format!("{journal}, {} free", size(report.journal_after.free_bytes))));
    let deleted = match report.purging {
        0 => format!("{}, all purged", count(report.tombstones, "tombstone")),
        purging => format!("{}, {} not purged yet", count(report.tombstones, "tombstone"), purging),
    };
    rows.push(("deleted", deleted));
    rows.into_iter().fold(String::new(), |text, (name, value)| text + &pad(name, 13) + &value + "\n")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use lanyard_core::journal::JournalSize;

    use super::*;

    #[test]
    fn what_was_freed_is_told() {
        let size = |bytes| JournalSize { bytes, wal_bytes: 0, free_bytes: 0 };
        let mut report = GcReport {
            dry_run: false,
            ended: 0,
            run_folders: GcCount { count: 2, bytes: 10_000 },
            snapshot_refs: GcCount { count: 7, bytes: 0 },
            mcp_files: GcCount { count: 600, bytes: 120_000 },
            attachments: GcCount { count: 1, bytes: 2_048 },
            outcomes: 12,
            journal_before: size(4_096_000),
            journal_after: size(1_024_000),
            tombstones: 3,
            purging: 1,
            notes: Vec::new(),
        };
        expect![[r"
            run folders  removed 2 (10 kB)
            checkpoints  removed 7
            mcp files    removed 600 (118 kB)
            attachments  removed 1 (2 kB)
            outcomes     removed 12
            journal      4000 kB before, 1000 kB now, 0 kB free
            deleted      3 tombstones, 1 not purged yet
        "]]
        .assert_eq(&lines(&report, false));
        report.dry_run = true;
        assert!(lines(&report, true).contains("would remove 7"));
        assert!(lines(&report, true).starts_with("sessions     would remove 0\n"));
    }
}
