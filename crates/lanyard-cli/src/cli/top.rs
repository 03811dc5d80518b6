//! `lanyard top`: a screen of all sessions.

use std::io::IsTerminal;

use lanyard_api::types::GateList;
use lanyard_client::Route;
use lanyard_core::Timestamp;
use serde_json::Value;

use super::approvals::flow_gates;
use super::attach::{How, failed, on_screen, open_feed};
use super::halt::warning;
use crate::client::Client;
use crate::context::{Context, daemon_now, daemon_status};
use crate::failure::Failure;
use crate::render::table::{Column, table};
use crate::tui::attach::Mode;
use crate::tui::message::Exit;
use crate::tui::paint::Paint;
use crate::tui::stage::{ScreenClock, show};
use crate::tui::top::Model;
use crate::tui::top::row::words;

/// Sessions on the screen.
const ROWS_MAX: u64 = 10_000;
/// The most one page of the listing may hold.
const PAGE_ROWS_MAX: u64 = 1_000;
/// Sessions whose details `--once` asks for, the most urgent first.
const DETAILS_MAX: usize = 200;
/// Events an attached screen begins with.
const TAIL: u64 = 200;

const EXAMPLES: &str = "\
Approvals of flows come first, then sessions that need you: those that wait for an approval, and those
that were interrupted. Keys: f answers a flow, Enter attaches, s stops, g guides, c cancels, / filters, ?
shows the rest. `--once` and `--json` print what is there and end.

Examples:
  lanyard top
  lanyard top --once
  lanyard top --all
  lanyard top --json | jq -r '.items[].id'";

/// Watch all sessions on a screen, and step in
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Top {
    /// Print the table once and end
    #[arg(long)]
    once: bool,
    /// Show archived sessions too, and those that ended long ago
    #[arg(long, short)]
    all: bool,
}

impl Top {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        if context.out.is_json() || self.once || !terminal {
            if !terminal && !self.once && !context.out.is_json() {
                context.out.note("there is no terminal to draw on: printing the table once");
            }
            return once(context, self.all).await;
        }
        self.on_screen(context).await
    }

    async fn on_screen(&self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let clock = ScreenClock::set(daemon_now(&mut client).await?);
        drop(client);
        let mut model = Model::new(Paint::from_env());
        let all = self.all;
        loop {
            let mut feed = open_feed(context, "lanyard top".to_owned(), move |_| {
                narrowed(Route::to(&["directory", "stream"]), all).with("limit", Some(ROWS_MAX))
            })?;
            match show(&mut model, context, &mut feed, clock).await? {
                Exit::Quit => return Ok(()),
                Exit::Refused(refused) => return Err(failed(refused)),
                Exit::Attach(id) => {
                    drop(feed);
                    // Back to the list afterwards, where one was.
                    on_screen(context, id, How { mode: Mode::Write, last: Some(TAIL) }).await?;
                    model.directory.choose(id);
                }
            }
        }
    }
}

fn narrowed(route: Route, all: bool) -> Route {
    route.with("live", (!all).then_some("true")).with("archived", (!all).then_some("false"))
}

/// The table as text, or the rows as they are.
async fn once(context: &Context, all: bool) -> Result<(), Failure> {
    let mut client = context.client().await?;
    let mut model = Model::new(Paint::from_env());
    let directory = &mut model.directory;
    directory.begin();
    let rows = rows(&mut client, all).await?;
    for row in &rows {
        directory.row(row);
    }
    directory.ready();
    directory.settle(usize::MAX);
    for id in directory.wanting(usize::MAX, DETAILS_MAX) {
        // One that was deleted meanwhile has no details.
        if let Ok(detail) = client.get::<Value>(&Route::to(&["sessions", &id.to_string()])).await {
            directory.detail(id, &detail);
        }
    }
    directory.settle(usize::MAX);
    let order: Vec<String> = directory.places().iter().map(|place| place.id.to_string()).collect();
    if context.out.is_json() {
        let sorted: Vec<&Value> =
            order.iter().filter_map(|id| rows.iter().find(|row| row["id"] == id.as_str())).collect();
        return context.out.list(&sorted, None);
    }
    let asked: GateList = client.get(&Route::to(&["gates"])).await?;
    let status = daemon_status(&mut client).await?;
    if let Some(halted) = warning(&status.halt) {
        context.out.warn(&halted);
    }
    let now = status.now;
    let mut tables: Vec<String> = Vec::new();
    if !asked.flows.is_empty() {
        tables.push(flow_gates(&asked.flows, now, context.out.columns));
    }
    if order.is_empty() {
        context.out.note("no sessions; --all shows archived and long ended ones too");
    } else {
        tables.push(text(&model, now, context.out.columns));
    }
    context.out.data(&tables.join("\n"))
}

async fn rows(client: &mut Client<'_>, all: bool) -> Result<Vec<Value>, Failure> {
    let mut rows: Vec<Value> = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let route = narrowed(Route::to(&["sessions"]), all)
            .with("limit", Some(PAGE_ROWS_MAX))
            .with("cursor", cursor.as_ref());
        let mut page: Value = client.get(&route).await?;
        if let Some(sessions) = page["sessions"].as_array_mut() {
            rows.append(sessions);
        }
        cursor = page["next"].as_str().map(str::to_owned);
        if cursor.is_none() || rows.len() >= usize::try_from(ROWS_MAX).unwrap_or(usize::MAX) {
            return Ok(rows);
        }
    }
}

fn text(model: &Model, now: Timestamp, width: Option<usize>) -> String {
    const COLUMNS: [Column; 8] = [
        Column::whole(" "),
        Column::whole("ID"),
        Column::whole("STATE"),
        Column::whole("FOR"),
        Column::elastic("AGENT", 5),
        Column::elastic("SESSION", 8),
        Column::elastic("LAST TOOL", 5),
        Column::elastic("WAITS, WHO IS THERE", 8),
    ];
    let cells: Vec<Vec<String>> = model
        .directory
        .visible(usize::MAX)
        .map(|(place, face)| {
            let words = words(&face, now);
            let title = face.title.clone().unwrap_or_default();
            vec![
                words.mark.to_owned(),
                place.id.to_string(),
                words.state,
                words.lasting,
                words.agent,
                format!("{}{title}", place.branch),
                words.tool,
                words.notes,
            ]
        })
        .collect();
    table(&COLUMNS, &cells, width)
}
