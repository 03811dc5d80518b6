//! A plan as text.

use super::line::{Fence, quote};
use super::read::is_bare_key;
use super::steps::is_mark;
use super::{PlanText, TaskText, field};

/// The text of a plan. Read back it is the same plan, as long as its names begin and end with a letter one can see.
#[must_use]
pub fn write(plan: &PlanText) -> String {
    let mut text = format!("# {}\n", plan.title);
    if let Some(goal) = &plan.goal {
        body(&mut text, "goal", goal);
    }
    for task in &plan.tasks {
        write_task(&mut text, task);
    }
    if let Some(steps) = &plan.steps {
        text.extend(["\n", steps]);
    }
    text
}

fn write_task(text: &mut String, task: &TaskText) {
    let tick = if task.done { "x" } else { " " };
    let key = if is_bare_key(&task.key) { task.key.clone() } else { quote(&task.key) };
    text.extend(["\n## [", tick, "] ", &key, ": ", &task.title, "\n"]);
    let fields = field::all(task);
    if !fields.is_empty() {
        text.push('\n');
    }
    for (name, value) in fields {
        text.extend(["- ", name, ": ", &value, "\n"]);
    }
    if task.prompt != task.title {
        body(text, "prompt", &task.prompt);
    }
}

/// A text of several lines, between fences where it would not be read as it is.
fn body(text: &mut String, name: &str, body: &str) {
    if body.trim().is_empty() {
        return;
    }
    text.push('\n');
    if is_plain(body) {
        text.push_str(body);
        text.push('\n');
        return;
    }
    let marks = Fence::around(body).marks();
    text.extend([&marks, name, "\n", body, "\n", &marks, "\n"]);
}

fn is_plain(body: &str) -> bool {
    let quiet = |line: &str| !line.starts_with('#') && Fence::opens(line).is_none() && !is_mark(line);
    body.trim() == body
        && !body.contains('\r')
        && !body.starts_with(['-', '*', '+', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
        && body.lines().all(quiet)
}
