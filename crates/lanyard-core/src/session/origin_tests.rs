//! The table of who may report what, as a text to be read.

use std::fmt::Write as _;

use expect_test::expect;

use super::Signal;
use super::origin::Origin;

/// One of each; what is only Lanyard's own to say is one row.
fn reports() -> Vec<(&'static str, Signal)> {
    let read = |json: &str| serde_json::from_str::<Signal>(json).unwrap();
    let turn = "turn_00000000000000000000000001";
    let note = "note_00000000000000000000000001";
    vec![
        ("said by the agent", read(r#"{"type":"said","role":"agent","text":"x"}"#)),
        ("said by the user", read(r#"{"type":"said","role":"user","text":"x"}"#)),
        ("thought", read(r#"{"type":"thought","text":"x"}"#)),
        ("tool_called", read(r#"{"type":"tool_called","call":"1","tool":"x"}"#)),
        ("tool_returned", read(r#"{"type":"tool_returned","call":"1"}"#)),
        ("turn_delivered", read(&format!(r#"{{"type":"turn_delivered","turn":"{turn}"}}"#))),
        ("turn_finished", read(r#"{"type":"turn_finished","outcome":"completed"}"#)),
        ("turn_lost", read(r#"{"type":"turn_lost","cause":"crash"}"#)),
        (
            "guidance_delivered",
            read(&format!(r#"{{"type":"guidance_delivered","notes":["{note}"],"channel":"x"}}"#)),
        ),
        ("work_ended", read(r#"{"type":"work_ended","channel":"x"}"#)),
        ("daemon_restarted", read(r#"{"type":"daemon_restarted"}"#)),
    ]
}

/// FND-K7.
#[test]
fn fnd_k7_an_agent_reports_its_own_work_and_nothing_else() {
    let mut text = format!("{:<20}{:<10}{:<10}{:<8}hosted\n", "", "internal", "operator", "driven");
    for (name, signal) in reports() {
        let mark = |origin: Origin| if origin.may_report(&signal) { "yes" } else { "-" };
        let (internal, operator) = (mark(Origin::Internal), mark(Origin::Operator));
        let (driven, hosted) = (mark(Origin::DrivenAgent), mark(Origin::HostedAgent));
        writeln!(text, "{name:<20}{internal:<10}{operator:<10}{driven:<8}{hosted}").unwrap();
    }
    expect![[r"
                            internal  operator  driven  hosted
        said by the agent   yes       yes       yes     yes
        said by the user    yes       yes       -       -
        thought             yes       yes       yes     yes
        tool_called         yes       yes       yes     yes
        tool_returned       yes       yes       yes     yes
        turn_delivered      yes       yes       -       -
        turn_finished       yes       yes       -       yes
        turn_lost           yes       yes       -       -
        guidance_delivered  yes       yes       -       -
        work_ended          yes       yes       -       -
        daemon_restarted    yes       -         -       -
    "]]
    .assert_eq(&text);
}
