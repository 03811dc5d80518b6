//! The prompt of `lanyard answer`: approvals of agents and flows are answered there.

use std::io::IsTerminal;

use lanyard_api::types::{FlowAnswer, FlowGateEntry, FlowView, GateEntry, GateList};
use lanyard_client::Route;
use lanyard_client::names::AN_ASKER;
use lanyard_core::session::GateStatus;
use lanyard_core::{FlowId, GateId, Outcome};
use serde::Serialize;

use super::approvals::cards;
use super::ask::{Keyboard, can_ask};
use super::flow;
use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::dialogue::{Dialogue, Next, approval_prompt, read_approval};
use crate::failure::Failure;
use crate::render::flow::{sentence, title};
use crate::render::flow_gate::open_gate;
use crate::render::gate_card::gate_card;
use crate::render::ids::Shortener;
use crate::render::text::{count, one_line, quoted};

/// An open approval of a flow or a session.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum OpenQuestion {
    Flow(Box<FlowGateEntry>),
    Session(Box<GateEntry>),
}

/// Reads the answer to the approval that is named, or to the only one.
pub(super) async fn at_prompt(context: &Context, named: Option<&str>) -> Result<(), Failure> {
    let mut client = context.client().await?;
    let list: GateList = client.get(&Route::to(&["gates"])).await?;
    let mut found: Vec<OpenQuestion> = match named {
        Some(named) => {
            let id = client.id_of(AN_ASKER, named).await?;
            find(&mut client, list, &id).await?
        }
        None => all(list),
    };
    let mut keyboard = None;
    if found.len() > 1 {
        if context.out.is_json() {
            context.out.list(&found, None)?;
            return Err(Failure::Ended(flow::STILL_OPEN));
        }
        if !can_ask() {
            return ambiguous(context, &mut client, found).await;
        }
        found = vec![choose(context, keyboard.insert(Keyboard::of_stdin()), found).await?];
    }
    let Some(question) = found.pop() else {
        context.out.note("no approval is open");
        return Ok(());
    };
    if context.out.is_json() {
        context.out.json(&question)?;
        return Err(Failure::Ended(flow::STILL_OPEN));
    }
    let keyboard = keyboard.unwrap_or_else(Keyboard::of_stdin);
    match question {
        OpenQuestion::Flow(entry) => ask_flow(context, &mut client, keyboard, *entry).await,
        OpenQuestion::Session(entry) => ask_session(context, &mut client, keyboard, &entry).await,
    }
}

/// All that is open, the longest waiting first.
fn all(list: GateList) -> Vec<OpenQuestion> {
    let flows = list.flows.into_iter().map(|entry| OpenQuestion::Flow(Box::new(entry)));
    let gates = list.gates.into_iter().map(|entry| OpenQuestion::Session(Box::new(entry)));
    let mut all: Vec<OpenQuestion> = flows.chain(gates).collect();
    all.sort_by_key(|question| match question {
        OpenQuestion::Flow(entry) => entry.gate.opened_at,
        OpenQuestion::Session(entry) => entry.gate.opened_at,
    });
    all
}

/// Open approvals that an approval's, a flow's or a session's id names.
async fn find(client: &mut Client<'_>, list: GateList, named: &str) -> Result<Vec<OpenQuestion>, Failure> {
    let is = |question: &OpenQuestion| match question {
        OpenQuestion::Flow(entry) => entry.gate.id.to_string() == named || entry.flow.to_string() == named,
        OpenQuestion::Session(entry) => {
            entry.gate.id.to_string() == named || entry.session.to_string() == named
        }
    };
    let mut found: Vec<OpenQuestion> = all(list).into_iter().filter(is).collect();
    let is_session = named.parse::<GateId>().is_err() && named.parse::<FlowId>().is_err();
    if found.is_empty() && is_session {
        let list: GateList = client.get(&Route::to(&["sessions", named, "gates"])).await?;
        let open = list.gates.into_iter().filter(|entry| entry.gate.status == GateStatus::Open);
        found = open.map(|entry| OpenQuestion::Session(Box::new(entry))).collect();
    }
    if found.is_empty() {
        let title = format!("`{}` has no open approval", one_line(named));
        return Err(Failure::local("gate_not_open", title, "list open approvals with `lanyard approvals`"));
    }
    Ok(found)
}

