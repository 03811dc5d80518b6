//! A command without the name it needs: on a terminal it is chosen from a list, elsewhere the refusal lists the choices.

use std::ffi::OsString;
use std::io::IsTerminal;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use lanyard_api::types::NameMatches;
use lanyard_client::Route;
use lanyard_core::naming::NameKind;

use super::attach::pick;
use crate::client::{Client, listed};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::tui::pick::Purpose;

/// Choices a list shows.
const CHOICES_MAX: usize = 20;
/// Stands in the place of the name until it is chosen.
const PLACEHOLDER: &str = "?";

/// The name that a command line lacks.
#[derive(Debug)]
pub(super) struct Missing {
    kind: NameKind,
    /// The command line as it was typed.
    words: Vec<OsString>,
}

impl Missing {
    /// What a command line lacks, when that is one name and nothing else.
    pub(super) fn of(error: &clap::Error, words: &[OsString]) -> Option<Self> {
        if error.kind() != ErrorKind::MissingRequiredArgument {
            return None;
        }
        let Some(ContextValue::Strings(args)) = error.get(ContextKind::InvalidArg) else { return None };
        let [only] = args.as_slice() else { return None };
        let kind = match only.trim_end_matches("...") {
            "<ID>" | "<ANY>" => NameKind::Session,
            "<TASK>" => NameKind::Task,
            "<PLAN>" => NameKind::Plan,
            "<FLOW>" => NameKind::Flow,
            "<MAIL>" => NameKind::Mail,
            _ => return None,
        };
        Some(Self { kind, words: words.to_vec() })
    }

    /// The command line with something in the place of the name, so that its options can be read.
    pub(super) fn with_placeholder(&self) -> Vec<OsString> {
        self.with(PLACEHOLDER)
    }

    fn with(&self, name: &str) -> Vec<OsString> {
        self.words.iter().cloned().chain([OsString::from(name)]).collect()
    }

    /// The command line with the name that was chosen.
    pub(super) async fn choose(self, context: &Context) -> Result<Vec<OsString>, Failure> {
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        if !terminal || context.out.is_json() || context.given.is_some() {
            return Err(self.refusal(context).await);
        }
        let chosen = match self.kind {
            NameKind::Session => pick(context, Purpose::Command).await?.map(|id| id.to_string()),
            NameKind::Task
            | NameKind::Plan
            | NameKind::Flow
            | NameKind::Worker
            | NameKind::Run
            | NameKind::Mail
            | NameKind::Notification
            | NameKind::Gate => self.typed(context).await?,
        };
        let Some(name) = chosen else {
            context.out.note("nothing was chosen, and nothing was done");
            return Err(Failure::Ended(Exit::Left as u8));
        };
        Ok(self.with(&name))
    }

    /// Shows the newest and reads a name.
    async fn typed(&self, context: &Context) -> Result<Option<String>, Failure> {
        let mut client = context.client().await?;
        let found = newest(&mut client, self.kind).await?;
        if found.items.is_empty() {
            return Err(Failure::usage(format!("there is no {}", self.kind.as_str()), ""));
        }
        context.out.question(&listed(&found.items, found.now, context.out.columns));
        context.out.question(&format!("{}> ", self.kind.as_str()));
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        read.map_err(|error| Failure::local("stdin_unreadable", format!("cannot read stdin: {error}"), ""))?;
        Ok(Some(line.trim().to_owned()).filter(|name| !name.is_empty()))
    }

    /// The refusal, with what can be named. It starts no daemon.
    async fn refusal(&self, context: &Context) -> Failure {
        let kind = self.kind.as_str();
        let found = match context.client_if_running().await {
            Ok(Some(mut client)) if !client.is_session() => newest(&mut client, self.kind).await.ok(),
            Ok(_) | Err(_) => None,
        };
        let choices = match found.filter(|found| !found.items.is_empty()) {
            Some(found) => format!("; the newest:\n{}", listed(&found.items, found.now, context.out.columns)),
            None => String::new(),
        };
        let title = format!("no {kind} is named, and there is no terminal to choose one in{choices}");
        Failure::usage(
            title,
            format!("name the {kind}: its id or the end of it, an alias, its title or `last`"),
        )
    }
}

async fn newest(client: &mut Client<'_>, kind: NameKind) -> Result<NameMatches, Failure> {
    let route = Route::to(&["ids"]).with("kind", Some(kind.as_str())).with("limit", Some(CHOICES_MAX));
    client.get(&route).await
}
