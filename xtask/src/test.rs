//! `cargo xtask test`: what CI runs, step by step, stopping at the first that fails. `cargo xtask test real`
//! and `cargo xtask test editor` are apart from it.

pub(crate) mod browser;
mod left;
mod programs;
pub(crate) mod real;
mod tally;

use std::io::{IsTerminal, stderr};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;

use self::tally::{Runner, Tally};
use crate::{audit, editor, process, tidy, web};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TestArgs {
    #[command(subcommand)]
    suite: Option<Suite>,
    /// Run only this step
    #[arg(long, value_name = "STEP")]
    only: Option<Step>,
    /// Show the steps and what they run
    #[arg(long)]
    list: bool,
    /// How often the crash suite kills the daemon
    #[arg(long, value_name = "N")]
    kills: Option<u32>,
}

/// Suites that are no part of CI's steps.
#[derive(Debug, clap::Subcommand)]
enum Suite {
    /// Install real agents and drive them against a scripted model
    Real(real::RealArgs),
    /// Install code-server and try the VS Code extension in it
    Editor,
}

/// The steps, in the order CI runs them: the quick and the common failures first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    Fmt,
    Clippy,
    Tests,
    Doc,
    Tidy,
    Audit,
    Web,
    Editor,
    Browser,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Fmt => "fmt",
            Step::Clippy => "clippy",
            Step::Tests => "tests",
            Step::Doc => "doc",
            Step::Tidy => "tidy",
            Step::Audit => "audit",
            Step::Web => "web",
            Step::Editor => "editor",
            Step::Browser => "browser",
        }
    }

    fn shown(self) -> &'static str {
        match self {
            Step::Fmt => "cargo fmt --all --check",
            Step::Clippy => "cargo clippy --workspace --all-targets -- -D warnings (and of --test real)",
            Step::Tests => {
                "cargo nextest run --workspace --retries 0 --no-fail-fast (cargo test without nextest)"
            }
            Step::Doc => "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps",
            Step::Tidy => "cargo xtask tidy",
            Step::Audit => "cargo xtask audit",
            Step::Web => "npm run check, build and size in web/",
            Step::Editor => "npm run check and package in editors/vscode/",
            Step::Browser => {
                "npx playwright test --retries=0 in web/, with Chromium, Firefox and the program the tests use"
            }
        }
    }
}

/// How a step went, for the summary.
#[derive(Debug)]
struct Done {
    step: Step,
    elapsed: Duration,
    /// What was counted, where that could be done.
    tally: Option<Tally>,
    result: Result<()>,
}

pub(crate) fn run(args: &TestArgs) -> Result<()> {
    match &args.suite {
        Some(Suite::Real(args)) => return real::run(args),
        Some(Suite::Editor) => return process::run(&mut browser::editor()?),
        None => {}
    }
    if args.list {
        for step in Step::value_variants() {
            println!("{:<8}{}", step.name(), step.shown());
        }
        return Ok(());
    }
    let steps = args.only.as_ref().map_or(Step::value_variants(), std::slice::from_ref);
    let mut all_done = Vec::new();
    for &step in steps {
        eprintln!("== {}: {}", step.name(), step.shown());
        let start = now();
        let (tally, result) = perform(step, args);
        let failed = result.is_err();
        all_done.push(Done { step, elapsed: start.elapsed(), tally, result });
        if failed {
            break;
        }
    }
    summarise(&all_done, steps.len());
    if let Some(tally) = all_done.iter().filter_map(|done| done.tally).reduce(Tally::plus) {
        println!("{tally}");
    }
    let Some(Done { step, result: Err(error), .. }) = all_done.pop() else {
        return Ok(());
    };
    Err(anyhow!("{error:#}; to run only this step again: {}", rerun(step, args.kills)))
}

fn summarise(all_done: &[Done], planned: usize) {
    eprintln!("== summary");
    for Done { step, elapsed, tally, result } in all_done {
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        let counted = tally.map(|tally| format!(": {tally}")).unwrap_or_default();
        eprintln!("{:<8}{:>7.1} s  {word}{counted}", step.name(), elapsed.as_secs_f64());
    }
    let left = planned - all_done.len();
    if left > 0 {
        eprintln!("{left} more not run");
    }
}

fn rerun(step: Step, kills: Option<u32>) -> String {
    let command = format!("cargo xtask test --only {}", step.name());
    match kills {
        Some(count) if step == Step::Tests => format!("{command} --kills {count}"),
        Some(_) | None => command,
    }
}

fn perform(step: Step, args: &TestArgs) -> (Option<Tally>, Result<()>) {
    match step {
        Step::Fmt => (None, fmt()),
        Step::Clippy => (None, clippy()),
        Step::Tests => run_tests(args.kills),
        Step::Doc => {
            let mut command = process::cargo(["doc", "--workspace", "--no-deps"]);
            (None, process::run(command.env("RUSTDOCFLAGS", "-D warnings")))
        }
        Step::Tidy => (None, tidy::run(&tidy::TidyArgs::default())),
        Step::Audit => (None, audit::run()),
        Step::Web => check_web(),
        Step::Editor => check_editor(),
        Step::Browser => match browser::command() {
            Ok(mut command) => run_counted(&mut command, Runner::Playwright),
            Err(error) => (None, Err(error)),
        },
    }
}

