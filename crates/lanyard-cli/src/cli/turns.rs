//! `lanyard turns`: what became of the messages a session got.

use lanyard_api::types::TurnList;
use lanyard_core::session::TurnRow;

use super::target::Target;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::ids::Shortener;
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::ago;

const EXAMPLES: &str = "\
queued, running, completed, failed, refused (by the agent), cancelled (by a person or a client),
interrupted (time or budget over, or the agent was lost before it had the prompt), uncertain (the
agent had the message and was lost: its effects are unknown), withdrawn (it never ran), steered (its
text went into another turn).

Examples:
  lanyard turns fix-login
  lanyard turns fix-login --limit 5 --json | jq '.items[0].status'";

const COLUMNS: [Column; 7] = [
    Column::whole("TURN"),
    Column::whole("STATUS"),
    Column::whole("SENT"),
    Column::elastic("YOUR ID", 7),
    Column::whole("EVENTS"),
    Column::elastic("REASON", 10),
    Column::elastic("PROMPT", 20),
];

/// List a session's turns and what became of them, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TurnsArgs {
    #[command(flatten)]
    target: Target,
    /// How many, 1 to 500
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: u16,
    /// Go on where the last page ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl TurnsArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let limit = self.limit.to_string();
        let route = self.target.route(&["turns"]);
        let route = route.with("limit", Some(&limit)).with("cursor", self.cursor.as_ref());
        let list: TurnList = client.get(&route).await?;
        if context.out.is_json() {
            return context.out.list(&list.turns, list.next.as_deref());
        }
        if list.turns.is_empty() {
            context.out.note("it had no turn yet; `lanyard send` starts one");
            return Ok(());
        }
        let now = daemon_now(&mut client).await?;
        let turns: Vec<String> = list.turns.iter().map(|row| row.turn.to_string()).collect();
        let ids = Shortener::of(&turns);
        let cells: Vec<Vec<String>> = list
            .turns
            .iter()
            .zip(&turns)
            .map(|(row, turn)| {
                vec![
                    ids.short(turn).to_owned(),
                    row.status.as_str().to_owned(),
                    row.queued_at.or(row.started_at).map(|at| ago(now, at)).unwrap_or_default(),
                    row.client_turn_id.as_deref().map(one_line).unwrap_or_default(),
                    events(row),
                    row.reason.as_deref().map(one_line).unwrap_or_default(),
                    one_line(&row.prompt_preview),
                ]
            })
            .collect();
        context.out.data(&table(&COLUMNS, &cells, context.out.columns))?;
        if let Some(next) = list.next {
            context.out.note(&format!("there are older ones: --cursor {next}"));
        }
        Ok(())
    }
}

fn events(row: &TurnRow) -> String {
    match (row.started_seq, row.ended_seq) {
        (Some(from), Some(to)) => format!("{from}-{to}"),
        (Some(from), None) => format!("{from}-"),
        (None, _) => String::new(),
    }
}
