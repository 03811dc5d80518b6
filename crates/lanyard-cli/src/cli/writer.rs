//! `lanyard writer`: who writes in a session, of all that are attached.

use lanyard_api::types::{HeldWriter, NewWriter, WriterAnswer, WriterResult, WriterView};
use lanyard_core::ConnectionId;
use lanyard_core::session::SessionView;

use super::session_watch::SessionWatch;
use super::target::Target;
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::time::stamp;

const EXAMPLES: &str = "\
While one client writes, turns of others are refused; they can watch, guide, cancel, stop and answer approvals.
`--free` asks the writer to hand over, waits out the time it has to deny that, and leaves the session to anyone.

Examples:
  lanyard writer fix-login
  lanyard writer fix-login --free";

/// Show the writer of a session
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WriterArgs {
    #[command(flatten)]
    target: Target,
    /// Take the lease from its holder, and release it
    #[arg(long)]
    free: bool,
}

impl WriterArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        if self.free {
            self.free(context, &mut client).await?;
        }
        let view: WriterView = client.get(&self.target.route(&["writer"])).await?;
        if context.out.is_json() {
            return context.out.json(&view);
        }
        context.out.data(&sentence(&view))
    }

    async fn free(&self, context: &Context, client: &mut Client<'_>) -> Result<(), Failure> {
        let mut bits = [0; 16];
        let _ = getrandom::fill(&mut bits);
        let connection = ConnectionId::from_u128(u128::from_be_bytes(bits) >> 1);
        let body = NewWriter { connection, client: Some("cli".to_owned()), take: true };
        let session = client.get::<SessionView>(&self.target.route(&[])).await?.id;
        let again = format!("lanyard writer {session} --free");
        // A request that is granted, denied or not needed any more is an event of the session.
        let mut watch = SessionWatch::open(context, client, session, again).await?;
        let mut told = false;
        loop {
            let answer: WriterAnswer = client.post(&self.target.route(&["writer"]), &body).await?;
            if answer.result == WriterResult::Granted {
                let held = HeldWriter { connection, epoch: answer.epoch };
                let _: WriterAnswer = client.post(&self.target.route(&["writer", "release"]), &held).await?;
                return Ok(());
            }
            if let Some(until) = answer.until.filter(|_| !std::mem::replace(&mut told, true)) {
                context.out.note(&format!("asked; it passes at {} unless it is denied", stamp(until)));
            }
            watch.changed().await?;
        }
    }
}

fn sentence(view: &WriterView) -> String {
    let Some(entry) = &view.writer else {
        return "no client holds the writer lease; every client may send turns".to_owned();
    };
    let writer = &entry.writer;
    let client = writer.pen.client.as_deref().unwrap_or("a client");
    let away = if entry.present { "" } else { "; it is away, and anyone may take its place" };
    let asked = writer.asked.as_ref().map_or_else(String::new, |asked| {
        format!("; {} asked to take over by {}", asked.pen.actor.name, stamp(asked.until))
    });
    let (name, connection) = (&writer.pen.actor.name, writer.pen.connection);
    format!("{name} writes since {} from {client} ({connection}){away}{asked}", stamp(writer.since))
}
