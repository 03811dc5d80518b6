//! `lanyard share`: links with which others may look at one session.

use lanyard_api::types::{NewShare, ShareLink, TokenList};
use lanyard_client::Route;
use lanyard_core::ActorKind;

use super::duration::duration_ms;
use super::target::Target;
use super::token::token_table;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::one_line;

const EXAMPLES: &str = "\
A link shows one session and those below it in a browser, and nothing else. Everybody who has the link
can use it until it ends, is revoked, or the session is deleted. It carries no right to change anything.
The daemon listens on this machine only: a reader elsewhere needs a way to it, such as
`ssh -L 7717:127.0.0.1:7717 HOST`.

Examples:
  lanyard share new fix-login
  lanyard share new fix-login --for 2h --name \"the reviewers\"
  lanyard share ls fix-login
  lanyard share rm tok_01m7n5djg0fayvh8t5cxyjkdnf";

/// Make, list and revoke links that show one session
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShareArgs {
    #[command(subcommand)]
    verb: ShareVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ShareVerb {
    /// Make a link and print it; it is shown only once
    New {
        #[command(flatten)]
        target: Target,
        /// How long it is good, at most 30d
        #[arg(long = "for", value_name = "TIME", default_value = "7d", value_parser = duration_ms)]
        life: u64,
        /// The reader, as lists show it [default: shared]
        #[arg(long)]
        name: Option<String>,
    },
    /// List share links: of one session, or all of them
    Ls {
        /// The session: its id or one of its aliases
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
    /// Revoke a link; browsers that use it are signed out at once
    Rm {
        /// The link's token, as `lanyard share ls` shows it
        #[arg(value_name = "TOKEN_ID")]
        id: String,
    },
}

impl ShareArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            ShareVerb::New { target, life, name } => {
                let new = NewShare { name, expires_in_ms: Some(life) };
                let link: ShareLink = context.client().await?.post(&target.route(&["shares"]), &new).await?;
                if context.out.is_json() {
                    return context.out.json(&link);
                }
                context.out.note(&format!("{} is good until {}", link.id, link.expires_at));
                context.out.data(&link.url)
            }
            ShareVerb::Ls { id } => list(context, id).await,
            ShareVerb::Rm { id } => {
                context.client().await?.remove(&Route::to(&["tokens", &id])).await?;
                if context.out.is_json() {
                    return context.out.json(&serde_json::json!({ "revoked": id }));
                }
                context.out.note(&format!("{} was revoked", one_line(&id)));
                Ok(())
            }
        }
    }
}

async fn list(context: &Context, id: Option<String>) -> Result<(), Failure> {
    let mut client = context.client().await?;
    let route = match &id {
        Some(id) => Route::to(&["sessions", id, "shares"]),
        None => Route::to(&["tokens"]),
    };
    let mut list: TokenList = client.get(&route).await?;
    list.tokens.retain(|token| token.role == ActorKind::Observer && token.session.is_some());
    if context.out.is_json() {
        return context.out.list(&list.tokens, None);
    }
    if list.tokens.is_empty() {
        context.out.note("no share links");
        return Ok(());
    }
    token_table(context, &mut client, &list.tokens).await
}
