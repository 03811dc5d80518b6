//! Messages of an agent: each keeps its id in the log, and stands apart from the next wherever it is read.

use super::kit::Stage;

/// FND-N8.
#[test]
fn fnd_n8_two_messages_of_a_turn_are_two_in_the_log_and_on_the_terminal() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.answer_to("/say The first one.\n/say The second one.");
    let messages: Vec<(String, String)> = talk
        .seen
        .iter()
        .filter(|event| event["type"] == "message" && event["data"]["role"] == "agent")
        .map(|event| {
            let text = |name: &str| event["data"][name].as_str().unwrap_or_default().to_owned();
            (text("message_id"), text("text"))
        })
        .collect();
    let of = |id: &str| -> String {
        messages.iter().filter(|(held, _)| held == id).map(|(_, text)| text.as_str()).collect()
    };
    let (first, second) = (&messages[0].0, &messages[messages.len() - 1].0);
    assert!(!first.is_empty() && first != second, "{messages:?}");
    assert_eq!((of(first).as_str(), of(second).as_str()), ("The first one.", "The second one."));

    let work = stage.work().display().to_string();
    let ran = stage.daemon.lanyard(&[
        "run",
        "--agent",
        "a",
        "--cwd",
        &work,
        "/say One.\n/say Two.\n/tool look {}\n/say Three.",
    ]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "One.\n\nTwo.\n\nThree.\n");
}
