//! A page of the docs as commands: `$` lines of its console blocks, and the comments that the page has for the test.
//!
//! - `<!-- run: COMMAND -->`, or `<!-- run` with a command per line: commands that prepare the next block. They must
//!   succeed; what they print is not compared.
//! - `<!-- not run: REASON -->`: the next console block is not run.
//!
//! A command with a remark (`  # …`) and no output below it has to succeed; what it prints is not compared.

/// One command of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Prepares the next block.
    Hidden(String),
    /// Shown with what it prints; none where a remark stands for it.
    Shown { command: String, printed: Option<Vec<String>> },
    /// The first command of a block that is not run, and the reason.
    Unrun { command: String, reason: String },
}

/// What the lines of a page belong to.
enum Inside {
    Text,
    /// Another kind of block.
    Code,
    Console,
    /// A block that is not run, until its first command is known and after it.
    Skipped(Option<String>),
    /// A comment with commands.
    Comment,
}

pub(super) fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut inside, mut reason) = (Inside::Text, None);
    let mut continued = false;
    for line in page.lines() {
        let fence = line.starts_with("```");
        match &mut inside {
            Inside::Text if line == "```console" => {
                inside = reason.take().map_or(Inside::Console, |reason| Inside::Skipped(Some(reason)));
            }
            Inside::Text if fence => inside = Inside::Code,
            Inside::Text if line == "<!-- run" => inside = Inside::Comment,
            Inside::Text => {
                if let Some(comment) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) {
                    reason = comment.strip_prefix("not run: ").map(str::to_owned);
                    let command = comment.strip_prefix("run: ");
                    steps.extend(command.map(|command| Step::Hidden(command.to_owned())));
                }
            }
            Inside::Comment if line == "-->" => inside = Inside::Text,
            Inside::Comment => steps.push(Step::Hidden(line.to_owned())),
            Inside::Code | Inside::Console | Inside::Skipped(_) if fence => inside = Inside::Text,
            Inside::Code => {}
            Inside::Skipped(why) => {
                let command = line.strip_prefix("$ ");
                if let Some((command, reason)) = command.and_then(|command| Some((command, why.take()?))) {
                    steps.push(Step::Unrun { command: bare(command), reason });
                }
            }
            Inside::Console => {
                let command = line.strip_prefix("$ ");
                match (command, steps.last_mut()) {
                    (None, Some(Step::Shown { command, .. })) if continued => {
                        command.push('\n');
                        command.push_str(line);
                        continued = line.ends_with('\\');
                    }
                    (None, Some(Step::Shown { printed, .. })) => {
                        printed.get_or_insert_default().push(line.trim_end().to_owned());
                    }
                    (None, _) => panic!("`{line}` stands before the first command of its block"),
                    (Some(shown), _) => {
                        continued = shown.ends_with('\\');
                        let command = bare(shown);
                        let printed = (command.len() == shown.trim_end().len()).then(Vec::new);
                        steps.push(Step::Shown { command, printed });
                    }
                }
            }
        }
    }
    for step in &mut steps {
        if let Step::Shown { printed: Some(printed), .. } = step {
            let used = printed.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
            printed.truncate(used);
        }
    }
    steps
}

/// The lines of all console blocks.
pub(super) fn console_lines(page: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    page.lines().filter(move |line| {
        if line.starts_with("```") {
            inside = *line == "```console";
        }
        inside
    })
}

/// The command without the remark behind it.
fn bare(command: &str) -> String {
    command.split("  #").next().unwrap_or_default().trim_end().to_owned()
}

#[test]
fn a_page_is_read_as_commands_with_what_they_print() {
    let page = "text\n<!-- run: prepare it -->\n```console\n$ one  # why\n  out\n\n$ two \\\n    more\n$ three  # why\n```\n```toml\n$ not\n```\n\
                <!-- run\nfirst\nsecond\n-->\n<!-- not run: it needs root -->\n```console\n$ sudo x\n$ y\n```\n";
    let shown = |command: &str, printed: &[&str]| Step::Shown {
        command: command.to_owned(),
        printed: Some(printed.iter().map(|line| (*line).to_owned()).collect()),
    };
    let hidden = |command: &str| Step::Hidden(command.to_owned());
    let unrun = Step::Unrun { command: "sudo x".to_owned(), reason: "it needs root".to_owned() };
    assert_eq!(
        steps(page),
        [
            hidden("prepare it"),
            shown("one", &["  out"]),
            shown("two \\\n    more", &[]),
            Step::Shown { command: "three".to_owned(), printed: None },
            hidden("first"),
            hidden("second"),
            unrun
        ]
    );
}
