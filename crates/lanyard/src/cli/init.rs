//! `lanyard init`: write a config file to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

use lanyard_daemon::config::TEMPLATE;

use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Every setting is there with its default, commented out. Lanyard works without any config file.

Examples:
  lanyard init
  lanyard init --print | less";

/// Write a commented config file and print its path
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Init {
    /// Overwrite a file that is there
    #[arg(long)]
    force: bool,
    /// Print it instead of writing it
    #[arg(long)]
    print: bool,
}

impl Init {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        if self.print {
            return context.out.data(TEMPLATE);
        }
        let path = &context.config_path;
        let write = || {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).create_new(!self.force);
            options.open(path)?.write_all(TEMPLATE.as_bytes())
        };
        write().map_err(|error: std::io::Error| {
            let shown = path.display();
            if error.kind() == ErrorKind::AlreadyExists {
                return Failure::local(
                    "config_exists",
                    format!("{shown} is there already"),
                    "overwrite it with --force",
                );
            }
            Failure::local("config_unwritable", format!("cannot write {shown}: {error}"), "")
        })?;
        if context.out.is_json() {
            return context.out.json(&serde_json::json!({ "config": path }));
        }
        context.out.data(&path.display().to_string())
    }
}
