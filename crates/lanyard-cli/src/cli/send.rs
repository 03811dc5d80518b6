//! `lanyard send`: a further message to a session, watched to the end of its turn.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use lanyard_api::types::{NewTurn, TurnReceipt};
use lanyard_core::session::{Delivery, DrivenBy, SessionView, TurnResult, TurnStatus};

use super::attach_flags::AttachFlags;
use super::choice_flags::ChoiceFlags;
use super::memory::flags::MemoryFlags;
use super::target::{Target, is_stdin, words_or_stdin};
use super::watch::{EXIT_CODES, Watched, watch};
use crate::client::attached::upload;
use crate::context::Context;
use crate::failure::Failure;

const ABOUT: &str = "\
Shows the turn as `lanyard run` does. An agent whose process is gone takes the conversation up
again by itself, and says how. --detach does not watch the turn.

While a turn is running the message is refused, naming that turn, unless --when says otherwise:
  now        into the running turn; as the next turn if it cannot be delivered in time
  next       as a turn of its own, after this one and after what waits already
  interrupt  in place of the running turn, which is cancelled
With nothing running each of them just starts a turn. What waits is in `lanyard inbox`.

With --id the message is carried out once, however often it is sent: a repeat is shown the running
turn, or its outcome. A turn whose agent was lost in the middle of it is `uncertain`: read the log,
then send the same with --again to run it once more.

A message is refused with `budget_spent` while a budget is spent; `lanyard insight` shows what is
left. --force lets this one turn begin all the same.

An agent that runs under its own host (a terminal, an editor) takes no turns from Lanyard: the
message is refused. With --resume Lanyard takes the conversation over, by the agent's own id of it.

Examples:
  lanyard send fix-login \"now the other test\"
  lanyard send fix-login - < task.md
  lanyard send fix-login \"it looks like this now\" -a shot.png
  lanyard send fix-login --detach \"go on\"
  lanyard send fix-login --when next \"then update the changelog\"
  lanyard send fix-login --when now \"use the staging key\"
  lanyard send fix-login --model opus --effort high \"find the race\"
  lanyard send fix-login --id nightly-42 \"run the migration\"
  lanyard send fix-login --id nightly-42 --again \"run the migration\"
  lanyard send fix-login --force \"only the last test is missing\"

";

/// Send a message to a session's agent, and watch its turn
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{ABOUT}{EXIT_CODES}"))]
#[expect(clippy::struct_excessive_bools, reason = "one per flag of the command line")]
pub(super) struct Send {
    #[command(flatten)]
    target: Target,
    /// Message to the agent, quoted or not; `-` reads it from stdin
    #[arg(required_unless_present = "attach")]
    prompt: Vec<String>,
    #[command(flatten)]
    attach: AttachFlags,
    /// Do not wait: print the turn's id
    #[arg(long, short)]
    detach: bool,
    /// When the agent gets the message, while a turn is running
    #[arg(long, alias = "delivery", value_parser = when_parser())]
    when: Option<Delivery>,
    /// Your own name for the message: the same name and text again is the same turn
    #[arg(long = "id", value_name = "CLIENT_TURN_ID")]
    client_turn_id: Option<String>,
    /// Resume a conversation that runs under its agent's own host, in a run of Lanyard's
    #[arg(long)]
    resume: bool,
    /// Run once more what failed, was cancelled or was lost
    #[arg(long, requires = "client_turn_id")]
    again: bool,
    /// Begin the turn although a budget is spent: only the budget of one turn ends it
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    choice: ChoiceFlags,
    #[command(flatten)]
    memory: MemoryFlags,
}

/// The values of `--when`. The names of the deliveries on the wire are accepted too.
pub(super) fn when_parser() -> impl TypedValueParser<Value = Delivery> {
    PossibleValuesParser::new([
        PossibleValue::new("now").alias(Delivery::Steer.as_str()),
        PossibleValue::new("next").alias(Delivery::Queue.as_str()),
        PossibleValue::new(Delivery::Interrupt.as_str()),
        PossibleValue::new(Delivery::Reject.as_str()).hide(true),
    ])
    .map(|text| match text.as_str() {
        "now" => Delivery::Steer,
        "next" => Delivery::Queue,
        wire => Delivery::ALL.into_iter().find(|one| one.as_str() == wire).unwrap_or(Delivery::Reject),
    })
}

