//! What a session or a turn may remember, as flags. They travel with the request, never through the environment.

use clap::builder::PossibleValuesParser;
use lanyard_core::MemoryMode;
use lanyard_core::memory::MemoryAsk;

const HEADING: &str = "What may be remembered";

#[derive(Debug, Clone, Default, clap::Args)]
pub(in crate::cli) struct MemoryFlags {
    /// `off`, `session_only`, `selective` or `full`; never more than what stands above allows
    #[arg(long, value_name = "MODE", help_heading = HEADING, value_parser = modes(), hide_possible_values = true)]
    memory_mode: Option<String>,
    /// A tag put on everything that is written; may be given more than once
    #[arg(long = "memory-tag", value_name = "TAG", help_heading = HEADING)]
    memory_tags: Vec<String>,
    /// A tag that may go into long-term memory in the mode selective; may be given more than once
    #[arg(long = "memory-allow", value_name = "TAG", help_heading = HEADING)]
    memory_allow: Vec<String>,
    /// No memory of the session's own
    #[arg(long, help_heading = HEADING)]
    no_session_memory: bool,
}

/// The modes by the names they have on the wire.
pub(in crate::cli) fn modes() -> PossibleValuesParser {
    PossibleValuesParser::new(MemoryMode::ALL.map(MemoryMode::as_str))
}

/// The parser above lets nothing else in.
pub(in crate::cli) fn mode_of(word: &str) -> Option<MemoryMode> {
    MemoryMode::ALL.into_iter().find(|mode| mode.as_str() == word)
}

impl MemoryFlags {
    /// What is asked for; nothing where no flag was given.
    pub(in crate::cli) fn ask(self) -> Option<MemoryAsk> {
        let some = |tags: Vec<String>| Some(tags).filter(|tags| !tags.is_empty());
        let ask = MemoryAsk {
            mode: self.memory_mode.as_deref().and_then(mode_of),
            session_memory: self.no_session_memory.then_some(false),
            tags: some(self.memory_tags),
            allow: some(self.memory_allow),
        };
        Some(ask).filter(|ask| *ask != MemoryAsk::default())
    }
}
