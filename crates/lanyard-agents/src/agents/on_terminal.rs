//! The driver of a program on a terminal: nothing is said to it but what people type, and nothing is read from it but
//! its screen, which the runner keeps. Claude Code lets the id of its conversation be chosen, so that it can be resumed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lanyard_api::agents::settings::AgentSettings;
use lanyard_core::TurnId;
use lanyard_core::session::{AgentInfo, Capabilities, Question, Session};

use super::driver::{Action, Actions, Answer, Begin, Driver, Opened, Readiness, Setting};
use super::given::GivenPrompt;

/// What stands for a conversation that no protocol names.
const NATIVE: &str = "terminal";
/// The protocol, as the log has it.
const PROTOCOL: &str = "terminal";

/// Arguments of Claude Code that say themselves which conversation it opens, or that it opens none.
const OWN_CHOICE: [&str; 11] = [
    "-r",
    "--resume",
    "-c",
    "--continue",
    "--session-id",
    "--fork-session",
    "-p",
    "--print",
    "-h",
    "--help",
    "--version",
];
/// Commands of Claude Code that open no conversation.
const COMMANDS: [&str; 11] = [
    "agents",
    "auth",
    "config",
    "doctor",
    "install",
    "mcp",
    "migrate-installer",
    "plugin",
    "setup-token",
    "update",
    "upgrade",
];
/// Folders of Claude Code's history that are looked through for a conversation.
const FOLDERS_MAX: usize = 10_000;

#[derive(Debug)]
pub(crate) struct OnTerminal {
    program: String,
    /// The conversation that the program was told to open.
    native: Option<String>,
    begin: Begin,
}

impl OnTerminal {
    pub(crate) fn new(command: &[String], setting: Setting) -> Self {
        let native = match &setting.begin {
            Begin::New | Begin::Adopted { .. } => setting.conversation,
            Begin::Resume { native } => native.clone(),
        };
        let native = opens_conversation(command).then_some(native);
        Self { program: name_of(command).to_owned(), native, begin: setting.begin }
    }
}

fn name_of(command: &[String]) -> &str {
    command.first().map_or("", |program| program.rsplit('/').next().unwrap_or(program))
}

/// Whether this is Claude Code about to open a conversation of no particular id.
fn opens_conversation(command: &[String]) -> bool {
    let arguments = command.get(1..).unwrap_or_default();
    let chooses = |word: &String| {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        OWN_CHOICE.contains(&name)
    };
    let first = arguments.iter().find(|word| !word.starts_with('-'));
    name_of(command) == "claude"
        && !arguments.iter().any(chooses)
        && first.is_none_or(|word| !COMMANDS.contains(&word.as_str()))
}

/// The words that name its conversation; none for a program without one, or one that its user has chosen.
pub(crate) fn conversation_words(command: &[String], setting: &Setting) -> Vec<String> {
    if !opens_conversation(command) {
        return Vec::new();
    }
    let (option, id) = match &setting.begin {
        Begin::New | Begin::Adopted { .. } => ("--session-id", &setting.conversation),
        Begin::Resume { native } => ("--resume", native),
    };
    vec![option.to_owned(), id.clone()]
}

/// The conversation of the run before, where its program can open it again: Claude Code has it in its history from the
/// first message on. Blocks.
pub(crate) fn resumable(session: &Session, settings: &AgentSettings) -> Option<String> {
    let native = session.native.clone().filter(|_| opens_conversation(&settings.command))?;
    let folder = history_folder(&settings.env, |name| std::env::var(name).ok())?;
    let entries = std::fs::read_dir(folder.join("projects")).ok()?.take(FOLDERS_MAX).flatten();
    let name = format!("{native}.jsonl");
    // An id has no separators, so that it leads nowhere else.
    let plain = native.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    entries.into_iter().any(|entry| plain && entry.path().join(&name).is_file()).then_some(native)
}

fn history_folder(
    env: &BTreeMap<String, String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    let of = |name: &str| env.get(name).cloned().or_else(|| variable(name)).filter(|value| !value.is_empty());
    of("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(|| Some(Path::new(&of("HOME")?).join(".claude")))
}

impl Driver for OnTerminal {
    fn begin(&mut self, out: &mut Actions) {
        match self.begin {
            Begin::Adopted { .. } => {}
            Begin::New | Begin::Resume { .. } => out.push(Action::Ready(Box::new(Readiness {
                native: self.native.clone().unwrap_or_else(|| NATIVE.to_owned()),
                info: AgentInfo { name: self.program.clone(), version: None, protocol: PROTOCOL.to_owned() },
                capabilities: Capabilities { resume: self.native.is_some(), ..Capabilities::default() },
                how: match self.begin {
                    Begin::Resume { .. } => Opened::Believed,
                    Begin::New | Begin::Adopted { .. } => Opened::New,
                },
            }))),
        }
    }

    fn line(&mut self, _line: &[u8], _out: &mut Actions) {}

    fn prompt(&mut self, _turn: TurnId, _native: Option<&str>, _prompt: GivenPrompt<'_>, _out: &mut Actions) {
    }

    fn cancel(&mut self, _turn: TurnId, _native: Option<&str>, _out: &mut Actions) {}

    fn answer(&mut self, _question: &Question, _answer: &Answer, _out: &mut Actions) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_code_is_told_which_conversation_unless_its_user_says_it() {
        let opens =
            |command: &str| opens_conversation(&command.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for command in ["claude", "/usr/bin/claude --model opus", "claude fix the test"] {
            assert!(opens(command), "{command}");
        }
        for command in [
            "claude -c",
            "claude --resume x",
            "claude --session-id=x",
            "claude -p hi",
            "claude mcp list",
            "claude --debug doctor",
            "vi",
            "codex",
        ] {
            assert!(!opens(command), "{command}");
        }
    }

    #[test]
    fn the_history_is_where_the_programs_variables_say() {
        let env =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let home = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        assert_eq!(history_folder(&env(&[]), home).unwrap(), Path::new("/h/.claude"));
        assert_eq!(history_folder(&env(&[("HOME", "/o")]), home).unwrap(), Path::new("/o/.claude"));
        assert_eq!(history_folder(&env(&[("CLAUDE_CONFIG_DIR", "/c")]), home).unwrap(), Path::new("/c"));
        assert_eq!(history_folder(&env(&[]), |_| None), None);
    }
}
