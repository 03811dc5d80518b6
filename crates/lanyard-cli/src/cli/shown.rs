//! Commands that the docs show are commands that Lanyard understands.

use std::fs;
use std::path::{Path, PathBuf};

use super::help;

/// The README and every page of the docs.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.chain([root.join("README.md")]).collect()
}

/// The lines behind a prompt in blocks of console output, with those that a backslash continues.
fn commands(page: &str) -> Vec<String> {
    let (mut found, mut inside): (Vec<String>, bool) = (Vec::new(), false);
    let mut continued = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if continued {
            let last = found.last_mut().unwrap();
            last.pop();
            last.push_str(line.trim_start());
            continued = line.ends_with('\\');
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            continued = command.ends_with('\\');
            found.push(command.to_owned());
        }
    }
    found
}

/// The words of each `lanyard` command on a line, as a shell would split it.
fn invocations(line: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | ';' | '&' | '(' | ')') => {
                all.last_mut().unwrap().extend(word.take());
                all.push(Vec::new());
            }
            (None, '<' | '>') => {
                // The file behind it is the shell's.
                all.last_mut().unwrap().extend(word.take().filter(|word| word != "2"));
                while chars.next_if(|c| *c == ' ' || *c == '>').is_some() {}
                while chars.next_if(|c| *c != ' ').is_some() {}
            }
            (None, ' ') => all.last_mut().unwrap().extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    all.last_mut().unwrap().extend(word.take());
    let is_setting = |word: &String| word.contains('=') && !word.starts_with('-');
    let bare = |words: Vec<String>| words.into_iter().skip_while(is_setting).collect::<Vec<String>>();
    all.into_iter().map(bare).filter(|words| words.first().is_some_and(|word| word == "lanyard")).collect()
}

/// What is wrong with each command of a line.
fn misread(line: &str) -> Vec<String> {
    let why = |words: Vec<String>| {
        let error =
            help::command().try_get_matches_from(&words).err().filter(|error| error.exit_code() != 0)?;
        let why = error.to_string().lines().next().unwrap_or_default().to_owned();
        Some(format!("{line}\n    {why}"))
    };
    invocations(line).into_iter().filter_map(why).collect()
}

#[test]
fn the_docs_show_only_commands_that_are_understood() {
    let mut lines: Vec<String> = Vec::new();
    for path in pages() {
        lines.extend(commands(&fs::read_to_string(&path).unwrap()));
    }
    assert!(lines.len() > 60, "only {} commands were found in the docs", lines.len());
    let misread: Vec<String> = lines.iter().flat_map(|line| misread(line)).collect();
    assert!(misread.is_empty(), "{}", misread.join("\n"));
}

#[test]
fn the_help_shows_only_commands_that_are_understood() {
    let mut lines: Vec<String> = Vec::new();
    let mut examples = |command: &clap::Command| {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        lines.extend(
            text.lines().filter(|line| line.starts_with("  lanyard ")).map(|line| line.trim().to_owned()),
        );
    };
    for command in help::command().get_subcommands() {
        examples(command);
        command.get_subcommands().for_each(&mut examples);
    }
    assert!(lines.len() > 100, "only {} commands were found in the help", lines.len());
    let misread: Vec<String> = lines.iter().flat_map(|line| misread(line)).collect();
    assert!(misread.is_empty(), "{}", misread.join("\n"));
}

/// All text of the source files below a folder.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
    text
}

/// A code that no command has any more would be looked for in vain.
#[test]
fn the_codes_of_the_troubleshooting_page_exist() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(manifest.join("../../docs/troubleshooting.md")).unwrap();
    let (_, table) = page.split_once("## Codes of the command line").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let codes: Vec<&str> = cells.flat_map(|cell| cell.trim_end_matches('`').split("`, `")).collect();
    assert!(codes.len() > 12, "{codes:?}");
    let sources = sources(&manifest.join("src"));
    for code in codes {
        assert!(sources.contains(&format!("\"{code}\"")), "no command has the code {code}");
    }
}

#[test]
fn a_line_is_split_as_a_shell_does_it() {
    let split = |line| invocations(line);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(split("lanyard run \"fix it\"  # why"), [words(&["lanyard", "run", "fix it"])]);
    assert_eq!(split("lanyard send x - < task.md"), [words(&["lanyard", "send", "x", "-"])]);
    assert_eq!(
        split("lanyard ls --json | jq -r '.items[].id' && A=b lanyard top"),
        [words(&["lanyard", "ls", "--json"]), words(&["lanyard", "top"])]
    );
    assert_eq!(split("cargo xtask up"), Vec::<Vec<String>>::new());
}
