//! Taking memory out and bringing it in, as JSON lines.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use lanyard_api::types::{Imported, MemoryImport, MemoryPage};
use lanyard_client::Route;
use lanyard_client::names::A_SESSION;

use crate::cli::target::workspace;
use crate::context::Context;
use crate::failure::{Failure, chain};

/// Entries of one request: far below what a body may hold.
const PAGE: usize = 200;
const BATCH: usize = 25;
/// Longest line that is read.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Refused lines that are told one by one.
const TOLD_MAX: usize = 20;

const EXPORT: &str = "\
One JSON document per line and entry, newest first, with all that is known of where it came from.

Examples:
  lanyard memory export > memory.jsonl
  lanyard memory export --workspace . --tag design";

/// Write what is remembered to stdout, as JSON lines
#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT)]
pub(super) struct Export {
    /// Only of this session: id or alias
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only of this workspace
    #[arg(long, value_parser = workspace)]
    workspace: Option<String>,
    /// Only of this person
    #[arg(long)]
    owner: Option<String>,
    /// Only of this store
    #[arg(long, value_parser = ["session", "long_term"])]
    store: Option<String>,
    /// Only with this tag; may be given more than once
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

impl Export {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let tags = Some(self.tags.join(",")).filter(|tags| !tags.is_empty());
        let mut client = context.client().await?;
        let session = client.id_if(A_SESSION, self.session).await?;
        let route = Route::to(&["memory"])
            .with("session", session.as_ref())
            .with("workspace", self.workspace.as_ref())
            .with("owner", self.owner.as_ref())
            .with("store", self.store.as_ref())
            .with("tags", tags.as_ref())
            .with("limit", Some(PAGE));
        let (mut cursor, mut written): (Option<String>, u64) = (None, 0);
        loop {
            let page: MemoryPage = client.get(&route.clone().with("cursor", cursor.as_ref())).await?;
            let mut lines = String::new();
            for row in &page.entries {
                let line = serde_json::to_string(&row.entry)
                    .map_err(|error| Failure::local("output_failed", chain(&error), ""))?;
                lines.push_str(&line);
                lines.push('\n');
                written += 1;
            }
            context.out.words(&lines)?;
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        context.out.note(&format!("{written} written; `lanyard memory import` brings them in again"));
        Ok(())
    }
}

const IMPORT: &str = "\
Takes entries over as they are, ids and all. Brought in again, nothing changes. An entry of a session
that is known here is judged by that session's policy. Lines that are not taken are told, with why;
the others are in.

Examples:
  lanyard memory import memory.jsonl
  ssh old-host lanyard memory export | lanyard memory import -";

/// Bring in what an export wrote
#[derive(Debug, clap::Args)]
#[command(after_help = IMPORT)]
pub(super) struct MemoryImportArgs {
    /// The file; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl MemoryImportArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let source: Box<dyn Read> = if self.file.as_os_str() == "-" {
            Box::new(std::io::stdin())
        } else {
            Box::new(std::fs::File::open(&self.file).map_err(|error| {
                Failure::usage(
                    format!("cannot read {}: {error}", self.file.display()),
                    "name a file that `lanyard memory export` wrote, or `-` for stdin",
                )
            })?)
        };
        let mut client = context.client().await?;
        let (mut total, mut line): (Imported, u64) = (Imported::default(), 0);
        let mut lines = BufReader::new(source);
        loop {
            let (values, numbers, more) = batch(&mut lines, &mut line)?;
            if !values.is_empty() {
                let body = MemoryImport { entries: values };
                let part = line.to_string();
                let answer: Imported =
                    client.post_part(&part, &Route::to(&["memory", "import"]), &body).await?;
                total.imported += answer.imported;
                total.known += answer.known;
                for mut refused in answer.refused {
                    let at = usize::try_from(refused.index).ok().and_then(|at| numbers.get(at));
                    refused.index = at.copied().unwrap_or(refused.index);
                    total.refused.push(refused);
                }
            }
            if !more {
                break;
            }
        }
        told(context, &total)
    }
}

/// The next lines, each with its number, and whether there are more.
fn batch(
    lines: &mut impl BufRead,
    line: &mut u64,
) -> Result<(Vec<serde_json::Value>, Vec<u64>, bool), Failure> {
    let (mut values, mut numbers) = (Vec::new(), Vec::new());
    while values.len() < BATCH {
        let mut text = Vec::new();
        let read = lines.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut text);
        let read = read.map_err(|error| Failure::local("import_unread", chain(&error), ""))?;
        if read == 0 {
            return Ok((values, numbers, false));
        }
        *line += 1;
        if text.trim_ascii().is_empty() {
            continue;
        }
        let value = serde_json::from_slice(&text).map_err(|error| {
            Failure::local(
                "import_not_json",
                format!("line {line} is no JSON document: {error}"),
                "what stood before it is in; mend the line and import the file again",
            )
        })?;
        values.push(value);
        numbers.push(*line);
    }
    Ok((values, numbers, true))
}

fn told(context: &Context, total: &Imported) -> Result<(), Failure> {
    if context.out.is_json() {
        context.out.json(total)?;
    } else {
        for refused in total.refused.iter().take(TOLD_MAX) {
            let what = &refused.title;
            context
                .out
                .warn(&format!("line {}: {what} [{}]; {}", refused.index, refused.code, refused.advice));
        }
        context.out.note(&format!("{} brought in, {} were there already", total.imported, total.known));
    }
    match total.refused.len() {
        0 => Ok(()),
        refused => Err(Failure::local(
            "import_partly_refused",
            format!("{refused} of the lines were not taken"),
            "the others are in; mend those and import the file again",
        )),
    }
}