/// The value of `--when` for a delivery.
pub(super) fn when_name(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::Steer => "now",
        Delivery::Queue => "next",
        Delivery::Interrupt | Delivery::Reject => delivery.as_str(),
    }
}

impl Send {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let read = self.attach.read(is_stdin(&self.prompt))?;
        let mut client = context.client().await?;
        let turn = NewTurn {
            prompt: words_or_stdin(&self.prompt)?,
            parts: upload(&mut client, read).await?,
            client_turn_id: self.client_turn_id,
            delivery: self.when.filter(|when| *when != Delivery::Reject),
            again: self.again,
            writer_epoch: None,
            memory: self.memory.ask(),
            choice: self.choice.choice(),
            resume: self.resume,
            forced: self.force,
        };
        drop(client);
        post(context, &self.target, &turn, self.detach).await
    }
}

/// Starts a turn, and watches it unless told otherwise.
pub(super) async fn send(
    context: &Context,
    target: &Target,
    prompt: String,
    detach: bool,
) -> Result<(), Failure> {
    post(context, target, &NewTurn { prompt, ..NewTurn::default() }, detach).await
}

async fn post(context: &Context, target: &Target, turn: &NewTurn, detach: bool) -> Result<(), Failure> {
    let mut client = context.client().await?;
    if !detach {
        let view: SessionView = client.get(&target.route(&[])).await?;
        may_wait(&view)?;
    }
    let receipt: TurnReceipt = client.post(&target.route(&["turns"]), turn).await?;
    drop(client);
    show(context, receipt, detach).await
}

/// A turn that only a client of the API could carry out is not waited for: perhaps none ever does.
pub(super) fn may_wait(view: &SessionView) -> Result<(), Failure> {
    match view.driven_by {
        DrivenBy::Lanyard | DrivenBy::Parent | DrivenBy::Host => Ok(()),
        DrivenBy::Nobody => {
            let id = view.id;
            Err(Failure::local(
                "session_not_run",
                format!("Lanyard runs no agent in session {id}; a client of the API carries out its turns"),
                format!(
                    "hand it to an agent with `lanyard migrate {id} --agent NAME --reason WHY`, or leave a turn for \
                     that client with --detach"
                ),
            ))
        }
    }
}

/// Watches what runs or is about to, and tells of everything else.
pub(super) async fn show(context: &Context, receipt: TurnReceipt, detach: bool) -> Result<(), Failure> {
    let runs = matches!(
        receipt.result,
        TurnResult::Accepted | TurnResult::Interrupting | TurnResult::TurnInProgress
    );
    let session = receipt.outcome.session;
    if let (Some(turn), true) = (receipt.outcome.turn, runs && !detach) {
        for warning in &receipt.outcome.warnings {
            context.out.warn(warning);
        }
        return watch(context, Watched { session, turn, after: receipt.log.after }).await;
    }
    if context.out.is_json() {
        return context.out.json(&receipt);
    }
    for warning in &receipt.outcome.warnings {
        context.out.warn(warning);
    }
    let sentence = sentence(&receipt);
    if !sentence.is_empty() {
        context.out.note(&sentence);
    }
    receipt.outcome.turn.map_or(Ok(()), |turn| context.out.data(&turn.to_string()))
}

fn sentence(receipt: &TurnReceipt) -> String {
    match receipt.result {
        TurnResult::Accepted => String::new(),
        TurnResult::Queued => "it waits for its turn; `lanyard inbox` shows what waits".to_owned(),
        TurnResult::Steered => "its words are on their way into the running turn".to_owned(),
        TurnResult::Interrupting => "the running turn was asked to end; it runs then".to_owned(),
        TurnResult::TurnInProgress => "it was sent before, and runs".to_owned(),
        TurnResult::DuplicateTurnIgnored => {
            let what = match receipt.turn_status {
                TurnStatus::Steered => "went into another turn",
                other @ (TurnStatus::Queued
                | TurnStatus::Running
                | TurnStatus::Completed
                | TurnStatus::Failed
                | TurnStatus::Refused
                | TurnStatus::Cancelled
                | TurnStatus::Interrupted
                | TurnStatus::Uncertain
                | TurnStatus::Withdrawn) => other.as_str(),
            };
            let last = receipt.log.last.map(|last| format!(" to {last}")).unwrap_or_default();
            let from = receipt.log.after + 1;
            format!("it was sent before and is {what}; nothing ran again. Its events are {from}{last}")
        }
    }
}
