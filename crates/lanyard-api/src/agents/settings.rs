//! Agents as configuration: `[agents.<name>]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lanyard_core::budget::Dollars;
use lanyard_core::session::{
    AgentChoice, AgentOffer, ChoiceKind, LimitRules, NetworkReach, OfferMenu, ResourceBounds, ResumeWay,
    SandboxLevel, SandboxRule,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::accounts::{Account, AccountPolicy};

/// How one agent is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    pub driver: DriverKind,
    /// The program and its arguments. A bare name is looked for on PATH.
    pub command: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Start with nothing but `env` and a few harmless variables (HOME, PATH, LANG, TERM, USER).
    #[serde(default)]
    pub clear_env: bool,
    /// The agent's role, told with the first prompt of a conversation and with the first after a compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// A mode or model, by the name the agent knows it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default)]
    pub permissions: Permissions,
    /// Milliseconds a turn may take; 0 is without end.
    #[serde(default)]
    pub turn_timeout_ms: u64,
    /// End the agent when a turn took too long; otherwise only the turn is cancelled and the conversation is kept.
    #[serde(default)]
    pub abort_on_timeout: bool,
    #[serde(default)]
    pub budget: Budget,
    /// How long the agent may take to greet.
    #[serde(default = "handshake_timeout_ms")]
    pub handshake_timeout_ms: u64,
    /// How long it may take to follow its own cancel, before its processes are ended.
    #[serde(default = "cancel_grace_ms")]
    pub cancel_grace_ms: u64,
    /// How long processes have after SIGTERM, before SIGKILL.
    #[serde(default = "kill_grace_ms")]
    pub kill_grace_ms: u64,
    /// How long the process is kept after a turn, for the next one; 0 is without end.
    #[serde(default = "keep_alive_ms")]
    pub keep_alive_ms: u64,
    /// What may be tried, in this order, when the process is gone.
    #[serde(default = "resume")]
    pub resume: Vec<ResumeWay>,
    /// Go on by itself after a crash, with the words of `auto_resume_prompt`.
    #[serde(default)]
    pub auto_resume: bool,
    #[serde(default = "auto_resume_prompt")]
    pub auto_resume_prompt: String,
    /// How much of the machine its processes can see and change. A session and a parent can only ask for more of it.
    #[serde(default, skip_serializing_if = "is_off")]
    pub sandbox: SandboxLevel,
    /// What a sandbox can connect to: `all`, `gateway`, or a list of hosts. Less than `all` asks for a sandbox.
    #[serde(default, skip_serializing_if = "reaches_all")]
    pub network: NetworkReach,
    /// Folders of the sandbox besides those of the workspace and the agent's own state.
    #[serde(default, skip_serializing_if = "SandboxFolders::is_empty")]
    pub sandbox_folders: SandboxFolders,
    /// The most that each of its runs may use of the machine.
    #[serde(default, skip_serializing_if = "ResourceBounds::is_empty")]
    pub bounds: ResourceBounds,
    /// What a turn does that meets a usage limit or an error of the provider.
    #[serde(default)]
    pub limits: LimitRules,
    /// Accounts, the preferred one first. Each is a set of variables for the agent's process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<Account>,
    /// What happens when the limit of an account is reached.
    #[serde(default)]
    pub account_policy: AccountPolicy,
    /// Whether the agent keeps its conversations on this machine, so that they can go on with another account. By default
    /// what is known of the driver: true for `claude`, `codex` and `opencode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_history: Option<bool>,
    /// MCP servers offered to this agent, beside those of `[mcp]`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp: BTreeMap<String, McpSettings>,
    /// For `acp` agents: the file access that the client offers. By default all of it, or what is known to work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_files: Option<ClientFiles>,
    /// For `command` agents: how a turn is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_turn: Option<PerTurn>,
}

/// Folders that a sandbox shows besides its own. `~` is the home folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxFolders {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
}

impl SandboxFolders {
    fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_off(level: &SandboxLevel) -> bool {
    *level == SandboxLevel::Off
}

fn reaches_all(network: &NetworkReach) -> bool {
    *network == NetworkReach::All
}

/// An MCP server: a program that speaks it on stdio, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum McpSettings {
    Stdio(McpStdio),
    Http(McpHttp),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpStdio {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables set for it, over those of the daemon that are passed on. Lanyard's own and its secrets never are.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Start with nothing but `env` and a few harmless variables (HOME, PATH, LANG, TERM, USER).
    #[serde(default)]
    pub clear_env: bool,
    /// One process for all sessions; otherwise each client has its own.
    #[serde(default)]
    pub share: bool,
    /// How long a call may go without a word from the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Tools with side effects: in a turn that is taken up again after a crash, a call that was carried out before is
    /// answered with its first answer. `*` is all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpHttp {
    pub url: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How long a call may go without a word from the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// PEM of CAs that are trusted besides the system's own, for an `https://` address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Tools with side effects: in a turn that is taken up again after a crash, a call that was carried out before is
    /// answered with its first answer. `*` is all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// The Agent Client Protocol over stdio.
    Acp,
    /// The OpenCode server.
    Opencode,
    /// Claude Code with JSON lines in both directions.
    Claude,
    /// `codex app-server`.
    Codex,
    /// Any command, run once per turn.
    Command,
    /// A program on a terminal of its own. Sessions have it that name such a program; no agent of the config has.
    #[serde(skip_deserializing)]
    Terminal,
}

impl DriverKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::Opencode => "opencode",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Command => "command",
            Self::Terminal => "terminal",
        }
    }

    /// Whether words can be put into the running turn of a subagent.
    #[must_use]
    pub const fn steers_subagents(self) -> bool {
        match self {
            Self::Opencode | Self::Codex => true,
            Self::Acp | Self::Claude | Self::Command | Self::Terminal => false,
        }
    }
}

