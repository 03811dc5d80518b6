//! The performance goals, measured: Lanyard beside bare references in the same run, and whether each goal is met.
//!
//! Subject and reference alternate, and a figure is the median of the repetitions. A goal that is missed is said
//! clearly and is no error. Everything runs on loopback and in one folder that is removed at the end.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![allow(clippy::disallowed_methods, reason = "a bench reads clocks")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "figures are rounded anyway"
)]

mod agents;
mod crowd;
mod durable;
mod engine;
mod fanout;
mod fixture;
mod gateway;
mod http;
mod listing;
mod load;
mod machine;
mod memory;
mod names;
mod process;
mod ready;
mod recall;
mod recovery;
mod redis;
mod references;
mod report;
mod scrape;
mod search;
mod slow;
mod turns;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;

use crate::report::Row;

/// Every goal there is, in the order they are shown.
const GOALS: [&str; 28] = [
    "D1", "D4", "T1", "F1", "F2", "F3", "F4", "L1", "M1", "M2", "rss", "R1", "R2", "list", "names", "scrape",
    "A1", "A2", "A3", "P1", "P2", "P3", "P4", "P5", "P6", "guided", "recall", "search",
];

/// Others' share of the machine above which figures are noise. What the kernel does for us is counted as theirs.
const NOISE_PERCENT: f64 = 15.0;

/// Measure Lanyard's performance goals
#[derive(Debug, Parser)]
#[command(name = "goals")]
struct Args {
    /// Only these goals, such as `D1,F1`
    #[arg(long, value_delimiter = ',', value_parser = GOALS)]
    only: Vec<String>,
    /// Three short repetitions of smaller things: to see that it works, not to judge by
    #[arg(long)]
    quick: bool,
    /// Write everything that was measured to this file as well
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where journals are made: on the disk that is to be measured
    #[arg(long, value_name = "DIR", default_value = env!("CARGO_TARGET_TMPDIR"))]
    dir: PathBuf,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
    /// Be one of the references instead
    #[arg(long, hide = true)]
    role: Option<String>,
    #[arg(hide = true)]
    rest: Vec<String>,
}

/// How much is measured, and of what.
#[derive(Debug)]
struct Plan {
    only: Vec<String>,
    repetitions: usize,
    /// How long a closed loop runs.
    span: Duration,
    /// Events published evenly in one go.
    paced_events: u32,
    /// Sessions of the full journal, and their events.
    sessions: usize,
    events: usize,
    idle_observers: usize,
    /// How long sessions and readers are under load: a small crowd and a large one.
    load_spans: [Duration; 2],
}

impl Plan {
    fn of(args: &Args) -> Self {
        let only = args.only.clone();
        if args.quick {
            let (span, sessions) = (Duration::from_millis(500), 20_000);
            Self {
                only,
                repetitions: 3,
                span,
                paced_events: 20,
                sessions,
                events: 200_000,
                idle_observers: 1_000,
                load_spans: [Duration::from_secs(5), Duration::from_secs(10)],
            }
        } else {
            let (span, sessions) = (Duration::from_secs(2), 100_000);
            Self {
                only,
                repetitions: 5,
                span,
                paced_events: 100,
                sessions,
                events: 1_000_000,
                idle_observers: 5_000,
                load_spans: [Duration::from_mins(1), Duration::from_mins(10)],
            }
        }
    }

    fn wants(&self, goal: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == goal)
    }

    fn wants_any(&self, goals: &[&str]) -> bool {
        goals.iter().any(|goal| self.wants(goal))
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match (&args.role, args.bench) {
        (Some(role), _) => references::play(role, &args.rest).map(|()| true),
        (None, true) => measure(&args),
        // `cargo test` builds benches and starts them without a word.
        (None, false) => Ok(true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Answers whether everything could be measured.
fn measure(args: &Args) -> Result<bool> {
    let plan = Plan::of(args);
    let mut facts = machine::facts();
    facts.push(("scale", if args.quick { "quick" } else { "full" }.to_owned()));
    let files = machine::raise_open_files()?;
    anyhow::ensure!(files > plan.idle_observers as u64 + 1_000, "only {files} open files are allowed");
    std::fs::create_dir_all(&args.dir)?;
    let dir = tempfile::Builder::new().prefix("goals-").tempdir_in(&args.dir)?;
    let others = machine::Others::watch()?;
    let (rows, errors) = rooms(&plan, dir.path());
    let theirs = others.percent()?;
    facts.push(("used by others", format!("{theirs:.0} % of all cores during the run")));
    println!("{}", report::table(&rows));
    for (name, value) in &facts {
        println!("{name:<16}{value}");
    }
    if theirs > NOISE_PERCENT {
        println!(
            "\nThe machine was busy with other things: durable and latency figures are not to be judged by."
        );
    }
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report::json(&rows, &facts))?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    for error in &errors {
        eprintln!("error: {error:#}");
    }
    Ok(errors.is_empty())
}

/// Goes through the groups of goals. What fails in one does not keep the others from being measured.
fn rooms(plan: &Plan, dir: &Path) -> (Vec<Row>, Vec<anyhow::Error>) {
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    let mut enter = |name: &'static str, goals: &[&str], room: &dyn Fn(&Path) -> Result<Vec<Row>>| {
        if !plan.wants_any(goals) {
            return;
        }
        let place = dir.join(name);
        let done = std::fs::create_dir_all(&place).map_err(anyhow::Error::from).and_then(|()| room(&place));
        match done.with_context(|| format!("{name} could not be measured")) {
            Ok(measured) => rows.extend(measured),
            Err(error) => errors.push(error),
        }
    };
    let (full, crashed) = (dir.join("full"), dir.join("crashed"));
    let catalogue = ["M2", "rss", "R1", "list", "names", "scrape"];
    enter("durable", &["D1", "D4"], &|dir| durable::run(plan, dir));
    enter("turns", &["T1"], &|dir| turns::run(plan, dir));
    enter("fanout", &["F1", "F2", "F3", "F4"], &|dir| fanout::run(plan, dir));
    enter("load", &["L1"], &|dir| load::run(plan, dir));
    enter("observers", &["M1"], &|dir| memory::observers(plan, dir));
    enter("catalogue", &catalogue, &|_| {
        progress(&format!("writing a journal of {} sessions and {} events", plan.sessions, plan.events));
        recovery::catalogue(plan, &full, &crashed).map(|()| Vec::new())
    });
    enter("sessions", &["M2", "rss"], &|dir| memory::sessions(plan, dir, &full));
    enter("restart", &["R1"], &|_| recovery::restart(plan, &full, &crashed));
    enter("listing", &["list"], &|_| listing::run(plan, &full));
    enter("names", &["names"], &|_| names::run(plan, &full));
    enter("scrape", &["scrape"], &|_| scrape::run(plan, &full));
    enter("resume", &["R2"], &|dir| recovery::resume(plan, dir));
    enter("agents", &["A1", "A2", "A3"], &|dir| agents::run(plan, dir));
    let gateway = ["P1", "P2", "P3", "P4", "P5", "P6", "guided"];
    enter("gateway", &gateway, &|dir| gateway::run(plan, dir));
    enter("recall", &["recall"], &|dir| recall::run(plan, dir));
    enter("search", &["search"], &|dir| search::run(plan, dir));
    rows.retain(|row| plan.wants(row.goal));
    (rows, errors)
}

fn progress(what: &str) {
    eprintln!("  {what}");
}
