//! The command line: what can be said, and which file answers. One file per command; the groups are the chapters of the
//! help.

mod acp;
mod agents;
mod alias;
mod answer;
mod answer_prompt;
mod approvals;
mod approve;
mod archive;
mod ask;
mod attach;
mod attach_flags;
mod audit;
mod backup;
mod bulk;
mod cancel;
mod checkpoint;
mod checkpoints;
mod choice;
mod choice_flags;
mod compact;
mod compare;
mod complete;
mod completion;
mod completions;
mod config;
mod delegation;
mod demo;
mod diff;
mod doctor;
mod down;
mod duration;
mod fail;
mod flow;
mod follow;
mod following;
mod fork;
mod gc;
mod guidance;
mod guide;
mod halt;
mod help;
mod hook;
mod id;
mod import;
mod inbox;
mod init;
mod insight;
mod instructions;
mod link;
mod log;
mod logs;
mod ls;
mod mailbox;
mod man;
mod mcp;
mod memory;
mod metrics;
mod migrate;
mod model;
mod new;
mod notifications;
mod open;
mod opencode_bridge;
mod plan;
mod printer;
mod prompt;
mod reload;
mod rename;
mod replay;
mod reset;
mod restore;
mod resume;
mod review;
mod rm;
mod rollback;
mod run;
mod sandbox_flags;
mod schema;
mod scripted_agent;
mod scripted_mcp;
mod search;
mod send;
mod service;
mod session_watch;
mod share;
mod show;
#[cfg(test)]
mod shown;
mod signal;
mod status;
mod stop;
mod target;
mod task;
mod token;
mod top;
mod tree;
mod turn_list;
mod turns;
mod unstop;
mod up;
mod watch;
mod within;
mod words;
mod workers;
mod worktree;
mod writer;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{FromArgMatches, Parser, Subcommand};
use lanyard_api::home::Home;

use lanyard_client::inside;
use lanyard_client::names::NameBook;

use crate::context::{Context, daemon_wait};
use crate::failure::Failure;
use crate::host::DaemonHost;
use crate::out::{Form, Out};
use crate::render::ids::show_whole_ids;
use choice::Missing;
pub(crate) use completion::answer as answer_completion;

/// Start, watch, steer, stop, resume and hand over agents that keep running
#[derive(Debug, Parser)]
#[command(name = "lanyard", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
    /// A name that was left out, and is chosen before the command runs.
    #[arg(skip)]
    missing: Option<Missing>,
}

const DATA_DIR_HELP: &str = "Data folder [env: LANYARD_DATA_DIR] [default: ~/.local/share/lanyard]";
const CONFIG_HELP: &str = "Config file [env: LANYARD_CONFIG] [default: ~/.config/lanyard/config.toml]";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    // The environment is read below and not by clap, which would show what it holds in every message about usage.
    #[arg(long, global = true, value_name = "DIR", help = DATA_DIR_HELP)]
    data_dir: Option<PathBuf>,
    #[arg(long, global = true, value_name = "FILE", help = CONFIG_HELP)]
    config: Option<PathBuf>,
    /// Key of the change: sent again, it gets the first outcome [default: random]
    #[arg(long, global = true, value_name = "KEY")]
    key: Option<String>,
    /// Print JSON, errors too
    #[arg(long, global = true)]
    json: bool,
    /// Print ids whole where listings and receipts shorten them
    #[arg(long, global = true)]
    full_ids: bool,
    /// Say nothing on stderr but errors and warnings
    #[arg(long, short, global = true)]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Look(Box<Look>),
    #[command(flatten)]
    Steer(Steer),
    #[command(flatten)]
    Work(Work),
    #[command(flatten)]
    Arrange(Arrange),
    #[command(flatten)]
    Inside(Inside),
    #[command(flatten)]
    Daemon(Daemon),
    #[command(flatten)]
    Advanced(Advanced),
}

