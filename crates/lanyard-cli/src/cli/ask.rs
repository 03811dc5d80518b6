//! Prompts on the terminal.

use std::io::{BufRead, IsTerminal};

use tokio::sync::mpsc;

use crate::context::Context;
use crate::failure::Failure;

/// Lines that may wait to be read.
const LINES_MAX: usize = 16;

/// Whether stdin and stderr are a terminal.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks a question that is answered with yes or no; anything but a yes is a no.
pub(super) fn agreed(context: &Context, question: &str) -> Result<bool, Failure> {
    context.out.question(&format!("{question} [y/N] "));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(|error| {
        Failure::local("terminal", format!("cannot ask: {error}"), "say --yes if you are sure")
    })?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Asks for a line; nothing when there will be none.
pub(super) fn asked(context: &Context, question: &str) -> Result<Option<String>, Failure> {
    context.out.question(question);
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer).map_err(|error| {
        Failure::local("terminal", format!("cannot ask: {error}"), "use `lanyard init`, which asks nothing")
    })?;
    Ok((read > 0).then(|| answer.trim().to_owned()))
}

/// Lines typed while other things happen.
pub(super) struct Keyboard(Option<mpsc::Receiver<String>>);

impl Keyboard {
    /// The terminal's lines; none without a terminal.
    pub(super) fn open() -> Self {
        if can_ask() { Self::of_stdin() } else { Self(None) }
    }

    /// Whatever stdin is: for a command that is a prompt and nothing else.
    pub(super) fn of_stdin() -> Self {
        let (sender, lines) = mpsc::channel(LINES_MAX);
        // A thread of its own, since reading a terminal cannot be given up. It ends with the process.
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self(Some(lines))
    }

    pub(super) fn nobody() -> Self {
        Self(None)
    }

    pub(super) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// The next line; never, without a terminal.
    pub(super) async fn line(&mut self) -> String {
        match self.next().await {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }

    /// The next line; nothing once, when there will be no more.
    pub(super) async fn next(&mut self) -> Option<String> {
        let Some(lines) = &mut self.0 else { return std::future::pending().await };
        let line = lines.recv().await;
        if line.is_none() {
            self.0 = None;
        }
        line
    }
}