/// The file access that an `acp` agent is offered by its client. An agent without it uses the file system itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientFiles {
    /// `fs/read_text_file` and `fs/write_text_file`.
    #[default]
    ReadWrite,
    /// `fs/write_text_file` only.
    Write,
    None,
}

impl ClientFiles {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadWrite => "read_write",
            Self::Write => "write",
            Self::None => "none",
        }
    }
}

/// How an agent's questions are judged before a person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// What happens to a question no rule speaks of.
    pub default: Judgement,
    /// Words in the tool's name, kind or title, and what to do then; `deny` before `ask` before `allow`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    Allow,
    #[default]
    Ask,
    Deny,
}

/// What one turn may use; 0 is without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    pub time_ms: u64,
    pub tool_calls: u64,
    /// Input and output together, where the agent reports them.
    pub tokens: u64,
    /// Cost in US dollars, where the agent reports it; `[budgets] turn_usd` is for all agents.
    pub cost_usd: Dollars,
    /// Bytes the agent writes to its output, all of which become part of the log.
    pub output_bytes: u64,
}

/// Bytes of output of one turn: far more than any turn needs, and far less than fills a disk.
const OUTPUT_BYTES: u64 = 64 << 20;

impl Default for Budget {
    fn default() -> Self {
        Self {
            time_ms: 0,
            tool_calls: 0,
            tokens: 0,
            cost_usd: Dollars::default(),
            output_bytes: OUTPUT_BYTES,
        }
    }
}

/// A command that is run once per turn. In its arguments `{prompt}` and `{native}` stand for the words and the
/// conversation's id, `{mcp_config}` for the session's MCP servers as in an `mcp.json`, and `{mcp}` for the address
/// under which the gateway has them; the token for it is in `LANYARD_TOKEN`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerTurn {
    /// Arguments of a conversation's first turn.
    pub first: Vec<String>,
    /// Arguments of later turns; without them each turn stands alone.
    #[serde(default)]
    pub next: Vec<String>,
    /// Whether the prompt goes to its standard input. With `output = "claude_json"` and the arguments `--input-format
    /// stream-json` it goes there as a JSON line, and the input stays open for answers until the turn ends.
    #[serde(default)]
    pub prompt_on_stdin: bool,
    #[serde(default)]
    pub output: OutputForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputForm {
    /// All it writes is its answer.
    #[default]
    Text,
    /// JSON lines as `claude -p --output-format stream-json` writes them.
    ClaudeJson,
    /// JSON lines as `codex exec --json` writes them.
    CodexJson,
}

impl AgentSettings {
    /// The choice of the settings, under that of a session.
    #[must_use]
    pub fn choice(&self) -> AgentChoice {
        AgentChoice { model: self.model.clone(), mode: self.mode.clone(), effort: None }
    }

    /// What an agent that is run once per turn lets be chosen: what its arguments have a place for.
    #[must_use]
    pub fn offer(&self) -> AgentOffer {
        let (per_turn, choice) = (self.per_turn(), self.choice());
        let mut offer = AgentOffer::default();
        for kind in ChoiceKind::ALL {
            let place = format!("{{{}}}", kind.as_str());
            let open = per_turn.first.iter().chain(&per_turn.next).any(|word| word.contains(&place));
            let default = choice.get(kind).filter(|_| open).map(str::to_owned);
            *offer.menu_mut(kind) = OfferMenu { open, default, ..OfferMenu::default() };
        }
        offer
    }
}

impl PerTurn {
    /// Whether the program takes JSON lines while its turn runs, as `claude -p --input-format stream-json` does.
    #[must_use]
    pub fn is_two_way(&self) -> bool {
        self.output == OutputForm::ClaudeJson
            && self.prompt_on_stdin
            && self.has("--input-format", "stream-json")
    }

    /// Whether the program asks Lanyard before it does what needs permission.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.is_two_way() && self.has("--permission-prompt-tool", "stdio")
    }

    fn has(&self, option: &str, value: &str) -> bool {
        self.first.windows(2).any(|pair| pair[0] == option && pair[1] == value)
    }

    /// Whether its arguments say themselves what Claude Code may do without a question.
    fn has_own_rules(&self) -> bool {
        const RULES: [&str; 5] = [
            "--allowedTools",
            "--allowed-tools",
            "--permission-mode",
            "--permission-prompt-tool",
            "--dangerously-skip-permissions",
        ];
        self.first.iter().any(|argument| {
            RULES.iter().any(|rule| {
                argument.strip_prefix(rule).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            })
        })
    }
}