#[derive(Debug, Subcommand)]
enum Look {
    Run(run::RunArgs),
    Demo(demo::Demo),
    Attach(attach::AttachArgs),
    Top(top::Top),
    Open(open::OpenArgs),
    Compare(compare::CompareArgs),
    New(new::NewArgs),
    Import(import::ImportArgs),
    Ls(ls::LsArgs),
    Show(show::ShowArgs),
    Tree(tree::TreeArgs),
    Log(log::Log),
    Logs(logs::Logs),
    Turns(turns::TurnsArgs),
    Search(search::SearchArgs),
    Insight(insight::InsightArgs),
    Audit(audit::AuditArgs),
    Notifications(notifications::NotificationsArgs),
}

#[derive(Debug, Subcommand)]
enum Steer {
    Send(send::Send),
    #[command(hide = true)]
    Prompt(prompt::PromptArgs),
    Inbox(inbox::InboxArgs),
    #[command(visible_alias = "adopt")]
    Resume(resume::ResumeArgs),
    #[command(alias = "gates")]
    Approvals(approvals::ApprovalsArgs),
    #[command(alias = "gate")]
    Answer(answer::AnswerArgs),
    Guide(guide::Guide),
    Guidance(guidance::Guidance),
    Cancel(cancel::CancelArgs),
    Stop(stop::StopArgs),
    Unstop(unstop::Unstop),
    Writer(writer::WriterArgs),
    Bulk(bulk::BulkArgs),
    Model(model::ModelArgs),
    Compact(compact::Compact),
    Complete(complete::CompleteArgs),
    Fail(fail::FailArgs),
}

#[derive(Debug, Subcommand)]
enum Work {
    Plan(plan::Plan),
    Task(task::TaskArgs),
    Flow(flow::FlowArgs),
    Workers(workers::WorkersArgs),
    Mailbox(mailbox::Mailbox),
    Id(id::Id),
    Delegation(delegation::DelegationArgs),
    Halt(halt::HaltArgs),
}

#[derive(Debug, Subcommand)]
enum Arrange {
    Link(link::LinkArgs),
    Migrate(migrate::Migrate),
    Fork(fork::ForkArgs),
    Checkpoint(checkpoint::CheckpointArgs),
    Checkpoints(checkpoints::Checkpoints),
    Diff(diff::DiffArgs),
    Review(review::ReviewArgs),
    Rollback(rollback::Rollback),
    Rename(rename::Rename),
    Alias(alias::Alias),
    Archive(archive::Archive),
    Reset(reset::Reset),
    Rm(rm::Rm),
    Memory(memory::MemoryArgs),
}

#[derive(Debug, Subcommand)]
enum Inside {
    Acp(acp::Acp),
    Mcp(mcp::McpArgs),
    Hook(hook::HookArgs),
}

#[derive(Debug, Subcommand)]
enum Daemon {
    Up(up::Up),
    Down(down::Down),
    Service(service::Service),
    Status(status::StatusArgs),
    Metrics(metrics::Metrics),
    Doctor(doctor::Doctor),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Gc(gc::Gc),
    Agents(agents::Agents),
    Init(init::Init),
    Config(config::ConfigArgs),
    Reload(reload::Reload),
    Worktree(worktree::WorktreeArgs),
    Instructions(instructions::Instructions),
    Token(token::Token),
    Share(share::ShareArgs),
}

#[derive(Debug, Subcommand)]
enum Advanced {
    Replay(replay::Replay),
    Signal(signal::SignalArgs),
    ScriptedAgent(scripted_agent::ScriptedAgent),
    Completions(completions::Completions),
    #[command(hide = true)]
    Man(man::Man),
    #[command(hide = true)]
    ScriptedMcp(scripted_mcp::ScriptedMcp),
    #[command(hide = true)]
    Schema(schema::Schema),
    #[command(hide = true)]
    OpencodeBridge(opencode_bridge::OpencodeBridge),
}

/// Reads the command line. Help ends the program here, and so do mistakes, except where errors are wanted as JSON.
pub(crate) fn parse() -> Result<Cli, Failure> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let error = match read(&words) {
        Ok(cli) => return Ok(cli),
        Err(error) => error,
    };
    if let Some(missing) = Missing::of(&error, &words)
        && let Ok(cli) = read(&missing.with_placeholder())
    {
        return Ok(Cli { missing: Some(missing), ..cli });
    }
    if error.exit_code() == 0 || !wants_json(words.into_iter().skip(1)) {
        error.exit();
    }
    Err(misread(&error))
}

