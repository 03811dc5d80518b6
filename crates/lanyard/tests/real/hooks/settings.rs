//! What is put into an agent's settings comes out again, also after the agent itself has had them in hand.

use super::cases::Case;
use super::kit::{Kit, read};
use crate::model::Step;

pub(super) fn come_back(case: &Case) {
    let kit = Kit::without_hooks(case);
    kit.model.script("greet", [Step::text("Hello-first.")]);
    kit.model.script("again", [Step::text("Hello-again.")]);
    let before = std::fs::read(kit.file()).ok();
    kit.hook("install");
    let installed = read(&kit.file());
    assert!(installed.contains("lanyard"), "{installed}");
    let mut running = kit.start("greet", None);
    let said = running.ended();
    assert!(said.contains("Hello-first."), "{}", running.shown());
    let is_rewritten = read(&kit.file()) != installed;
    assert_eq!(is_rewritten, case.rewrites, "{}", read(&kit.file()));
    kit.hook("uninstall");
    let after = std::fs::read(kit.file()).ok();
    if is_rewritten {
        assert!(!read(&kit.file()).contains("lanyard"), "{}", read(&kit.file()));
    } else {
        assert_eq!(after, before, "byte for byte");
    }
    let known = kit.sessions().len();
    let said = kit.start("again", None).ended();
    assert!(said.contains("Hello-again."), "{said}");
    assert_eq!(kit.sessions().len(), known, "nothing tells Lanyard of it any more");
    kit.say("settings byte for byte", !is_rewritten);
}
