//! `lanyard instructions`: how an agent answers what Lanyard tells it, for its rule file.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use lanyard_core::paper::instructions;

use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
The text goes into AGENTS.md, which most agents read; for claude into CLAUDE.md, for gemini into
GEMINI.md, in the current folder. It stands between two marks; everything else stays as it is.

Examples:
  lanyard instructions
  lanyard instructions claude --write
  lanyard instructions claude --remove";

/// Largest rule file that is touched.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Print or install what agents should know about stops and guidance
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Instructions {
    /// The agent whose rule file is meant [default: those that read AGENTS.md]
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// Write it into the rule file in the current folder; again to renew it
    #[arg(long, conflicts_with = "remove")]
    write: bool,
    /// Take it out of the rule file again
    #[arg(long)]
    remove: bool,
}

impl Instructions {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let file = PathBuf::from(rule_file(self.agent.as_deref().unwrap_or_default()));
        if self.write {
            return write(context, &file);
        }
        if self.remove {
            return remove(context, &file);
        }
        let text = instructions::full(instructions::CallAttribution::ByArgument);
        if context.out.is_json() {
            return context.out.json(&serde_json::json!({ "file": file, "instructions": text }));
        }
        context.out.data(&text)
    }
}

/// The file an agent of that name reads its rules from.
fn rule_file(agent: &str) -> &'static str {
    let agent = agent.to_ascii_lowercase();
    if agent.contains("claude") {
        "CLAUDE.md"
    } else if agent.contains("gemini") {
        "GEMINI.md"
    } else {
        "AGENTS.md"
    }
}

fn write(context: &Context, file: &Path) -> Result<(), Failure> {
    let before = read(file)?;
    let after = instructions::written(before.as_deref().unwrap_or_default());
    let changed = before.as_deref() != Some(after.as_str());
    if changed {
        replace(file, &after).map_err(|error| unwritable(file, &error))?;
    }
    let what = match (&before, changed) {
        (_, false) => "has the instructions already",
        (None, true) => "was made with the instructions",
        (Some(_), true) => "has the instructions now",
    };
    told(context, file, changed, what)
}

fn remove(context: &Context, file: &Path) -> Result<(), Failure> {
    let rest = read(file)?.and_then(|content| instructions::removed(&content));
    let Some(rest) = rest else { return told(context, file, false, "has no instructions of Lanyard") };
    // A file that held nothing else was made by `--write`. A link is the user's own.
    let is_link = file.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let done = if rest.is_empty() && !is_link { std::fs::remove_file(file) } else { replace(file, &rest) };
    done.map_err(|error| unwritable(file, &error))?;
    told(context, file, true, "has no instructions of Lanyard any more")
}

/// What the file holds; nothing when there is none.
fn read(file: &Path) -> Result<Option<String>, Failure> {
    let unreadable = |why: String| {
        let title = format!("cannot use {}: {why}", file.display());
        Failure::local("rule_file_unusable", title, "look at the file; nothing was changed")
    };
    match file.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
        Ok(found) if found.len() > FILE_BYTES_MAX => return Err(unreadable("it is too large".to_owned())),
        Ok(found) if !found.is_file() => return Err(unreadable("it is not a file".to_owned())),
        Ok(_) => {}
    }
    std::fs::read_to_string(file).map(Some).map_err(|error| unreadable(error.to_string()))
}

/// Whole or not at all: a rule file that is half written would be lost. A link keeps pointing where it did.
fn replace(file: &Path, content: &str) -> std::io::Result<()> {
    let target = match file.canonicalize() {
        Ok(target) => target,
        Err(error) if error.kind() == ErrorKind::NotFound => file.to_owned(),
        Err(error) => return Err(error),
    };
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = target.with_file_name(format!(".{name}.{}", std::process::id()));
    let write = || {
        let mut made = std::fs::File::create_new(&beside)?;
        made.write_all(content.as_bytes())?;
        if let Ok(found) = target.metadata() {
            made.set_permissions(found.permissions())?;
        }
        made.sync_all()?;
        std::fs::rename(&beside, &target)
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&beside);
    })
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
    let title = format!("cannot write {}: {error}", file.display());
    Failure::local("rule_file_unwritable", title, "look at the folder's permissions; nothing was changed")
}

fn told(context: &Context, file: &Path, changed: bool, what: &str) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.json(&serde_json::json!({ "file": file, "changed": changed }));
    }
    context.out.note(&format!("{} {what}", file.display()));
    Ok(())
}
