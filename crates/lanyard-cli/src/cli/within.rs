//! `lanyard` inside of an agent's session: it acts as that session, and an operator's commands are refused.

use std::path::PathBuf;

use lanyard_api::home::Home;
use lanyard_client::GivenSession;
use lanyard_client::names::NameBook;

use super::{Advanced, Arrange, Command, Daemon, Global, Look, Steer, Work};
use crate::context::{Context, daemon_wait};
use crate::failure::Failure;
use crate::out::Out;

/// A path nothing can be at, for commands that must not look for a data folder or a config.
const NOWHERE: &str = "/dev/null/lanyard";

impl Command {
    /// Whether the agent of a session may use it, as its session. Everything else is its operator's.
    pub(super) fn is_for_sessions(&self) -> bool {
        match self {
            Self::Look(command) => {
                matches!(
                    **command,
                    Look::Show(_) | Look::Logs(_) | Look::Turns(_) | Look::Search(_) | Look::Tree(_)
                )
            }
            Self::Steer(command) => {
                matches!(command, Steer::Guidance(_) | Steer::Complete(_) | Steer::Fail(_))
            }
            Self::Work(command) => matches!(command, Work::Delegation(_)),
            Self::Arrange(command) => {
                matches!(command, Arrange::Checkpoint(_) | Arrange::Checkpoints(_) | Arrange::Diff(_))
            }
            // The hook and the wrapper went their own way before.
            Self::Inside(_) => false,
            Self::Daemon(command) => matches!(command, Daemon::Instructions(_)),
            Self::Advanced(command) => matches!(
                command,
                Advanced::Signal(_)
                    | Advanced::ScriptedAgent(_)
                    | Advanced::ScriptedMcp(_)
                    | Advanced::Completions(_)
                    | Advanced::Man(_)
                    | Advanced::Schema(_)
                    | Advanced::OpencodeBridge(_)
            ),
        }
    }
}

pub(super) fn operator_only(session: &str) -> Failure {
    let title = format!(
        "`lanyard` runs inside session {session} and acts as that session only; this command is an operator's"
    );
    let advice = "ask your operator to run it in a terminal of their own; inside of a session there are show, logs, \
                  turns, search, tree, guidance, diff, checkpoint, checkpoints, delegation, complete, fail and signal";
    Failure::local("operator_only", title, advice)
}

impl Global {
    /// Inside of a session: its token and its address, and no place where an operator's could be found.
    pub(super) fn within(self, session: &str) -> Result<Context, Failure> {
        if self.data_dir.is_some() || self.config.is_some() {
            return Err(operator_only(session));
        }
        let given = GivenSession::from_environment().ok_or_else(|| {
            let title = format!("the environment names the session {session}, but not its token and address");
            Failure::local(
                "session_token_missing",
                title,
                "leave LANYARD_TOKEN and LANYARD_URL as they were set",
            )
        })?;
        Ok(Context {
            home: Home { dir: PathBuf::from(NOWHERE) },
            config_path: PathBuf::from(NOWHERE),
            out: Out::new(self.form(), self.quiet),
            key: self.key,
            may_start: false,
            daemon_wait: daemon_wait()?,
            given: Some(given),
            token: None,
            names: NameBook::default(),
        })
    }
}
