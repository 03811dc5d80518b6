//! What went wrong: a sentence for people, a document for programs, and an exit code for scripts.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use lanyard_api::types::Problem;
use lanyard_client::{ClientError, is_passing_status};

use crate::host::HostError;
use crate::out::{Form, say};
use crate::render::text::{harmless, one_line};

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something to tell the user.
    Told { problem: Box<Problem>, exit: Exit },
    /// Everything worth saying was printed already.
    Shown,
    /// Everything was told, and the exit code tells it to scripts.
    Ended(u8),
    /// The reader of the output has closed it, as in `lanyard ls | head`: nothing is wrong.
    ClosedPipe,
}

/// The exit codes scripts can rely on, each with one meaning; 0 is success. [`Exit::TABLE`] is what the help prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Failed = 1,
    /// Clap uses the same code.
    Usage = 2,
    Unreachable = 3,
    Pending = 4,
    Stopped = 5,
    Cancelled = 6,
    Interrupted = 7,
    /// As shells have it: 128 and the number of SIGINT.
    Left = 130,
}

impl Exit {
    pub(crate) const TABLE: [(Self, &'static str); 8] = [
        (Self::Failed, "refused or failed"),
        (Self::Usage, "the command line was not understood"),
        (Self::Unreachable, "no daemon answers"),
        (Self::Pending, "not ended, answered or confirmed in time"),
        (Self::Stopped, "the session was stopped"),
        (Self::Cancelled, "the turn or the plan was cancelled"),
        (Self::Interrupted, "the turn was interrupted by a crash, a timeout or a limit"),
        (Self::Left, "left with Ctrl-C; the work goes on"),
    ];

    /// The table as the help shows it.
    pub(crate) fn help() -> String {
        let rows = Self::TABLE.map(|(exit, meaning)| format!("\n  {:<4} {meaning}", exit as u8));
        format!("Exit codes:\n  0    done{}", rows.concat())
    }
}

impl Failure {
    /// The daemon said no.
    pub(crate) fn refused(problem: Problem) -> Self {
        Self::Told { problem: Box::new(problem), exit: Exit::Failed }
    }

    /// Something failed on this side.
    pub(crate) fn local(code: &str, title: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::told(code, title, advice, Exit::Failed)
    }

    pub(crate) fn usage(title: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::told("usage", title, advice, Exit::Usage)
    }

    pub(crate) fn unreachable(code: &str, title: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::told(code, title, advice, Exit::Unreachable)
    }

    fn told(code: &str, title: impl Into<String>, advice: impl Into<String>, exit: Exit) -> Self {
        let problem = Problem {
            kind: "about:blank".to_owned(),
            // Not an HTTP answer: it never got that far.
            status: 0,
            code: code.to_owned(),
            title: title.into(),
            advice: advice.into(),
        };
        Self::Told { problem: Box::new(problem), exit }
    }

    /// The same failure with other advice.
    pub(crate) fn advising(self, advice: String) -> Self {
        match self {
            Self::Told { problem, exit } => {
                Self::Told { problem: Box::new(Problem { advice, ..*problem }), exit }
            }
            Self::Shown | Self::Ended(_) | Self::ClosedPipe => self,
        }
    }

    /// Whether the daemon is in trouble or too busy at the moment, so that the same request may succeed later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Told { problem, exit } => *exit == Exit::Unreachable || is_passing_status(problem.status),
            Self::Shown | Self::Ended(_) | Self::ClosedPipe => false,
        }
    }

    /// Says it on stderr and gives the exit code.
    pub(crate) fn report(self, form: Form) -> ExitCode {
        match self {
            Self::ClosedPipe => ExitCode::SUCCESS,
            Self::Shown => ExitCode::from(Exit::Failed as u8),
            Self::Ended(code) => ExitCode::from(code),
            Self::Told { problem, exit } => {
                let text = match form {
                    Form::People => for_people(&problem),
                    Form::Json => serde_json::to_string(&problem).unwrap_or_else(|_| for_people(&problem)),
                };
                say(&text);
                ExitCode::from(exit as u8)
            }
        }
    }
}

