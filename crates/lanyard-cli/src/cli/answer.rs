//! `lanyard answer`: answer an approval that an agent or a flow waits for.

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{FlowAnswer, FlowList, FlowView, GateAnswer, GateEntry, GateList};
use lanyard_client::Route;
use lanyard_client::names::{A_SESSION, AN_ASKER};
use lanyard_core::flow::{FlowGate, gate};
use lanyard_core::session::GateStatus;
use lanyard_core::{FlowId, GateId, Outcome};

use super::answer_prompt::{answered, at_prompt, post};
use crate::client::Client;
use crate::context::Context;
use crate::dialogue;
use crate::failure::Failure;

/// The newest flows, searched for an approval that is no longer open.
const FLOWS_MAX: usize = 50;

const EXAMPLES: &str = "\
Without an option, shows the approval and reads the answer from stdin: the number of an option, its
name, `a` (allow) or `d` (deny); for a flow a letter (`c`) or its name (`continue-session`). A message
to the agent follows a colon, as in `d: use the staging key`. Invalid answers are prompted for again;
without an answer the approval stays open.

The first answer stands: the same answer again changes nothing, another one is refused. A session or a
flow can be named instead of its only approval. Flows take c (continue-session), f (fix), o (override)
and q (abort); each approval offers some of them.

Examples:
  lanyard answer
  lanyard answer fix-login
  lanyard answer gate_01m7n5djg0fayvh8t5cxyjkdnf allow
  lanyard answer fix-login deny --message \"use the staging database\"
  lanyard answer gate_01m7n5djg0fayvh8t5cxyjkdnf always --session fix-login
  lanyard answer gate_01m7n5djg0fayvh8t5cxyjkdnf c --message \"fix the import first\"
  echo \"f: begin again\" | lanyard answer flow_01m7n5djg0fayvh8t5cxyjkdnf

Exit codes: 0 answered, 1 refused or failed, 2 not understood, 3 no daemon that answers, 4 it stays
open";

/// Answer an approval of an agent or a flow
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AnswerArgs {
    /// Approval, as `lanyard approvals` lists it, or its session or flow [default: the only one]
    #[arg(value_name = "APPROVAL|ID", value_parser = NonEmptyStringValueParser::new())]
    what: Option<String>,
    /// `allow`, `always`, `deny`, `never` or the id of an option; of a flow `c`, `f`, `o` or `q` [default: prompt]
    #[arg(value_name = "OPTION", value_parser = NonEmptyStringValueParser::new())]
    option: Option<String>,
    /// Message to the agent, where it takes one
    #[arg(long, alias = "guidance")]
    message: Option<String>,
    /// Session of the approval: needed to repeat an answer to a settled approval
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

/// Owner of an approval.
enum ApprovalAsker {
    Session(String, GateId),
    Flow(FlowId, Box<FlowGate>),
}

impl AnswerArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let (Some(what), Some(option)) = (&self.what, &self.option) else {
            if self.message.is_some() || self.session.is_some() {
                return Err(Failure::usage(
                    "an option is missing",
                    "name the approval and an option, or leave both out",
                ));
            }
            return at_prompt(context, self.what.as_deref()).await;
        };
        let (what, option) = (what.clone(), option.clone());
        let mut client = context.client().await?;
        let what = client.id_of(AN_ASKER, &what).await?;
        let asker = match (what.parse::<GateId>(), &self.session) {
            (Ok(gate), Some(session)) => {
                ApprovalAsker::Session(client.id_of(A_SESSION, session).await?, gate)
            }
            (Ok(gate), None) => asker(&mut client, gate).await?,
            (Err(_), _) => match what.parse::<FlowId>() {
                Ok(flow) => of_flow(&mut client, flow).await?,
                Err(_) => only_one(&mut client, &what).await?,
            },
        };
        match asker {
            ApprovalAsker::Flow(flow, gate) => {
                self.answer_flow(context, &mut client, &option, flow, &gate).await
            }
            ApprovalAsker::Session(session, gate) => {
                let body = GateAnswer { option, message: self.message };
                let route = Route::to(&["sessions", &session, "gates", &gate.to_string()]);
                let outcome: Outcome = client.post(&route, &body).await?;
                context.out.receipt(&outcome, None, &format!("{gate} is answered: {}", body.option))
            }
        }
    }

    async fn answer_flow(
        self,
        context: &Context,
        client: &mut Client<'_>,
        option: &str,
        flow: FlowId,
        gate: &FlowGate,
    ) -> Result<(), Failure> {
        let answer = self.read(option, gate)?;
        let view = post(client, &flow.to_string(), &gate.id.to_string(), "answer", &answer).await?;
        answered(context, &view, &answer)
    }

    /// The choice, with the words after its colon or those of the option.
    fn read(&self, option: &str, gate: &FlowGate) -> Result<FlowAnswer, Failure> {
        let (choice, words) = dialogue::read(gate, option).map_err(|why| {
            let advice = format!("`lanyard answer {}` shows what each answer does", gate.id);
            let known = gate::parse(option).is_some();
            Failure::local(if known { "choice_not_offered" } else { "choice_unknown" }, why, advice)
        })?;
        let guidance = match (words, self.message.clone()) {
            (Some(_), Some(_)) => {
                return Err(Failure::usage(
                    "the message to the agent is given twice",
                    "write it after the colon or with --message",
                ));
            }
            (words, message) => words.or(message),
        };
        Ok(FlowAnswer { choice, guidance })
    }
}

