//! Completions while a command is typed: names of sessions, tasks, plans and the rest, from the daemon that runs; settings
//! and their values, from the config.
//!
//! A completion starts no daemon, prints no error, waits for at most [`WAIT`] and offers at most [`CANDIDATES_MAX`].

mod settings;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Arg;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::CompleteEnv;
use lanyard_api::types::{
    AgentDetail, AgentList, InboxView, NameMatches, NamedItem, ReviewView, SessionDetail, TurnList,
};
use lanyard_client::{Route, inside};
use lanyard_core::naming::{NameKind, SHORT_CHARS, short};
use lanyard_core::session::{AgentOffer, ChoiceKind};

use super::{Global, help};
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{fit, one_line};

/// Set by the shell's script, to the name of the shell.
pub(crate) const VARIABLE: &str = "LANYARD_COMPLETE";
/// How long the daemon may take. A shell that hangs is worse than one that completes nothing.
const WAIT: Duration = Duration::from_secs(1);
const CANDIDATES_MAX: usize = 50;
/// Columns of the words beside a candidate.
const HELP_COLUMNS: usize = 60;

/// Where the values of an argument come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueSource {
    Names(&'static [NameKind]),
    Agents,
    /// What an agent offers of a kind.
    Choices(ChoiceKind),
    /// Turns of the session that the words behind this command name.
    Turns(&'static str),
    /// Turns that wait in the inbox of that session.
    WaitingTurns,
    /// Comments of the session that the words behind this command of `review` name.
    Comments(&'static str),
    Settings,
    SettingValues,
}

/// Answers a shell that asks for completions. `false`: this is an ordinary command.
pub(crate) fn answer() -> bool {
    let Some(shell) = std::env::var_os(VARIABLE).filter(|shell| !shell.is_empty() && shell != "0") else {
        return false;
    };
    let quoting = if shell == "bash" { Quoting::Backslashes } else { Quoting::ByShell };
    let command = move || valued(help::command(), &[], quoting);
    let here = std::env::current_dir().ok();
    // What cannot be completed is completed with nothing.
    let _ =
        CompleteEnv::with_factory(command).var(VARIABLE).try_complete(std::env::args_os(), here.as_deref());
    true
}

/// Bash takes candidates as they are; zsh and fish quote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Backslashes,
    ByShell,
}

/// Gives every argument that takes a name its completer. `path` holds the subcommands above.
fn valued(command: clap::Command, path: &[String], quoting: Quoting) -> clap::Command {
    let is_root = command.get_name() == "lanyard" && path.is_empty();
    let path: Vec<String> = if is_root {
        Vec::new()
    } else {
        path.iter().cloned().chain([command.get_name().to_owned()]).collect()
    };
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let command = command.mut_args(|arg| match source(&words, &arg) {
        Some(source) => {
            let complete = move |typed: &OsStr| candidates(source, typed, quoting);
            arg.add(ArgValueCompleter::new(complete))
        }
        None => arg,
    });
    command.mut_subcommands(|below| valued(below, &path, quoting))
}

/// The source of an argument's values, by its command and the name of its value.
fn source(path: &[&str], arg: &Arg) -> Option<ValueSource> {
    use NameKind::{Flow, Gate, Mail, Notification, Plan, Session, Task, Worker};
    let value = arg.get_value_names().and_then(|names| names.first()).map(clap::builder::Str::as_str);
    let kinds: &'static [NameKind] = match (path, arg.get_id().as_str(), value.unwrap_or_default()) {
        (_, "agent", _) if !arg.is_positional() => return Some(ValueSource::Agents),
        (["run" | "new" | "send" | "model"], "model", _) => {
            return Some(ValueSource::Choices(ChoiceKind::Model));
        }
        (["run" | "new" | "send" | "model"], "mode", _) => {
            return Some(ValueSource::Choices(ChoiceKind::Mode));
        }
        (["run" | "new" | "send" | "model"], "effort", _) => {
            return Some(ValueSource::Choices(ChoiceKind::Effort));
        }
        (["config", "get" | "set"], "key", _) => return Some(ValueSource::Settings),
        (["config", "set"], "value", _) => return Some(ValueSource::SettingValues),
        (["diff"], "turn", _) => return Some(ValueSource::Turns("diff")),
        (["log"], "since", _) => return Some(ValueSource::Turns("log")),
        (["inbox", _], "turn" | "turns", _) => return Some(ValueSource::WaitingTurns),
        (["review", "edit"], "comment", _) => return Some(ValueSource::Comments("edit")),
        (["review", "rm"], "comment", _) => return Some(ValueSource::Comments("rm")),
        (["review", "send"], "comments", _) => return Some(ValueSource::Comments("send")),
        (["token" | "memory", "rm" | "show" | "forget", ..], ..) | (_, "native", _) => return None,
        (["flow", "run" | "review" | "begin", ..], _, "PLAN") => return None,
        (["notifications", ..], _, "ID" | "IDS") => &[Notification],
        (["mailbox", ..], _, "MAIL") => &[Mail],
        (_, _, "ID" | "SESSION" | "ID|FILE|-") => &[Session],
        (_, _, "TASK") => &[Task],
        (_, _, "PLAN") => &[Plan],
        (_, _, "FLOW") => &[Flow],
        (_, _, "APPROVAL|ID") => &[Gate, Session],
        (_, _, "BOX" | "WHO") => &[Task, Session],
        (_, _, "WHAT") if path == ["halt"] => &[Plan, Task],
        (_, _, "ANY") => &[Session, Task, Plan, Worker],
        (_, _, _) => return None,
    };
    Some(ValueSource::Names(kinds))
}

