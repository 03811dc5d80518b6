//! The real agents: each configured in a private home to talk to the scripted model and to nobody else.

mod installed;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lanyard_api::agents::known::KNOWN;
use serde_json::{Value, json};

use self::installed::node_dir;
pub(crate) use self::installed::{binary, inside, version};
use crate::model::Model;

/// Where anything that tries to leave the machine is sent: the discard port, where nobody listens.
const NOWHERE: &str = "http://127.0.0.1:9";
const LOOPBACK: &str = "127.0.0.1,localhost,::1";
/// What the command `mine` stands for, in agents that take commands of their user's.
const MINE: &str = "Say it @@after@@ $ARGUMENTS";
/// Where Claude Code, run once per turn, finds its MCP servers in its home.
const MCP_FILE: &str = "mcp.json";

/// How one agent is started.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    /// As in `[agents.<name>]`.
    pub(crate) name: &'static str,
    /// Lanyard's driver for it.
    pub(crate) driver: &'static str,
    /// The program and its arguments, to run it without Lanyard.
    pub(crate) command: Vec<String>,
    /// How many words of the command Lanyard is given; its driver adds the others.
    words: usize,
    /// Further lines of the entry in Lanyard's configuration.
    settings: String,
    /// All of its environment.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) home: PathBuf,
}

/// What the agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    All,
    /// It asks before it runs a command.
    Ask,
}

/// OpenCode over ACP.
pub(crate) fn opencode_acp(home: &Path, model: &Model, rights: Rights) -> Agent {
    opencode_config(home, model, rights);
    opencode("opencode-acp", "acp", home, &["acp"])
}

/// OpenCode's HTTP server, on a port of its own choice.
pub(crate) fn opencode_serve(home: &Path, model: &Model, rights: Rights) -> Agent {
    opencode_config(home, model, rights);
    opencode("opencode", "opencode", home, &["serve", "--hostname", "127.0.0.1", "--port", "0"]).bare()
}

/// A home for an agent. It is not in the folder for temporary files, because Codex puts the helper of its sandbox into no
/// home that lies there, and then runs no command in the sandbox.
pub(crate) fn home() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("home").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// OpenCode run for one prompt.
pub(crate) fn opencode_run(home: &Path, model: &Model, rights: Rights) -> Agent {
    opencode_config(home, model, rights);
    opencode("opencode-run", "command", home, &["run", "--format", "json"])
}

fn opencode(name: &'static str, driver: &'static str, home: &Path, args: &[&str]) -> Agent {
    Agent::new(name, driver, home, &binary("opencode", "opencode"), args).with([
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
    ])
}

fn opencode_config(home: &Path, model: &Model, rights: Rights) {
    // It asks npm for its plugin package when it sees a plugin, and again and again where there is no network.
    write(home, ".npmrc", "fetch-retries=0\n");
    let limit = json!({ "context": 200_000, "output": 8192 });
    let model_of = |name: &str, reasons: bool| {
        let sees = json!({ "input": ["text", "image"], "output": ["text"] });
        json!({ "name": name, "tool_call": true, "attachment": true, "reasoning": reasons, "modalities": sees, "limit": limit })
    };
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": { "baseURL": model.url("opencode/v1"), "apiKey": "dummy" },
        "models": { "scripted": model_of("Scripted", false), "other": model_of("Other", true) },
    });
    let bash = match rights {
        Rights::All => "allow",
        Rights::Ask => "ask",
    };
    let config = json!({
        "autoupdate": false,
        "share": "disabled",
        "enabled_providers": ["scripted"],
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "provider": { "scripted": provider },
        "permission": { "bash": bash, "edit": "allow" },
        "command": { "mine": { "template": MINE, "description": "A command of the suite's" } },
    });
    write(home, ".config/opencode/opencode.json", &config.to_string());
}

