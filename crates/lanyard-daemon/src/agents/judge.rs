//! Policy before people: an agent's question is judged by rules first. The operator's config decides; files in a
//! repository can only make it stricter (S4-B08).

use std::path::Path;

use lanyard_core::session::Question;
use serde::Deserialize;

use crate::agents::settings::{Judgement, Permissions};

/// A repository's own rules, below its root.
const REPOSITORY_RULES: &str = ".lanyard/permissions.toml";
/// Longest rules file that is read; a longer one cannot be trusted to say what it means.
const RULES_BYTES_MAX: u64 = 64 * 1024;

/// What a repository may say: never `allow`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RepositoryRules {
    default: Option<Judgement>,
    deny: Vec<String>,
    ask: Vec<String>,
}

/// What becomes of a question.
pub(super) fn judge(permissions: &Permissions, workspace: &Path, question: &Question) -> Judgement {
    let subject = subject(question);
    let operator =
        ruled(&subject, &permissions.deny, &permissions.ask, &permissions.allow, permissions.default);
    operator.max(repository(workspace, &subject))
}

/// The strictest of what the repository says and nothing: it cannot loosen.
fn repository(workspace: &Path, subject: &str) -> Judgement {
    let path = workspace.join(REPOSITORY_RULES);
    let Ok(meta) = std::fs::metadata(&path) else { return Judgement::Allow };
    // Rules that are there and cannot be read or understood fail closed.
    let text = if meta.len() <= RULES_BYTES_MAX { std::fs::read_to_string(&path).ok() } else { None };
    match text.and_then(|text| toml::from_str::<RepositoryRules>(&text).ok()) {
        Some(rules) => {
            ruled(subject, &rules.deny, &rules.ask, &[], rules.default.unwrap_or(Judgement::Allow))
        }
        None => Judgement::Ask,
    }
}

fn ruled(subject: &str, deny: &[String], ask: &[String], allow: &[String], default: Judgement) -> Judgement {
    let names = |words: &[String]| words.iter().any(|word| subject.contains(&word.to_lowercase()));
    if names(deny) {
        Judgement::Deny
    } else if names(ask) {
        Judgement::Ask
    } else if names(allow) {
        Judgement::Allow
    } else {
        default
    }
}

/// What the question is about, in lower case: title, kind, and what would be done.
fn subject(question: &Question) -> String {
    let word = |name: &str| question.detail[name].as_str().unwrap_or_default();
    let (name, kind) = (word("name"), word("kind"));
    let input = &question.detail["rawInput"];
    let input = if input.is_null() { String::new() } else { input.to_string() };
    format!("{}\n{name}\n{kind}\n{input}", question.title).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanyard_core::session::GateKind;
    use serde_json::json;

    fn question(title: &str) -> Question {
        Question {
            kind: GateKind::Permission,
            title: title.to_owned(),
            call: None,
            detail: json!({ "kind": "execute", "rawInput": { "command": "rm -rf build" } }),
            options: Vec::new(),
            request: "1".to_owned(),
        }
    }

    fn rules(deny: &[&str], ask: &[&str], allow: &[&str], default: Judgement) -> Permissions {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Permissions { default, allow: words(allow), deny: words(deny), ask: words(ask) }
    }

    #[test]
    fn deny_comes_before_ask_before_allow_before_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let judged = |permissions: &Permissions| judge(permissions, folder.path(), &question("Shell"));
        assert_eq!(judged(&Permissions::default()), Judgement::Ask);
        assert_eq!(judged(&rules(&[], &[], &[], Judgement::Allow)), Judgement::Allow);
        assert_eq!(judged(&rules(&[], &[], &["execute"], Judgement::Deny)), Judgement::Allow);
        assert_eq!(judged(&rules(&[], &["rm -rf"], &["execute"], Judgement::Allow)), Judgement::Ask);
        assert_eq!(judged(&rules(&["shell"], &["rm"], &["execute"], Judgement::Allow)), Judgement::Deny);
    }

    /// S4-B08.
    #[test]
    fn a_repository_can_tighten_and_never_loosen() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".lanyard")).unwrap();
        let write = |text: &str| std::fs::write(folder.path().join(REPOSITORY_RULES), text).unwrap();
        let judged = |default| judge(&rules(&[], &[], &[], default), folder.path(), &question("Shell"));
        write("deny = [\"rm -rf\"]\n");
        assert_eq!(judged(Judgement::Allow), Judgement::Deny);
        write("default = \"allow\"\n");
        assert_eq!(judged(Judgement::Deny), Judgement::Deny);
        write("default = \"ask\"\n");
        assert_eq!(judged(Judgement::Allow), Judgement::Ask);
        write("allow = [\"shell\"]\n");
        assert_eq!(judged(Judgement::Allow), Judgement::Ask, "what is not understood fails closed");
    }
}
