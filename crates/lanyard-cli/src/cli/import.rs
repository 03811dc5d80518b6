//! `lanyard import`: conversations in the agents' own histories, as sessions.

use std::io::IsTerminal;

use lanyard_api::types::{HistoryEntry, HistoryPage, ImportReceipt};
use lanyard_client::Route;
use serde_json::json;

use super::target::workspace;
use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::failure::{Exit, Failure};
use crate::render::table::{Column, table};
use crate::render::text::{count, one_line};
use crate::render::time::ago;

const COLUMNS: [Column; 7] = [
    Column::whole("NO"),
    Column::whole("AGENT"),
    Column::whole("ID"),
    Column::elastic("TITLE", 16),
    Column::elastic("FOLDER", 16),
    Column::whole("MESSAGES"),
    Column::whole("CHANGED"),
];
/// Conversations that one `--all` imports.
const ALL_MAX: usize = 1_000;
/// Conversations of one page while all are imported.
const PAGE: usize = 100;

const EXAMPLES: &str = "\
Without ids it lists the conversations that Claude Code, Codex, OpenCode and Gemini CLI keep on the
daemon's machine, newest first; on a terminal it asks which to import. An imported conversation is a
session with its transcript; `lanyard send` goes on with it by the agent's own resume. Imported
again, it is the same session.

Examples:
  lanyard import
  lanyard import claude
  lanyard import claude 1b2c3d4e-0000-4000-8000-123456789abc
  lanyard import --all --folder .
  lanyard import codex --json";

/// Make sessions of conversations that agents keep in their own histories
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ImportArgs {
    /// Whose history: claude, codex, opencode, gemini, or a configured agent
    agent: Option<String>,
    /// The agent's own ids of the conversations, or the beginnings of them
    #[arg(value_name = "NATIVE_ID", conflicts_with = "all")]
    ids: Vec<String>,
    /// Import all that are listed
    #[arg(long)]
    all: bool,
    /// Only conversations of this folder
    #[arg(long, value_name = "DIR", value_parser = workspace)]
    folder: Option<String>,
    /// The number of conversations in a listing
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
    /// Go on where the last page ended
    #[arg(long)]
    cursor: Option<String>,
    /// Why, for the log
    #[arg(long)]
    reason: Option<String>,
}

impl ImportArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let chosen: Vec<(String, String)> = match (&self.agent, self.ids.is_empty(), self.all) {
            (Some(agent), false, _) => self.ids.iter().map(|id| (agent.clone(), id.clone())).collect(),
            (_, _, true) => self.every(context, &mut client).await?,
            (_, _, false) => match self.listed(context, &mut client).await? {
                Some(chosen) => chosen,
                None => return Ok(()),
            },
        };
        self.import(context, &mut client, chosen).await
    }

    fn route(&self) -> Route {
        Route::to(&["histories"]).with("agent", self.agent.as_ref()).with("workspace", self.folder.as_ref())
    }

    /// Lists a page; answers what was chosen on a terminal.
    async fn listed(
        &self,
        context: &Context,
        client: &mut Client<'_>,
    ) -> Result<Option<Vec<(String, String)>>, Failure> {
        let route = self.route().with("limit", Some(self.limit)).with("cursor", self.cursor.as_ref());
        let page: HistoryPage = client.get_patiently(&route).await?;
        if context.out.is_json() {
            let more = json!({ "problems": page.problems });
            context.out.list_with(&page.items, page.next.as_deref(), &more)?;
            return Ok(None);
        }
        for problem in &page.problems {
            let (agent, what) = (one_line(&problem.agent), one_line(&problem.what));
            context.out.warn(&format!("the history of {agent} cannot be read: {what}"));
        }
        if page.items.is_empty() {
            context.out.note("no conversations were found; the daemon looks where its agents keep them");
            return Ok(None);
        }
        let now = daemon_now(client).await?;
        let rows: Vec<Vec<String>> =
            (1..).zip(&page.items).map(|(number, item)| cells(number, item, now)).collect();
        context.out.data(&table(&COLUMNS, &rows, context.out.columns))?;
        if let Some(next) = &page.next {
            context.out.note(&format!("there are more: add `--cursor {next}`"));
        }
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            context.out.note("import one with `lanyard import AGENT ID`, or all with `--all`");
            return Ok(None);
        }
        context.out.question("import which? numbers, or nothing> ");
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        read.map_err(|error| Failure::local("stdin_unreadable", format!("cannot read stdin: {error}"), ""))?;
        let chosen = numbers(&line, page.items.len())?;
        let items = chosen.iter().filter_map(|number| page.items.get(number - 1));
        let chosen: Vec<_> = items.map(|item| (item.agent.clone(), item.native.clone())).collect();
        Ok(Some(chosen).filter(|chosen| !chosen.is_empty()))
    }

    /// All conversations that have no session yet.
    async fn every(
        &self,
        context: &Context,
        client: &mut Client<'_>,
    ) -> Result<Vec<(String, String)>, Failure> {
        let (mut chosen, mut cursor) = (Vec::new(), self.cursor.clone());
        loop {
            let route = self.route().with("limit", Some(PAGE)).with("cursor", cursor.as_ref());
            let page: HistoryPage = client.get_patiently(&route).await?;
            let new = page.items.iter().filter(|item| item.session.is_none());
            chosen.extend(new.map(|item| (item.agent.clone(), item.native.clone())));
            cursor = page.next;
            if chosen.len() >= ALL_MAX && cursor.is_some() {
                context.out.note(&format!("{ALL_MAX} at a time; run it again for the rest"));
                chosen.truncate(ALL_MAX);
                return Ok(chosen);
            }
            if cursor.is_none() {
                return Ok(chosen);
            }
        }
    }

    async fn import(
        &self,
        context: &Context,
        client: &mut Client<'_>,
        chosen: Vec<(String, String)>,
    ) -> Result<(), Failure> {
        let (mut receipts, mut failed) = (Vec::new(), Vec::new());
        for (part, (agent, native)) in (1..).zip(&chosen) {
            let route = Route::to(&["histories", "import"]);
            let body = json!({ "agent": agent, "native": native, "reason": self.reason });
            match client.post_part_patiently::<ImportReceipt>(&part.to_string(), &route, &body).await {
                Ok(receipt) => {
                    if !context.out.is_json() {
                        tell(context, &receipt)?;
                    }
                    receipts.push(receipt);
                }
                // One of several does not keep the others out.
                Err(Failure::Told { problem, exit: Exit::Failed }) if chosen.len() > 1 => {
                    if !context.out.is_json() {
                        context.out.warn(&one_line(&problem.title));
                    }
                    let (code, title) = (&problem.code, &problem.title);
                    failed.push(json!({ "agent": agent, "native": native, "code": code, "title": title }));
                }
                Err(failure) => return Err(failure),
            }
        }
        if context.out.is_json() {
            context.out.list_with(&receipts, None, &json!({ "failed": failed }))?;
        } else if chosen.is_empty() {
            context.out.note("there is nothing to import");
        }
        if failed.is_empty() { Ok(()) } else { Err(Failure::Shown) }
    }
}

