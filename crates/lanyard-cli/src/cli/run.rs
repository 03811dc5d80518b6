//! `lanyard run`: a session and its first turn, watched to its end.

use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;

use lanyard_api::config::TERMINAL;
use lanyard_api::types::{AgentList, NewResume, NewTurn};
use lanyard_client::Route;
use lanyard_client::names::A_SESSION;
use lanyard_core::Outcome;
use lanyard_core::session::{NewSession, SessionView, TerminalProgram, WindowSize};

use super::attach_flags::AttachFlags;
use super::choice_flags::ChoiceFlags;
use super::memory::flags::MemoryFlags;
use super::sandbox_flags::SandboxFlags;
use super::target::{folder, is_stdin, new_name, words_or_stdin};
use super::watch::{EXIT_CODES, Watched, watch};
use super::worktree::{WorktreeFlags, create};
use crate::chosen_agent::chosen;
use crate::client::attached::upload;
use crate::console;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{fit, one_line};
use crate::tui::attach::Mode;

/// Columns of the title a session gets from its prompt.
const TITLE_COLUMNS: usize = 72;

/// The beginning of the warning about a session whose names could be those of another conversation.
const NEW_CONVERSATION: &str = "a new conversation begins";

const ABOUT: &str = "\
The agent's messages go to stdout; tool calls, approvals and costs to stderr. Approvals are answered
here, or from anywhere with `lanyard answer`. Ctrl-C asks whether to detach, cancel or
stop; the agent works on when you leave, and outlives the daemon too.

Examples:
  lanyard run fix the failing login test
  lanyard run --name login \"fix the failing login test\" && lanyard show login
  lanyard run --agent opencode --cwd ~/src/web --detach \"update the dependencies\"
  lanyard run --worktree \"try another parser\"
  lanyard run --worktree=fix/login --trust --detach \"fix the failing login test\"
  lanyard run --agent demo - < task.md > answer.txt
  lanyard run \"why does the page look like this?\" -a shot.png
  lanyard run --pty claude
  lanyard run --pty -d --name notes -- vi -R notes.txt

";

/// Give an agent something to do, and watch it
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{ABOUT}{EXIT_CODES}"))]
pub(super) struct RunArgs {
    /// Message to the agent, quoted or not; `-` reads it from stdin. With --pty the program and its arguments
    #[arg(required_unless_present = "attach")]
    prompt: Vec<String>,
    #[command(flatten)]
    attach: AttachFlags,
    /// The agent, as `lanyard agents` lists them [default: the config's default, or its only agent]
    #[arg(long)]
    agent: Option<String>,
    /// The folder it works in [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A name for it, accepted wherever an id is; refused when another session of the folder has it
    #[arg(long, value_parser = new_name)]
    name: Option<String>,
    /// What people see the session under [default: the prompt's first line]
    #[arg(long)]
    title: Option<String>,
    /// The session that delegates to it: id or alias
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    #[command(flatten)]
    tree: WorktreeFlags,
    /// Run this program on a terminal of its own, instead of giving an agent a message; options of the program follow `--`
    #[arg(long)]
    pty: bool,
    /// Do not wait: print the session's id
    #[arg(long, short)]
    detach: bool,
    #[command(flatten)]
    choice: ChoiceFlags,
    #[command(flatten)]
    memory: MemoryFlags,
    #[command(flatten)]
    sandbox: SandboxFlags,
}

