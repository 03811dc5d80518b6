//! The greeting: initialize, then a thread that is new or taken up again.

use lanyard_core::session::{AgentInfo, Capabilities};
use serde_json::{Map, Value, json};

use super::{Codex, wire};
use crate::agents::driver::{Action, Actions, Begin, McpServer, Opened, Readiness, Setting};

const SANDBOXES: [&str; 3] = ["read-only", "workspace-write", "danger-full-access"];
const APPROVALS: [&str; 3] = ["untrusted", "on-request", "never"];

pub(super) fn initialize() -> Action {
    let params = json!({
        "clientInfo": { "name": "lanyard", "title": "Lanyard", "version": env!("CARGO_PKG_VERSION") },
        "capabilities": { "experimentalApi": true },
    });
    wire::request("init".to_owned(), "init", "initialize", &params)
}

impl Codex {
    pub(super) fn greeted(&mut self, result: Result<&Value, &str>, out: &mut Actions) {
        if self.main.is_some() {
            return;
        }
        let found = match result {
            Ok(found) => found,
            Err(why) => {
                return out.push(broken("handshake_failed", format!("codex refused the greeting: {why}")));
            }
        };
        self.version = found["userAgent"].as_str().and_then(version);
        let params = match opening(&self.setting) {
            Ok(params) => params,
            Err(what) => return out.push(broken("mode_unknown", what)),
        };
        let method = match &self.setting.begin {
            Begin::Resume { .. } => "thread/resume",
            Begin::New | Begin::Adopted { .. } => "thread/start",
        };
        out.push(wire::notice("initialized"));
        out.push(wire::request("thread".to_owned(), "thread", method, &params));
    }

    pub(super) fn opened(&mut self, result: Result<&Value, &str>, out: &mut Actions) {
        if self.main.is_some() {
            return;
        }
        let wanted = match &self.setting.begin {
            Begin::Resume { native } => Some(native.clone()),
            Begin::New | Begin::Adopted { .. } => None,
        };
        let thread = match result {
            Ok(found) => &found["thread"],
            Err(why) if why.contains("unknown variant") => {
                let what = format!("this codex is too old for its driver: {why}");
                return out.push(broken("version_unsupported", what));
            }
            Err(why) if wanted.is_some() => return out.push(broken("resume_refused", why.to_owned())),
            Err(why) => {
                return out.push(broken("handshake_failed", format!("codex opened no thread: {why}")));
            }
        };
        let Some(id) = thread["id"].as_str() else {
            return out.push(broken("handshake_failed", "codex opened a thread without an id".to_owned()));
        };
        let how = match &wanted {
            None => Opened::New,
            Some(wanted) if wanted == id => Opened::Resumed,
            Some(wanted) => {
                let what = format!("codex was asked for {wanted} and opened {id}");
                return out.push(broken("resume_refused", what));
            }
        };
        self.main = Some(id.to_owned());
        if let Some(state) = self.threads.of(id) {
            // A resumed thread first repeats the sums of its past.
            state.total = (how == Opened::New).then_some((0, 0));
        }
        if let Ok(found) = result {
            self.learn_defaults(found, out);
        }
        if how == Opened::Resumed {
            out.push(Action::Replayed(items_in(thread)));
        }
        out.push(Action::Ready(Box::new(Readiness {
            native: id.to_owned(),
            info: AgentInfo {
                name: "codex".to_owned(),
                version: self.version.clone().or_else(|| thread["cliVersion"].as_str().map(str::to_owned)),
                protocol: "codex app-server 2".to_owned(),
            },
            capabilities: capabilities(),
            how,
        })));
    }
}

fn capabilities() -> Capabilities {
    Capabilities {
        load: true,
        resume: true,
        cancel: true,
        steer: true,
        compact: true,
        children: true,
        permissions: true,
        images: true,
        mcp_stdio: true,
        mcp_http: true,
        ..Capabilities::default()
    }
}

fn items_in(thread: &Value) -> u64 {
    let turns = thread["turns"].as_array().map_or(&[][..], Vec::as_slice);
    turns.iter().map(|turn| turn["items"].as_array().map_or(0, |items| items.len() as u64)).sum()
}

fn opening(setting: &Setting) -> Result<Value, String> {
    let mut params = Map::new();
    params.insert("cwd".to_owned(), setting.workspace.to_string_lossy().into());
    match &setting.begin {
        Begin::Resume { native } => {
            params.insert("threadId".to_owned(), native.as_str().into());
        }
        // A resumed thread has heard them.
        Begin::New | Begin::Adopted { .. } => {
            if let Some(instructions) = &setting.instructions {
                params.insert("developerInstructions".to_owned(), instructions.as_str().into());
            }
        }
    }
    if let Some(model) = &setting.model {
        params.insert("model".to_owned(), model.as_str().into());
    }
    for word in setting.mode.iter().flat_map(|mode| mode.split([',', ' '])).filter(|word| !word.is_empty()) {
        let key = if SANDBOXES.contains(&word) {
            "sandbox"
        } else if APPROVALS.contains(&word) {
            "approvalPolicy"
        } else {
            return Err(format!(
                "codex has no mode `{word}`; it knows {} and {}",
                SANDBOXES.join(", "),
                APPROVALS.join(", ")
            ));
        };
        params.insert(key.to_owned(), word.into());
    }
    let mut config: Map<String, Value> = setting.mcp.iter().map(mcp).collect();
    if !setting.git_folders.is_empty() {
        // Without them Codex's own sandbox lets no commit through in a linked worktree.
        let roots: Vec<_> = setting.git_folders.iter().map(|folder| folder.to_string_lossy()).collect();
        config.insert("sandbox_workspace_write.writable_roots".to_owned(), json!(roots));
    }
    if !config.is_empty() {
        params.insert("config".to_owned(), config.into());
    }
    Ok(params.into())
}

fn mcp(server: &McpServer) -> (String, Value) {
    let pairs = |pairs: &[(String, String)]| -> Map<String, Value> {
        pairs.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect()
    };
    match server {
        McpServer::Stdio { name, command, args, env } => {
            (mcp_key(name), json!({ "command": command, "args": args, "env": pairs(env) }))
        }
        McpServer::Http { name, url, headers } => {
            (mcp_key(name), json!({ "url": url, "http_headers": pairs(headers) }))
        }
    }
}

/// The key is a path in Codex's configuration, so a name must not open a level of its own.
fn mcp_key(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    format!("mcp_servers.{}", name.chars().map(safe).collect::<String>())
}

/// `lanyard/0.166.0 (Debian ...)`: the client's name and Codex's version.
fn version(user_agent: &str) -> Option<String> {
    let version = user_agent.split('/').nth(1)?.split(' ').next()?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

fn broken(code: &'static str, what: String) -> Action {
    Action::Broken { code, what }
}
