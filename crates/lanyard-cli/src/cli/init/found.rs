//! The agents that are installed here: program, version, and whether they are signed in as far as files tell.

use std::path::{Path, PathBuf};
use std::process::Command;

use lanyard_api::agents::credentials::{Credentials, credentials};
use lanyard_api::agents::known::{Known, installed, version};
use serde::{Serialize, Serializer};

use crate::failure::Failure;
use crate::render::text::{one_line, pad};

/// An agent whose program is on the PATH.
#[derive(Debug, Serialize)]
pub(super) struct FoundAgent {
    #[serde(rename = "name", serialize_with = "name")]
    pub(super) known: Known,
    program: PathBuf,
    version: Option<String>,
    credentials: Credentials,
}

fn name<S: Serializer>(known: &Known, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(known.name)
}

/// Every agent that is installed, in the order they are known. Each program is asked for its version, all at once.
pub(super) fn agents() -> Vec<FoundAgent> {
    let asked: Vec<_> = installed()
        .into_iter()
        .map(|(known, program)| {
            let place = program.clone();
            (known, program, std::thread::spawn(move || version(Command::new(place))))
        })
        .collect();
    let told = asked.into_iter().map(|(known, program, version)| FoundAgent {
        credentials: credentials(known.name, |variable| std::env::var_os(variable)),
        // A thread that panicked told no version.
        version: version.join().ok().flatten(),
        known,
        program,
    });
    told.collect()
}

/// The agent a new user most probably means: the first that is signed in, else the first.
pub(super) fn suggested(found: &[FoundAgent]) -> Option<&'static str> {
    let signed_in = found.iter().find(|agent| matches!(agent.credentials, Credentials::Found(_)));
    signed_in.or_else(|| found.first()).map(|agent| agent.known.name)
}

/// The found agent of a name; refuses others.
pub(super) fn named(found: &[FoundAgent], name: &str) -> Result<String, Failure> {
    if found.iter().any(|agent| agent.known.name == name) {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = found.iter().map(|agent| agent.known.name).collect();
    let advice = if names.is_empty() {
        "install an agent first, or leave --default out".to_owned()
    } else {
        format!("name one of: {}", names.join(", "))
    };
    Err(Failure::local("agent_not_found", format!("no agent `{name}` was found on the PATH"), advice))
}

/// One line for each agent.
pub(super) fn table(found: &[FoundAgent]) -> String {
    if found.is_empty() {
        return "No agent was found on the PATH. Lanyard knows opencode, claude, codex and gemini."
            .to_owned();
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let lines = found.iter().map(|agent| {
        let version = agent.version.as_deref().map_or_else(|| "version unknown".to_owned(), one_line);
        let place = shortened(&agent.program.display().to_string(), home.as_deref());
        let signed_in = shortened(&agent.credentials.sentence(), home.as_deref());
        format!("  {}{}{signed_in}\n      {place}", pad(agent.known.name, 18), pad(&version, 28))
    });
    format!("Agents found:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// A path with `~` for the home folder.
fn shortened(text: &str, home: Option<&Path>) -> String {
    match home.and_then(Path::to_str).filter(|home| home.len() > 1) {
        Some(home) => text.replace(&format!("{}/", home.trim_end_matches('/')), "~/"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use lanyard_api::agents::known::KNOWN;

    use super::*;

    fn agent(at: usize, credentials: Credentials) -> FoundAgent {
        FoundAgent {
            known: KNOWN[at],
            program: "/usr/bin/x".into(),
            version: Some("1.2".into()),
            credentials,
        }
    }

    #[test]
    fn an_agent_that_is_signed_in_is_suggested_before_one_that_is_not() {
        assert_eq!(suggested(&[]), None);
        let not = [agent(0, Credentials::Unknown), agent(1, Credentials::Missing)];
        assert_eq!(suggested(&not), Some(KNOWN[0].name));
        let second = [agent(0, Credentials::Unknown), agent(1, Credentials::Found("X".into()))];
        assert_eq!(suggested(&second), Some(KNOWN[1].name));
        assert!(named(&second, "codex").is_err() && named(&second, KNOWN[1].name).is_ok());
    }

    #[test]
    fn each_agent_has_its_version_and_what_can_be_told_of_its_account() {
        let text = table(&[agent(1, Credentials::Missing), agent(2, Credentials::Unknown)]);
        assert!(text.contains("claude            1.2"), "{text}");
        assert!(text.contains("not signed in\n") && text.contains("cannot tell whether"), "{text}");
        assert_eq!(shortened("/home/a/x and /home/ab", Some(Path::new("/home/a"))), "~/x and /home/ab");
    }
}
