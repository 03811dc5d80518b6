//! `lanyard answer`: answer what an agent asks.

use clap::builder::NonEmptyStringValueParser;
use lanyard_core::session::GateStatus;
use lanyard_core::{GateId, Outcome, SessionId};
use lanyard_daemon::api::types::{GateAnswer, GateEntry, GateList};

use crate::client::{Client, Route};
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
The first answer stands: the same one again changes nothing, another one is refused. A session
can be named instead of a gate when it asks one thing only.

Examples:
  lanyard answer gate_01m7n5djg0fayvh8t5cxyjkdnf allow
  lanyard answer ses_4f2a deny --message \"use the staging database\"
  lanyard answer gate_01m7n5djg0fayvh8t5cxyjkdnf always --session ses_4f2a";

/// Answer what an agent asks
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Answer {
    /// The gate, as `lanyard gates` shows it, or the session that asks
    #[arg(value_name = "GATE|ID", value_parser = NonEmptyStringValueParser::new())]
    what: String,
    /// `allow`, `always`, `deny`, `never`, or the id of one of its options
    #[arg(value_name = "OPTION")]
    option: String,
    /// Words for the agent, where it takes them
    #[arg(long)]
    message: Option<String>,
    /// The gate's session: needed to repeat an answer to a gate that is settled
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

impl Answer {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let (session, gate) = match (self.what.parse::<GateId>(), self.session) {
            (Ok(gate), Some(session)) => (session, gate),
            (Ok(gate), None) => (asker(&mut client, gate).await?.to_string(), gate),
            (Err(_), _) => only_one(&mut client, &self.what).await?,
        };
        let body = GateAnswer { option: self.option, message: self.message };
        let route = Route::to(&["sessions", &session, "gates", &gate.to_string()]);
        let outcome: Outcome = client.post(&route, &body).await?;
        context.out.receipt(&outcome, None, &format!("{gate} is answered: {}", body.option))
    }
}

/// The session whose gate it is.
async fn asker(client: &mut Client<'_>, gate: GateId) -> Result<SessionId, Failure> {
    let list: GateList = client.get(&Route::to(&["gates"])).await?;
    let entry = list.gates.iter().find(|entry| entry.gate.id == gate);
    entry.map(|entry| entry.session).ok_or_else(|| {
        let title = format!("nobody waits for an answer to {gate}");
        Failure::local("gate_not_open", title, "see what became of it with `lanyard gates ID`")
    })
}

/// The one gate of a session that waits.
async fn only_one(client: &mut Client<'_>, session: &str) -> Result<(String, GateId), Failure> {
    let list: GateList = client.get(&Route::to(&["sessions", session, "gates"])).await?;
    let open: Vec<&GateEntry> =
        list.gates.iter().filter(|entry| entry.gate.status == GateStatus::Open).collect();
    match open.as_slice() {
        [only] => Ok((only.session.to_string(), only.gate.id)),
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
