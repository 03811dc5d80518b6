//! `cargo xtask docs`: the docs as a book.
//!
//! The pages are the files in `docs/`, which stay readable as they are. A staged copy gets what is made from the
//! program: a page per command, a page per refusal code and the routes of the API. `mdbook` turns the copy into HTML.

mod reference;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{artifact, process};

/// The release that is installed where no `mdbook` is on PATH.
const MDBOOK: &str = "0.5.4";

/// Files and folders of the repository that the book holds. Their places stay, so that links between them hold.
const STAGED: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "schema/openapi.json"];

const BOOK: &str = "\
[book]
title = \"Lanyard\"
src = \"src\"

[output.html]
no-section-label = true
";

#[derive(Debug, clap::Args)]
pub(crate) struct DocsArgs {
    /// Write the pages only, without HTML
    #[arg(long)]
    pages: bool,
}

pub(crate) fn run(args: &DocsArgs) -> Result<()> {
    let folder = process::root().join("target/book");
    let pages = stage(&folder)?;
    eprintln!("{pages} pages in {}", folder.join("src").display());
    if args.pages {
        return Ok(());
    }
    process::run(Command::new(mdbook()?).arg("build").arg(&folder))?;
    println!("{}", folder.join("book/index.html").display());
    Ok(())
}

/// Writes the source of the book anew, and returns how many pages its table of contents has.
fn stage(folder: &Path) -> Result<usize> {
    let source = folder.join("src");
    if source.exists() {
        fs::remove_dir_all(&source).with_context(|| format!("cannot clear {}", source.display()))?;
    }
    let root = process::root();
    for name in STAGED {
        copy(&root.join(name), &source.join(name))?;
    }
    let mut summary = summary(&read(&root.join("docs/SUMMARY.md"))?);
    let mut write = |title: &str, pages: Vec<reference::Page>| -> Result<()> {
        // Writing to a string cannot fail.
        let _ = write!(summary, "\n# {title}\n\n");
        for page in pages {
            put(&source.join(&page.path), &page.text)?;
            let _ = writeln!(summary, "- [{}]({})", page.title, page.path);
        }
        Ok(())
    };
    let commands = process::read(Command::new(artifact::of_tests()?).args(["schema", "--commands"]))?;
    write("Commands", reference::commands(&commands)?)?;
    write("The API", vec![reference::api(&read(&root.join("schema/openapi.json"))?)?])?;
    write("Refusals, one by one", reference::refusals(&read(&root.join("docs/refusals.md"))?))?;
    put(&source.join("SUMMARY.md"), &summary)?;
    put(&folder.join("book.toml"), BOOK)?;
    Ok(summary.matches("](").count())
}

/// The table of contents with its links as they are from the book's root instead of from `docs/`.
fn summary(text: &str) -> String {
    text.replace("](../", "](\u{0}").replace("](", "](docs/").replace("](docs/\u{0}", "](")
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn put(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let told = || format!("cannot copy {}", from.display());
    if from.is_dir() {
        for entry in fs::read_dir(from).with_context(told)? {
            let entry = entry.with_context(told)?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::create_dir_all(to.parent().unwrap_or(to)).with_context(told)?;
    fs::copy(from, to).with_context(told)?;
    Ok(())
}

/// The `mdbook` on PATH, or the one that is installed into the target folder once.
fn mdbook() -> Result<PathBuf> {
    if process::works(Command::new("mdbook").arg("--version")) {
        return Ok("mdbook".into());
    }
    let tools = process::root().join("target/tools");
    let program = tools.join("bin/mdbook");
    if !process::works(Command::new(&program).arg("--version")) {
        eprintln!("installing mdbook {MDBOOK} into {} (some minutes, once)", tools.display());
        let mut install = process::cargo(["install", "mdbook", "--version", MDBOOK, "--locked"]);
        install.args(["--no-default-features", "--features", "search", "--root"]).arg(&tools);
        process::run(&mut install)?;
    }
    if !program.exists() {
        bail!("cargo installed no mdbook into {}", tools.display());
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_the_table_of_contents_lead_from_the_books_root() {
        let text = "[Overview](../README.md)\n- [Flows](flows.md)\n";
        assert_eq!(summary(text), "[Overview](README.md)\n- [Flows](docs/flows.md)\n");
    }
}
