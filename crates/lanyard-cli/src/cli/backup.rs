//! `lanyard backup`: a checked copy of the journal.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lanyard_api::types::{BackupReceipt, NewBackup};
use lanyard_client::Route;

use crate::context::Context;
use crate::failure::Failure;
use crate::host::DaemonHost;
use crate::render::text::count;

const EXAMPLES: &str = "\
The copy is of one moment and in one file, readable by you only, and is checked by reading all of it before it gets its
name. Agents and the daemon go on meanwhile. Deleted sessions that are purged are not in it.
The copy holds the journal (sessions, tasks, plans, memory) and what was attached to messages. It does not hold the config,
the token or checkpoints.

Examples:
  lanyard backup ~/backups/lanyard-$(date +%F).db
  lanyard backup /mnt/usb/lanyard.db --force
  lanyard backup before-upgrade.db --json | jq .bytes";

/// How often the growing copy is looked at.
const LOOK: Duration = Duration::from_secs(1);
const MEBI: u64 = 1 << 20;

/// Copy the journal to a file, and check the copy
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Backup {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace a file that exists
    #[arg(long)]
    force: bool,
}

impl Backup {
    pub(super) async fn run(self, context: &Context, host: &DaemonHost) -> Result<(), Failure> {
        let path = std::path::absolute(&self.file).map_err(|error| {
            Failure::usage(format!("the path cannot be used: {error}"), "name another file")
        })?;
        let receipt = match context.client_if_running().await? {
            Some(mut client) => {
                let body = NewBackup { path: path.display().to_string(), force: self.force };
                let route = Route::to(&["backup"]);
                let copying = client.post_patiently(&route, &body);
                tokio::pin!(copying);
                loop {
                    tokio::select! {
                        receipt = &mut copying => break receipt?,
                        () = tokio::time::sleep(LOOK) => progress(context, &path),
                    }
                }
            }
            None => self.alone(context, host, &path)?,
        };
        if context.out.is_json() {
            context.out.json(&receipt)?;
        } else {
            context.out.data(&sentence(&receipt))?;
        }
        if receipt.damage.is_empty() && receipt.structure.is_empty() {
            return Ok(());
        }
        context.out.warn("the journal is damaged, and so is its copy: run `lanyard doctor`");
        Err(Failure::Shown)
    }

    /// Without a daemon the journal is opened here, which excludes other processes meanwhile.
    fn alone(&self, context: &Context, host: &DaemonHost, path: &Path) -> Result<BackupReceipt, Failure> {
        if !context.home.journal().exists() {
            return Err(Failure::local(
                "journal_missing",
                format!("there is no journal in {}", context.home.dir.display()),
                "name the right folder with --data-dir",
            ));
        }
        Ok((host.back_up)(&context.home.journal(), path, self.force)?)
    }
}

fn progress(context: &Context, path: &Path) {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    if let Ok(meta) = std::fs::metadata(&partial) {
        context.out.note(&format!("{} MB copied", meta.len() / MEBI));
    }
}

fn sentence(receipt: &BackupReceipt) -> String {
    let BackupReceipt { path, bytes, sessions, events, .. } = receipt;
    format!(
        "{path}: {}, {}, {} kB, checked",
        count(*sessions, "session"),
        count(*events, "event"),
        bytes.div_ceil(1_024)
    )
}
