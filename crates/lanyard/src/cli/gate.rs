//! `lanyard gate`: the prompt at which a flow's question is answered.

use std::io::IsTerminal;

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{FlowAnswer, FlowGateEntry, FlowView, GateList};

use super::ask::Keyboard;
use super::flow;
use super::gates::flow_gates;
use crate::client::{AN_ASKER, Client, Route};
use crate::context::{Context, daemon_now};
use crate::dialogue::{Dialogue, Next};
use crate::failure::Failure;
use crate::render::flow::sentence;
use crate::render::flow_gate::open_gate;
use crate::render::text::one_line;

const EXAMPLES: &str = "\
Shows what a flow asks, what speaks for it and what can be answered, and reads the answer from stdin:
a letter (`c`), its name (`continue-session`), or either with words for the agent (`c: fix the
import`). What is no answer, or is not offered, is asked again. Without an answer the gate stays open.

Examples:
  lanyard gate
  lanyard gate gate_01m7n5djg0fayvh8t5cxyjkdnf
  echo \"f: begin again\" | lanyard gate flow_01m7n5djg0fayvh8t5cxyjkdnf

Exit codes: 0 answered, 1 refused or failed, 2 not understood, 3 no daemon that answers, 4 it stays
open";

/// Answer what a flow asks, at a prompt
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Gate {
    /// The gate, as `lanyard gates` shows it, or its flow [default: the only one]
    #[arg(value_name = "GATE|FLOW", value_parser = NonEmptyStringValueParser::new())]
    gate: Option<String>,
}

impl Gate {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let list: GateList = client.get(&Route::to(&["gates"])).await?;
        let entry = match &self.gate {
            Some(named) => find(&list, &client.id_of(AN_ASKER, named).await?)?,
            None => match list.flows.as_slice() {
                [only] => only.clone(),
                [] => {
                    context.out.note("no flow asks anything; `lanyard gates` lists what agents ask");
                    return Ok(());
                }
                several => return which(context, &mut client, several).await,
            },
        };
        if context.out.is_json() {
            context.out.json(&entry)?;
            return Err(Failure::Ended(flow::STILL_OPEN));
        }
        prompt(context, &mut client, entry).await
    }
}

fn find(list: &GateList, named: &str) -> Result<FlowGateEntry, Failure> {
    let is = |entry: &&FlowGateEntry| entry.gate.id.to_string() == named || entry.flow.to_string() == named;
    if let Some(entry) = list.flows.iter().find(is) {
        return Ok(entry.clone());
    }
    if list.gates.iter().any(|entry| entry.gate.id.to_string() == named) {
        let title = format!("{named} is an agent's question, not a flow's");
        let advice = format!("answer it with `lanyard answer {named} allow`, or `deny`");
        return Err(Failure::local("gate_of_session", title, advice));
    }
    let title = format!("no flow waits for an answer to `{}`", one_line(named));
    Err(Failure::local("gate_not_open", title, "list what waits with `lanyard gates`"))
}

/// Several wait: they are listed, and one has to be named.
async fn which(context: &Context, client: &mut Client<'_>, several: &[FlowGateEntry]) -> Result<(), Failure> {
    if context.out.is_json() {
        context.out.list(several, None)?;
        return Err(Failure::Ended(flow::STILL_OPEN));
    }
    let now = daemon_now(client).await?;
    context.out.data(&flow_gates(several, now, context.out.columns))?;
    let title = format!("{} flows ask something", several.len());
    Err(Failure::local("gate_ambiguous", title, "name the gate: `lanyard gate GATE`"))
}

async fn prompt(context: &Context, client: &mut Client<'_>, entry: FlowGateEntry) -> Result<(), Failure> {
    let mut keyboard = Keyboard::of_stdin();
    let (flow, id) = (entry.flow.to_string(), entry.gate.id);
    let typed_here = std::io::stdin().is_terminal();
    let mut posts = 0;
    flow::tell_gate(context, &entry);
    let mut dialogue = Dialogue::new(entry.gate);
    loop {
        context.out.question(&dialogue.prompt());
        let Some(line) = keyboard.next().await else {
            context.out.question("\n");
            context.out.note(&flow::stays_open(id));
            return Err(Failure::Ended(flow::STILL_OPEN));
        };
        if !typed_here {
            // A terminal shows what is typed; whoever reads a log of this sees it too.
            context.out.question(&format!("{}\n", one_line(&line)));
        }
        let answer = match dialogue.line(&line) {
            Next::Again(why) => {
                context.out.question(&format!("{why}\n"));
                continue;
            }
            Next::Guidance => continue,
            Next::Answer(answer) => answer,
        };
        posts += 1;
        match post(client, &flow, &id.to_string(), &format!("answer.{posts}"), &answer).await {
            Ok(view) => return answered(context, &view, &answer),
            Err(Failure::Told { problem, .. }) if may_ask_again(&problem.code) => {
                let title = one_line(&problem.title);
                context.out.question(&format!("not taken: {title} [{}]\n", problem.code));
            }
            Err(failure) => return Err(failure),
        }
        // What is offered may have changed meanwhile.
        let view: FlowView = client.get(&flow::at(&flow, &[])).await?;
        let Some(entry) = open_gate(&view).filter(|entry| entry.gate.id == id) else {
            context.out.note(&sentence(&view));
            return Err(Failure::Shown);
        };
        dialogue = Dialogue::new(entry.gate);
    }
}

/// Refusals that another answer may avoid.
fn may_ask_again(code: &str) -> bool {
    matches!(code, "choice_not_offered" | "continuation_gone" | "guidance_not_taken" | "guidance_too_long")
}

pub(super) async fn post(
    client: &mut Client<'_>,
    flow: &str,
    gate: &str,
    part: &str,
    answer: &FlowAnswer,
) -> Result<FlowView, Failure> {
    client.post_part(part, &flow::at(flow, &["gates", gate]), answer).await
}

/// What was answered, how the flow stands, and how to see what comes of it.
pub(super) fn answered(context: &Context, view: &FlowView, answer: &FlowAnswer) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.json(view);
    }
    let next = if view.flow.state.is_ended() {
        String::new()
    } else {
        format!("; `lanyard flow watch {}` watches it", view.flow.id)
    };
    context.out.note(&format!("answered: {}; {}{next}", answer.choice.as_str(), sentence(view)));
    Ok(())
}
