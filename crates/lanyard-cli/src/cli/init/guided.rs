//! `lanyard` alone on a terminal, with nothing configured: a few questions, then everything is done at once. Nothing is
//! written before the last answer, so Ctrl-C leaves nothing behind.

use super::found::{self, FoundAgent};
use super::{StartChoices, StartReport, carry_out, harness, told};
use crate::cli::ask::asked;
use crate::cli::config::Keep;
use crate::cli::{hook, service};
use crate::context::Context;
use crate::failure::Failure;
use crate::hook::Harness;
use crate::render::wrap::wrap;

/// Questions about one thing before it is given up.
const TRIES_MAX: u32 = 5;

pub(in crate::cli) async fn guided(context: &Context) -> Result<(), Failure> {
    context.out.data("Lanyard keeps agent sessions alive, and lets you watch, steer and stop them.\n")?;
    let found = found::agents();
    context.out.data(&format!("{}\n", found::table(&found)))?;
    context
        .out
        .data("Enter accepts the answer in brackets. Ctrl-C leaves; nothing is written before the end.\n")?;
    let default = default_agent(context, &found)?;
    let mut hooks = Vec::new();
    for harness in found.iter().filter_map(harness) {
        hooks.extend(hook_for(context, harness)?);
    }
    let question = format!("Write the config to {}?", context.config_path.display());
    if !yes(context, &question, true)? {
        let advice = "`lanyard init --print` shows the config; `lanyard demo` needs none";
        return Err(Failure::local("start_declined", "nothing was written", advice));
    }
    let run = how_to_run(context).await?;
    let choices = StartChoices { keep: Keep::Existing, default, hooks, start: run == RunsAs::Daemon };
    let done = carry_out(context, found, choices).await?;
    if run == RunsAs::Service {
        service::install(context).await?;
    }
    context.out.data(&format!("\nWrote {}\n{}\n\n{}", done.config.display(), told(&done), next(&done)))
}

/// What the daemon is started as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunsAs {
    Service,
    Daemon,
    Nothing,
}

/// Offers the service where there is a systemd of the user, and says why not where there is none.
async fn how_to_run(context: &Context) -> Result<RunsAs, Failure> {
    match service::obstacle().await {
        None => {
            let question = "Install the daemon as a service of your systemd? It then starts at login, and again after \
                            a crash.";
            if yes(context, question, true)? {
                return Ok(RunsAs::Service);
            }
        }
        Some(why) => {
            let why = crate::render::text::one_line(&why);
            let text =
                format!("The daemon cannot be a service here: {why}. It runs until the machine stops.");
            context.out.question(&format!("{}\n", on_screen(context, &text)));
        }
    }
    Ok(if yes(context, "Start the daemon now?", true)? { RunsAs::Daemon } else { RunsAs::Nothing })
}

/// The three commands that come next.
fn next(done: &StartReport) -> String {
    let run = match &done.default_agent {
        Some(_) => {
            "lanyard run \"what does this project do?\"   give the agent work in this folder, and watch it"
        }
        None => "lanyard demo                               watch the built-in agent work",
    };
    format!(
        "Next:\n  {run}\n  lanyard open                               see and steer all sessions in a browser\n  \
         lanyard --help                             see all commands\n"
    )
}

fn default_agent(context: &Context, found: &[FoundAgent]) -> Result<Option<String>, Failure> {
    let Some(suggested) = found::suggested(found) else { return Ok(None) };
    if found.len() == 1 {
        return Ok(Some(suggested.to_owned()));
    }
    let names: Vec<&str> = found.iter().map(|agent| agent.known.name).collect();
    for _ in 0..TRIES_MAX {
        let question = format!("Default agent ({}) [{suggested}]: ", names.join(", "));
        let answer = answer(context, &question)?;
        if answer.is_empty() {
            return Ok(Some(suggested.to_owned()));
        }
        if let Some(name) = names.iter().find(|name| **name == answer) {
            return Ok(Some((*name).to_owned()));
        }
        context
            .out
            .question(&format!("There is no `{}` among them.\n", crate::render::text::one_line(&answer)));
    }
    Err(given_up())
}

fn hook_for(context: &Context, harness: Harness) -> Result<Option<Harness>, Failure> {
    let file = hook::settings_file(context, &hook::HookPlace::of_user(harness))?;
    let question = format!(
        "Install hooks for {} in {}? They deliver stops and guidance to its own tools.",
        harness.as_str(),
        file.display()
    );
    Ok(yes(context, &question, false)?.then_some(harness))
}

fn yes(context: &Context, question: &str, default: bool) -> Result<bool, Failure> {
    let choice = if default { "[Y/n]" } else { "[y/N]" };
    for _ in 0..TRIES_MAX {
        match answer(context, &format!("{question} {choice} "))?.to_lowercase().as_str() {
            "" => return Ok(default),
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => context.out.question("Please answer y or n.\n"),
        }
    }
    Err(given_up())
}

fn answer(context: &Context, question: &str) -> Result<String, Failure> {
    asked(context, &format!("{} ", on_screen(context, question)))?.ok_or_else(|| {
        context.out.question("\n");
        Failure::local("start_declined", "the answers ended; nothing was written", "run `lanyard` again")
    })
}

/// Text in rows as wide as the terminal, broken between words.
fn on_screen(context: &Context, text: &str) -> String {
    wrap(text, context.out.columns.unwrap_or(usize::MAX), "", "").join("\n")
}

fn given_up() -> Failure {
    let title = format!("no answer was understood in {TRIES_MAX} tries; nothing was written");
    Failure::local("start_declined", title, "run `lanyard` again, or `lanyard init`, which asks nothing")
}
