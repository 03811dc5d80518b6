//! `lanyard man`: the manual pages, for packages.

use std::path::PathBuf;

use super::help;
use crate::context::Context;
use crate::failure::Failure;

/// Write a manual page per command into a folder
#[derive(Debug, clap::Args)]
pub(super) struct Man {
    /// The folder, for example ~/.local/share/man/man1
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Man {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let write = || {
            std::fs::create_dir_all(&self.folder)?;
            clap_mangen::generate_to(help::command(), &self.folder)
        };
        write().map_err(|error| {
            let title = format!("cannot write manual pages to {}: {error}", self.folder.display());
            Failure::local("man_unwritable", title, "name another folder")
        })?;
        context.out.note(&format!("wrote the manual pages to {}", self.folder.display()));
        Ok(())
    }
}
