//! Tables of steps as they are written and as they are understood.

use serde_json::json;

use super::*;

fn one(line: &str) -> Step {
    let steps = parse(line).unwrap();
    assert_eq!(steps.len(), 1, "{line}");
    steps.into_iter().next().unwrap()
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn steps_that_talk() {
    let table = [
        ("/say two words", Step::Say { text: text("two words"), whole: false }),
        ("/say! one\\nline", Step::Say { text: text("one\nline"), whole: true }),
        ("/think hm", Step::Think(text("hm"))),
        ("/chatter 3 100", Step::Chatter { count: 3, bytes: 100 }),
        ("/plan a | b c |d", Step::Plan(vec![text("a"), text("b c"), text("d")])),
        ("/plan-done 2", Step::PlanDone(2)),
        ("/compact 900 100", Step::Compact { before: 900, after: 100 }),
        ("/usage 10 20", Step::Usage { input: 10, output: 20, context: None }),
        ("/cost 25", Step::Cost(25)),
        ("/cost-is nan", Step::CostIs("nan".to_owned())),
        ("/usage 10 20 1000", Step::Usage { input: 10, output: 20, context: Some(1000) }),
        ("/pace 40", Step::Pace(40)),
        ("/wait 5", Step::Wait(5)),
        ("/wait-file a/b", Step::WaitFile(text("a/b"))),
        ("/touch a", Step::Touch(text("a"))),
        ("/stop max_tokens", Step::Stop(StopReason::MaxTokens)),
        ("/recall", Step::Recall),
        ("/choices", Step::Choices),
        ("/mode plan", Step::GoToMode("plan".into())),
        ("/join", Step::Join),
    ];
    for (line, step) in table {
        assert_eq!(one(line), step, "{line}");
    }
}

#[test]
fn steps_that_work() {
    let table = [
        ("/tool grep {\"a\": 1}", Step::Tool { name: text("grep"), input: json!({"a": 1}) }),
        ("/tool grep", Step::Tool { name: text("grep"), input: json!({}) }),
        ("/tool-fail grep no such file", Step::ToolFail { name: text("grep"), text: text("no such file") }),
        ("/tool-open grep", Step::ToolOpen(text("grep"))),
        ("/run echo a; echo b", Step::Run(text("echo a; echo b"))),
        ("/edit a.txt x\\ny", Step::Edit { path: text("a.txt"), text: text("x\ny") }),
        ("/look a.txt", Step::Look(text("a.txt"))),
        ("/read a.txt", Step::Read(text("a.txt"))),
        ("/write a.txt b", Step::Write { path: text("a.txt"), text: text("b") }),
        ("/terminal ls -l", Step::Terminal(text("ls -l"))),
        ("/ask May I?", Step::Ask(text("May I?"))),
        ("/ask-tool rm remove it", Step::AskTool { name: text("rm"), title: text("remove it") }),
        ("/mcp s t {}", Step::Mcp { server: text("s"), tool: text("t"), input: json!({}) }),
    ];
    for (line, step) in table {
        assert_eq!(one(line), step, "{line}");
    }
}

#[test]
fn steps_that_misbehave() {
    let table = [
        ("/ignore-cancel", Misdeed::IgnoreCancel),
        ("/stream-after-cancel 3", Misdeed::StreamAfterCancel(3)),
        ("/answer-late 100", Misdeed::AnswerLate(100)),
        ("/malformed", Misdeed::Malformed),
        ("/endless 70000", Misdeed::Endless(70_000)),
        ("/hang", Misdeed::Hang),
        ("/fork-away sleep 9", Misdeed::ForkAway(text("sleep 9"))),
        ("/run-on sleep 9", Misdeed::RunOn(text("sleep 9"))),
        ("/run-bare sleep 9", Misdeed::RunBare(text("sleep 9"))),
        ("/serve sleep 9", Misdeed::Serve(text("sleep 9"))),
        ("/ignore-term", Misdeed::IgnoreTerm),
        ("/die", Misdeed::Die(9)),
        ("/die 15", Misdeed::Die(15)),
        ("/exit 3", Misdeed::Exit(3)),
        ("/no-answer", Misdeed::NoAnswer),
        ("/double-answer", Misdeed::DoubleAnswer),
        ("/late-update", Misdeed::LateUpdate),
        ("/unknown-update", Misdeed::UnknownUpdate),
        ("/error -32000 not logged in", Misdeed::Error { code: -32000, message: text("not logged in") }),
    ];
    for (line, misdeed) in table {
        assert_eq!(one(line), Step::Wrong(misdeed), "{line}");
    }
}

#[test]
fn a_child_has_its_own_steps() {
    let Step::Spawn { name, prompt, steps } = one("/spawn scout look around ; /say a ; /spawn deep /say b")
    else {
        panic!("a child")
    };
    assert_eq!((name.as_str(), prompt.as_str()), ("scout", "look around ; /say a ; /spawn deep /say b"));
    assert_eq!(steps.len(), 2);
    assert!(matches!(&steps[1], Step::Spawn { steps, .. } if steps.len() == 1));
}

#[test]
fn words_are_no_steps() {
    assert_eq!(parse("please fix it\n  /say indented\n> /say quoted\n").unwrap(), []);
    assert_eq!(parse("first\n/recall\nlast").unwrap(), [Step::Recall]);
}

#[test]
fn a_repeat_holds_a_step() {
    assert_eq!(one("/repeat 3 /wait 1"), Step::Repeat(3, Box::new(Step::Wait(1))));
}

#[test]
fn mistakes_are_told_with_their_line() {
    let table = [
        ("words\n/fly", "line 2 of the script: there is no step /fly"),
        ("/wait soon", "line 1 of the script: milliseconds: `soon` is not a number that fits"),
        ("/wait", "line 1 of the script: milliseconds is missing"),
        ("/repeat 2", "line 1 of the script: a step is missing"),
        (
            "/stop now",
            "line 1 of the script: no reason to stop: `now`; there are end_turn, max_tokens, \
                       max_turn_requests, refusal",
        ),
        (
            "/repeat 2 /repeat 2 /repeat 2 /repeat 2 /recall",
            "line 1 of the script: more than 4 steps within each other",
        ),
        ("/exit 256", "line 1 of the script: an exit code: 256 is more than 255"),
        ("/chatter 1 9999999", "line 1 of the script: how many bytes: 9999999 is more than 1048576"),
    ];
    for (prompt, message) in table {
        assert_eq!(parse(prompt).unwrap_err().to_string(), message, "{prompt}");
    }
}
