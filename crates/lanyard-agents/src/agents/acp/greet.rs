//! The greeting: who the agent is, what it offers, and the conversation that is opened or taken up again.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    self as acp, InitializeResponse, LoadSessionRequest, NewSessionRequest, NewSessionResponse,
    ResumeSessionRequest, SetSessionModeRequest,
};
use lanyard_core::session::{AgentInfo, Capabilities};
use serde_json::Value;

use super::{Acp, MODE, OPEN, Phase, broken, read, rpc};
use crate::agents::driver::{Action, Actions, Begin, McpServer, Opened, Readiness};

impl Acp {
    pub(super) fn greeted(&mut self, result: Value, out: &mut Actions) {
        let answer: InitializeResponse = match read(result) {
            Ok(answer) => answer,
            Err(what) => {
                return broken(out, "handshake_failed", format!("its greeting cannot be read: {what}"));
            }
        };
        if answer.protocol_version != ProtocolVersion::V1 {
            let version = answer.protocol_version;
            return broken(
                out,
                "version_unsupported",
                format!("it speaks version {version} of ACP, and this is 1"),
            );
        }
        let offers = &answer.agent_capabilities;
        let sessions = &offers.session_capabilities;
        self.capabilities = Capabilities {
            load: offers.load_session,
            resume: sessions.resume.is_some(),
            fork: sessions.fork.is_some(),
            list: sessions.list.is_some(),
            close: sessions.close.is_some(),
            cancel: true,
            steer: false,
            compact: false,
            children: false,
            permissions: true,
            images: offers.prompt_capabilities.image,
            mcp_stdio: true,
            mcp_http: offers.mcp_capabilities.http,
            mcp_sse: offers.mcp_capabilities.sse,
        };
        self.embeds = offers.prompt_capabilities.embedded_context;
        let (name, version) = match answer.agent_info {
            Some(info) => (info.name, Some(info.version)),
            None => ("unnamed".to_owned(), None),
        };
        self.info = AgentInfo { name, version, protocol: "acp 1".to_owned() };
        self.phase = Phase::Opening;
        self.open_conversation(out);
    }

    fn open_conversation(&mut self, out: &mut Actions) {
        let (cwd, servers) = (self.setting.workspace.clone(), self.servers(out));
        let line = match &self.setting.begin {
            Begin::Resume { native } if self.capabilities.load => {
                self.replaying = true;
                let asked = LoadSessionRequest::new(native.clone(), cwd).mcp_servers(servers);
                rpc::request(OPEN, "session/load", &asked)
            }
            Begin::Resume { native } if self.capabilities.resume => {
                let asked = ResumeSessionRequest::new(native.clone(), cwd).mcp_servers(servers);
                rpc::request(OPEN, "session/resume", &asked)
            }
            Begin::Resume { .. } => {
                return broken(out, "resume_refused", "it offers neither load nor resume".to_owned());
            }
            Begin::New | Begin::Adopted { .. } => {
                rpc::request(OPEN, "session/new", &NewSessionRequest::new(cwd).mcp_servers(servers))
            }
        };
        out.push(Action::Send { key: OPEN.to_owned(), line });
    }

    /// The MCP servers in the agent's terms; those it cannot reach are left out, and said so.
    fn servers(&self, out: &mut Actions) -> Vec<acp::McpServer> {
        let mut servers = Vec::new();
        for server in &self.setting.mcp {
            match server {
                McpServer::Stdio { name, command, args, env } => {
                    let env = env.iter().map(|(name, value)| acp::EnvVariable::new(name, value)).collect();
                    servers.push(acp::McpServer::Stdio(
                        acp::McpServerStdio::new(name, command).args(args.clone()).env(env),
                    ));
                }
                McpServer::Http { name, url, headers } if self.capabilities.mcp_http => {
                    let headers =
                        headers.iter().map(|(name, value)| acp::HttpHeader::new(name, value)).collect();
                    servers.push(acp::McpServer::Http(acp::McpServerHttp::new(name, url).headers(headers)));
                }
                McpServer::Http { name, .. } => out.push(Action::Odd {
                    what: format!("the agent cannot reach MCP server {name} over HTTP; it is left out"),
                }),
            }
        }
        servers
    }

    pub(super) fn opened(&mut self, result: Value, out: &mut Actions) {
        self.learn_options(&result, out);
        let how = match &self.setting.begin {
            Begin::Resume { native } => {
                self.native.clone_from(native);
                if self.replaying { Opened::Resumed } else { Opened::Believed }
            }
            Begin::New | Begin::Adopted { .. } => match read::<NewSessionResponse>(result) {
                Ok(answer) => {
                    self.native = answer.session_id.0.to_string();
                    Opened::New
                }
                Err(what) => return broken(out, "handshake_failed", format!("no conversation: {what}")),
            },
        };
        let Some(mode) = self.setting.mode.clone() else { return self.ready(how, out) };
        // A mode may be what keeps the agent from doing harm: no prompt before it is set.
        let asked = SetSessionModeRequest::new(self.native.clone(), mode.clone());
        let line = rpc::request(MODE, "session/set_mode", &asked);
        out.push(Action::Send { key: MODE.to_owned(), line });
        self.phase = Phase::Tuning(how);
    }

    pub(super) fn ready(&mut self, how: Opened, out: &mut Actions) {
        self.phase = Phase::Ready;
        out.push(Action::Ready(Box::new(Readiness {
            native: self.native.clone(),
            info: self.info.clone(),
            capabilities: self.capabilities,
            how,
        })));
    }
}
