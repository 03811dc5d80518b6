//! What an agent cannot do is said with its reason, by its own word, its offer and the party that runs it.

use super::*;
use crate::session::{
    AgentAbility, AgentLack, AgentOffer, AgentTraits, Capabilities, OfferItem, OfferMenu, OfferedCommand,
    SubagentTraits, lack_of, lacks,
};

fn run_by_lanyard() -> Given {
    born(&NewSession { agent: Some("gemini".into()), ..NewSession::default() })
}

fn names(found: &[AgentLack]) -> String {
    found.iter().map(|lack| lack.what.as_str()).collect::<Vec<_>>().join(" ")
}

fn of(given: &Given, agent: &AgentTraits<'_>) -> Vec<AgentLack> {
    lacks(&given.session, agent)
}

fn offer() -> AgentOffer {
    let models = OfferMenu { items: vec![OfferItem::new("large")], ..OfferMenu::default() };
    let commands = vec![OfferedCommand { name: "review".into(), ..OfferedCommand::default() }];
    AgentOffer { models, commands, ..AgentOffer::default() }
}

#[test]
fn nothing_is_said_of_an_agent_that_was_never_asked() {
    let found = of(&run_by_lanyard(), &AgentTraits::default());
    assert_eq!(names(&found), "compact model mode effort");
    let why = |what| lack_of(&found, what).unwrap().to_string();
    assert_eq!(
        why(AgentAbility::Compact),
        "no process of the session's agent is running; start one with `lanyard resume`"
    );
    assert!(
        why(AgentAbility::Model).contains("`lanyard agents check gemini`"),
        "{}",
        why(AgentAbility::Model)
    );
}

#[test]
fn the_words_of_the_run_go_over_those_of_the_check() {
    let checked = Some(Capabilities { steer: true, compact: true, images: true, ..Capabilities::default() });
    let offer = offer();
    let agent = AgentTraits { checked, offer: Some(&offer), ..AgentTraits::default() };
    assert_eq!(names(&of(&run_by_lanyard(), &agent)), "compact mode effort resume approvals children");
    // The run can load and asks, and nothing else.
    let running = run_by_lanyard().with_run();
    let found = of(&running, &agent);
    assert_eq!(names(&found), "steer compact images mode effort children");
    let steer = lack_of(&found, AgentAbility::Steer).unwrap();
    assert!(steer.why.starts_with("gemini takes no message into a running turn"), "{steer}");
    assert_eq!(lack_of(&found, AgentAbility::Effort).unwrap().why, "the agent offers no choice of effort");
    // A run that is only starting has said nothing yet.
    let starting = run_by_lanyard().event(run_began(1));
    assert_eq!(names(&of(&starting, &agent)), "mode effort resume approvals children");
}

#[test]
fn a_subagent_is_what_its_parents_agent_makes_of_it() {
    let child = || run_by_lanyard().with_mirrored_run();
    let of_child = |subagents, given: &Given| {
        names(&of(given, &AgentTraits { above: Some("claude"), subagents, ..AgentTraits::default() }))
    };
    let open = SubagentTraits { prompts: true, hook: None };
    assert_eq!(of_child(open, &child()), "steer compact model mode effort resume");
    let once = SubagentTraits { prompts: false, hook: Some("claude") };
    assert_eq!(of_child(once, &child()), "prompt steer compact model mode effort stop resume");
    let found =
        of(&child(), &AgentTraits { above: Some("claude"), subagents: once, ..AgentTraits::default() });
    let stop = lack_of(&found, AgentAbility::Stop).unwrap().to_string();
    assert!(
        stop.starts_with("claude cannot end this subagent alone")
            && stop.contains("`lanyard hook install claude`")
    );
    // Its calls come by: they are refused, which ends it.
    let mut heard = child();
    heard.session.hears = true;
    assert_eq!(of_child(once, &heard), "prompt steer compact model mode effort resume");
}

#[test]
fn an_agent_of_another_host_takes_no_turns_of_lanyards() {
    let (agent, source) = (Some("claude".into()), Some("external".into()));
    let given = born(&NewSession { agent, source, ..NewSession::default() });
    let found = of(&given, &AgentTraits::default());
    assert_eq!(names(&found), "prompt steer compact images model mode effort commands");
    assert!(found.iter().all(|lack| lack.why.contains("runs under its own host")));
    let nobody = of(&born(&NewSession::default()), &AgentTraits::default());
    assert_eq!(names(&nobody), "", "a client of the API carries out the turns");
}
