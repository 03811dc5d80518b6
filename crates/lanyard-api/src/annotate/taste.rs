//! Clients, known by their own introduction, and what each makes of a result with structured content (measured with
//! the real ones). A text block in front of a result reaches the model of every one of them, unless the client reads
//! only the structured part.

/// What is done about structured content, so that words put in front of a result reach the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Taste {
    /// Reads the text too, and checks the structured part against the tool's schema: it stays.
    Keeps,
    /// Reads only the structured part, and does not miss it: it is left out of results that carry words.
    Drops,
    /// Not known, or not the same in all versions: tools are listed without the schema of their results, so that nothing is missed where the
    /// structured part is left out.
    Unknown,
    /// Unknown, and the tools were listed as they are: nothing may be missing.
    Unlisted,
}

impl Taste {
    #[must_use]
    pub fn of(client: &str) -> Self {
        let name = client.to_ascii_lowercase();
        if name.starts_with("codex") {
            return Self::Drops;
        }
        // Claude Code 2.1.197 reads only the structured part and does not miss it; 2.1.312 refuses a result without the
        // part that the listed schema promises. Both read the text where no schema is listed.
        if name.starts_with("claude") {
            return Self::Unknown;
        }
        if name.starts_with("opencode") || name.starts_with("gemini") {
            return Self::Keeps;
        }
        Self::Unknown
    }

    /// Whether the structured part of a result that carries words is left out.
    #[must_use]
    pub fn drops(self) -> bool {
        match self {
            Self::Drops | Self::Unknown => true,
            Self::Keeps | Self::Unlisted => false,
        }
    }

    /// Whether the client misses the structured part of a tool that has promised one, unless the result is an error.
    #[must_use]
    pub fn validates(self) -> bool {
        match self {
            Self::Keeps | Self::Unlisted => true,
            Self::Drops | Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_by_their_names() {
        for (name, taste) in [
            ("codex-mcp-client", Taste::Drops),
            ("claude-code", Taste::Unknown),
            ("Claude Desktop", Taste::Unknown),
            ("opencode", Taste::Keeps),
            ("gemini-cli-mcp-client", Taste::Keeps),
            ("somebody", Taste::Unknown),
            ("", Taste::Unknown),
        ] {
            assert_eq!(Taste::of(name), taste, "{name}");
        }
    }
}
