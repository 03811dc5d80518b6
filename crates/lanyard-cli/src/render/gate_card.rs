//! An agent's approval in full: agent, session, age, the whole request, and how to answer it.

use lanyard_api::types::GateEntry;
use lanyard_core::Timestamp;
use lanyard_core::session::{GateStatus, Question};

use crate::render::ids::Shortener;
use crate::render::text::{harmless, one_line, pad, quoted};
use crate::render::time::ago;
use crate::render::tool::{DetailRow, request};
use crate::render::wrap::wrap;

/// Columns of the names at the left.
const NAME_COLUMNS: usize = 9;

/// All of an approval. `width` is that of the terminal; nothing but ids is cut, long lines are wrapped.
pub(crate) fn gate_card(entry: &GateEntry, ids: Shortener, now: Timestamp, width: Option<usize>) -> String {
    let gate = &entry.gate;
    let width = width.unwrap_or(usize::MAX);
    let agent = entry.agent.as_deref().map_or_else(|| "its agent".to_owned(), one_line);
    let mut text =
        format!("{}  {agent} asks for approval, {}\n", ids.named(&gate.id), ago(now, gate.opened_at));
    let mut line = |name: &str, value: &str| {
        let (first, rest) = (format!("  {}", pad(name, NAME_COLUMNS)), " ".repeat(NAME_COLUMNS + 2));
        for row in wrap(value, width, &first, &rest) {
            text.push_str(&row);
            text.push('\n');
        }
    };
    let title = entry.session_title.as_deref().map(|title| format!("  {}", quoted(title)));
    line("session", &format!("{}{}", ids.named(&entry.session), title.unwrap_or_default()));
    if let Some(folder) = &entry.workspace {
        line("folder", &one_line(folder));
    }
    line("request", &harmless(gate.question.title.trim()));
    for row in request_lines(&gate.question) {
        line("", &row);
    }
    match &gate.status {
        GateStatus::Open => {
            line("options", &options(&gate.question).join("\n"));
            line("answer", &format!("lanyard answer {}", ids.named(&gate.id)));
        }
        GateStatus::Answered { option, message, by, at } => {
            let words = message.as_deref().map(|message| format!(", {}", quoted(message)));
            let how = format!("{} by {}{}", one_line(option), one_line(&by.name), words.unwrap_or_default());
            line("answered", &format!("{how}, {}", ago(now, *at)));
        }
        GateStatus::Withdrawn { why, at } => {
            line("withdrawn", &format!("{}, {}", one_line(why), ago(now, *at)));
        }
    }
    text
}

/// The request behind the approval, as far as its title does not contain it.
pub(crate) fn request_lines(question: &Question) -> Vec<String> {
    let rows = request(&question.detail).into_iter().map(|row| match row {
        DetailRow::Label(text)
        | DetailRow::Plain(text)
        | DetailRow::Added(text)
        | DetailRow::Removed(text) => text,
    });
    let rows: Vec<String> = rows.collect();
    if question.title.contains(rows.join("\n").trim()) { Vec::new() } else { rows }
}

/// `1  Allow once (allow_once)`: what can be typed at a prompt.
pub(crate) fn options(question: &Question) -> Vec<String> {
    let option = |(number, option): (usize, &lanyard_core::session::GateOption)| {
        let (name, id) = (one_line(&option.name), one_line(&option.id));
        if name == id { format!("{number}  {name}") } else { format!("{number}  {name} ({id})") }
    };
    (1..).zip(&question.options).map(option).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn entry(detail: &serde_json::Value) -> GateEntry {
        serde_json::from_value(json!({
            "session": "sess_01m7n5djg0fayvh8t5cxyjkdnf", "agent": "codex", "session_title": "fix the login",
            "workspace": "/srv/web", "id": "gate_01m7n5djg0fayvh8t5cxyjkdng",
            "run": "run_01m7n5djg0fayvh8t5cxyjkdnr", "kind": "permission", "title": "Run a command?",
            "request": "9", "opened_at": "2026-11-15T08:00:10Z", "status": {"name": "open"}, "detail": detail,
            "options": [
                {"id": "yes", "name": "Allow once", "kind": "allow_once"},
                {"id": "no", "name": "no", "kind": "reject_once"},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn a_question_is_shown_whole_and_long_lines_are_wrapped() {
        let command = "cargo test --workspace --all-features -- --nocapture login && echo \u{1b}[31mdone";
        let now = "2026-11-15T08:03:20Z".parse().unwrap();
        expect![[r#"
            gate_01m7n5djg0fayvh8t5cxyjkdng  codex asks for approval, 3m ago
              session  sess_01m7n5djg0fayvh8t5cxyjkdnf  "fix the login"
              folder   /srv/web
              request  Run a command?
                       cargo test --workspace --all-features --
                       --nocapture login && echo �[31mdone
              options  1  Allow once (yes)
                       2  no
              answer   lanyard answer gate_01m7n5djg0fayvh8t5cxyjkdng
        "#]]
        .assert_eq(&gate_card(
            &entry(&json!({"rawInput": {"command": command}})),
            Shortener::whole(),
            now,
            Some(60),
        ));
        let edit = json!({"rawInput": {"filePath": "a.rs", "oldString": "one", "newString": "two"}});
        expect![[r#"
            gate_yjkdng  codex asks for approval, 3m ago
              session  sess_yjkdnf  "fix the login"
              folder   /srv/web
              request  Run a command?
                       a.rs
                       - one
                       + two
              options  1  Allow once (yes)
                       2  no
              answer   lanyard answer gate_yjkdng
        "#]]
        .assert_eq(&gate_card(&entry(&edit), Shortener::of::<&str>(&[]), now, None));
    }
}
