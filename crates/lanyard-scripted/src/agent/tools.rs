//! Tools the agent has itself: reported ones that do nothing, a command, an edit, a look at a file.

use parking_lot::Mutex;
use std::io::{PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Component, Path};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    Diff, SessionUpdate, ToolCall, ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use lanyard_core::Backoff;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::turn::{Halt, Turn};

/// What is kept of the output of a command.
const OUTPUT_MAX: usize = 64 << 10;
/// How long output may still come when the command is gone: something it left behind may hold the pipe for ever.
const OUTPUT_GRACE: Duration = Duration::from_millis(300);
/// The pauses between two looks at a command.
const LOOKS: Backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(20));
/// What is read of a file.
const FILE_MAX: u64 = 1 << 20;

/// How a tool call ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) ok: bool,
    pub(super) content: Vec<ToolCallContent>,
    pub(super) output: Option<Value>,
}

impl Ended {
    pub(super) fn text(ok: bool, text: impl Into<String>) -> Self {
        Self { ok, content: vec![text.into().into()], output: None }
    }
}

impl Turn {
    /// Reports a tool call that goes on until it is closed.
    pub(super) fn open_tool(&mut self, name: &str, input: Value) -> ToolCallId {
        self.open_titled(name, name, kind_of(name), input)
    }

    pub(super) fn open_titled(
        &mut self,
        name: &str,
        title: &str,
        kind: ToolKind,
        input: Value,
    ) -> ToolCallId {
        let id = ToolCallId::new(self.next_id("call"));
        let call = ToolCall::new(id.clone(), title)
            .name(name.to_owned())
            .kind(kind)
            .status(ToolCallStatus::InProgress)
            .raw_input(input);
        self.update(SessionUpdate::ToolCall(call));
        self.open.push(id.clone());
        id
    }

    pub(super) fn close_tool(&mut self, id: &ToolCallId, ended: Ended) {
        let status = if ended.ok { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        let mut fields = ToolCallUpdateFields::new().status(status).content(ended.content);
        fields.raw_output = ended.output;
        self.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.clone(), fields)));
        self.open.retain(|open| open != id);
    }

    pub(super) fn fail_open_tools(&mut self) {
        for id in self.open.clone() {
            self.close_tool(&id, Ended::text(false, "cancelled"));
        }
    }

    pub(super) fn report_tool(&mut self, name: &str, input: Value) {
        let id = self.open_tool(name, input);
        let ended =
            Ended { output: Some(json!({"ok": true})), ..Ended::text(true, format!("{name} is done")) };
        self.close_tool(&id, ended);
    }

    pub(super) fn report_failed_tool(&mut self, name: &str, text: &str) {
        let id = self.open_tool(name, json!({}));
        self.close_tool(&id, Ended::text(false, text));
    }

    /// Runs a command for real, in a process group of its own that a cancel ends.
    pub(super) fn run(&mut self, command: &str) -> Result<(), Halt> {
        let id = self.open_titled("run", command, ToolKind::Execute, json!({"command": command}));
        let (mut child, output) = match started(command, &self.session.place.cwd) {
            Ok(started) => started,
            Err(error) => {
                self.close_tool(&id, Ended::text(false, format!("cannot run it: {error}")));
                return Ok(());
            }
        };
        let status = self.watch(&mut child)?;
        let text = output.finish();
        let mut ended = Ended::text(status.is_some_and(|status| status.success()), text);
        ended.output = Some(json!({"exitCode": status.and_then(|status| status.code())}));
        self.close_tool(&id, ended);
        Ok(())
    }

    /// Looks now and then, so that no other code reaps the process that is to be killed.
    fn watch(&self, child: &mut Child) -> Result<Option<ExitStatus>, Halt> {
        let mut backoff = LOOKS;
        loop {
            match child.try_wait() {
                Ok(None) => {}
                Ok(status) => return Ok(status),
                Err(_) => return Ok(None),
            }
            if let Err(cancelled) = self.inbox.pause(backoff.pause()) {
                let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
                let _ = child.wait();
                return Err(cancelled.into());
            }
        }
    }

    /// Writes a file below the folder of the session.
    pub(super) fn edit(&mut self, path: &str, text: &str) {
        let id = self.open_titled("edit", &format!("edit {path}"), ToolKind::Edit, json!({"path": path}));
        let inside =
            Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside {
            return self.close_tool(&id, Ended::text(false, format!("{path} leads out of the folder")));
        }
        let whole = self.path(path);
        let before = std::fs::read_to_string(&whole).ok();
        let ended = match std::fs::write(&whole, text) {
            Ok(()) => {
                let diff = Diff::new(whole, text).old_text(before);
                Ended { ok: true, content: vec![diff.into()], output: None }
            }
            Err(error) => Ended::text(false, format!("cannot write {path}: {error}")),
        };
        self.close_tool(&id, ended);
    }

    /// Reads a file itself, without the client.
    pub(super) fn look(&mut self, path: &str) {
        let whole = self.path(path);
        let id = ToolCallId::new(self.next_id("call"));
        let call = ToolCall::new(id.clone(), format!("read {path}"))
            .name("read".to_owned())
            .kind(ToolKind::Read)
            .status(ToolCallStatus::InProgress)
            .locations(vec![ToolCallLocation::new(&whole)])
            .raw_input(json!({"path": path}));
        self.update(SessionUpdate::ToolCall(call));
        let mut bytes = Vec::new();
        let read = std::fs::File::open(&whole).and_then(|file| file.take(FILE_MAX).read_to_end(&mut bytes));
        let ended = match read {
            Ok(size) => {
                let lines = String::from_utf8_lossy(&bytes).lines().count();
                Ended::text(true, format!("{path}: {lines} lines, {size} bytes"))
            }
            Err(error) => Ended::text(false, format!("cannot read {path}: {error}")),
        };
        self.close_tool(&id, ended);
    }
}

fn kind_of(name: &str) -> ToolKind {
    match name {
        "read" | "cat" | "look" => ToolKind::Read,
        "edit" | "write" | "patch" => ToolKind::Edit,
        "delete" | "rm" => ToolKind::Delete,
        "search" | "grep" | "glob" | "ls" => ToolKind::Search,
        "run" | "bash" | "shell" => ToolKind::Execute,
        "fetch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

/// What a command prints, as it comes.
#[derive(Debug)]
struct Output {
    gathered: Arc<Mutex<Vec<u8>>>,
    /// Closed when there will be no more.
    end: Receiver<()>,
}

fn started(command: &str, cwd: &Path) -> std::io::Result<(Child, Output)> {
    let (reader, writer) = std::io::pipe()?;
    let child = Command::new("sh")
        .args(["-c", command])
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .spawn()?;
    Ok((child, Output::gather(reader)))
}

impl Output {
    fn gather(mut reader: PipeReader) -> Self {
        let gathered = Arc::<Mutex<Vec<u8>>>::default();
        let (open, end) = sync_channel(0);
        let kept = Arc::clone(&gathered);
        std::thread::spawn(move || {
            let _open = open;
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut piece) {
                let mut kept = kept.lock();
                // Read on: a command must not hang because it says too much.
                let room = OUTPUT_MAX.saturating_sub(kept.len()).min(read);
                kept.extend_from_slice(&piece[..room]);
            }
        });
        Self { gathered, end }
    }

    fn finish(self) -> String {
        // Nothing is ever sent: it is closed, or it is late.
        let _ = self.end.recv_timeout(OUTPUT_GRACE);
        String::from_utf8_lossy(&self.gathered.lock()).into_owned()
    }
}
