//! The channel that will carry words is known before they are accepted (R8).

use super::*;
use crate::session::testing::{begins, call, ends};
use crate::session::{Call, Carrier, Channel, plan_delivery};

fn external() -> Given {
    let (agent, source) = (Some("claude".into()), Some("external".into()));
    born(&NewSession { agent, source, ..NewSession::default() })
}

fn by_hook(n: u32) -> Input {
    Input::Ends(Call { channel: Channel::Hook, ..call(n) })
}

fn planned(given: &Given) -> (Carrier, bool) {
    let planned = plan_delivery(&given.session, false);
    (planned.channel, planned.advice.is_some())
}

/// FND-R8.
#[test]
fn fnd_r8_the_channel_is_planned_by_what_was_seen() {
    // Of another host: nothing was seen, an MCP call, then its hook.
    assert_eq!(planned(&external()), (Carrier::None, true));
    let given = external().after(begins(1)).after(ends(1));
    assert_eq!(planned(&given), (Carrier::Mcp, true));
    assert_eq!(planned(&given.after(by_hook(2))), (Carrier::Hook, false));
    // Run by Lanyard: at rest, in a turn, with calls that come by, and one that takes words.
    let run = || born(&NewSession { agent: Some("a".into()), ..NewSession::default() });
    assert_eq!(planned(&run()), (Carrier::Prompt, false));
    let turn = || run().after(start_turn(1)).after(run_started(1));
    assert_eq!(planned(&turn()), (Carrier::Prompt, true));
    assert_eq!(planned(&turn().after(begins(1)).after(ends(1))), (Carrier::Mcp, true));
    let mut steers = turn();
    steers.session.run.as_mut().unwrap().capabilities.steer = true;
    assert_eq!(planned(&steers), (Carrier::Steer, false));
}

/// FND-R8: with no channel to the running turn, the answer names the command that installs one.
#[test]
fn fnd_r8_the_advice_names_the_hook_of_the_agent() {
    let planned = plan_delivery(&external().session, false);
    assert!(planned.advice.unwrap().contains("`lanyard hook install claude`"));
    let other = born(&NewSession { source: Some("external".into()), ..NewSession::default() });
    assert!(plan_delivery(&other.session, false).advice.unwrap().contains("lanyard hook install AGENT"));
    let shared = external().after(begins(1)).after(ends(1));
    assert!(plan_delivery(&shared.session, true).when.contains("subagent"));
}