fn read(words: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = help::command();
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Whether errors are wanted as JSON, told without understanding the rest.
fn wants_json(words: impl Iterator<Item = OsString>) -> bool {
    // What follows `--` is no option.
    words.take_while(|word| word != "--").any(|word| word == "--json")
}

/// What clap says of a mistake, as every other error is told.
fn misread(error: &clap::Error) -> Failure {
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Failure::usage("a subcommand or an argument is missing", "see what there is with `--help`");
    }
    let text = error.render().to_string();
    let words = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
    let (title, rest) = words.split_once("\n\n").unwrap_or((words, ""));
    let usage = rest.lines().find_map(|line| line.trim().strip_prefix("Usage: "));
    let advice = usage.map_or_else(
        || "see `lanyard --help`".to_owned(),
        |usage| format!("use it as `{usage}`; `--help` explains it"),
    );
    let title: Vec<&str> = title.lines().map(str::trim).collect();
    Failure::usage(title.join(" "), advice)
}

pub(crate) fn run(cli: Cli, host: &DaemonHost) -> Result<(), Failure> {
    if cli.global.full_ids {
        show_whole_ids();
    }
    if let Some(missing) = cli.missing {
        let session = inside();
        let context = match &session {
            Some(session) => cli.global.within(session),
            None => cli.global.context(),
        }?;
        let words = runtime()?.block_on(missing.choose(&context))?;
        return run(read(&words).map_err(|error| misread(&error))?, host);
    }
    let Some(command) = cli.command else { return alone(cli.global) };
    // Works wherever it is started: without a home, a data folder or a daemon.
    if let Command::Advanced(Advanced::ScriptedAgent(agent)) = command {
        return agent.run();
    }
    if let Command::Advanced(Advanced::ScriptedMcp(server)) = command {
        return server.run();
    }
    if let Command::Advanced(Advanced::OpencodeBridge(bridge)) = command {
        return block_on(bridge.run());
    }
    let session = inside();
    let context = match &session {
        Some(session) => cli.global.within(session),
        None => cli.global.context(),
    };
    // These stand in an agent's way: without a home, as inside of a session, they do what they can.
    let home = context.as_ref().ok().filter(|_| session.is_none()).map(|context| context.home.clone());
    let command = match command {
        Command::Inside(command) => match command.without_daemon() {
            Ok(unhindered) => return block_on(unhindered.run(home)),
            Err(command) => Command::Inside(command),
        },
        Command::Look(_)
        | Command::Steer(_)
        | Command::Work(_)
        | Command::Arrange(_)
        | Command::Daemon(_)
        | Command::Advanced(_) => command,
    };
    if let Some(session) = session.filter(|_| !command.is_for_sessions()) {
        return Err(within::operator_only(&session));
    }
    let context = context?;
    match command {
        Command::Look(command) => block_on(command.run(&context)),
        Command::Steer(command) => block_on(command.run(&context)),
        Command::Work(command) => block_on(command.run(&context)),
        Command::Arrange(command) => block_on(command.run(&context)),
        Command::Inside(command) => block_on(command.run(&context)),
        Command::Daemon(command) => command.run(&context, host),
        Command::Advanced(command) => block_on(command.run(&context, host)),
    }
}

/// `lanyard` without a command: a first start or a short status for a person at a terminal, the overview for all others.
fn alone(global: Global) -> Result<(), Failure> {
    let at_terminal = ask::can_ask() && std::io::stdout().is_terminal();
    if !at_terminal || global.form() == Form::Json || inside().is_some() {
        return Out::new(Form::People, false).data(help::OVERVIEW);
    }
    let context = global.context()?;
    if context.config_path.exists() {
        return block_on(init::glance(&context));
    }
    block_on(init::guided(&context))
}

