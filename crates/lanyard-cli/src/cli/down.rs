//! `lanyard down`: end the daemon.

use std::time::Duration;

use crate::context::Context;
use crate::failure::Failure;
use crate::launch::is_free;

const POLL: Duration = Duration::from_millis(20);
const POLLS_MAX: u32 = 500;

const EXAMPLES: &str = "\
Sessions stay where they are: the next daemon goes on with them.

Examples:
  lanyard down
  lanyard down && lanyard up --detach";

/// End the daemon and wait until it is gone
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Down {}

impl Down {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let ended = end(context).await?;
        if context.out.is_json() {
            return context.out.json(&serde_json::json!({ "running": false }));
        }
        context.out.note(if ended { "the daemon has ended" } else { "no daemon is running" });
        Ok(())
    }
}

/// Ends the daemon and waits until it is gone. Answers whether there was one.
pub(super) async fn end(context: &Context) -> Result<bool, Failure> {
    let mut pid = None;
    match context.client_if_running().await? {
        Some(client) => {
            pid = context.home.running().ok().flatten().map(|running| running.pid);
            client.shut_down().await?;
        }
        None if is_free(&context.home)? => return Ok(false),
        // It holds the folder and does not listen: it is just starting, or just ending.
        None => {}
    }
    for _ in 0..POLLS_MAX {
        if is_free(&context.home)? {
            return Ok(true);
        }
        tokio::time::sleep(POLL).await;
    }
    let who = pid.map_or_else(String::new, |pid| format!(" (pid {pid})"));
    let end = pid.map_or_else(|| "`lanyard doctor`".to_owned(), |pid| format!("`kill {pid}`"));
    let title = format!("the daemon{who} was asked to end and has not within 10 s");
    Err(Failure::local(
        "daemon_lingers",
        title,
        format!("look at {}, then {end}", context.home.log().display()),
    ))
}