impl RunArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let read = self.attach.read(is_stdin(&self.prompt))?;
        if self.pty {
            return self.on_terminal(context).await;
        }
        let prompt = words_or_stdin(&self.prompt)?;
        let workspace = folder(self.cwd, "--cwd")?;
        let mut client = context.client().await?;
        let list: AgentList = client.get(&Route::to(&["agents"])).await?;
        let agent = chosen(&list, self.agent.as_deref())?;
        let first = prompt.lines().map(one_line).find(|line| !line.is_empty()).unwrap_or_default();
        let title = self.title.unwrap_or_else(|| fit(&first, TITLE_COLUMNS));
        // Before the session is made: an attachment that is refused leaves none.
        let parts = upload(&mut client, read).await?;
        let worktree = self.tree.wanted(context, &mut client, Some(&workspace)).await?;
        let new = NewSession {
            worktree,
            title: Some(title).filter(|title| !title.is_empty()),
            agent: Some(agent.clone()),
            source: Some("cli".to_owned()),
            workspace: Some(workspace),
            parent: client.id_if(A_SESSION, self.parent).await?,
            aliases: self.name.into_iter().collect(),
            choice: self.choice.choice(),
            memory: self.memory.ask(),
            sandbox: self.sandbox.sandbox,
            network: self.sandbox.network(),
            bounds: self.sandbox.bounds(),
            ..NewSession::default()
        };
        let made = create(context, &mut client, Some("session"), &new).await?;
        let id = made.session.to_string();
        let turn = NewTurn { prompt, parts, ..NewTurn::default() };
        let route = Route::to(&["sessions", &id, "turns"]);
        let mut started: Outcome = client.post_part("turn", &route, &turn).await?;
        // The session was made for this turn and has no older conversation.
        started.warnings.retain(|warning| !warning.starts_with(NEW_CONVERSATION));
        if self.detach {
            return context.out.receipt(&started, Some(&id), &format!("{agent} works on it"));
        }
        drop(client);
        context.out.note(&format!("session {id}"));
        let Some(turn) = started.turn else { return Ok(()) };
        watch(context, Watched { session: made.session, turn, after: made.seq }).await
    }

    /// Starts a program on a terminal, and attaches to it.
    async fn on_terminal(self, context: &Context) -> Result<(), Failure> {
        let here = stdin().is_terminal() && stdout().is_terminal() && !context.out.is_json();
        if !self.detach && !here {
            return Err(Failure::usage(
                "there is no terminal to show the program on",
                "start it with `-d`, and attach to it from a terminal",
            ));
        }
        let workspace = folder(self.cwd, "--cwd")?;
        let mut client = context.client().await?;
        let list: AgentList = client.get(&Route::to(&["agents"])).await?;
        let size = if here { console::room_here() } else { WindowSize::default() };
        let program = TerminalProgram { command: self.prompt, size };
        let agent = self.agent.unwrap_or_else(|| agent_of(&list, &program));
        let worktree = self.tree.wanted(context, &mut client, Some(&workspace)).await?;
        let title = self.title.unwrap_or_else(|| fit(&program.in_words(), TITLE_COLUMNS));
        let new = NewSession {
            worktree,
            title: Some(title),
            agent: Some(agent),
            source: Some("cli".to_owned()),
            workspace: Some(workspace),
            parent: client.id_if(A_SESSION, self.parent).await?,
            aliases: self.name.into_iter().collect(),
            memory: self.memory.ask(),
            sandbox: self.sandbox.sandbox,
            network: self.sandbox.network(),
            bounds: self.sandbox.bounds(),
            terminal: Some(program),
            ..NewSession::default()
        };
        let made = create(context, &mut client, Some("session"), &new).await?;
        let id = made.session.to_string();
        let route = Route::to(&["sessions", &id, "resume"]);
        let started: Outcome = client.post_part("start", &route, &NewResume::default()).await?;
        if self.detach {
            return context.out.receipt(&started, Some(&id), "it runs; attach to it with `lanyard attach`");
        }
        let view: SessionView = client.get(&Route::to(&["sessions", &id])).await?;
        drop(client);
        console::show(context, &view, Mode::Write).await
    }
}

/// The agent of the config that has the program's name, for its sandbox, accounts and variables; else none of them.
fn agent_of(list: &AgentList, program: &TerminalProgram) -> String {
    let name = program.command.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let known = list.agents.iter().find(|agent| agent.configured && agent.name == name);
    known.map_or_else(|| TERMINAL.to_owned(), |agent| agent.name.clone())
}