/// Codex's own server on stdio.
pub(crate) fn codex(home: &Path, model: &Model, rights: Rights) -> Agent {
    codex_config(home, model, rights);
    Agent::new("codex", "codex", home, &binary("codex", "codex"), &["app-server"])
        .with([("SCRIPTED_KEY", "dummy")])
        .bare()
}

/// The same in a sandbox of its own: it may write in its workspace, and asks nobody.
pub(crate) fn codex_sandboxed(home: &Path, model: &Model, rights: Rights) -> Agent {
    let agent = codex(home, model, rights);
    let config = home.join(".codex/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let text = text.replace("danger-full-access", "workspace-write");
    // Tests work in the folder for temporary files, which the sandbox would leave open.
    let closed = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n";
    fs::write(config, text + closed).unwrap();
    agent
}

/// Codex over ACP, with the Codex that the adapter brings along.
pub(crate) fn codex_acp(home: &Path, model: &Model, rights: Rights) -> Agent {
    codex_config(home, model, rights);
    let agent = Agent::new("codex-acp", "acp", home, &binary("codex_acp", "codex-acp"), &[])
        .with([("SCRIPTED_KEY", "dummy")]);
    match rights {
        Rights::All => agent,
        // Its default mode has a model judge what is asked.
        Rights::Ask => agent.set("mode = \"workspace-write\""),
    }
}

/// Codex run once per turn.
pub(crate) fn codex_exec(home: &Path, model: &Model, rights: Rights) -> Agent {
    codex_config(home, model, rights);
    let args = ["exec", "--json", "--skip-git-repo-check"];
    Agent::new("codex-exec", "command", home, &binary("codex", "codex"), &args)
        .with([("SCRIPTED_KEY", "dummy")])
        .per_turn("codex_json", &["resume", "{native}"])
}

fn codex_config(home: &Path, model: &Model, rights: Rights) {
    let (approval, sandbox) = match rights {
        Rights::All => ("never", "danger-full-access"),
        // It asks when the model's call says `"sandbox_permissions": "require_escalated"`.
        Rights::Ask => ("on-request", "read-only"),
    };
    let base_url = model.url("codex/v1");
    let config = format!(
        r#"model = "scripted"
model_provider = "scripted"
approval_policy = "{approval}"
sandbox_mode = "{sandbox}"
check_for_update_on_startup = false
web_search = "disabled"
[features]
plugins = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "{base_url}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
"#
    );
    write(home, ".codex/prompts/mine.md", MINE);
    write(home, ".codex/config.toml", &config);
}

/// Claude Code over ACP, with the Claude Code that the adapter brings along.
pub(crate) fn claude_acp(home: &Path, model: &Model, rights: Rights) -> Agent {
    claude("claude-acp", "acp", home, model, rights, &binary("claude_acp", "claude-agent-acp"), &[])
}

/// Claude Code run once per turn.
pub(crate) fn claude_print(home: &Path, model: &Model, rights: Rights) -> Agent {
    // A test may put servers into it before a turn.
    write(home, MCP_FILE, r#"{ "mcpServers": {} }"#);
    let file = text(&home.join(MCP_FILE));
    let args =
        ["-p", "--output-format", "stream-json", "--verbose", "--mcp-config", &file, "--strict-mcp-config"];
    claude("claude", "command", home, model, rights, &binary("claude", "claude"), &args)
        .per_turn("claude_json", &["--resume", "{native}"])
}

/// Claude Code as `lanyard init` writes it into the config.
pub(crate) fn claude_entry(home: &Path, model: &Model, rights: Rights) -> Agent {
    let known = KNOWN.iter().find(|known| known.name == "claude").unwrap();
    let driver = known.settings().driver.as_str();
    claude("claude", driver, home, model, rights, &binary("claude", "claude"), &[])
}

/// The same run once per turn, with answers to its questions, as `lanyard init` wrote it before.
pub(crate) fn claude_asks(home: &Path, model: &Model, rights: Rights) -> Agent {
    let first = [
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--permission-prompt-tool",
        "stdio",
        "--allowedTools",
        "mcp__lanyard",
        "--mcp-config",
        "{mcp_config}",
    ];
    let next = [&first[..], &["--resume", "{native}"]].concat();
    let (first, next) = (Value::from(&first[..]), Value::from(next));
    claude("claude", "command", home, model, rights, &binary("claude", "claude"), &[]).set(&format!(
        "per_turn = {{ first = {first}, next = {next}, prompt_on_stdin = true, output = \"claude_json\" }}"
    ))
}

/// The same as an older guide had it: no way to ask, and no conversation to go on with.
pub(crate) fn claude_old_guide(home: &Path, model: &Model, rights: Rights) -> Agent {
    let first = r#"["-p", "--mcp-config", "{mcp_config}", "--output-format", "stream-json", "--verbose", "{prompt}"]"#;
    claude("claude", "command", home, model, rights, &binary("claude", "claude"), &[])
        .set(&format!("per_turn = {{ first = {first}, output = \"claude_json\" }}"))
}

fn claude(
    name: &'static str,
    driver: &'static str,
    home: &Path,
    model: &Model,
    rights: Rights,
    binary: &Path,
    args: &[&str],
) -> Agent {
    let mode = match rights {
        Rights::All => "bypassPermissions",
        Rights::Ask => "default",
    };
    write(home, ".claude/commands/mine.md", MINE);
    write(home, ".claude/settings.json", &json!({ "permissions": { "defaultMode": mode } }).to_string());
    let base_url = model.url("claude");
    Agent::new(name, driver, home, binary, args).with([
        ("ANTHROPIC_BASE_URL", base_url.as_str()),
        ("ANTHROPIC_API_KEY", "sk-dummy"),
        ("ANTHROPIC_MODEL", "scripted"),
        ("ANTHROPIC_SMALL_FAST_MODEL", "scripted-small"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        // With it MCP tools are missing from the request's list, and a script cannot find them.
        ("ENABLE_TOOL_SEARCH", "false"),
        // Without it root may not skip permissions.
        ("IS_SANDBOX", "1"),
    ])
}

/// Gemini CLI over ACP.
pub(crate) fn gemini_acp(home: &Path, model: &Model, rights: Rights) -> Agent {
    gemini("gemini", "acp", home, model, rights, &["--acp"])
}

/// Gemini CLI run for one prompt, which follows.
pub(crate) fn gemini_print(home: &Path, model: &Model, rights: Rights) -> Agent {
    gemini("gemini-print", "command", home, model, rights, &["-o", "stream-json"])
}

fn gemini(
    name: &'static str,
    driver: &'static str,
    home: &Path,
    model: &Model,
    rights: Rights,
    args: &[&str],
) -> Agent {
    let settings = json!({
        "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "disableAutoUpdate": true, "disableUpdateNag": true },
    });
    let mine = format!("description = \"mine\"\nprompt = \"{}\"\n", MINE.replace("$ARGUMENTS", "{{args}}"));
    write(home, ".gemini/commands/mine.toml", &mine);
    write(home, ".gemini/settings.json", &settings.to_string());
    let mut args = [args, &["-m", "gemini-2.5-flash"]].concat();
    if rights == Rights::All {
        args.push("-y");
    }
    let base_url = model.url("gemini");
    Agent::new(name, driver, home, &binary("gemini", "gemini"), &args).with([
        ("GEMINI_API_KEY", "dummy"),
        ("GOOGLE_GEMINI_BASE_URL", base_url.as_str()),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ("GEMINI_CLI_NO_RELAUNCH", "1"),
    ])
}

/// Gives an agent that Lanyard cannot tell of MCP servers one in its own settings: a command.
pub(crate) fn own_server(home: &Path, name: &str, command: &[String]) {
    let [program, words @ ..] = command else { panic!("no command") };
    let server = json!({ "mcpServers": { name: { "command": program, "args": words } } });
    write(home, MCP_FILE, &server.to_string());
    let config = home.join(".codex/config.toml");
    if let Ok(mut text) = fs::read_to_string(&config) {
        let words = Value::from(words.to_vec());
        // Codex passes nothing on that is not named.
        let _ = writeln!(
            text,
            "[mcp_servers.{name}]\ncommand = {}\nargs = {words}\n\
             env_vars = [\"LANYARD_SESSION\", \"LANYARD_URL\", \"LANYARD_TOKEN\", \"LANYARD_RUN\"]",
            quoted(program)
        );
        fs::write(config, text).unwrap();
    }
}

impl Agent {
    fn new(name: &'static str, driver: &'static str, home: &Path, binary: &Path, args: &[&str]) -> Agent {
        let command = std::iter::once(text(binary)).chain(args.iter().map(|arg| (*arg).to_owned())).collect();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", text(&node_dir()));
        let (words, settings) = (args.len() + 1, String::new());
        let agent =
            Agent { name, driver, command, words, settings, env: BTreeMap::new(), home: home.to_owned() };
        agent.with([
            ("HOME", text(home).as_str()),
            ("PATH", path.as_str()),
            ("LANG", "C.UTF-8"),
            ("HTTP_PROXY", NOWHERE),
            ("HTTPS_PROXY", NOWHERE),
            ("http_proxy", NOWHERE),
            ("https_proxy", NOWHERE),
            ("NO_PROXY", LOOPBACK),
            ("no_proxy", LOOPBACK),
        ])
    }

    /// The same with more variables in its environment.
    pub(crate) fn with<const N: usize>(mut self, variables: [(&str, &str); N]) -> Agent {
        self.env.extend(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        self
    }

    /// Lanyard is given the program alone.
    fn bare(self) -> Agent {
        Agent { words: 1, ..self }
    }

    /// One more line of the entry in Lanyard's configuration.
    fn set(mut self, line: &str) -> Agent {
        let _ = writeln!(self.settings, "{line}");
        self
    }

    /// Run once per turn, with these further words when the conversation goes on.
    fn per_turn(self, output: &str, go_on: &[&str]) -> Agent {
        let words = self.command[1..].iter().flat_map(|word| {
            // What Lanyard offers comes beside the file a test may write.
            let offered = word.ends_with(MCP_FILE).then(|| "{mcp_config}".to_owned());
            [Some(word.clone()), offered].into_iter().flatten()
        });
        let first: Vec<String> = words.map(|word| quoted(&word)).collect();
        let next: Vec<String> = first.iter().cloned().chain(go_on.iter().map(|word| quoted(word))).collect();
        let (first, next) = (first.join(", "), next.join(", "));
        self.bare()
            .set(&format!("per_turn = {{ first = [{first}], next = [{next}], output = \"{output}\" }}"))
    }

    /// The agent's entry in Lanyard's configuration.
    pub(crate) fn config(&self) -> String {
        let mut entry = format!("[agents.{}]\n", self.name);
        let command: Vec<String> = self.command[..self.words].iter().map(|word| quoted(word)).collect();
        let env: Vec<String> =
            self.env.iter().map(|(name, value)| format!("{name} = {}", quoted(value))).collect();
        let _ = writeln!(entry, "driver = {}", quoted(self.driver));
        let _ = writeln!(entry, "command = [{}]", command.join(", "));
        let _ = writeln!(entry, "env = {{ {} }}", env.join(", "));
        let _ = writeln!(entry, "clear_env = true");
        entry + &self.settings
    }

    /// The process to start without Lanyard.
    pub(crate) fn process(&self, cwd: &Path) -> Command {
        let mut process = Command::new(&self.command[0]);
        process.args(&self.command[1..]).current_dir(cwd).env_clear().envs(&self.env);
        process.stdin(Stdio::piped()).stdout(Stdio::piped());
        process
    }
}

/// A JSON string is a TOML string as well.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn text(path: &Path) -> String {
    path.to_str().expect("paths of tests are UTF-8").to_owned()
}

fn write(home: &Path, name: &str, content: &str) {
    let path = home.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}
