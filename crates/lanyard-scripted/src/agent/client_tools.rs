//! What the agent does through its client: permissions, files, terminals.

use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, PermissionOption,
    PermissionOptionKind, ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SessionUpdate, Terminal,
    TerminalId, TerminalOutputRequest, TerminalOutputResponse, ToolCallContent, ToolCallId, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind, WaitForTerminalExitRequest, WaitForTerminalExitResponse,
    WriteTextFileRequest, WriteTextFileResponse,
};
use serde_json::json;

use super::tools::Ended;
use super::turn::{Halt, Turn, understood};

/// How long `--cancel-waits-for-permission` waits: until the client answers, which may be never.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);
/// What a terminal keeps of the output of its command.
const TERMINAL_OUTPUT_MAX: u64 = 64 << 10;

impl Turn {
    /// Asks about nothing in particular.
    pub(super) fn ask_permission(&mut self, title: &str) -> Result<(), Halt> {
        let id = ToolCallId::new(self.next_id("ask"));
        let outcome = self.permission(id, title)?;
        self.say_chunk(&format!("permission: {}", told(&outcome)));
        Ok(())
    }

    /// Asks about a tool call, which goes on or fails as the answer says.
    pub(super) fn ask_for_tool(&mut self, name: &str, title: &str) -> Result<(), Halt> {
        let id = self.open_tool(name, json!({"title": title}));
        let outcome = self.permission(id.clone(), title)?;
        let word = told(&outcome);
        self.close_tool(&id, Ended::text(word.starts_with("allow"), format!("{name}: {word}")));
        self.say_chunk(&format!("permission: {word}"));
        Ok(())
    }

    fn permission(
        &mut self,
        id: ToolCallId,
        title: &str,
    ) -> Result<Result<RequestPermissionOutcome, String>, Halt> {
        let options = [
            ("allow_once", "Allow once", PermissionOptionKind::AllowOnce),
            ("allow_always", "Always allow", PermissionOptionKind::AllowAlways),
            ("reject_once", "Reject", PermissionOptionKind::RejectOnce),
        ];
        let options = options.map(|(id, name, kind)| PermissionOption::new(id, name, kind)).to_vec();
        let about = ToolCallUpdate::new(id, ToolCallUpdateFields::new().title(title.to_owned()));
        let request = RequestPermissionRequest::new(self.session.id.clone(), about, options);
        self.flush();
        let asked = self.agent.wire.ask(&self.inbox, "session/request_permission", &request);
        let answer = match self.inbox.answer(asked) {
            Ok(answer) => answer,
            Err(cancelled) => {
                if self.agent.options.cancel_waits_for_permission {
                    self.inbox.answer_despite_cancel(asked, FOR_EVER);
                }
                self.agent.wire.forget(asked);
                return Err(cancelled.into());
            }
        };
        let response = understood::<RequestPermissionResponse>("session/request_permission", answer);
        Ok(response.map(|response| response.outcome))
    }

    pub(super) fn read(&mut self, path: &str) -> Result<(), Halt> {
        let id = self.open_titled("read", &format!("read {path}"), ToolKind::Read, json!({"path": path}));
        let ended = if self.agent.client.lock().fs.read_text_file {
            let request = ReadTextFileRequest::new(self.session.id.clone(), self.path(path));
            match self.ask::<ReadTextFileResponse>("fs/read_text_file", &request)? {
                Ok(response) => Ended::text(true, response.content),
                Err(error) => Ended::text(false, error),
            }
        } else {
            Ended::text(false, "the client does not offer fs/read_text_file")
        };
        self.close_tool(&id, ended);
        Ok(())
    }

    pub(super) fn write(&mut self, path: &str, text: &str) -> Result<(), Halt> {
        let id = self.open_titled("write", &format!("write {path}"), ToolKind::Edit, json!({"path": path}));
        let ended = if self.agent.client.lock().fs.write_text_file {
            let request = WriteTextFileRequest::new(self.session.id.clone(), self.path(path), text);
            match self.ask::<WriteTextFileResponse>("fs/write_text_file", &request)? {
                Ok(_) => Ended::text(true, format!("{path} is written")),
                Err(error) => Ended::text(false, error),
            }
        } else {
            Ended::text(false, "the client does not offer fs/write_text_file")
        };
        self.close_tool(&id, ended);
        Ok(())
    }

    pub(super) fn terminal(&mut self, command: &str) -> Result<(), Halt> {
        let id = self.open_titled("terminal", command, ToolKind::Execute, json!({"command": command}));
        if !self.agent.client.lock().terminal {
            self.close_tool(&id, Ended::text(false, "the client does not offer terminals"));
            return Ok(());
        }
        let request = CreateTerminalRequest::new(self.session.id.clone(), "sh")
            .args(vec!["-c".to_owned(), command.to_owned()])
            .cwd(self.session.place.cwd.clone())
            .output_byte_limit(TERMINAL_OUTPUT_MAX);
        let terminal = match self.ask::<CreateTerminalResponse>("terminal/create", &request)? {
            Ok(response) => response.terminal_id,
            Err(error) => {
                self.close_tool(&id, Ended::text(false, error));
                return Ok(());
            }
        };
        let shown = vec![ToolCallContent::Terminal(Terminal::new(terminal.clone()))];
        let fields = ToolCallUpdateFields::new().content(shown);
        self.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.clone(), fields)));
        let ended = self.watch_terminal(&terminal);
        if ended.is_err() {
            self.order("terminal/kill", &KillTerminalRequest::new(self.session.id.clone(), terminal.clone()));
        }
        self.order("terminal/release", &ReleaseTerminalRequest::new(self.session.id.clone(), terminal));
        self.close_tool(&id, ended?);
        Ok(())
    }

    fn watch_terminal(&self, terminal: &TerminalId) -> Result<Ended, Halt> {
        let session = &self.session.id;
        let request = WaitForTerminalExitRequest::new(session.clone(), terminal.clone());
        let exit = match self.ask::<WaitForTerminalExitResponse>("terminal/wait_for_exit", &request)? {
            Ok(response) => response.exit_status,
            Err(error) => return Ok(Ended::text(false, error)),
        };
        let request = TerminalOutputRequest::new(session.clone(), terminal.clone());
        Ok(match self.ask::<TerminalOutputResponse>("terminal/output", &request)? {
            Ok(response) => {
                let shown = ToolCallContent::Terminal(Terminal::new(terminal.clone()));
                let output = Some(json!({"exitCode": exit.exit_code, "output": response.output}));
                Ended { ok: exit.exit_code == Some(0), content: vec![shown], output }
            }
            Err(error) => Ended::text(false, error),
        })
    }

    /// Asks for something whose answer changes nothing.
    fn order(&self, method: &str, params: &impl serde::Serialize) {
        let id = self.agent.wire.ask(&self.inbox, method, params);
        self.agent.wire.forget(id);
    }
}

fn told(outcome: &Result<RequestPermissionOutcome, String>) -> String {
    match outcome {
        Ok(RequestPermissionOutcome::Selected(selected)) => selected.option_id.0.to_string(),
        Ok(_) => "cancelled".to_owned(),
        Err(error) => error.clone(),
    }
}
