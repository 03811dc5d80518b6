//! An MCP server as a child process: a JSON message per line, both ways.

use parking_lot::Mutex;
use std::io::{BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio as Io};

use agent_client_protocol_schema::v1::McpServerStdio;
use lanyard_client::lines::{LineRead, read_line};
use serde_json::Value;

use super::{LinkError, answers};

/// The longest line that is read.
const LINE_BYTES_MAX: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct Stdio {
    child: Mutex<Child>,
    /// Closed to ask the server to end.
    input: Mutex<Option<ChildStdin>>,
    output: Mutex<Option<BufReader<ChildStdout>>>,
}

impl Stdio {
    pub(super) fn start(server: &McpServerStdio, cwd: &Path) -> std::io::Result<Self> {
        let mut child = Command::new(&server.command)
            .args(&server.args)
            .envs(server.env.iter().map(|variable| (&variable.name, &variable.value)))
            .current_dir(cwd)
            .stdin(Io::piped())
            .stdout(Io::piped())
            .stderr(Io::null())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Ok(Self { child: Mutex::new(child), input: Mutex::new(input), output: Mutex::new(output) })
    }

    pub(super) fn send(&self, message: &Value) -> Result<(), LinkError> {
        let mut input = self.input.lock();
        let input = input.as_mut().ok_or(LinkError::Closed)?;
        let line = format!("{message}\n");
        input.write_all(line.as_bytes()).and_then(|()| input.flush()).map_err(|_| LinkError::Closed)
    }

    /// Whatever the server says in between is for clients that can do more.
    pub(super) fn request(&self, message: &Value, id: i64) -> Result<Value, LinkError> {
        self.send(message)?;
        let mut output = self.output.lock();
        let output = output.as_mut().ok_or(LinkError::Closed)?;
        loop {
            let LineRead::Line(line) = read_line(output, LINE_BYTES_MAX).ok_or(LinkError::Closed)? else {
                continue;
            };
            if let Ok(answer) = serde_json::from_slice::<Value>(&line)
                && answers(&answer, id)
            {
                return Ok(answer);
            }
        }
    }

    /// Ends the server: its own process, at once. It was asked to by the end of its input.
    pub(super) fn end(&self) {
        drop(self.input.lock().take());
        let mut child = self.child.lock();
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.end();
    }
}
