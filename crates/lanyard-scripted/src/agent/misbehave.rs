//! What an agent should not do, done for real.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_client_protocol_schema::v1::Error;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::connection::Agent;
use super::script::{Misdeed, ScriptedLimit};
use super::turn::{Halt, Turn};

/// How a turn will behave at its end.
#[derive(Debug, Default)]
pub(super) struct Manners {
    /// Chunks said after a cancel.
    streams: u64,
    /// How long the answer takes after a cancel.
    late: Duration,
    answers_twice: bool,
    pub(super) updates_late: bool,
}

impl Manners {
    pub(super) fn answers(&self) -> usize {
        if self.answers_twice { 2 } else { 1 }
    }
}

impl Turn {
    pub(super) fn misbehave(&mut self, misdeed: &Misdeed) -> Result<(), Halt> {
        self.flush();
        match misdeed {
            Misdeed::IgnoreCancel => self.agent.ignores_cancel.store(true, Ordering::Relaxed),
            Misdeed::StreamAfterCancel(chunks) => self.manners.streams = *chunks,
            Misdeed::AnswerLate(ms) => self.manners.late = Duration::from_millis(*ms),
            Misdeed::Malformed => self.malformed(),
            Misdeed::Endless(bytes) => self.agent.wire.endless(*bytes),
            Misdeed::Hang => self.agent.wire.hang(),
            Misdeed::ForkAway(command) => self.fork_away(command),
            Misdeed::RunOn(command) => self.leave(Command::new("sh").args(["-c", command])),
            Misdeed::RunBare(line) => self.leave(&mut program(line)),
            Misdeed::Serve(line) => self.serve(line),
            Misdeed::IgnoreTerm => ignore_term(&self.agent),
            Misdeed::Die(number) => self.die(*number),
            Misdeed::Exit(code) => std::process::exit(*code),
            Misdeed::NoAnswer => return Err(Halt::Silent),
            Misdeed::DoubleAnswer => self.manners.answers_twice = true,
            Misdeed::LateUpdate => self.manners.updates_late = true,
            Misdeed::UnknownUpdate => self.unknown_update(),
            Misdeed::Limit { file, limit } => return self.limit(file, limit),
            Misdeed::Error { code, message } => {
                return Err(Halt::Error(Error::new(*code, message.as_str())));
            }
        }
        Ok(())
    }

    /// Meets a limit the first time. Once the file is there, the limit is over.
    fn limit(&mut self, file: &str, limit: &ScriptedLimit) -> Result<(), Halt> {
        let made = std::fs::File::options().write(true).create_new(true).open(self.path(file));
        if made.is_err() {
            return Ok(());
        }
        let error = match limit {
            ScriptedLimit::Usage { reset_ms } => {
                let error = Error::new(429, "You have hit your usage limit");
                match reset_ms {
                    Some(reset_ms) => error.data(json!({ "retry_after_ms": reset_ms })),
                    None => error,
                }
            }
            ScriptedLimit::Quota => Error::new(-32603, "Your credit balance is too low"),
            ScriptedLimit::Overloaded => Error::new(529, "Overloaded"),
            ScriptedLimit::Dies => {
                let words = b"You have hit your usage limit. Try again in 1 second\n";
                let _ = std::io::stderr().write_all(words);
                std::process::exit(1);
            }
        };
        Err(Halt::Error(error))
    }

    /// What was promised for the time after a cancel.
    pub(super) fn after_cancel(&mut self) {
        for number in 1..=self.manners.streams {
            self.say_chunk(&format!("after the cancel {number} "));
        }
        std::thread::sleep(self.manners.late);
    }

    /// A line that is no JSON, a JSON that is no JSON-RPC, and a JSON-RPC of the wrong shape.
    fn malformed(&self) {
        self.agent.wire.raw(b"this is { no JSON\n");
        self.agent.wire.raw(b"{\"some\":\"json\"}\n");
        let wrong = b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":42,\"update\":\"none\"}}\n";
        self.agent.wire.raw(wrong);
    }

    fn unknown_update(&self) {
        let update = json!({"sessionUpdate": "something_nobody_knows", "content": {"depth": 3}});
        self.agent.wire.notify("session/update", &json!({"sessionId": self.session.id, "update": update}));
    }

    /// A process in a session of its own, whose parent is gone when this returns.
    fn fork_away(&mut self, command: &str) {
        let detached = Command::new("setsid")
            .args(["sh", "-c", &format!("{{ {command}\n}} &")])
            .current_dir(&self.session.place.cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match detached {
            Ok(status) if status.success() => {}
            Ok(status) => self.say_chunk(&format!("cannot fork away: {status}")),
            Err(error) => self.say_chunk(&format!("cannot fork away: {error}")),
        }
    }

    /// A program without a shell that is talked to over pipes, as agents start the servers they use. The pipes stay
    /// open as long as it runs.
    fn serve(&mut self, line: &str) {
        let mut command = program(line);
        command.current_dir(&self.session.place.cwd).stdin(Stdio::piped()).stdout(Stdio::piped());
        match command.stderr(Stdio::null()).spawn() {
            Ok(mut child) => {
                let pipes = (child.stdin.take(), child.stdout.take());
                drop(std::thread::spawn(move || {
                    let ended = child.wait();
                    drop(pipes);
                    ended
                }));
            }
            Err(error) => self.say_chunk(&format!("cannot start it: {error}")),
        }
    }

    /// Starts a child and looks after it no more: a cancel does not end it.
    fn leave(&mut self, command: &mut Command) {
        let command = command.current_dir(&self.session.place.cwd).stdin(Stdio::null());
        match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            // Waited for, so that it leaves no zombie.
            Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
            Err(error) => self.say_chunk(&format!("cannot start it: {error}")),
        }
    }

    fn die(&mut self, number: i32) {
        match Signal::from_named_raw(number) {
            Some(signal) => drop(kill_process(getpid(), signal)),
            None => self.say_chunk(&format!("there is no signal {number}")),
        }
    }
}

/// A program and its arguments, parted by spaces.
fn program(line: &str) -> Command {
    let mut words = line.split_ascii_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// Catches SIGTERM and does nothing about it. Cannot be undone.
pub(super) fn ignore_term(agent: &Agent) {
    let _runtime = agent.runtime.enter();
    drop(signal(SignalKind::terminate()));
}