fn candidates(source: ValueSource, typed: &OsStr, quoting: Quoting) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let found = read(source, typed).unwrap_or_default();
    let found = found.into_iter().take(CANDIDATES_MAX).map(|(value, help)| {
        let value = match quoting {
            Quoting::Backslashes => with_backslashes(&value),
            Quoting::ByShell => value,
        };
        CompletionCandidate::new(value).help(Some(help.into()))
    });
    found.collect()
}

/// Values and the words beside them; an error when no daemon runs, or it does not answer in time.
fn read(source: ValueSource, typed: &str) -> Result<Vec<(String, String)>, Failure> {
    if inside().is_some() {
        return Ok(Vec::new());
    }
    let context = context()?;
    let alone = |value: String| value.starts_with(typed).then_some((value, String::new()));
    let config = || Ok::<_, Failure>(context.config_file()?.config);
    match source {
        ValueSource::Settings => {
            return Ok(settings::keys(&config()?).into_iter().filter_map(alone).collect());
        }
        ValueSource::SettingValues => {
            let key = word_after("set").unwrap_or_default();
            return Ok(settings::values(&config()?, &key).into_iter().filter_map(alone).collect());
        }
        ValueSource::Choices(_)
        | ValueSource::Names(_)
        | ValueSource::Agents
        | ValueSource::Turns(_)
        | ValueSource::WaitingTurns
        | ValueSource::Comments(_) => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Ok(Vec::new()) };
    let asked = async {
        match context.client_if_running().await? {
            Some(mut client) => ask(&mut client, source, typed).await,
            None => Ok(Vec::new()),
        }
    };
    runtime.block_on(async { tokio::time::timeout(WAIT, asked).await.unwrap_or_else(|_| Ok(Vec::new())) })
}

