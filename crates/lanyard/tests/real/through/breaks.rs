//! Kill -9 of the daemon, and of the agent: the one leaves the turn running, after the other the conversation goes on.
//! A daemon that goes in the middle of an MCP call, or while its agent starts, costs the agent none of its tools.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::cases::Case;
use super::gateway::{Behind, echo, seen};
use super::kit::{AFTER, GREETING, Goes, HELD, Kit};
use super::processes;
use crate::agents::Rights;
use crate::model::{Role, Step, marker};
use crate::peer::PATIENCE;

pub(super) fn daemon(case: &Case) {
    let mut kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    let turn = kit.begin(&session, "hold");
    kit.is_held("hold");
    kit.restart_daemon();
    kit.event(&session, "the run being taken over", |event| event["type"] == "run.adopted");
    kit.model.release("hold");
    let said = kit.completed(&session, &turn);
    assert!(said.ends_with(HELD), "{said}\n{}", kit.told(&session));
    assert_eq!(said.matches(HELD).count(), 1, "{said}");
    assert_eq!(kit.model.asked("hold").len(), 1, "asked once: {}", kit.told(&session));
    assert!(kit.turn(&session, "after").ends_with(AFTER));
    assert!(kit.answered("after", 0).asked.says(Role::Assistant, HELD), "it remembers what was before");
    kit.ok("daemon killed");
}

/// How long an agent may take to go on after the daemon went in the middle of its call. A daemon that is taken down gives
/// calls 5 s; the agents alone took from 60 s to for ever. On a quiet machine it is a second or two.
const GOES_ON: Duration = Duration::from_secs(45);

/// FND-R10: the daemon goes while a call is under way and comes back later, on another port. The model hears at once what
/// is known of the call, its next call waits for the next daemon, and the server sees each call once.
pub(super) fn call(case: &Case) {
    for goes in [Goes::Killed, Goes::Down, Goes::Upgraded] {
        let behind = Behind::of(case);
        let mut kit = Kit::with(case, Rights::All, |home| behind.offer(home));
        kit.model.script("carry", [echo("one"), echo("two"), Step::text("Work done.")]);
        let session = kit.session();
        let result = |kit: &Kit<'_>, step: usize| {
            let asked = kit.model.wait("a result", PATIENCE, |asked| asked.is("carry", step)).asked;
            asked.last_tool_result().unwrap_or_default().to_owned()
        };
        behind.hold();
        let turn = kit.begin(&session, "carry");
        seen(&kit, &session, &behind, 1);
        let since = Instant::now();
        kit.daemon_goes(goes);
        if matches!(behind, Behind::Wrapped { .. }) {
            // The server is the agent's own: its call goes on without a daemon.
            behind.release();
            assert!(result(&kit, 1).contains("Echo: one"));
        } else {
            let first = result(&kit, 1);
            assert!(first.contains("The tool may have run"), "{goes:?}: {first}");
            assert!(since.elapsed() < GOES_ON, "{goes:?}: it took {:?}", since.elapsed());
            behind.release();
        }
        kit.daemon_returns(goes);
        kit.completed(&session, &turn);
        let second = result(&kit, 2);
        assert!(second.contains("Echo: two"), "{goes:?}: {second}\n{}", kit.told(&session));
        assert_eq!(behind.called(), ["echo", "echo"], "{goes:?}: each call once");
        eprintln!("{}: {goes:?}: went on after {:?}", case.name, since.elapsed());
    }
    tally(case, "daemon gone in a call");
}

fn tally(case: &Case, capability: &str) {
    super::tally::tell(case.name, case.package, capability, "ok");
}

/// FND-R10: the daemon is killed while its agent starts. The agent has its tools all the same.
pub(super) fn start(case: &Case) {
    let behind = Behind::of(case);
    let mut kit = Kit::with(case, Rights::All, |home| behind.offer(home));
    kit.model.script("carry", [echo("one"), Step::text("Work done.")]);
    let session = kit.session();
    let turn = kit.begin(&session, "carry");
    kit.event(&session, "the start of the run", |event| event["type"] == "run.started");
    let run = kit.run(&session);
    // The shim and the agent.
    kit.wait("the agent's process", &session, || (processes::marked(&run).len() >= 2).then_some(()));
    kit.daemon_goes(Goes::Killed);
    kit.daemon_returns(Goes::Killed);
    kit.completed(&session, &turn);
    let asked = kit.answered("carry", 1).asked;
    let result = asked.last_tool_result().unwrap_or_default().to_owned();
    assert!(result.contains("Echo: one"), "{result}\n{}", kit.told(&session));
    assert!(kit.events(&session, "run.tools_missing").is_empty(), "{}", kit.told(&session));
    kit.ok("daemon killed at the start");
}

pub(super) fn agent(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    let turn = kit.begin(&session, "hold");
    kit.is_held("hold");
    let run = kit.run(&session);
    let killed = processes::kill_main(&run);
    let end = kit.ended(&session, &turn);
    assert_eq!(end["data"]["cause"], "crash", "{killed}: {}", kit.told(&session));
    kit.event(&session, "the end of the run", |event| {
        event["type"] == "run.ended" && event["data"]["run"] == json!(run)
    });
    kit.nothing_left(&session, &run);
    if case.minute {
        next_minute();
    }
    let after = kit.turn(&session, "after");
    assert!(after.ends_with(AFTER), "{after}");
    assert_ne!(kit.run(&session), run);
    assert_eq!(kit.ready(&session)["continuity"], "native", "{}", kit.told(&session));
    let asked = kit.answered("after", 0).asked;
    assert!(asked.says(Role::User, &marker("greet")), "it remembers what it was asked");
    assert!(asked.says(Role::Assistant, GREETING), "it remembers what it said");
    assert_eq!(kit.log(&session).iter().filter(|event| event.to_string().contains(GREETING)).count(), 1);
    kit.ok("resume native");
}

/// Waits for the next minute of the clock.
fn next_minute() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let left = Duration::from_secs(61 - now.as_secs() % 60);
    // sleep: an agent of which the suite knows that it looks at the minute.
    std::thread::sleep(left);
}
