//! `lanyard task edit`.

use lanyard_api::types::{TaskEdit, TaskView};
use lanyard_core::paper::Priority;
use lanyard_core::task::{Isolation, ParentEnd};

use super::{Target, told};
use crate::cli::target::text_or_stdin;
use crate::cli::words;
use crate::context::Context;
use crate::failure::Failure;

pub(super) const EXAMPLES: &str = "\
Fields that are left out stay. A running task is not changed: cancel it first, or send it a
message.

Examples:
  lanyard task edit notes --prompt \"only what users notice\"
  lanyard task edit notes --after changelog --after review
  lanyard task edit notes --after \"\"";

#[derive(Debug, clap::Args)]
pub(super) struct Edit {
    #[command(flatten)]
    target: Target,
    /// What people see it under
    #[arg(long)]
    title: Option<String>,
    /// Message to its agent; `-` reads it from stdin
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// The agent that does it
    #[arg(long)]
    agent: Option<String>,
    /// The tasks that must be completed first, instead of those before; an empty one for none
    #[arg(long, value_name = "TASK")]
    after: Vec<String>,
    /// Which goes first
    #[arg(long, value_parser = words::priority())]
    priority: Option<Priority>,
    /// The group it runs in
    #[arg(long)]
    group: Option<String>,
    /// What it will write, instead of what was said before; an empty one for nothing
    #[arg(long = "file", value_name = "PATTERN")]
    files: Vec<String>,
    /// The branch, tag or commit its worktree begins at
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Whether it has a git worktree of its own
    #[arg(long, value_name = "HOW", value_parser = words::isolation())]
    isolation: Option<Isolation>,
    /// What becomes of it when the task it is a part of ends first
    #[arg(long, value_name = "THEN", value_parser = words::when_parent_ends())]
    when_parent_ends: Option<ParentEnd>,
    /// Whether its worker may make tasks of its own
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    may_spawn: Option<bool>,
}

impl Edit {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let body = TaskEdit {
            title: self.title,
            prompt: self.prompt.map(text_or_stdin).transpose()?,
            agent: self.agent,
            depends_on: list(self.after),
            priority: self.priority,
            group: self.group,
            files: list(self.files),
            base: self.base,
            isolation: self.isolation,
            when_parent_ends: self.when_parent_ends,
            may_spawn: self.may_spawn,
        };
        if is_nothing(&body) {
            let advice = "say what is to be different, as in `lanyard task edit TASK --title WORDS`";
            return Err(Failure::usage("nothing is to be changed", advice));
        }
        let view: TaskView = context.client().await?.patch(&self.target.route(&[]), &body).await?;
        told(context, &view, &format!("`lanyard task show {}` shows it", view.task.id))
    }
}

/// Nothing when it was not given; empty ones stand for an empty list.
fn list(given: Vec<String>) -> Option<Vec<String>> {
    if given.is_empty() { None } else { Some(given.into_iter().filter(|one| !one.is_empty()).collect()) }
}

fn is_nothing(edit: &TaskEdit) -> bool {
    let TaskEdit {
        title,
        prompt,
        agent,
        depends_on,
        priority,
        group,
        files,
        base,
        isolation,
        when_parent_ends,
        may_spawn,
    } = edit;
    let words = [title, prompt, agent, group, base];
    words.into_iter().all(Option::is_none)
        && [depends_on, files].into_iter().all(Option::is_none)
        && priority.is_none()
        && isolation.is_none()
        && when_parent_ends.is_none()
        && may_spawn.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_was_not_given_stays_and_an_empty_one_empties_it() {
        assert_eq!(list(Vec::new()), None);
        assert_eq!(list(vec![String::new()]), Some(Vec::new()));
        assert_eq!(list(vec!["a".to_owned()]), Some(vec!["a".to_owned()]));
    }

    #[test]
    fn an_edit_that_changes_nothing_is_known() {
        assert!(is_nothing(&TaskEdit::default()));
        assert!(!is_nothing(&TaskEdit { files: Some(Vec::new()), ..TaskEdit::default() }));
        assert!(!is_nothing(&TaskEdit { may_spawn: Some(false), ..TaskEdit::default() }));
    }
}
