//! Policy before people: an agent's question is judged by rules first. The operator's config decides; files in a
//! repository can only make it stricter.

use std::path::Path;

use lanyard_api::agents::settings::{Judgement, Permissions};
use lanyard_core::session::Question;
use lanyard_git::workspace_files::{self, FileError};
use serde::Deserialize;

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
pub(super) async fn judge(permissions: &Permissions, workspace: &Path, question: &Question) -> Judgement {
    let subject = subject(question);
    let operator =
        ruled(&subject, &permissions.deny, &permissions.ask, &permissions.allow, permissions.default);
    operator.max(repository(workspace, &subject).await)
}

/// The strictest of what the repository says and nothing: it cannot loosen.
async fn repository(workspace: &Path, subject: &str) -> Judgement {
    let text = match workspace_files::read(workspace, Path::new(REPOSITORY_RULES), RULES_BYTES_MAX).await {
        Ok(text) => text,
        Err(FileError::Missing) => return Judgement::Allow,
        // Rules that are there and cannot be read or understood fail closed.
        Err(error) => {
            tracing::warn!(workspace = %workspace.display(), %error, "a repository's rules cannot be read");
            return Judgement::Ask;
        }
    };
    let rules = std::str::from_utf8(&text).ok().and_then(|text| toml::from_str::<RepositoryRules>(text).ok());
    match rules {
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

    /// Puts something in the place of the rules.
    type Make<'a> = &'a dyn Fn(&Path);

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

    #[tokio::test]
    async fn deny_comes_before_ask_before_allow_before_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let cases = [
            (Permissions::default(), Judgement::Ask),
            (rules(&[], &[], &[], Judgement::Allow), Judgement::Allow),
            (rules(&[], &[], &["execute"], Judgement::Deny), Judgement::Allow),
            (rules(&[], &["rm -rf"], &["execute"], Judgement::Allow), Judgement::Ask),
            (rules(&["shell"], &["rm"], &["execute"], Judgement::Allow), Judgement::Deny),
        ];
        for (permissions, expected) in cases {
            assert_eq!(judge(&permissions, folder.path(), &question("Shell")).await, expected);
        }
    }

    /// S4-B08.
    #[tokio::test]
    async fn a_repository_can_tighten_and_never_loosen() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".lanyard")).unwrap();
        let cases = [
            ("deny = [\"rm -rf\"]\n", Judgement::Allow, Judgement::Deny),
            ("default = \"allow\"\n", Judgement::Deny, Judgement::Deny),
            ("default = \"ask\"\n", Judgement::Allow, Judgement::Ask),
            // What is not understood fails closed.
            ("allow = [\"shell\"]\n", Judgement::Allow, Judgement::Ask),
        ];
        for (text, default, expected) in cases {
            std::fs::write(folder.path().join(REPOSITORY_RULES), text).unwrap();
            let permissions = rules(&[], &[], &[], default);
            let judged = judge(&permissions, folder.path(), &question("Shell")).await;
            assert_eq!(judged, expected, "{text}");
        }
    }

    /// FND-K1.
    #[tokio::test]
    async fn fnd_k1_rules_that_are_no_file_or_too_long_ask() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(REPOSITORY_RULES);
        std::fs::create_dir(folder.path().join(".lanyard")).unwrap();
        let permissions = rules(&[], &[], &[], Judgement::Allow);
        let question = question("Shell");
        assert_eq!(judge(&permissions, folder.path(), &question).await, Judgement::Allow, "no rules");
        let fifo = |path: &Path| {
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        };
        let huge = |path: &Path| std::fs::File::create(path).unwrap().set_len(1 << 40).unwrap();
        let bytes = |path: &Path| std::fs::write(path, [0xff, 0xfe]).unwrap();
        let link =
            |target: &'static str| move |path: &Path| std::os::unix::fs::symlink(target, path).unwrap();
        let odd: [(&str, Make<'_>); 7] = [
            ("a FIFO", &fifo),
            ("a huge file", &huge),
            ("bytes", &bytes),
            ("a device", &link("/dev/zero")),
            ("a link to nowhere", &link("nowhere")),
            ("a link to itself", &link("permissions.toml")),
            ("a link out of the workspace", &link("/etc/passwd")),
        ];
        for (what, make) in odd {
            make(&path);
            assert_eq!(judge(&permissions, folder.path(), &question).await, Judgement::Ask, "{what}");
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::create_dir(&path).unwrap();
        assert_eq!(judge(&permissions, folder.path(), &question).await, Judgement::Ask, "a folder");
    }
}
