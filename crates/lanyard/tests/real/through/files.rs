//! An agent creates a file and changes it, with the file access that Lanyard offers it.

use serde_json::json;

use super::cases::Case;
use super::kit::Kit;
use crate::agents::Rights;
use crate::model::Step;

/// For an agent with Gemini's `write_file`.
pub(super) fn creates_one(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let file = kit.work.canonicalize().unwrap().join("made.txt");
    let write = |content: &str| Step::tool("write_file", json!({ "file_path": file, "content": content }));
    kit.model.script("create", [write("first\n"), write("second\n"), Step::text("Made.")]);
    let session = kit.session();
    let said = kit.turn(&session, "create");
    assert!(said.ends_with("Made."), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "second\n", "{}", kit.told(&session));
    let failed = kit.log(&session).into_iter().find(|event| event["data"]["is_error"] == true);
    assert_eq!(failed, None);
    kit.ok("file");
}
