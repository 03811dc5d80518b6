//! `lanyard inbox`: the messages that wait for their turn.

use lanyard_api::types::{InboxEdit, InboxOrder, InboxPromotion, InboxView, Reason};
use lanyard_core::session::{Delivery, Promotion, QueuedTurn, with_labels};
use lanyard_core::{Outcome, TurnId};
use serde_json::json;

use super::send::{when_name, when_parser};
use super::target::{Target, text_or_stdin};
use super::turn_list::turn_named;
use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::ids::Shortener;
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::ago;

const EXAMPLES: &str = "\
A turn that completes is followed by the next message at once. After one that was cancelled, failed
or was lost the inbox is paused: nothing starts by itself until `go`. What waits is kept
over a restart of the daemon, and is withdrawn when the session ends.

Examples:
  lanyard inbox fix-login
  lanyard inbox fix-login edit turn_01m7n5djg0fayvh8t5cxyjkdnf --prompt \"only the unit tests\"
  lanyard inbox fix-login order turn_01m7n5djg0fayvh8t5cxyjkdnf turn_01m7gcpqk5e7xrvdtgjgbm759b
  lanyard inbox fix-login rm turn_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard inbox fix-login promote turn_01m7n5djg0fayvh8t5cxyjkdnf --as interrupt
  lanyard inbox fix-login pause
  lanyard inbox fix-login go";

const COLUMNS: [Column; 6] = [
    Column::whole("TURN"),
    Column::whole("WHEN"),
    Column::whole("SENT"),
    Column::elastic("FROM", 5),
    Column::elastic("YOUR ID", 7),
    Column::elastic("PROMPT", 20),
];

/// List the messages that wait for their turn, and change them
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = false, subcommand_negates_reqs = false)]
pub(super) struct InboxArgs {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    verb: Option<InboxVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum InboxVerb {
    /// Change the text of a message, or when it is delivered
    Edit {
        turn: String,
        /// The new words; `-` reads them from stdin
        #[arg(long)]
        prompt: Option<String>,
        /// When the agent gets the message
        #[arg(long, alias = "delivery", value_parser = when_parser())]
        when: Option<Delivery>,
    },
    /// Put the messages in another order: name all of them, the next one first
    Order {
        #[arg(required = true)]
        turns: Vec<String>,
    },
    /// Take a message back
    Rm {
        turn: String,
        /// Why, for the log
        #[arg(long)]
        reason: Option<String>,
    },
    /// Move a message to the front, into the running turn, or in its place
    Promote {
        turn: String,
        #[arg(long = "as", value_name = "HOW", default_value = "front", value_parser = promotion_parser())]
        to: String,
    },
    /// Start nothing until `go`
    Pause,
    /// Let the inbox go on
    Go,
}

const PROMOTIONS: [Promotion; 3] = [Promotion::Front, Promotion::Steer, Promotion::Interrupt];

fn promotion_parser() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(PROMOTIONS.map(Promotion::as_str))
}

impl InboxArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let Some(verb) = &self.verb else { return list(context, &self.target).await };
        let mut client = context.client().await?;
        let at = |below: &[&str]| self.target.route(below);
        let (outcome, sentence): (Outcome, String) = match verb {
            InboxVerb::Edit { turn, prompt, when } => {
                let id = self.turn(&mut client, turn).await?.to_string();
                let prompt = prompt.clone().map(text_or_stdin).transpose()?;
                let body = InboxEdit { prompt, delivery: *when, writer_epoch: None };
                (client.patch(&at(&["inbox", &id]), &body).await?, format!("{id} was changed"))
            }
            InboxVerb::Order { turns: named } => {
                let mut turns = Vec::new();
                for turn in named {
                    turns.push(self.turn(&mut client, turn).await?);
                }
                let body = InboxOrder { turns, writer_epoch: None };
                (client.post(&at(&["inbox", "order"]), &body).await?, "the order was changed".to_owned())
            }
            InboxVerb::Rm { turn, reason } => {
                let id = self.turn(&mut client, turn).await?.to_string();
                let outcome = client.delete(&at(&["inbox", &id]), &Reason { reason: reason.clone() }).await?;
                (outcome, format!("{id} was taken back"))
            }
            InboxVerb::Promote { turn, to } => {
                let id = self.turn(&mut client, turn).await?.to_string();
                let to =
                    PROMOTIONS.into_iter().find(|known| known.as_str() == to.as_str()).unwrap_or_default();
                let body = InboxPromotion { to, writer_epoch: None };
                let outcome = client.post(&at(&["inbox", &id, "promote"]), &body).await?;
                (outcome, format!("{id} was promoted ({})", to.as_str()))
            }
            InboxVerb::Pause => {
                let outcome = client.post(&at(&["inbox", "pause"]), &Reason::default()).await?;
                (outcome, "the inbox is paused".to_owned())
            }
            InboxVerb::Go => {
                let outcome: Outcome = client.post(&at(&["inbox", "go"]), &Reason::default()).await?;
                let sentence = format!("the inbox goes on; the session is {}", outcome.state);
                (outcome, sentence)
            }
        };
        context.out.receipt(&outcome, None, &sentence)
    }

    /// The message that a text names.
    async fn turn(&self, client: &mut Client<'_>, named: &str) -> Result<TurnId, Failure> {
        let inbox: InboxView = client.get(&self.target.route(&["inbox"])).await?;
        turn_named(&inbox.turns.iter().map(|waiting| waiting.turn).collect::<Vec<_>>(), named)
    }
}

async fn list(context: &Context, target: &Target) -> Result<(), Failure> {
    let mut client = context.client().await?;
    let inbox: InboxView = client.get(&target.route(&["inbox"])).await?;
    if context.out.is_json() {
        return context.out.list_with(&inbox.turns, None, &json!({ "paused": inbox.paused }));
    }
    if let Some(reason) = inbox.paused {
        context.out.note(&format!("paused ({}); `lanyard inbox {} go` goes on", reason.as_str(), target.id));
    }
    if inbox.turns.is_empty() {
        context.out.note("nothing waits; `lanyard send --when next` adds to it");
        return Ok(());
    }
    let now = daemon_now(&mut client).await?;
    let ids = Shortener::of(&inbox.turns.iter().map(|waiting| waiting.turn.to_string()).collect::<Vec<_>>());
    let cell = |waiting: &QueuedTurn| {
        vec![
            ids.short(&waiting.turn.to_string()).to_owned(),
            when_name(waiting.delivery).to_owned(),
            ago(now, waiting.at),
            one_line(&waiting.actor.name),
            waiting.client_turn_id.as_deref().map(one_line).unwrap_or_default(),
            one_line(&with_labels(&waiting.prompt, &waiting.parts)),
        ]
    };
    let cells: Vec<Vec<String>> = inbox.turns.iter().map(cell).collect();
    context.out.data(&table(&COLUMNS, &cells, context.out.columns))
}
