//! `lanyard answer`: answer what an agent or a flow asks.

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{FlowAnswer, FlowList, FlowView, GateAnswer, GateEntry, GateList};
use lanyard_core::flow::{FlowGate, gate};
use lanyard_core::session::GateStatus;
use lanyard_core::{FlowId, GateId, Outcome};

use super::gate::{answered, at_prompt, post};
use crate::client::{A_SESSION, AN_ASKER, Client, Route};
use crate::context::Context;
use crate::dialogue;
use crate::failure::Failure;

/// Flows that are looked through for a gate that no longer waits, the newest.
const FLOWS_MAX: usize = 50;

const EXAMPLES: &str = "\
The first answer stands: the same one again changes nothing, another one is refused. A session or
a flow can be named instead of a gate when it asks one thing only. A flow is answered with c
(continue-session), f (fix), o (override) or q (abort), of which it offers some; `lanyard gate`
shows which, and what each does. Without an option the question is shown and the answer is read at a
prompt, as `lanyard gate` does.

Examples:
  lanyard answer
  lanyard answer gate_01m7n5djg0fayvh8t5cxyjkdnf allow
  lanyard answer fix-login deny --message \"use the staging database\"
  lanyard answer gate_01m7n5djg0fayvh8t5cxyjkdnf always --session fix-login
  lanyard answer gate_01m7n5djg0fayvh8t5cxyjkdnf c --guidance \"fix the import first\"";

/// Answer what an agent or a flow asks
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Answer {
    /// The gate, as `lanyard gates` shows it, or the session or flow that asks [default: the only one]
    #[arg(value_name = "GATE|ID", value_parser = NonEmptyStringValueParser::new())]
    what: Option<String>,
    /// `allow`, `always`, `deny`, `never` or the id of an option; of a flow `c`, `f`, `o` or `q` [default: ask]
    #[arg(value_name = "OPTION", value_parser = NonEmptyStringValueParser::new())]
    option: Option<String>,
    /// Words for the agent, where it takes them
    #[arg(long, visible_alias = "guidance")]
    message: Option<String>,
    /// The gate's session: needed to repeat an answer to a gate that is settled
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

/// Whose gate it is.
enum Asker {
    Session(String, GateId),
    Flow(FlowId, Box<FlowGate>),
}

impl Answer {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let (Some(what), Some(option)) = (&self.what, &self.option) else {
            if self.message.is_some() || self.session.is_some() {
                return Err(Failure::usage(
                    "an option is missing",
                    "name the gate and an option, or neither",
                ));
            }
            return at_prompt(context, self.what.as_deref()).await;
        };
        let (what, option) = (what.clone(), option.clone());
        let mut client = context.client().await?;
        let what = client.id_of(AN_ASKER, &what).await?;
        let asker = match (what.parse::<GateId>(), &self.session) {
            (Ok(gate), Some(session)) => Asker::Session(client.id_of(A_SESSION, session).await?, gate),
            (Ok(gate), None) => asker(&mut client, gate).await?,
            (Err(_), _) => match what.parse::<FlowId>() {
                Ok(flow) => of_flow(&mut client, flow).await?,
                Err(_) => only_one(&mut client, &what).await?,
            },
        };
        match asker {
            Asker::Flow(flow, gate) => self.answer_flow(context, &mut client, &option, flow, &gate).await,
            Asker::Session(session, gate) => {
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
            let advice = format!("`lanyard gate {}` shows what each answer does", gate.id);
            let known = gate::parse(option).is_some();
            Failure::local(if known { "choice_not_offered" } else { "choice_unknown" }, why, advice)
        })?;
        let guidance = match (words, self.message.clone()) {
            (Some(_), Some(_)) => {
                return Err(Failure::usage(
                    "the words for the agent are given twice",
                    "say them after the colon or with --guidance",
                ));
            }
            (words, message) => words.or(message),
        };
        Ok(FlowAnswer { choice, guidance })
    }
}

/// Whose gate waits; for one of a flow that no longer does, the flow says what became of it.
async fn asker(client: &mut Client<'_>, gate: GateId) -> Result<Asker, Failure> {
    let list: GateList = client.get(&Route::to(&["gates"])).await?;
    if let Some(entry) = list.gates.iter().find(|entry| entry.gate.id == gate) {
        return Ok(Asker::Session(entry.session.to_string(), gate));
    }
    if let Some(entry) = list.flows.into_iter().find(|entry| entry.gate.id == gate) {
        return Ok(Asker::Flow(entry.flow, Box::new(entry.gate)));
    }
    let newest: FlowList = client.get(&Route::to(&["flows"]).with("limit", Some(FLOWS_MAX))).await?;
    let held = |view: FlowView| {
        let held = view.flow.gate.filter(|held| held.id == gate)?;
        Some(Asker::Flow(view.flow.id, Box::new(held)))
    };
    newest.flows.into_iter().find_map(held).ok_or_else(|| {
        let title = format!("nobody waits for an answer to {gate}");
        let advice = "list what waits with `lanyard gates`; `lanyard gates ID` and `lanyard flow show` tell \
                      what became of others";
        Failure::local("gate_not_open", title, advice)
    })
}

/// The one gate of a flow that waits, or its last.
async fn of_flow(client: &mut Client<'_>, flow: FlowId) -> Result<Asker, Failure> {
    let view: FlowView = client.get(&super::flow::at(&flow.to_string(), &[])).await?;
    let gate = view.flow.gate.ok_or_else(|| {
        let advice = format!("see how it stands with `lanyard flow show {flow}`");
        Failure::local("gate_not_open", format!("{flow} asks nothing"), advice)
    })?;
    Ok(Asker::Flow(flow, Box::new(gate)))
}

/// The one gate of a session that waits.
async fn only_one(client: &mut Client<'_>, session: &str) -> Result<Asker, Failure> {
    let list: GateList = client.get(&Route::to(&["sessions", session, "gates"])).await?;
    let open: Vec<&GateEntry> =
        list.gates.iter().filter(|entry| entry.gate.status == GateStatus::Open).collect();
    match open.as_slice() {
        [only] => Ok(Asker::Session(only.session.to_string(), only.gate.id)),
        [] => Err(Failure::local(
            "gate_not_open",
            format!("`{session}` asks nothing"),
            "list all gates with `lanyard gates`",
        )),
        several => {
            let title = format!("`{session}` asks {} things", several.len());
            let advice = format!("name the gate; `lanyard gates {session}` lists them");
            Err(Failure::local("gate_ambiguous", title, advice))
        }
    }
}
