//! `cargo xtask test`: what CI runs, step by step, stopping at the first that fails. `cargo xtask test real`
//! is apart from it.

pub(crate) mod real;
mod tally;

use std::io::{IsTerminal, stderr};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;

use self::tally::{Runner, Tally};
use crate::{audit, process, tidy};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
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
    Real(real::Args),
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
        }
    }

    fn shown(self) -> &'static str {
        match self {
            Step::Fmt => "cargo fmt --all --check",
            Step::Clippy => "cargo clippy --workspace --all-targets -- -D warnings (and of --test real)",
            Step::Tests => "cargo nextest run --workspace (cargo test without nextest)",
            Step::Doc => "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps",
            Step::Tidy => "cargo xtask tidy",
            Step::Audit => "cargo xtask audit",
        }
    }
}

/// How a step went, for the summary.
#[derive(Debug)]
struct Done {
    step: Step,
    elapsed: Duration,
    result: Result<()>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(Suite::Real(args)) = &args.suite {
        return real::run(args);
    }
    if args.list {
        for step in Step::value_variants() {
            println!("{:<8}{}", step.name(), step.shown());
        }
        return Ok(());
    }
    let steps = args.only.as_ref().map_or(Step::value_variants(), std::slice::from_ref);
    let mut all_done = Vec::new();
    let mut tally = None;
    for &step in steps {
        eprintln!("== {}: {}", step.name(), step.shown());
        let start = now();
        let result = perform(step, args, &mut tally);
        let failed = result.is_err();
        all_done.push(Done { step, elapsed: start.elapsed(), result });
        if failed {
            break;
        }
    }
    summarise(&all_done, steps.len());
    if let Some(tally) = tally {
        println!("{tally}");
    }
    let Some(Done { step, result: Err(error), .. }) = all_done.pop() else {
        return Ok(());
    };
    Err(anyhow!("{error:#}; to run only this step again: {}", rerun(step, args.kills)))
}

fn summarise(all_done: &[Done], planned: usize) {
    eprintln!("== summary");
    for Done { step, elapsed, result } in all_done {
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        eprintln!("{:<8}{:>7.1} s  {word}", step.name(), elapsed.as_secs_f64());
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

fn perform(step: Step, args: &Args, tally: &mut Option<Tally>) -> Result<()> {
    match step {
        Step::Fmt => {
            need("fmt", "rustfmt")?;
            process::run(&mut process::cargo(["fmt", "--all", "--check"]))
                .context("the code is not formatted (`cargo fmt --all` does it)")
        }
        Step::Clippy => {
            need("clippy", "clippy")?;
            let flags = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
            process::run(&mut process::cargo(flags))?;
            // Not among all targets, because plain `cargo test` must leave it alone.
            let flags = ["clippy", "-p", "lanyard", "--test", "real", "--", "-D", "warnings"];
            process::run(&mut process::cargo(flags))
        }
        Step::Tests => {
            let (counted, result) = run_tests(args.kills);
            *tally = counted;
            result
        }
        Step::Doc => {
            let mut command = process::cargo(["doc", "--workspace", "--no-deps"]);
            process::run(command.env("RUSTDOCFLAGS", "-D warnings"))
        }
        Step::Tidy => tidy::run(),
        Step::Audit => audit::run(),
    }
}

/// Says what to install when a component of the toolchain is missing.
fn need(subcommand: &str, component: &str) -> Result<()> {
    if !process::works(&mut process::cargo([subcommand, "--version"])) {
        bail!("`cargo {subcommand}` is not installed (`rustup component add {component}` installs it)");
    }
    Ok(())
}

/// Runs the tests and counts them where that can be done without spoiling the output.
fn run_tests(kills: Option<u32>) -> (Option<Tally>, Result<()>) {
    let (runner, mut command) = if process::works(&mut process::cargo(["nextest", "--version"])) {
        (Runner::Nextest, process::cargo(["nextest", "run", "--workspace"]))
    } else {
        (Runner::Harness, process::cargo(["test", "--workspace"]))
    };
    if let Some(kills) = kills {
        command.env("LANYARD_KILLS", kills.to_string());
    }
    // A pipe would cost a person the live progress; the summary is before their eyes anyway.
    if stderr().is_terminal() {
        return (None, process::run(&mut command));
    }
    match counted(&mut command, runner) {
        Ok((tally, result)) => (tally, result),
        Err(error) => (None, Err(error)),
    }
}

/// Passes the output on to stderr while counting the results in it. The stream that carries
/// them differs: nextest reports on stderr, the standard harness on stdout.
fn counted(command: &mut Command, runner: Runner) -> Result<(Option<Tally>, Result<()>)> {
    let shown = process::show(command);
    let spawned = match runner {
        Runner::Nextest => command.stderr(Stdio::piped()).spawn(),
        Runner::Harness => command.stdout(Stdio::piped()).spawn(),
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
