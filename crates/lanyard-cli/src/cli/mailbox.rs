//! `lanyard mailbox`: what those who work for each other told each other, and what became of it.

use std::collections::HashSet;

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{MailPage, Reason, SendAgain};
use lanyard_client::Route;
use lanyard_client::names::A_TASK;
use lanyard_core::task::Mail;

use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::mail::{mail_card, mails};

const EXAMPLES: &str = "\
A task's end, and its worker's reports, are mail to the task or session above it. Mail is
given at least once and counts as settled when its reader's agent went on from it. It is pending,
given or shown, acknowledged, or dead: no recipient is left, so you should read it.

Examples:
  lanyard mailbox
  lanyard mailbox task_01m7n5djg0fayvh8t5cxyjkdnf --all
  lanyard mailbox --dead
  lanyard mailbox show mail_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard mailbox ack mail_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard mailbox again mail_01m7n5djg0fayvh8t5cxyjkdnf --to release-lead";

/// List mail between tasks, and settle dead letters
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Mailbox {
    /// Of this box only: a task or a session
    #[arg(value_name = "BOX", value_parser = NonEmptyStringValueParser::new())]
    of: Option<String>,
    /// Only dead letters
    #[arg(long)]
    dead: bool,
    /// Show what is settled too
    #[arg(long, short)]
    all: bool,
    #[command(subcommand)]
    verb: Option<MailboxVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum MailboxVerb {
    /// Show one in full, with its status
    Show { mail: String },
    /// Settle one: you took note of it
    Ack {
        mail: String,
        /// Why, for the log
        #[arg(long)]
        reason: Option<String>,
    },
    /// Send one again that is dead or was acknowledged, and print its new id
    Again {
        mail: String,
        /// The task or session whose box it goes into [default: the one it was in]
        #[arg(long, value_name = "BOX")]
        to: Option<String>,
    },
}

impl Mailbox {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let mail: Mail = match self.verb {
            None => {
                let of = client.id_if(A_TASK, self.of).await?;
                return list(context, &mut client, &Self { of, ..self }).await;
            }
            Some(MailboxVerb::Show { mail }) => {
                let mail: Mail = client.get(&Route::to(&["mail", &mail])).await?;
                return show(context, &mut client, &mail).await;
            }
            Some(MailboxVerb::Ack { mail, reason }) => {
                client.post(&Route::to(&["mail", &mail, "ack"]), &Reason { reason }).await?
            }
            Some(MailboxVerb::Again { mail, to }) => {
                let to = client.id_if(A_TASK, to).await?;
                client.post(&Route::to(&["mail", &mail, "again"]), &SendAgain { to }).await?
            }
        };
        if context.out.is_json() {
            return context.out.json(&mail);
        }
        context.out.note(&format!("{} is {}, in the box of {}", mail.id, mail.state.as_str(), mail.to));
        context.out.data(&mail.id.to_string())
    }

    /// What to ask for: what is on its way, what is dead, and with `--all` what was acknowledged.
    fn routes(&self) -> Vec<Route> {
        let of = || Route::to(&["mail"]).with("box", self.of.as_ref());
        let dead = of().with("dead", Some("true"));
        match (self.dead, self.all) {
            (true, _) => vec![dead],
            (false, false) => vec![of(), dead],
            (false, true) => vec![of(), dead, of().with("settled", Some("true"))],
        }
    }
}

async fn list(context: &Context, client: &mut Client<'_>, asked: &Mailbox) -> Result<(), Failure> {
    let mut found: Vec<Mail> = Vec::new();
    for route in asked.routes() {
        found.extend(read_all(client, &route).await?);
    }
    // What changed between two questions is in both answers; the later one is right.
    found.reverse();
    let mut seen = HashSet::new();
    found.retain(|mail| seen.insert(mail.id));
    found.sort_by_key(|mail| (mail.seq, mail.id));
    if context.out.is_json() {
        return context.out.list(&found, None);
    }
    if found.is_empty() {
        let hint = if asked.all || asked.dead { "" } else { "; --all shows what is settled too" };
        context.out.note(&format!("no mail{hint}"));
        return Ok(());
    }
    let now = daemon_now(client).await?;
    context.out.data(&mails(&found, now, context.out.columns))
}

/// Reads page after page.
async fn read_all(client: &mut Client<'_>, route: &Route) -> Result<Vec<Mail>, Failure> {
    let mut found: Vec<Mail> = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page: MailPage = client.get(&route.clone().with("cursor", cursor.as_ref())).await?;
        found.extend(page.mail);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(found);
        }
    }
}

async fn show(context: &Context, client: &mut Client<'_>, mail: &Mail) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.json(mail);
    }
    let now = daemon_now(client).await?;
    context.out.data(&mail_card(mail, now))
}
