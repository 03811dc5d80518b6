//! `lanyard token`: who may talk to the daemon.

use lanyard_api::types::{NewToken, TokenInfo, TokenList};
use lanyard_client::Route;
use lanyard_client::names::A_SESSION;
use lanyard_core::{ActorKind, Timestamp};

use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::{ago, span};

const EXAMPLES: &str = "\
The operator's own token is the file `token` in the data folder; this command makes further ones.

Examples:
  lanyard token new dashboard --role observer
  lanyard token new executor --role agent --session sess_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard token ls
  lanyard token rm tok_01m7n5djg0fayvh8t5cxyjkdnf";

/// List, make and revoke tokens
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Token {
    #[command(subcommand)]
    verb: TokenVerb,
}

#[derive(Debug, clap::Subcommand)]
enum TokenVerb {
    /// List the tokens; the secrets themselves are never shown again
    Ls,
    /// Make a token and print its secret
    New(New),
    /// Revoke a token
    Rm {
        /// The token's id, as `lanyard token ls` shows it
        #[arg(value_name = "TOKEN_ID")]
        id: String,
    },
}

#[derive(Debug, clap::Args)]
struct New {
    /// Whose it is; shows in the log as who did something
    name: String,
    /// What it may do: everything, look only, or act as its own session
    #[arg(long)]
    role: TokenRole,
    /// The session an agent's token acts as: its id or one of its aliases
    #[arg(long, value_name = "ID", required_if_eq("role", "agent"))]
    session: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum TokenRole {
    Operator,
    Observer,
    Agent,
}

impl Token {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            TokenVerb::Ls => list(context).await,
            TokenVerb::New(new) => make(context, new).await,
            TokenVerb::Rm { id } => {
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

async fn list(context: &Context) -> Result<(), Failure> {
    let mut client = context.client().await?;
    let list: TokenList = client.get(&Route::to(&["tokens"])).await?;
    if context.out.is_json() {
        return context.out.list(&list.tokens, None);
    }
    if list.tokens.is_empty() {
        context.out.note("no further tokens; the operator's own is in the data folder");
        return Ok(());
    }
    token_table(context, &mut client, &list.tokens).await
}

/// Tokens, a line each.
pub(super) async fn token_table(
    context: &Context,
    client: &mut Client<'_>,
    tokens: &[TokenInfo],
) -> Result<(), Failure> {
    const COLUMNS: [Column; 8] = [
        Column::whole("ID"),
        Column::whole("ROLE"),
        Column::elastic("NAME", 12),
        Column::whole("SESSION"),
        Column::elastic("DEVICE", 8),
        Column::whole("MADE"),
        Column::whole("LAST USED"),
        Column::whole("ENDS"),
    ];
    let now = daemon_now(client).await?;
    let rows: Vec<Vec<String>> = tokens.iter().map(|token| cells(token, now)).collect();
    context.out.data(&table(&COLUMNS, &rows, context.out.columns))
}

fn cells(token: &TokenInfo, now: Timestamp) -> Vec<String> {
    let role = match token.role {
        ActorKind::Operator => "operator",
        ActorKind::Observer => "observer",
        ActorKind::Agent => "agent",
        ActorKind::System => "system",
    };
    vec![
        token.id.to_string(),
        role.to_owned(),
        one_line(&token.name),
        token.session.map(|session| session.to_string()).unwrap_or_default(),
        token.device.as_deref().map(one_line).unwrap_or_default(),
        ago(now, token.created_at),
        used(token, now),
        token.expires_at.map(|end| ends(now, end)).unwrap_or_default(),
    ]
}

/// `3 minutes ago, browser`.
fn used(token: &TokenInfo, now: Timestamp) -> String {
    let Some(at) = token.last_used_at else { return "never".to_owned() };
    match token.last_client {
        Some(client) => format!("{}, {}", ago(now, at), client.as_str()),
        None => ago(now, at),
    }
}

fn ends(now: Timestamp, end: Timestamp) -> String {
    if end <= now { "ended".to_owned() } else { format!("in {}", span(end.millis_since(now))) }
}

async fn make(context: &Context, new: New) -> Result<(), Failure> {
    let role = match new.role {
        TokenRole::Operator => ActorKind::Operator,
        TokenRole::Observer => ActorKind::Observer,
        TokenRole::Agent => ActorKind::Agent,
    };
    let mut client = context.client().await?;
    let session = client.id_if(A_SESSION, new.session).await?;
    let asked = NewToken { role, name: new.name, session };
    let token: TokenInfo = client.post(&Route::to(&["tokens"]), &asked).await?;
    if context.out.is_json() {
        return context.out.json(&token);
    }
    context.out.note(&format!("{} was made; its secret is shown only this once", token.id));
    context.out.data(token.token.as_deref().unwrap_or_default())
}