/// Several approvals without a terminal to choose on: they are listed, and one has to be named.
async fn ambiguous(
    context: &Context,
    client: &mut Client<'_>,
    several: Vec<OpenQuestion>,
) -> Result<(), Failure> {
    let now = daemon_now(client).await?;
    let title = format!("{} wait", count(several.len(), "approval"));
    let (mut gates, mut flows) = (Vec::new(), Vec::new());
    for question in several {
        match question {
            OpenQuestion::Flow(entry) => flows.push(*entry),
            OpenQuestion::Session(entry) => gates.push(*entry),
        }
    }
    context.out.data(&cards(&GateList { gates, flows, truncated: false }, now, context.out.columns))?;
    Err(Failure::local("gate_ambiguous", title, "name one: `lanyard answer APPROVAL`"))
}

/// Lets the user choose one by its number.
async fn choose(
    context: &Context,
    keyboard: &mut Keyboard,
    mut several: Vec<OpenQuestion>,
) -> Result<OpenQuestion, Failure> {
    context.out.question(&format!("{} wait:\n", count(several.len(), "approval")));
    for (number, question) in (1..).zip(&several) {
        let (who, what) = match question {
            OpenQuestion::Flow(entry) => (title(&entry.title), one_line(&entry.gate.reason)),
            OpenQuestion::Session(entry) => {
                let agent = entry.agent.as_deref().map_or_else(|| "agent".to_owned(), one_line);
                let title = entry.session_title.as_deref().map(|title| format!(" in {}", quoted(title)));
                (format!("{agent}{}", title.unwrap_or_default()), one_line(&entry.gate.question.title))
            }
        };
        context.out.question(&format!("  {number}  {who}: {what}\n"));
    }
    loop {
        context.out.question(&format!("which one (1 to {}) > ", several.len()));
        let Some(line) = keyboard.next().await else {
            context.out.question("\n");
            context.out.note("all of them stay open; `lanyard approvals` lists them");
            return Err(Failure::Ended(flow::STILL_OPEN));
        };
        let number = line.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let Some(at) = number.filter(|at| *at < several.len()) {
            return Ok(several.swap_remove(at));
        }
    }
}

/// The next line that is typed, or read from a pipe and shown; nothing when there are no more.
async fn typed(context: &Context, keyboard: &mut Keyboard, prompt: &str) -> Option<String> {
    context.out.question(prompt);
    let Some(line) = keyboard.next().await else {
        context.out.question("\n");
        return None;
    };
    if !std::io::stdin().is_terminal() {
        // A terminal echoes what is typed; a log of this shows it too.
        context.out.question(&format!("{}\n", one_line(&line)));
    }
    Some(line)
}

async fn ask_session(
    context: &Context,
    client: &mut Client<'_>,
    mut keyboard: Keyboard,
    entry: &GateEntry,
) -> Result<(), Failure> {
    let (session, id) = (entry.session.to_string(), entry.gate.id);
    let question = &entry.gate.question;
    let now = daemon_now(client).await?;
    context.out.question(&gate_card(
        entry,
        Shortener::of(&[session.as_str(), &id.to_string()]),
        now,
        context.out.columns,
    ));
    loop {
        let Some(line) = typed(context, &mut keyboard, &approval_prompt(question)).await else {
            context
                .out
                .note(&format!("{id} stays open and the agent waits; `lanyard answer {id}` answers it"));
            return Err(Failure::Ended(flow::STILL_OPEN));
        };
        let answer = match read_approval(question, &line) {
            Ok(answer) => answer,
            Err(why) => {
                context.out.question(&format!("{why}\n"));
                continue;
            }
        };
        let route = Route::to(&["sessions", &session, "gates", &id.to_string()]);
        let outcome: Outcome = client.post_part("answer", &route, &answer).await?;
        return context.out.receipt(&outcome, None, &format!("answered: {}", one_line(&answer.option)));
    }
}

async fn ask_flow(
    context: &Context,
    client: &mut Client<'_>,
    mut keyboard: Keyboard,
    entry: FlowGateEntry,
) -> Result<(), Failure> {
    let (flow, id) = (entry.flow.to_string(), entry.gate.id);
    let mut posts = 0;
    flow::tell_gate(context, &entry);
    let mut dialogue = Dialogue::new(entry.gate);
    loop {
        let Some(line) = typed(context, &mut keyboard, &dialogue.prompt()).await else {
            context.out.note(&flow::stays_open(id));
            return Err(Failure::Ended(flow::STILL_OPEN));
        };
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