/// Values that the daemon knows.
async fn ask(
    client: &mut Client<'_>,
    source: ValueSource,
    typed: &str,
) -> Result<Vec<(String, String)>, Failure> {
    match source {
        ValueSource::Agents => {
            let list: AgentList = client.get(&Route::to(&["agents"])).await?;
            let names = list.agents.into_iter().map(|agent| agent.name);
            Ok(names.filter(|name| name.starts_with(typed)).map(|name| (name, String::new())).collect())
        }
        ValueSource::Choices(kind) => {
            let offer = offer_of(client).await?.unwrap_or_default();
            let items = offer.menu(kind).items.clone().into_iter();
            let named = items.filter(|item| item.id.starts_with(typed));
            Ok(named
                .map(|item| (item.id, fit(&one_line(&item.name.unwrap_or_default()), HELP_COLUMNS)))
                .collect())
        }
        ValueSource::Names(kinds) => {
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
            let route = Route::to(&["ids"])
                .with("kind", Some(kinds.join(",")))
                .with("starting", Some(typed))
                .with("limit", Some(CANDIDATES_MAX));
            let found: NameMatches = client.get(&route).await?;
            Ok(found.items.iter().filter_map(|item| offered(item, typed)).collect())
        }
        ValueSource::Turns(command) => {
            let Some(session) = word_after(command) else { return Ok(Vec::new()) };
            let route = Route::to(&["sessions", &session, "turns"]).with("limit", Some(CANDIDATES_MAX));
            let list: TurnList = client.get(&route).await?;
            let turns = list.turns.iter().map(|row| (row.turn.to_string(), row.prompt_preview.as_str()));
            // What `log --since` takes may also be a time: there the end of an id has its kind.
            let kind = if command == "log" { "turn_" } else { "" };
            Ok(turns.filter_map(|(turn, prompt)| offered_turn(kind, &turn, prompt, typed)).collect())
        }
        ValueSource::WaitingTurns => {
            let Some(session) = word_after("inbox") else { return Ok(Vec::new()) };
            let inbox: InboxView = client.get(&Route::to(&["sessions", &session, "inbox"])).await?;
            let turns = inbox.turns.iter().map(|waiting| (waiting.turn.to_string(), waiting.prompt.as_str()));
            Ok(turns.filter_map(|(turn, prompt)| offered_turn("", &turn, prompt, typed)).collect())
        }
        ValueSource::Comments(verb) => {
            let Some(session) = word_after(verb) else { return Ok(Vec::new()) };
            let review: ReviewView = client.get(&Route::to(&["sessions", &session, "review"])).await?;
            let drafts = review.comments.iter().map(|view| &view.comment.draft);
            let comments = drafts.map(|draft| (draft.comment.to_string(), draft.text.as_str()));
            Ok(comments.filter_map(|(comment, text)| offered_turn("", &comment, text, typed)).collect())
        }
        ValueSource::Settings | ValueSource::SettingValues => Ok(Vec::new()),
    }
}

/// What the agent offers that the line is about: that of its session, that it names, or the default one.
async fn offer_of(client: &mut Client<'_>) -> Result<Option<AgentOffer>, Failure> {
    if let Some(session) = ["send", "model"].into_iter().find_map(word_after) {
        let detail: SessionDetail = client.get(&Route::to(&["sessions", &session])).await?;
        return Ok(detail.offer);
    }
    let agent = match word_of("--agent") {
        Some(agent) => Some(agent),
        None => client.get::<AgentList>(&Route::to(&["agents"])).await?.default,
    };
    let Some(agent) = agent else { return Ok(None) };
    Ok(client.get::<AgentDetail>(&Route::to(&["agents", &agent])).await?.offer)
}

/// The value of an option in the line that is typed.
fn word_of(option: &str) -> Option<String> {
    let words: Vec<String> = std::env::args_os().filter_map(|word| word.into_string().ok()).collect();
    let joined = format!("{option}=");
    words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix(&joined) {
        Some(value) => Some(value.to_owned()),
        None if word == option => words.get(at + 1).cloned(),
        None => None,
    })
}

/// The end of a turn's id, or all of it where that was begun, and the message beside it.
fn offered_turn(kind: &str, turn: &str, prompt: &str, typed: &str) -> Option<(String, String)> {
    let names = [format!("{kind}{}", short(turn, SHORT_CHARS)), turn.to_owned()];
    let value = names.into_iter().find(|name| name.starts_with(typed))?;
    Some((value, fit(&one_line(prompt), HELP_COLUMNS)))
}

/// The first word behind a command in the line that is typed, options left out.
fn word_after(command: &str) -> Option<String> {
    let words = std::env::args_os().filter_map(|word| word.into_string().ok());
    // The line begins behind `--`.
    let line = words.skip_while(|word| word != "--").skip(1);
    line.skip_while(|word| word != command).skip(1).find(|word| !word.starts_with('-'))
}

/// The name that what was typed begins, the most telling first, and the words beside it.
fn offered(item: &NamedItem, typed: &str) -> Option<(String, String)> {
    let title = item.title.as_deref().map(one_line);
    let key = item.name.as_deref().and_then(|name| name.rsplit_once('/')).map(|(_, key)| key);
    let names = [item.name.as_deref(), key, Some(short(&item.id, SHORT_CHARS)), Some(item.id.as_str())];
    let begins = |name: &&str| name.starts_with(typed);
    let lower = typed.to_lowercase();
    let titled =
        title.as_deref().filter(|title| !typed.is_empty() && title.to_lowercase().starts_with(&lower));
    let value = names.into_iter().flatten().find(begins).or(titled)?.to_owned();
    let title = title.unwrap_or_default();
    Some((value, fit(&format!("{title} ({})", item.state), HELP_COLUMNS)))
}

