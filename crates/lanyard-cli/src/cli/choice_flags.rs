//! The model, mode and effort of a session or of one turn, as flags.

use lanyard_core::session::AgentChoice;

const HEADING: &str = "Model";

#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct ChoiceFlags {
    /// The model, by the agent's name for it; `lanyard agents show NAME` lists them
    #[arg(long, value_name = "MODEL", help_heading = HEADING)]
    model: Option<String>,
    #[command(flatten)]
    rest: ModeFlags,
}

#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct ModeFlags {
    /// The agent's mode, such as `plan`
    #[arg(long, value_name = "MODE", help_heading = HEADING)]
    mode: Option<String>,
    /// How much the model thinks, such as `high`
    #[arg(long, value_name = "EFFORT", help_heading = HEADING)]
    effort: Option<String>,
}

impl ChoiceFlags {
    pub(super) fn choice(self) -> AgentChoice {
        self.rest.with(self.model)
    }
}

impl ModeFlags {
    pub(super) fn with(self, model: Option<String>) -> AgentChoice {
        AgentChoice { model, mode: self.mode, effort: self.effort }
    }
}