const fn handshake_timeout_ms() -> u64 {
    60_000
}

const fn cancel_grace_ms() -> u64 {
    10_000
}

const fn kill_grace_ms() -> u64 {
    5_000
}

const fn keep_alive_ms() -> u64 {
    30 * 60_000
}

fn resume() -> Vec<ResumeWay> {
    vec![ResumeWay::Native]
}

fn auto_resume_prompt() -> String {
    "Your work was cut off by a crash. Look at where you were and go on.".to_owned()
}

impl AgentSettings {
    /// The sandbox and the bounds that the settings ask for.
    #[must_use]
    pub fn sandbox_rule(&self) -> SandboxRule {
        SandboxRule::new(self.sandbox, self.network.clone()).bounded(self.bounds)
    }

    /// How a turn is run, for an agent that is started for each: its prompt as the last argument, unless set otherwise.
    #[must_use]
    pub fn per_turn(&self) -> PerTurn {
        self.per_turn.clone().unwrap_or_else(|| PerTurn {
            first: Vec::new(),
            next: Vec::new(),
            prompt_on_stdin: false,
            output: OutputForm::Text,
        })
    }

    /// What works and probably surprises: each sentence says what happens and what to set.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.driver != DriverKind::Command {
            return warnings;
        }
        let per_turn = self.per_turn();
        let told_the_past = self.resume.iter().any(|way| *way != ResumeWay::Native);
        if per_turn.next.is_empty() && !told_the_past {
            warnings.push(
                "`per_turn.next` is missing, so every turn begins a new conversation; set it, or give the agent its \
                 past with `resume = [\"preamble\"]`"
                    .to_owned(),
            );
        }
        if per_turn.output == OutputForm::ClaudeJson && !per_turn.asks() && !per_turn.has_own_rules() {
            warnings.push(
                "Claude Code cannot ask for permission here and denies what its own settings do not allow; use \
                 `prompt_on_stdin = true` with `--input-format stream-json --permission-prompt-tool stdio`"
                    .to_owned(),
            );
        }
        warnings
    }

    /// The settings of an agent of which only the driver and the command are known.
    #[must_use]
    pub fn of(driver: DriverKind, command: Vec<String>) -> Self {
        Self {
            driver,
            command,
            env: BTreeMap::new(),
            clear_env: false,
            instructions: None,
            mode: None,
            model: None,
            permissions: Permissions::default(),
            turn_timeout_ms: 0,
            abort_on_timeout: false,
            budget: Budget::default(),
            handshake_timeout_ms: handshake_timeout_ms(),
            cancel_grace_ms: cancel_grace_ms(),
            kill_grace_ms: kill_grace_ms(),
            keep_alive_ms: keep_alive_ms(),
            resume: resume(),
            auto_resume: false,
            auto_resume_prompt: auto_resume_prompt(),
            sandbox: SandboxLevel::Off,
            network: NetworkReach::All,
            sandbox_folders: SandboxFolders::default(),
            bounds: ResourceBounds::default(),
            limits: LimitRules::default(),
            accounts: Vec::new(),
            account_policy: AccountPolicy::default(),
            local_history: None,
            mcp: BTreeMap::new(),
            client_files: None,
            per_turn: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(first: &[&str], next: &[&str], prompt_on_stdin: bool) -> AgentSettings {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let output = OutputForm::ClaudeJson;
        let per_turn = PerTurn { first: words(first), next: words(next), prompt_on_stdin, output };
        let settings = AgentSettings::of(DriverKind::Command, vec!["claude".to_owned()]);
        AgentSettings { per_turn: Some(per_turn), ..settings }
    }

    /// FND-R9, FND-R4: the entry of an older guide is told of both.
    #[test]
    fn fnd_r9_a_command_without_next_or_without_a_way_to_ask_is_warned_of() {
        let old = command(&["-p", "--output-format", "stream-json", "{prompt}"], &[], false);
        let [next, ask] = &old.warnings()[..] else { panic!("{:?}", old.warnings()) };
        assert!(next.contains("`per_turn.next` is missing"), "{next}");
        assert!(ask.contains("cannot ask for permission"), "{ask}");
        let told = AgentSettings { resume: vec![ResumeWay::Preamble], ..old };
        assert_eq!(told.warnings().len(), 1);
        let rules = command(&["-p", "--allowedTools=Edit"], &["--resume", "{native}"], false);
        assert_eq!(rules.warnings(), Vec::<String>::new());
        assert_eq!(AgentSettings::of(DriverKind::Acp, Vec::new()).warnings(), Vec::<String>::new());
    }

    #[test]
    fn a_program_that_takes_lines_may_ask() {
        let both = ["--input-format", "stream-json", "--permission-prompt-tool", "stdio"];
        let asks = |first: &[&str], stdin| command(first, &[], stdin).per_turn().asks();
        assert!(asks(&both, true) && !asks(&both, false) && !asks(&both[2..], true));
        assert!(!asks(&both[..2], true) && command(&both[..2], &[], true).per_turn().is_two_way());
    }
}