fn fmt() -> Result<()> {
    need("fmt", "rustfmt")?;
    process::run(&mut process::cargo(["fmt", "--all", "--check"]))
        .context("the code is not formatted (`cargo fmt --all` does it)")
}

fn clippy() -> Result<()> {
    need("clippy", "clippy")?;
    let flags = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run(&mut process::cargo(flags))?;
    // Not among all targets, because plain `cargo test` must leave it alone. Of the whole workspace, so that packages
    // have the features they had above and nothing is compiled again.
    let flags = ["clippy", "--workspace", "--test", "real", "--", "-D", "warnings"];
    process::run(&mut process::cargo(flags))
}

/// The dashboard's own checks, then its build, and what that may weigh.
fn check_web() -> (Option<Tally>, Result<()>) {
    if let Err(error) = web::install() {
        return (None, Err(error));
    }
    let (tally, checked) = run_counted(&mut web::npm(["run", "--silent", "check"]), Runner::Vitest);
    let built = || {
        web::build()?;
        process::run(&mut web::npm(["run", "--silent", "size"]))
    };
    (tally, checked.and_then(|()| built()))
}

/// The extension's own checks, then its package. What it does inside of an editor is `cargo xtask test editor`.
fn check_editor() -> (Option<Tally>, Result<()>) {
    if let Err(error) = editor::install() {
        return (None, Err(error));
    }
    let (tally, checked) = run_counted(&mut editor::npm(["run", "--silent", "check"]), Runner::Vitest);
    (tally, checked.and_then(|()| editor::package().map(drop)))
}

/// Says what to install when a component of the toolchain is missing.
fn need(subcommand: &str, component: &str) -> Result<()> {
    if !process::works(&mut process::cargo([subcommand, "--version"])) {
        bail!("`cargo {subcommand}` is not installed (`rustup component add {component}` installs it)");
    }
    Ok(())
}

/// Runs the tests and counts them where that can be done without spoiling the output. They fail when a process of
/// theirs is left.
fn run_tests(kills: Option<u32>) -> (Option<Tally>, Result<()>) {
    if let Err(error) = programs::for_tests() {
        return (None, Err(error));
    }
    let (runner, mut command) = if process::works(&mut process::cargo(["nextest", "--version"])) {
        (
            Runner::Nextest,
            process::cargo(["nextest", "run", "--workspace", "--retries", "0", "--no-fail-fast"]),
        )
    } else {
        (Runner::Harness, process::cargo(["test", "--workspace"]))
    };
    if let Some(kills) = kills {
        command.env("LANYARD_KILLS", kills.to_string());
    }
    let reaper = match left::adopt() {
        Ok(reaper) => reaper,
        Err(error) => return (None, Err(error)),
    };
    let (tally, result) = run_counted(&mut command, runner);
    let left = left::check();
    drop(reaper);
    (tally, result.and(left))
}

/// Runs a command and counts the tests in what it prints.
fn run_counted(command: &mut Command, runner: Runner) -> (Option<Tally>, Result<()>) {
    // A pipe would cost a person the live progress; the summary is before their eyes anyway.
    if stderr().is_terminal() {
        return (None, process::run(command));
    }
    match counted(command, runner) {
        Ok((tally, result)) => (tally, result),
        Err(error) => (None, Err(error)),
    }
}

/// Passes the output on to stderr while counting the results in it. The stream that carries
/// them differs: nextest reports on stderr, all others on stdout.
fn counted(command: &mut Command, runner: Runner) -> Result<(Option<Tally>, Result<()>)> {
    let shown = process::show(command);
    let spawned = match runner {
        Runner::Nextest => command.stderr(Stdio::piped()).spawn(),
        Runner::Harness | Runner::Vitest | Runner::Playwright => command.stdout(Stdio::piped()).spawn(),
    };
    let mut child = spawned.with_context(|| format!("cannot start `{shown}`"))?;
    let tally = match (child.stderr.take(), child.stdout.take()) {
        (Some(stream), _) => tally::copy(runner, stream, stderr()),
        (None, Some(stream)) => tally::copy(runner, stream, stderr()),
        (None, None) => Ok(None),
    };
    let status = child.wait().with_context(|| format!("cannot wait for `{shown}`"))?;
    let result = if status.success() { Ok(()) } else { Err(anyhow!("`{shown}` ended with {status}")) };
    Ok((tally.with_context(|| format!("cannot read what `{shown}` prints"))?, result))
}

#[expect(clippy::disallowed_methods, reason = "how long a step took is for the reader only")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_called_the_same_on_the_command_line_and_in_messages() {
        for &step in Step::value_variants() {
            assert_eq!(Step::from_str(step.name(), false), Ok(step));
        }
    }

    #[test]
    fn the_rerun_command_repeats_the_kills_where_they_matter() {
        assert_eq!(rerun(Step::Clippy, Some(9)), "cargo xtask test --only clippy");
        assert_eq!(rerun(Step::Tests, Some(9)), "cargo xtask test --only tests --kills 9");
    }
}
