//! What an agent asks of its client: permission, files, commands.

use agent_client_protocol_schema::v1::{self as acp, RequestPermissionRequest};
use lanyard_core::session::{GateKind, GateOption, OptionKind, Question};
use serde_json::Value;

use super::{Acp, INVALID_PARAMS, METHOD_NOT_FOUND, read, rpc, terminal};
use crate::agents::driver::{Action, Actions, Call};

impl Acp {
    pub(super) fn asked(&mut self, id: &Value, method: &str, params: Value, out: &mut Actions) {
        let request = id.to_string();
        let call = match method {
            "session/request_permission" => return self.permission(request, params, out),
            "fs/read_text_file" => read(params).map(|asked: acp::ReadTextFileRequest| Call::ReadFile {
                path: asked.path,
                line: asked.line.map(u64::from),
                limit: asked.limit.map(u64::from),
            }),
            "fs/write_text_file" => read(params).map(|asked: acp::WriteTextFileRequest| Call::WriteFile {
                path: asked.path,
                text: asked.content,
            }),
            "terminal/create" => read(params).map(|asked: acp::CreateTerminalRequest| Call::TerminalCreate {
                command: asked.command,
                args: asked.args,
                env: asked.env.into_iter().map(|variable| (variable.name, variable.value)).collect(),
                cwd: asked.cwd,
                output_bytes_max: asked.output_byte_limit,
            }),
            "terminal/output" => terminal(&params).map(|terminal| Call::TerminalOutput { terminal }),
            "terminal/wait_for_exit" => terminal(&params).map(|terminal| Call::TerminalWait { terminal }),
            "terminal/kill" => terminal(&params).map(|terminal| Call::TerminalKill { terminal }),
            "terminal/release" => terminal(&params).map(|terminal| Call::TerminalRelease { terminal }),
            _ => {
                let line = rpc::error(&request, METHOD_NOT_FOUND, "Lanyard does not offer this method");
                return out.push(Action::Send { key: format!("reply:{request}"), line });
            }
        };
        match call {
            Ok(call) => out.push(Action::Call { request, call }),
            Err(what) => {
                let line = rpc::error(&request, INVALID_PARAMS, &what);
                out.push(Action::Send { key: format!("reply:{request}"), line });
            }
        }
    }

    pub(super) fn permission(&mut self, request: String, params: Value, out: &mut Actions) {
        let detail = params["toolCall"].clone();
        let asked: RequestPermissionRequest = match read(params) {
            Ok(asked) => asked,
            Err(what) => {
                let line = rpc::error(&request, INVALID_PARAMS, &what);
                return out.push(Action::Send { key: format!("answer:{request}"), line });
            }
        };
        self.stir();
        let call = asked.tool_call.tool_call_id.0.to_string();
        let native = self.other(&asked.session_id.0);
        self.known_by(native.clone(), &call, &asked.tool_call, out);
        let title = asked.tool_call.fields.title.clone();
        let title = title.or_else(|| self.tools.get(&call).map(|tool| tool.name.clone()));
        let options = asked.options.into_iter().map(|option| GateOption {
            id: option.option_id.0.to_string(),
            name: option.name,
            kind: match option.kind {
                acp::PermissionOptionKind::AllowOnce => OptionKind::AllowOnce,
                acp::PermissionOptionKind::AllowAlways => OptionKind::AllowAlways,
                acp::PermissionOptionKind::RejectOnce => OptionKind::RejectOnce,
                acp::PermissionOptionKind::RejectAlways => OptionKind::RejectAlways,
                _ => OptionKind::Other,
            },
        });
        let question = Question {
            kind: GateKind::Permission,
            title: title.unwrap_or_else(|| "use a tool".to_owned()),
            call: Some(call),
            detail,
            options: options.collect(),
            request: request.clone(),
        };
        self.open.insert(request);
        out.push(Action::Asked { native, question: Box::new(question) });
    }
}
