//! The wrapped process: its pipes, its signals, its end.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use lanyard_client::lines::{LinePiece, PipeLines, StdoutLines, stdin_pieces};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::{Onward, Wrap, say};
use crate::failure::Failure;

/// How long what the process wrote before its end may take to get out.
const DRAIN_WAIT: Duration = Duration::from_secs(10);
/// Lines that may wait for a client that is slow to read.
const WAITING_MAX: usize = 16;
/// What shells answer for a command that is not there, or cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;
/// What shells add to the number of the signal that ended a command.
const SIGNALLED: i32 = 128;

pub(super) async fn run(command: &[OsString], wrap: Arc<Wrap>) -> Result<u8, Failure> {
    let Some((program, arguments)) = command.split_first() else { return Ok(NOT_FOUND) };
    let spawned = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            say(&format!("lanyard mcp wrap: cannot run {}: {error}", program.display()));
            return Ok(if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE });
        }
    };
    let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else { return Ok(NOT_RUNNABLE) };
    let (client, _) = StdoutLines::open(WAITING_MAX);
    let inward = tokio::spawn(inward(stdin_pieces(), to, wrap.clone(), client.clone()));
    let outward = tokio::spawn(outward(PipeLines::of(from), wrap, client));
    let ended = until_ended(&mut child).await?;
    inward.abort();
    // A grandchild may keep the pipe open for ever.
    let _ = tokio::time::timeout(DRAIN_WAIT, outward).await;
    Ok(code(ended))
}

/// From the client to the server, until the client's end; then the server's stdin is closed.
async fn inward(
    mut pieces: mpsc::Receiver<LinePiece>,
    mut server: ChildStdin,
    wrap: Arc<Wrap>,
    client: StdoutLines,
) {
    while let Some(piece) = pieces.recv().await {
        let onward = match &piece {
            LinePiece::Line(line) => wrap.heard_client(line).await,
            LinePiece::Part(_) => Onward::AsItIs,
        };
        let written = match onward {
            Onward::AsItIs => server.write_all(piece.bytes()).await,
            Onward::Server(line) => server.write_all(format!("{line}\n").as_bytes()).await,
            Onward::Client(line) => client.write(format!("{line}\n").into_bytes()).await,
        };
        if written.is_err() {
            return;
        }
    }
}

/// From the server to the client. When the client is gone the pipe is closed, which tells the server.
async fn outward(mut lines: PipeLines<ChildStdout>, wrap: Arc<Wrap>, client: StdoutLines) {
    while let Some(piece) = lines.next().await {
        let LinePiece::Line(line) = &piece else {
            if client.write(piece.bytes().to_vec()).await.is_err() {
                return;
            }
            continue;
        };
        let outgoing = wrap.heard_server(line).await;
        let written = match outgoing.line {
            // What was changed in place has the end of its line; a client may take an empty one for an error.
            Some(changed) => client.write(format!("{}\n", changed.trim_end()).into_bytes()).await,
            None => client.write(line.clone()).await,
        };
        if written.is_err() {
            if let Some((bound, notes)) = outgoing.carries {
                let _ = bound.desk.unsent(&bound.session, notes).await;
            }
            return;
        }
    }
}

/// Waits for the end; what is signalled to this process goes to the child.
async fn until_ended(child: &mut Child) -> Result<ExitStatus, Failure> {
    use rustix::process::Signal as Number;
    let heard = |kind: SignalKind| {
        signal(kind).map_err(|error| Failure::local("signals", format!("cannot listen: {error}"), ""))
    };
    let mut hup = heard(SignalKind::hangup())?;
    let mut int = heard(SignalKind::interrupt())?;
    let mut quit = heard(SignalKind::quit())?;
    let mut term = heard(SignalKind::terminate())?;
    let mut usr1 = heard(SignalKind::user_defined1())?;
    let mut usr2 = heard(SignalKind::user_defined2())?;
    // A terminal sends them to the child by itself.
    let typed = std::io::stdin().is_terminal();
    loop {
        let number = tokio::select! {
            ended = child.wait() => {
                return ended.map_err(|error| Failure::local("wait", format!("cannot wait: {error}"), ""));
            }
            () = came(&mut hup) => Number::HUP,
            () = came(&mut int) => if typed { continue } else { Number::INT },
            () = came(&mut quit) => if typed { continue } else { Number::QUIT },
            () = came(&mut term) => Number::TERM,
            () = came(&mut usr1) => Number::USR1,
            () = came(&mut usr2) => Number::USR2,
        };
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // One that has just ended needs no signal.
            let _ = rustix::process::kill_process(pid, number);
        }
    }
}

/// The end of the stream of signals never comes; if it did, there would be nothing more to wait for.
async fn came(signal: &mut Signal) {
    if signal.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}

fn code(ended: ExitStatus) -> u8 {
    let code = ended.code().or_else(|| ended.signal().map(|signal| SIGNALLED + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
