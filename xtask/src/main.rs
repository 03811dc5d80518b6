//! `cargo xtask`: the project's own tooling, in Rust so that it needs nothing but cargo and git, and Node for the
//! dashboard alone. `dist` also uses the tools that make packages: GNU tar, gzip, dpkg-deb.
//!
//! One file per subcommand. A new one is a module, a variant of [`Task`] and an arm in `main`.
#![allow(clippy::print_stdout, reason = "a command line tool: data goes to stdout, talk to stderr")]

mod allow;
mod artifact;
mod audit;
mod bench;
mod dist;
mod docs;
mod editor;
mod process;
mod schema;
mod test;
mod tidy;
mod up;
mod web;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", about = "Build, check and try Lanyard")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build Lanyard, start the daemon in the background and say what to try next
    Up(up::UpArgs),
    /// Run every check that CI runs, in the same order
    Test(test::TestArgs),
    /// Check file sizes, module docs, Markdown links and other habits of the tree
    Tidy(tidy::TidyArgs),
    /// Measure the performance goals beside bare references, and say which are met
    Bench(bench::BenchArgs),
    /// Check the licences and duplicate versions of third-party packages
    Audit,
    /// Build the docs as a book, with pages made from the commands, the API and the refusals
    Docs(docs::DocsArgs),
    /// Write schema/openapi.json, or check that it is up to date
    Schema(schema::SchemaArgs),
    /// Make the packages of this platform: tarball, Debian, npm, checksums and bill of materials
    Dist(dist::DistArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Up(args) => up::run(&args),
        Task::Test(args) => test::run(&args),
        Task::Tidy(args) => tidy::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::Audit => audit::run(),
        Task::Docs(args) => docs::run(&args),
        Task::Schema(args) => schema::run(&args),
        Task::Dist(args) => dist::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