fn with_backslashes(value: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_-./:=@%+,".contains(letter);
    value.chars().flat_map(|letter| (!plain(letter)).then_some('\\').into_iter().chain([letter])).collect()
}

/// The data folder and the config of the command that is typed.
fn context() -> Result<Context, Failure> {
    let words: Vec<_> = std::env::args_os().collect();
    let option = |name: &str| -> Option<PathBuf> {
        let joined = format!("{name}=");
        words.iter().enumerate().find_map(|(at, word)| {
            let word = word.to_str()?;
            match word.strip_prefix(&joined) {
                Some(value) => Some(PathBuf::from(value)),
                None if word == name => words.get(at + 1).map(PathBuf::from),
                None => None,
            }
        })
    };
    let global = Global {
        data_dir: option("--data-dir"),
        config: option("--config"),
        key: None,
        json: false,
        full_ids: false,
        quiet: true,
    };
    Ok(Context { may_start: false, ..global.context()? })
}

#[cfg(test)]
mod tests {
    use lanyard_core::Timestamp;

    use super::*;

    #[test]
    fn the_name_that_was_begun_is_offered() {
        let item = NamedItem {
            kind: NameKind::Task,
            id: "task_01m7f3gs00fqqr28t5cy4tqkff".to_owned(),
            name: Some("shop/api".to_owned()),
            title: Some("Write the API".to_owned()),
            state: "pending".to_owned(),
            workspace: None,
            created_at: Timestamp::from_millis(0),
        };
        for (typed, value) in [
            ("", Some("shop/api")),
            ("sh", Some("shop/api")),
            ("ap", Some("api")),
            ("4tq", Some("4tqkff")),
            ("task_01", Some("task_01m7f3gs00fqqr28t5cy4tqkff")),
            ("write", Some("Write the API")),
            ("x", None),
        ] {
            assert_eq!(offered(&item, typed).map(|(value, _)| value).as_deref(), value, "{typed}");
        }
        assert_eq!(offered(&item, "").unwrap().1, "Write the API (pending)");
    }

    #[test]
    fn bash_gets_words_it_reads_back_as_one() {
        assert_eq!(with_backslashes("it's $5"), "it\\'s\\ \\$5");
        assert_eq!(with_backslashes("shop/api"), "shop/api");
    }

    #[test]
    fn arguments_that_take_names_are_known_by_their_value() {
        let command = help::command();
        let of = |path: &[&str], id: &str| {
            let command = path.iter().fold(&command, |at, word| at.find_subcommand(word).unwrap());
            let arg = command.get_arguments().find(|arg| arg.get_id() == id);
            source(path, arg.unwrap_or_else(|| panic!("{path:?} has no {id}")))
        };
        assert_eq!(of(&["show"], "id"), Some(ValueSource::Names(&[NameKind::Session])));
        assert_eq!(of(&["run"], "agent"), Some(ValueSource::Agents));
        assert_eq!(of(&["task", "show"], "task"), Some(ValueSource::Names(&[NameKind::Task])));
        assert_eq!(of(&["plan", "show"], "plan"), Some(ValueSource::Names(&[NameKind::Plan])));
        assert_eq!(of(&["flow", "show"], "flow"), Some(ValueSource::Names(&[NameKind::Flow])));
        assert_eq!(of(&["answer"], "what"), Some(ValueSource::Names(&[NameKind::Gate, NameKind::Session])));
        assert_eq!(of(&["mailbox", "ack"], "mail"), Some(ValueSource::Names(&[NameKind::Mail])));
        assert_eq!(of(&["config", "set"], "key"), Some(ValueSource::Settings));
        assert_eq!(of(&["config", "set"], "value"), Some(ValueSource::SettingValues));
        assert_eq!(of(&["diff"], "turn"), Some(ValueSource::Turns("diff")));
        assert_eq!(of(&["log"], "since"), Some(ValueSource::Turns("log")));
        assert_eq!(of(&["inbox", "order"], "turns"), Some(ValueSource::WaitingTurns));
        assert_eq!(of(&["review", "rm"], "comment"), Some(ValueSource::Comments("rm")));
        assert_eq!(of(&["review", "add"], "id"), Some(ValueSource::Names(&[NameKind::Session])));
        assert_eq!(of(&["token", "rm"], "id"), None);
        assert_eq!(of(&["run"], "prompt"), None);
    }
}