/// Owner of an open approval, or of the last one of a flow, whose refusal says how it was answered.
async fn asker(client: &mut Client<'_>, gate: GateId) -> Result<ApprovalAsker, Failure> {
    let list: GateList = client.get(&Route::to(&["gates"])).await?;
    if let Some(entry) = list.gates.iter().find(|entry| entry.gate.id == gate) {
        return Ok(ApprovalAsker::Session(entry.session.to_string(), gate));
    }
    if let Some(entry) = list.flows.into_iter().find(|entry| entry.gate.id == gate) {
        return Ok(ApprovalAsker::Flow(entry.flow, Box::new(entry.gate)));
    }
    let newest: FlowList = client.get(&Route::to(&["flows"]).with("limit", Some(FLOWS_MAX))).await?;
    let held = |view: FlowView| {
        let held = view.flow.gate.filter(|held| held.id == gate)?;
        Some(ApprovalAsker::Flow(view.flow.id, Box::new(held)))
    };
    newest.flows.into_iter().find_map(held).ok_or_else(|| {
        let title = format!("{gate} is not an open approval");
        let advice = "list open approvals with `lanyard approvals`; `lanyard approvals ID` and `lanyard flow show` \
                      show answered ones";
        Failure::local("gate_not_open", title, advice)
    })
}

/// The open approval of a flow, or its last one.
async fn of_flow(client: &mut Client<'_>, flow: FlowId) -> Result<ApprovalAsker, Failure> {
    let view: FlowView = client.get(&super::flow::at(&flow.to_string(), &[])).await?;
    let gate = view.flow.gate.ok_or_else(|| {
        let advice = format!("show its state with `lanyard flow show {flow}`");
        Failure::local("gate_not_open", format!("{flow} has no open approval"), advice)
    })?;
    Ok(ApprovalAsker::Flow(flow, Box::new(gate)))
}

/// The only open approval of a session.
async fn only_one(client: &mut Client<'_>, session: &str) -> Result<ApprovalAsker, Failure> {
    let list: GateList = client.get(&Route::to(&["sessions", session, "gates"])).await?;
    let open: Vec<&GateEntry> =
        list.gates.iter().filter(|entry| entry.gate.status == GateStatus::Open).collect();
    match open.as_slice() {
        [only] => Ok(ApprovalAsker::Session(only.session.to_string(), only.gate.id)),
        [] => Err(Failure::local(
            "gate_not_open",
            format!("`{session}` has no open approval"),
            "list all with `lanyard approvals`",
        )),
        several => {
            let title = format!("`{session}` has {} open approvals", several.len());
            let advice = format!("name one; `lanyard approvals {session}` lists them");
            Err(Failure::local("gate_ambiguous", title, advice))
        }
    }
}