impl Look {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Run(run) => run.run(context).await,
            Self::Demo(demo) => demo.run(context).await,
            Self::Attach(attach) => attach.run(context).await,
            Self::Top(top) => top.run(context).await,
            Self::Open(open) => open.run(context).await,
            Self::Compare(compare) => compare.run(context).await,
            Self::New(new) => new.run(context).await,
            Self::Import(import) => import.run(context).await,
            Self::Ls(ls) => ls.run(context).await,
            Self::Show(show) => show.run(context).await,
            Self::Tree(tree) => tree.run(context).await,
            Self::Log(log) => log.run(context).await,
            Self::Logs(logs) => logs.run(context).await,
            Self::Turns(turns) => turns.run(context).await,
            Self::Search(search) => search.run(context).await,
            Self::Insight(insight) => insight.run(context).await,
            Self::Audit(audit) => audit.run(context).await,
            Self::Notifications(notifications) => notifications.run(context).await,
        }
    }
}

impl Steer {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Send(send) => send.run(context).await,
            Self::Prompt(prompt) => prompt.run(context).await,
            Self::Inbox(inbox) => inbox.run(context).await,
            Self::Resume(resume) => resume.run(context).await,
            Self::Approvals(approvals) => approvals.run(context).await,
            Self::Answer(answer) => answer.run(context).await,
            Self::Guide(guide) => guide.run(context).await,
            Self::Guidance(guidance) => guidance.run(context).await,
            Self::Cancel(cancel) => cancel.run(context).await,
            Self::Stop(stop) => stop.run(context).await,
            Self::Unstop(unstop) => unstop.run(context).await,
            Self::Writer(writer) => writer.run(context).await,
            Self::Bulk(bulk) => bulk.run(context).await,
            Self::Model(model) => model.run(context).await,
            Self::Compact(compact) => compact.run(context).await,
            Self::Complete(complete) => complete.run(context).await,
            Self::Fail(fail) => fail.run(context).await,
        }
    }
}

impl Work {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Plan(plan) => plan.run(context).await,
            Self::Task(task) => task.run(context).await,
            Self::Flow(flow) => flow.run(context).await,
            Self::Workers(workers) => workers.run(context).await,
            Self::Mailbox(mailbox) => mailbox.run(context).await,
            Self::Id(id) => id.run(context).await,
            Self::Delegation(delegation) => delegation.run(context).await,
            Self::Halt(halt) => halt.run(context).await,
        }
    }
}

impl Arrange {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Link(link) => link.run(context).await,
            Self::Migrate(migrate) => migrate.run(context).await,
            Self::Fork(fork) => fork.run(context).await,
            Self::Checkpoint(checkpoint) => checkpoint.run(context).await,
            Self::Checkpoints(checkpoints) => checkpoints.run(context).await,
            Self::Diff(diff) => diff.run(context).await,
            Self::Review(review) => review.run(context).await,
            Self::Rollback(rollback) => rollback.run(context).await,
            Self::Rename(rename) => rename.run(context).await,
            Self::Alias(alias) => alias.run(context).await,
            Self::Archive(archive) => archive.run(context).await,
            Self::Reset(reset) => reset.run(context).await,
            Self::Rm(rm) => rm.run(context).await,
            Self::Memory(memory) => memory.run(context).await,
        }
    }
}

/// What stands in an agent's way and must never hold it up.
enum Unhindered {
    Wrap(mcp::McpWrapArgs),
    Hook(crate::hook::Harness),
}

impl Unhindered {
    async fn run(self, home: Option<Home>) -> Result<(), Failure> {
        match self {
            Self::Wrap(wrap) => wrap.run(home).await,
            Self::Hook(harness) => {
                crate::hook::run(harness, home).await;
                Ok(())
            }
        }
    }
}

impl Inside {
    /// Tells what works without a home or a daemon from what people run.
    fn without_daemon(self) -> Result<Unhindered, Self> {
        match self {
            Self::Acp(acp) => Err(Self::Acp(acp)),
            Self::Mcp(mcp) => mcp.into_wrap().map(Unhindered::Wrap).map_err(Self::Mcp),
            Self::Hook(hook) => match hook.verb.harness() {
                Some(harness) => Ok(Unhindered::Hook(harness)),
                None => Err(Self::Hook(hook)),
            },
        }
    }

