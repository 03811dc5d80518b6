//! What a flow asks, at a real terminal: in place while it is watched, at the prompt, and on the screen of all sessions.

use super::terminal::Terminal;
use crate::flow_cli::{ASKS, Desk, NEEDS_HUMAN};

/// The end of an id, as sentences on a terminal show it.
fn end_of(id: &str) -> &str {
    &id[id.len() - 6..]
}

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const BACKSPACE: &str = "\u{7f}";

/// S2-01, S2-06, S2-07, S2-15, FND-M2: asked again after what is no answer, words are asked for, and the author that
/// asks again can be continued again.
#[test]
fn a_flow_is_answered_where_it_is_watched() {
    let desk = Desk::new(NEEDS_HUMAN);
    desk.let_go();
    let mut terminal = Terminal::lanyard(&desk.stage.daemon, &["flow", "run", &desk.plan()], 160, 60);
    terminal.until_shows("c  continue the same session");
    terminal.until_shows("c/f/o/q >");
    terminal.press("x\r");
    terminal.until_shows("`x` is no answer; type c (continue-session), f (fix)");
    terminal.press("c\r");
    terminal.until_shows("message to the agent (Enter: none) >");
    terminal.press("the staging key\r");
    terminal.until_shows("told \"the staging key\"");
    let first = desk.gate_after("")["id"].as_str().unwrap().to_owned();
    terminal.until_shows(&first);
    terminal.press(CTRL_D);
    assert_eq!(terminal.ended(), Some(4));
    terminal.until_shows(&format!("gate_{} stays open", end_of(&first)));

    // S2-B01: from another surface the same gate is open.
    let mut prompt = Terminal::lanyard(&desk.stage.daemon, &["answer"], 160, 40);
    prompt.until_shows("c/f/o/q >");
    prompt.press("o\r");
    assert_eq!(prompt.ended(), Some(0));
    prompt.until_shows("answered: approve");
    desk.gate_after(&first);
}

/// S2-06, S2-08, S2-15: a toast and no answer; then an answer.
#[test]
fn a_flow_is_answered_on_the_screen_of_all_sessions() {
    let desk = Desk::new(NEEDS_HUMAN);
    desk.let_go();
    desk.stage.lanyard(&["flow", "run", &desk.plan(), "--detach"]);
    let gate = desk.gate_after("")["id"].clone();
    let mut terminal = Terminal::lanyard(&desk.stage.daemon, &["top"], 120, 30);
    terminal.until_shows("1 flow waits for approval");
    terminal.until_shows("The author needs a person: which key?");
    terminal.press("f");
    // Keys count once the question could be read.
    terminal.until_shows("c/f/o/q >");
    terminal.press("zz\r");
    terminal.until_shows("`zz` is no answer; type c (continue-session)");
    assert_eq!(desk.gate_after("")["id"], gate);
    terminal.press(&BACKSPACE.repeat(2));
    terminal.press("c: the staging key\r");
    terminal.until_shows("Write it down: answered");
    let next = desk.gate_after(gate.as_str().unwrap());
    assert!(next["continue_session"].is_object(), "{next:#}");
    // The settled question stays until somebody goes on.
    terminal.press("\u{1b}");
    terminal.until_shows("? help");
    terminal.press("q");
    assert_eq!(terminal.ended(), Some(0));
}

/// FND-N6: what the author asks is answered where its flow is watched.
#[test]
fn fnd_n6_a_permission_is_given_where_the_flow_is_watched() {
    let desk = Desk::new(ASKS);
    desk.let_go();
    let mut terminal = Terminal::lanyard(&desk.stage.daemon, &["flow", "run", &desk.plan()], 160, 60);
    terminal.until_shows("asks for approval: May I write?");
    terminal.until_shows("a = allow, d = deny");
    let first =
        desk.until("gates", |list| list["gates"].as_array()?.first()?["id"].as_str().map(str::to_owned));
    terminal.press("maybe\r");
    terminal.until_shows("`maybe` is no answer");
    terminal.press("a\r");
    terminal.until_shows("answered: allow");
    desk.until("gates", |list| {
        let gates = list["gates"].as_array()?;
        gates.iter().all(|gate| gate["id"] != first.as_str()).then_some(())
    });
    // Asked again by the next step; leaving at the prompt leaves the flow as it is.
    let second =
        desk.until("gates", |list| list["gates"].as_array()?.first()?["id"].as_str().map(str::to_owned));
    terminal.until_shows(&format!("lanyard answer gate_{} allow", end_of(&second)));
    terminal.press(CTRL_C);
    assert_eq!(terminal.ended(), Some(130));
    terminal.until_shows("the flow goes on; `lanyard flow watch flow_");
    let flow = desk.stage.get("/flows")["flows"][0].clone();
    assert_eq!(flow["state"], "execute", "{flow:#}");
    let gates = desk.stage.get("/gates");
    assert_eq!(gates["gates"][0]["id"], second.as_str(), "{gates:#}");
}
