//! Words reach an agent that nobody but its user has started.

use serde_json::json;

use super::cases::{Case, Words};
use super::kit::{Kit, latest};
use crate::model::{Role, Step};

/// What the first line of Lanyard's words says.
const GUIDANCE: &str = "📝 USER GUIDANCE (injected by user):";
const WORDS: &str = "Mind the gap, please.";

/// Words that come while a tool works stand beside its answer, once.
pub(super) fn beside_a_tool(case: &Case) {
    let kit = Kit::new(case);
    kit.model.script("work", [kit.held("one"), kit.plain("two"), Step::text("Work-done.")]);
    let mut running = kit.start("work", None);
    kit.is_held("one", &running);

    let session = kit.session(&running);
    let found = kit.get(&format!("/sessions/{}", running.native(case.id_key)));
    assert_eq!((&found["id"], &found["source"]), (&json!(session), &json!("external")), "{found:#}");
    assert_eq!(found["agent"], case.harness, "{found:#}");
    assert_eq!(found["workspace"], json!(kit.work), "{found:#}");
    kit.say("external session", true);

    kit.guide(&session, WORDS);
    kit.release("one");
    let said = running.ended();
    assert!(said.contains("Work-done."), "{}", running.shown());
    let asked = kit.asked("work", 1);
    let told = latest(&asked);
    assert!(told.contains(GUIDANCE) && told.contains(WORDS) && told.contains("DONE-one"), "{told}");
    let carrying: Vec<_> = asked.messages.iter().filter(|message| message.text.contains(WORDS)).collect();
    let [carrier] = &carrying[..] else { panic!("once is enough: {carrying:#?}") };
    let [words, own] = [WORDS, "DONE-one"].map(|part| carrier.text.find(part));
    match case.words {
        Words::InFront => assert!(carrier.role == Role::Tool && words < own, "{carrier:#?}"),
        Words::Behind => assert!(carrier.role == Role::Tool && own.is_some() && own < words, "{carrier:#?}"),
        Words::Message(role) => assert_eq!((carrier.role, own), (role, None), "{carrier:#?}"),
    }
    assert!(kit.relayed(&session).contains(&case.tool.to_owned()), "{:?}", kit.relayed(&session));
    let told = latest(&kit.asked("work", 2));
    assert!(told.contains("DONE-two") && !told.contains(WORDS), "once is enough: {told}");
    let settled = kit.get(&format!("/sessions/{session}/guidance"))["settled"].clone();
    assert_eq!(settled[0]["delivery"]["channel"], "hook", "{settled:#}");
    assert_eq!(kit.sessions().len(), 1, "{:#?}", kit.sessions());
    kit.say("guidance beside a tool", true);
}

/// Words that come between two prompts go with the second, or with the first tool after it.
pub(super) fn with_a_prompt(case: &Case) {
    let kit = Kit::new(case);
    kit.model.script("first", [kit.plain("one"), Step::text("First-done.")]);
    kit.model.script("second", [kit.plain("two"), Step::text("Second-done.")]);
    let mut running = kit.start("first", None);
    running.ended();
    let native = running.native(case.id_key);
    let session = kit.session(&running);
    kit.guide(&session, WORDS);
    let mut running = kit.start("second", Some(&native));
    let said = running.ended();
    assert!(said.contains("Second-done."), "{}", running.shown());
    assert_eq!(kit.sessions().len(), 1, "it is the same session: {:#?}", kit.sessions());
    let first = latest(&kit.asked("second", 0)).contains(WORDS);
    let second = latest(&kit.asked("second", 1)).contains(WORDS);
    assert_eq!((first, second), (case.with_prompt, !case.with_prompt), "{}", running.shown());
    kit.say("guidance with a prompt", case.with_prompt);
}
