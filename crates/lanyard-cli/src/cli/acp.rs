//! `lanyard acp`: an agent for editors.

use crate::acp::{Options, PromptDelivery};
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
For the settings of an editor that speaks the Agent Client Protocol, such as Zed, JetBrains or
Neovim. Its conversations are sessions of Lanyard: closing the editor leaves them running, loading
one shows its history and goes on live, and they are seen and answered from everywhere else too.

Examples:
  lanyard acp --agent opencode
  lanyard acp --agent demo --when next

In Zed's settings:
  \"agent_servers\": {
    \"Lanyard\": {
      \"type\": \"custom\", \"command\": \"lanyard\", \"args\": [\"acp\", \"--agent\", \"opencode\"]
    }
  }";

/// Be an agent for an editor (ACP on stdin and stdout)
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Acp {
    /// The agent of new sessions, as `lanyard agents` lists them [default: the config's, or the only one]
    #[arg(long)]
    agent: Option<String>,
    /// When a prompt is delivered while another client's turn runs [default: it is refused]
    #[arg(long = "when", alias = "delivery", value_enum, default_value_t = PromptDelivery::Reject, hide_default_value = true)]
    delivery: PromptDelivery,
}

impl Acp {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        crate::acp::run(context, Options { agent: self.agent, delivery: self.delivery }).await
    }
}
