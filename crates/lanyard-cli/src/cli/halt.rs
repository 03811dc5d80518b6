//! `lanyard halt`: everything stops, and nothing begins until the halt is lifted.

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{Halt as Body, HaltReceipt, HaltState, Reason};
use lanyard_client::Route;
use lanyard_client::names::A_WORK;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{count, one_line};
use crate::render::time::stamp;

const EXAMPLES: &str = "\
Alone it cancels every task and stops every session in which a turn is running. Until `--lift`, also
after a restart, no session, turn, task or step of a flow begins: requests are refused with the code
`halted`, and messages in inboxes wait. It does not ask whether you are sure. With WHAT only that task
or the tasks of that plan are cancelled, with all below them, and the plan is paused. What was done so
far is kept.

Examples:
  lanyard halt --reason \"the budget is gone\"
  lanyard halt --now
  lanyard halt release
  lanyard halt --status
  lanyard halt --lift --reason \"the budget was raised\"";

/// Stop all work, or one plan's, and start nothing new
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct HaltArgs {
    /// A plan, a task or its worker [default: everything]
    #[arg(value_name = "WHAT", value_parser = NonEmptyStringValueParser::new())]
    what: Option<String>,
    /// At once, whatever agents are doing
    #[arg(long)]
    now: bool,
    /// Why, for the agents and the log
    #[arg(long)]
    reason: Option<String>,
    /// Let work begin again
    #[arg(long, conflicts_with_all = ["what", "now", "status"])]
    lift: bool,
    /// Only say whether work is halted
    #[arg(long, conflicts_with_all = ["what", "now", "reason"])]
    status: bool,
}

impl HaltArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        if self.status || self.lift {
            let state: HaltState = if self.status {
                client.get(&Route::to(&["halt"])).await?
            } else {
                client.post(&Route::to(&["halt", "lift"]), &Reason { reason: self.reason }).await?
            };
            if context.out.is_json() {
                return context.out.json(&state);
            }
            return context.out.data(&sentence(&state));
        }
        let what = client.id_if(A_WORK, self.what).await?;
        let body = Body { what, reason: self.reason, now: self.now };
        let receipt: HaltReceipt = client.post(&Route::to(&["halt"]), &body).await?;
        if context.out.is_json() {
            return context.out.json(&receipt);
        }
        context.out.note(&asked(&receipt));
        let ids = receipt.tasks.iter().map(ToString::to_string);
        let ids = ids.chain(receipt.sessions.iter().map(ToString::to_string));
        context.out.data(&ids.map(|id| id + "\n").collect::<String>())
    }
}

fn asked(receipt: &HaltReceipt) -> String {
    let parts = [(receipt.tasks.len(), "task"), (receipt.sessions.len(), "session")];
    let parts = parts.into_iter().filter(|(found, _)| *found > 0).map(|(found, noun)| count(found, noun));
    let parts: Vec<String> = parts.collect();
    let stopped = if parts.is_empty() {
        "nothing was at work".to_owned()
    } else {
        format!("asked to stop: {}", parts.join(" and "))
    };
    let after = if receipt.halted { "; nothing begins until `lanyard halt --lift`" } else { "" };
    format!("{stopped}{after}")
}

fn sentence(state: &HaltState) -> String {
    if let Some(halted) = warning(state) {
        return halted;
    }
    let Some(lifted) = &state.lifted else { return "work is not halted".to_owned() };
    let why = lifted.reason.as_deref().map(|why| format!(": {}", one_line(why))).unwrap_or_default();
    format!("work is not halted; {} lifted the last halt at {}{why}", one_line(&lifted.by), stamp(lifted.at))
}

/// The halt in a sentence, for every command that shows how things stand; nothing while nothing is halted.
pub(super) fn warning(state: &HaltState) -> Option<String> {
    if !state.halted {
        return None;
    }
    let since = state.since.map(|since| format!(" since {}", stamp(since))).unwrap_or_default();
    let by = state.by.as_deref().map(|by| format!(" by {}", one_line(by))).unwrap_or_default();
    let why = state.reason.as_deref().map(|why| format!(": {}", one_line(why))).unwrap_or_default();
    Some(format!("work is halted{since}{by}{why}; `lanyard halt --lift` lets it begin again"))
}

#[cfg(test)]
mod tests {
    use lanyard_api::types::HaltLifted;
    use lanyard_core::{TaskId, Timestamp};

    use super::*;

    #[test]
    fn a_halt_says_who_since_when_why_and_how_it_ends() {
        let none = HaltState::default();
        assert_eq!(sentence(&none), "work is not halted");
        let lifted = HaltLifted {
            at: Timestamp::from_millis(1_794_729_600_000),
            by: "ann".to_owned(),
            reason: Some("paid".to_owned()),
            halted_at: None,
        };
        let lifted = HaltState { lifted: Some(lifted), ..HaltState::default() };
        assert_eq!(
            sentence(&lifted),
            "work is not halted; ann lifted the last halt at 2026-11-15T08:00:00Z: paid"
        );
        assert_eq!(warning(&lifted), None);
        let state = HaltState {
            halted: true,
            reason: Some("the budget\nis gone".to_owned()),
            since: Some(Timestamp::from_millis(1_794_729_600_000)),
            by: Some("operator".to_owned()),
            lifted: None,
        };
        assert_eq!(
            sentence(&state),
            "work is halted since 2026-11-15T08:00:00Z by operator: the budget is gone; `lanyard halt --lift` lets it \
             begin again"
        );
        let receipt = HaltReceipt { tasks: vec![TaskId::from_u128(1)], sessions: Vec::new(), halted: true };
        assert_eq!(asked(&receipt), "asked to stop: 1 task; nothing begins until `lanyard halt --lift`");
        let nothing = HaltReceipt { tasks: Vec::new(), sessions: Vec::new(), halted: false };
        assert_eq!(asked(&nothing), "nothing was at work");
    }
}