/// What to do when the daemon gave no answer.
const LOOK_AT_LOG: &str = "run `lanyard doctor`, and look at `daemon.log` in the data folder";

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Usage { title, advice } => Self::usage(title, advice),
            HostError::Failed { code, title, advice } => Self::local(code, title, advice),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let title = chain(&error);
        match error {
            ClientError::Refused(problem) => Self::refused(*problem),
            ClientError::Away => {
                Self::unreachable("daemon_not_running", title, "start one with `lanyard up --detach`")
            }
            ClientError::Socket { .. } => Self::unreachable("socket_unusable", title, "run `lanyard doctor`"),
            ClientError::Token { .. } => Self::unreachable("token_unreadable", title, "run `lanyard doctor`"),
            ClientError::Address(url) => Self::usage(
                format!("`{url}` in LANYARD_URL is no address of a daemon"),
                "leave the variable as Lanyard set it",
            ),
            ClientError::Broken => {
                let title = "the connection broke before an answer, and there was no second one";
                Self::unreachable("uncertain", title, "run it again")
            }
            ClientError::Silent(_) => Self::unreachable("daemon_silent", title, LOOK_AT_LOG),
            ClientError::Unreadable(_) => {
                Self::local("answer_unknown", title, "compare the versions with `lanyard status`")
            }
            ClientError::Unwritable(_) => Self::local("request_unwritable", title, ""),
            ClientError::NoRandomness(_) => Self::local("no_randomness", title, ""),
            ClientError::StayedAway { again, .. } => {
                let advice = format!("start it with `lanyard up --detach`, then continue with `{again}`");
                Self::unreachable("daemon_gone", title, advice)
            }
        }
    }
}

/// What to say when the daemon goes away from a command that follows something.
pub(crate) fn daemon_gone(wait: Option<Duration>) -> String {
    let how_long = wait.map(|wait| format!(" (waiting up to {} s)", wait.as_secs()));
    format!("the daemon is gone; start it with `lanyard up --detach`{}", how_long.unwrap_or_default())
}

fn for_people(problem: &Problem) -> String {
    let mut lines = problem.title.lines();
    let mut text = format!("error: {} [{}]", one_line(lines.next().unwrap_or("")), problem.code);
    for line in lines {
        text.push_str("\n  ");
        text.push_str(&harmless(line.trim_end()));
    }
    if !problem.advice.is_empty() {
        text.push_str("\n  try: ");
        text.push_str(&one_line(&problem.advice));
    }
    text
}

/// An error with all that led to it, as one sentence.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_have_the_table_of_exit_codes() {
        let docs = include_str!("../../../docs/words.md");
        for (exit, meaning) in Exit::TABLE {
            let row = format!("| {} | {meaning} |", exit as u8);
            assert!(docs.contains(&row), "docs/words.md lacks {row}");
        }
    }

    #[test]
    fn only_trouble_of_the_daemon_is_worth_a_retry() {
        let refused = |status| {
            let Failure::Told { mut problem, .. } = Failure::local("x", "", "") else { panic!("told") };
            problem.status = status;
            Failure::refused(*problem)
        };
        for (status, passing) in [
            (400, false),
            (404, false),
            (409, false),
            (408, true),
            (425, true),
            (429, true),
            (500, true),
            (503, true),
        ] {
            assert_eq!(refused(status).is_passing(), passing, "{status}");
        }
        assert!(Failure::unreachable("x", "", "").is_passing());
        assert!(!Failure::local("x", "", "").is_passing());
    }

    #[test]
    fn an_error_has_its_code_in_brackets_and_says_what_to_try() {
        let failure = Failure::local("session_ended", "the session has ended as completed", "fork it");
        let Failure::Told { problem, exit } = failure else { panic!("told") };
        assert_eq!(
            for_people(&problem),
            "error: the session has ended as completed [session_ended]\n  try: fork it"
        );
        assert_eq!(exit, Exit::Failed);
    }

    #[test]
    fn further_lines_of_an_error_are_indented() {
        let failure = Failure::local("config_invalid", "the file is wrong:\n1 | x\n  | ^", "");
        let Failure::Told { problem, .. } = failure else { panic!("told") };
        assert_eq!(for_people(&problem), "error: the file is wrong: [config_invalid]\n  1 | x\n    | ^");
    }

    /// FND-K12.
    #[test]
    fn fnd_k12_no_line_of_an_error_steers_the_terminal() {
        let title = "it said: one\n\u{1b}]0;title\u{7}two\r\n\u{1b}[2Jthree\u{9b}31m\u{202e}";
        let Failure::Told { problem, .. } = Failure::local("handshake_failed", title, "\u{1b}[1m") else {
            panic!("told")
        };
        let text = for_people(&problem);
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n') && !text.contains('\u{202e}'),
            "{text:?}"
        );
        assert!(text.contains("\n  \u{FFFD}[2Jthree"), "{text:?}");
    }

    #[test]
    fn a_chain_names_every_cause() {
        #[derive(Debug)]
        struct Outer(std::io::Error);
        impl std::fmt::Display for Outer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("cannot use /x")
            }
        }
        impl Error for Outer {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        assert_eq!(chain(&Outer(std::io::Error::other("no space"))), "cannot use /x: no space");
    }
}