fn tell(context: &Context, receipt: &ImportReceipt) -> Result<(), Failure> {
    let (agent, native) = (one_line(&receipt.agent), one_line(&receipt.native));
    if receipt.existing {
        context.out.note(&format!("{native} of {agent} is a session already; nothing was changed"));
    } else {
        let counted = |n: u64, noun: &str, what: &str| match n {
            0 => String::new(),
            n => format!(", {} {what}", count(n, noun)),
        };
        let text = format!(
            "{native} of {agent} imported: {}{}{}",
            count(receipt.messages, "message"),
            counted(receipt.left_out, "older event", "left out"),
            counted(receipt.unreadable, "line", "unreadable"),
        );
        context.out.note(&text);
    }
    for warning in &receipt.warnings {
        context.out.warn(&one_line(warning));
    }
    context.out.data(&receipt.session.to_string())
}

fn cells(number: usize, item: &HistoryEntry, now: lanyard_core::Timestamp) -> Vec<String> {
    let title = item.title.as_deref().map(one_line).unwrap_or_default();
    let folder = item.workspace.as_deref().map(one_line).unwrap_or_default();
    let known = if item.session.is_some() { " (a session)" } else { "" };
    vec![
        number.to_string(),
        one_line(&item.agent),
        one_line(&item.native),
        format!("{title}{known}"),
        folder,
        item.messages.map(|messages| messages.to_string()).unwrap_or_default(),
        ago(now, item.updated_at),
    ]
}

/// Numbers of rows as they are typed: `1 3 5` or `1,3`.
fn numbers(line: &str, rows: usize) -> Result<Vec<usize>, Failure> {
    let words = line.split([' ', ',']).map(str::trim).filter(|word| !word.is_empty());
    let number = |word: &str| word.parse().ok().filter(|number| (1..=rows).contains(number));
    words
        .map(|word| {
            let wrong = || Failure::usage(format!("`{}` is no number of the list", one_line(word)), "");
            number(word).ok_or_else(wrong)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_their_numbers() {
        assert_eq!(numbers("1, 3 2\n", 3).ok(), Some(vec![1, 3, 2]));
        assert_eq!(numbers("\n", 3).ok(), Some(Vec::new()));
        assert!(numbers("4", 3).is_err() && numbers("0", 3).is_err() && numbers("x", 3).is_err());
    }
}
