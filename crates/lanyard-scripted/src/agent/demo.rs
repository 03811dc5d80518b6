//! What the agent does when a prompt has no steps: something worth watching. It reads, and never changes a file.

use std::path::Path;

use super::script::{self, Step};

/// How many files the subagents look at, each.
const FILES_EACH: usize = 3;
/// How many entries of the folder are looked at to find them.
const ENTRIES_MAX: usize = 1_000;

/// The steps of the demo in this folder.
pub(super) fn steps(cwd: &Path) -> Vec<Step> {
    // The text below is tested; were it wrong, the turn would end at once.
    script::parse(&text(&files(cwd))).unwrap_or_default()
}

fn text(files: &[String]) -> String {
    let (mine, theirs) = files.split_at(files.len().div_ceil(2));
    format!(
        "/pace 90\n\
         /think The user wants to see how this works. I will look around with two helpers and change nothing.\n\
         /plan look at what is here | check how it fits together | sum up\n\
         /say I will send two helpers ahead and sum up what they find.\n\
         /spawn scout {}\n\
         /spawn checker {}\n\
         /wait 1500\n\
         /say Both are on their way; watch them in the tree.\n\
         /tool search {{\"pattern\": \"README\"}}\n\
         /join\n\
         /plan-done 1\n\
         /plan-done 2\n\
         /think Both came back. Nothing was changed, so there is nothing to review.\n\
         /say That is the tour: a plan, two subagents, tool calls, a question, and this summary. \
         Nothing was changed. Try a script of your own: lines such as /say hello or /run ls.\n\
         /plan-done 3\n\
         /usage 5200 460 200000\n",
        scout(mine),
        checker(theirs),
    )
}

fn scout(files: &[String]) -> String {
    let mut steps = vec!["/pace 120".to_owned(), "/say Looking at what is here.".to_owned()];
    for file in files {
        steps.push(format!("/look {file}"));
        steps.push("/wait 1800".to_owned());
        steps.push(format!("/say I have read {file}."));
    }
    steps.push("/wait 1500".to_owned());
    steps.push(format!("/say I read {} of the files here.", files.len()));
    steps.join(" ; ")
}

fn checker(files: &[String]) -> String {
    let mut steps = vec![
        "/pace 120".to_owned(),
        "/think I should not run anything without asking.".to_owned(),
        "/say Checking how it fits together.".to_owned(),
    ];
    for file in files {
        steps.push(format!("/look {file}"));
        steps.push("/wait 2600".to_owned());
    }
    steps.push("/ask Count the files here".to_owned());
    steps.push("/wait 1000".to_owned());
    steps.push("/say It fits together as far as I can see.".to_owned());
    steps.join(" ; ")
}

/// Some files of the folder, in order, whose names cannot be mistaken for anything else in a script.
fn files(cwd: &Path) -> Vec<String> {
    let Ok(folder) = std::fs::read_dir(cwd) else { return Vec::new() };
    let plain = |name: &String| {
        !name.starts_with('.')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
    };
    let mut files: Vec<String> = folder
        .take(ENTRIES_MAX)
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(plain)
        .collect();
    files.sort();
    files.truncate(2 * FILES_EACH);
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_is_a_script_with_two_children() {
        for count in 0..=6 {
            let files: Vec<String> = (0..count).map(|number| format!("file-{number}.rs")).collect();
            let steps = script::parse(&text(&files)).unwrap();
            let children = steps.iter().filter(|step| matches!(step, Step::Spawn { .. })).count();
            assert_eq!(children, 2, "{count} files");
        }
    }
}
