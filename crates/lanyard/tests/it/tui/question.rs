//! `lanyard run` on a terminal while its agent asks something.

use serde_json::json;

use super::terminal::Terminal;
use crate::operate::Stage;

/// Issue 22: a question that later output moved away is shown again below it, and the answer still counts.
#[test]
fn a_question_is_shown_again_below_what_came_after_it() {
    let stage = Stage::new();
    let work = stage.workspace().display().to_string();
    let words =
        ["run", "--cwd", &work, "--agent", "scripted", "--name", "asker", "/ask May I count?\n/say counted"];
    let mut terminal = Terminal::lanyard(&stage.daemon, &words, 100, 30);
    let prompt = "a = allow, d = deny >";
    terminal.until_shows(prompt);
    let said = json!({ "type": "said", "role": "agent", "text": "one more thing" }).to_string();
    let answer = stage.daemon.request("POST", "/api/v1/sessions/asker/signals", &[], Some(&said));
    assert_eq!(answer.status, 201, "{}", answer.text());
    terminal.until("the prompt below the words", |text| {
        let words = text.find("one more thing");
        words.is_some_and(|at| text[at..].contains(prompt))
    });
    terminal.press("a\n");
    terminal.until_shows("counted");
    assert_eq!(terminal.ended(), Some(0), "{}", terminal.text());
}