    async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Acp(acp) => acp.run(context).await,
            Self::Mcp(mcp) => mcp.run(context).await,
            Self::Hook(hook) => hook.run(context),
        }
    }
}

impl Daemon {
    fn run(self, context: &Context, host: &DaemonHost) -> Result<(), Failure> {
        match self {
            // The daemon wants all processors; everybody else waits for one answer at a time.
            Self::Up(up) => up.run(context, host),
            Self::Down(down) => block_on(down.run(context)),
            Self::Service(service) => block_on(service.run(context)),
            Self::Status(status) => block_on(status.run(context)),
            Self::Metrics(metrics) => block_on(metrics.run(context)),
            Self::Doctor(doctor) => block_on(doctor.run(context, host)),
            Self::Backup(backup) => block_on(backup.run(context, host)),
            Self::Restore(restore) => restore.run(context, host),
            Self::Gc(gc) => block_on(gc.run(context)),
            Self::Agents(agents) => block_on(agents.run(context)),
            Self::Init(init) => block_on(init.run(context)),
            Self::Config(config) => block_on(config.run(context)),
            Self::Reload(reload) => block_on(reload.run(context)),
            Self::Worktree(worktree) => block_on(worktree.run(context)),
            Self::Instructions(instructions) => instructions.run(context),
            Self::Token(token) => block_on(token.run(context)),
            Self::Share(share) => block_on(share.run(context)),
        }
    }
}

impl Advanced {
    async fn run(self, context: &Context, host: &DaemonHost) -> Result<(), Failure> {
        match self {
            Self::Replay(replay) => replay.run(context).await,
            Self::Signal(signal) => signal.run(context).await,
            Self::ScriptedAgent(agent) => agent.run(),
            Self::Completions(completions) => completions.run(context),
            Self::Man(man) => man.run(context),
            Self::ScriptedMcp(server) => server.run(),
            Self::Schema(schema) => schema.run(context, host),
            Self::OpencodeBridge(bridge) => bridge.run().await,
        }
    }
}

fn block_on(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    runtime()?.block_on(work)
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::local("runtime", format!("cannot start: {error}"), ""))
}

impl Cli {
    /// Known before anything else, so that the first error comes in the right form too.
    pub(crate) fn form(&self) -> Form {
        self.global.form()
    }
}

impl Global {
    fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::People }
    }

    fn context(self) -> Result<Context, Failure> {
        let out = Out::new(self.form(), self.quiet);
        let named = |option: Option<PathBuf>, variable: &str| {
            option.or_else(|| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from))
        };
        let dir = match named(self.data_dir, "LANYARD_DATA_DIR") {
            Some(dir) => dir,
            None => user_folder("XDG_DATA_HOME", ".local/share", "--data-dir")?,
        };
        let config = match named(self.config, "LANYARD_CONFIG") {
            Some(file) => file,
            None => user_folder("XDG_CONFIG_HOME", ".config", "--config")?.join("config.toml"),
        };
        let no_start =
            std::env::var_os("LANYARD_NO_START").is_some_and(|value| !value.is_empty() && value != "0");
        Ok(Context {
            home: Home { dir: absolute(&dir)? },
            config_path: absolute(&config)?,
            out,
            key: self.key,
            may_start: !no_start,
            daemon_wait: daemon_wait()?,
            given: None,
            token: None,
            names: NameBook::default(),
        })
    }
}

/// `lanyard` in the user's folder for data or configuration.
fn user_folder(variable: &str, below_home: &str, option: &str) -> Result<PathBuf, Failure> {
    Ok(base_folder(variable, below_home, option)?.join("lanyard"))
}

/// The user's folder for data or configuration of all programs.
fn base_folder(variable: &str, below_home: &str, option: &str) -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set(variable).or_else(|| set("HOME").map(|home| home.join(below_home))).ok_or_else(|| {
        Failure::usage("there is no home folder: HOME is not set", format!("name a place with {option}"))
    })
}

/// The daemon works in another folder, so it needs whole paths.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("cannot use the path {}: {error}", path.display()), ""))
}
