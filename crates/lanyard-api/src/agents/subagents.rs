//! What an agent lets be done to one of its subagents, by its settings.

use lanyard_core::session::SubagentTraits;

use super::settings::{AgentSettings, DriverKind, OutputForm};

impl AgentSettings {
    #[must_use]
    pub fn subagents(&self) -> SubagentTraits {
        let prompts = self.driver.steers_subagents();
        let hook = match self.driver {
            DriverKind::Acp
            | DriverKind::Opencode
            | DriverKind::Claude
            | DriverKind::Codex
            | DriverKind::Terminal => None,
            // A program that is run once per turn takes no words about its subagents.
            DriverKind::Command => match self.per_turn().output {
                OutputForm::Text => None,
                OutputForm::ClaudeJson => Some("claude"),
                OutputForm::CodexJson => Some("codex"),
            },
        };
        SubagentTraits { prompts, hook }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_agents_that_keep_a_line_open_end_their_subagents() {
        let of = |text: &str| toml::from_str::<AgentSettings>(text).unwrap().subagents();
        let open = |driver: &str| of(&format!("driver = \"{driver}\"\ncommand = [\"x\"]\n"));
        assert_eq!(open("codex"), SubagentTraits { prompts: true, hook: None });
        assert_eq!(open("claude"), SubagentTraits { prompts: false, hook: None });
        let once = of(
            "driver = \"command\"\ncommand = [\"x\"]\nper_turn = { first = [], output = \"claude_json\" }\n",
        );
        assert_eq!(once, SubagentTraits { prompts: false, hook: Some("claude") });
    }
}
