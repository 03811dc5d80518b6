//! What the documents and the help say is so: ids that can exist, defaults and addresses that the code has (FND-N15).

use std::path::{Path, PathBuf};

use lanyard_api::agents::known::KNOWN;
use lanyard_api::config::{Config, DEFAULT_LISTEN};
use lanyard_core::naming::{IdPart, SHORT_CHARS};
use lanyard_core::{
    ConnectionId, FlowId, GateId, MailId, MemoryId, NodeId, NoteId, NotificationId, PlanId, RunId, SessionId,
    TaskId, TokenId, TurnId, WorkerId,
};

type Kind = (&'static str, fn(&str) -> bool);

macro_rules! kinds {
    ($($name:ident)*) => {[$(($name::PREFIX, (|text: &str| text.parse::<$name>().is_ok()) as fn(&str) -> bool)),*]};
}

/// Every kind of id that people see, and whether a text is one.
const KINDS: [Kind; 15] = kinds! {
    SessionId TurnId WorkerId NoteId RunId GateId PlanId TaskId FlowId MailId NotificationId MemoryId ConnectionId
    NodeId TokenId
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files with an ending below a folder.
fn files(folder: &str, ending: &str) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.is_file() && path.to_string_lossy().ends_with(ending)).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{folder} has no {ending}");
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// The documents, every page of the help, and the template of the config.
fn documents() -> Vec<(PathBuf, String)> {
    let mut all = files("docs", ".md");
    all.extend(files("crates/lanyard/tests/it/snapshots/help", ".txt"));
    all.extend(files("crates/lanyard-api/src", "config.toml"));
    all
}

/// Words that look like an id and cannot be one. Cut ids end with `…`; words without a digit are names of fields.
fn impossible(text: &str) -> Vec<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut found = Vec::new();
    let mut at = 0;
    for piece in text.split_inclusive(|letter| !is_part(letter)) {
        let word = piece.trim_end_matches(|letter| !is_part(letter));
        let end = at + word.len();
        at += piece.len();
        let cut = text[end..].starts_with('…') || text[end..].starts_with("...");
        let Some((prefix, rest)) = word.split_once('_') else { continue };
        if cut || !rest.contains(|letter: char| letter.is_ascii_digit()) {
            continue;
        }
        match KINDS.iter().find(|(known, _)| *known == prefix) {
            Some((_, is_id)) if !is_id(word) && !is_short(word, rest) => found.push(word),
            // Not a kind of ours, and too near to one.
            None if prefix == "ses" => found.push(word),
            Some(_) | None => {}
        }
    }
    found
}

/// Whether it is the end of an id with its kind, as listings show it.
fn is_short(word: &str, rest: &str) -> bool {
    rest.len() == SHORT_CHARS && IdPart::parse(word).is_some()
}

/// S4-23: the decision record has a row for each id of a task's chain.
#[test]
fn the_decision_on_families_says_what_each_id_is_for() {
    let record = std::fs::read_to_string(root().join("docs/decisions/0019-families.md")).unwrap();
    let heads = "| id | stands for | made | lives | routes |";
    assert!(record.contains(heads), "{record}");
    for kind in
        [PlanId::PREFIX, TaskId::PREFIX, WorkerId::PREFIX, SessionId::PREFIX, RunId::PREFIX, MailId::PREFIX]
    {
        let row = record.lines().find(|line| line.starts_with(&format!("| `{kind}_…`")));
        assert_eq!(row.map(|row| row.matches('|').count()), Some(6), "{kind}");
    }
}

#[test]
fn fnd_n15_every_id_in_documents_and_help_can_exist() {
    assert_eq!(impossible("ses_4f2a sess_1, turn_id `task_01m7…` run_12"), ["ses_4f2a", "sess_1", "run_12"]);
    assert_eq!(impossible("sess_01m7n5djg0fayvh8t5cxyjkdnf sha_256 gate_0rhk4y"), Vec::<&str>::new());
    assert_eq!(impossible("gate_0rhk4u"), ["gate_0rhk4u"]);
    let mut wrong = Vec::new();
    for (path, text) in documents() {
        for (number, line) in text.lines().enumerate() {
            let path = path.file_name().unwrap().to_string_lossy().into_owned();
            wrong.extend(impossible(line).iter().map(|word| format!("{path}:{}: {word}", number + 1)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An address of the API in the documents is the one a daemon has unless told otherwise.
#[test]
fn fnd_n15_addresses_of_the_api_are_the_default() {
    let port = DEFAULT_LISTEN.rsplit_once(':').unwrap().1;
    for (path, text) in documents() {
        for (before, after) in
            text.match_indices("127.0.0.1:").map(|(at, found)| text.split_at(at + found.len()))
        {
            let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
            let rest = &after[digits.len()..];
            let ours = ["/api/", "/mcp/", "/sign-in", "/metrics"].iter().any(|path| rest.starts_with(path));
            let line = before.lines().count();
            assert!(!ours || digits == port, "{}:{line}: port {digits}", path.display());
        }
    }
}

/// The commented settings of the example in docs/agents.md that are defaults, not examples.
const DEFAULTS: [&str; 8] = [
    "client_files",
    "turn_timeout_ms",
    "abort_on_timeout",
    "cancel_grace_ms",
    "kill_grace_ms",
    "keep_alive_ms",
    "resume",
    "auto_resume",
];

#[test]
fn fnd_n15_the_documented_agent_is_the_known_one_with_its_defaults() {
    let text = std::fs::read_to_string(root().join("docs/agents.md")).unwrap();
    let (_, block) = text.split_once("```toml\n[agents.opencode]\n").unwrap();
    let (block, _) = block.split_once("[mcp.files]").unwrap();
    let is_default = |line: &&str| DEFAULTS.iter().any(|key| line.starts_with(&format!("{key} ")));
    let defaults: Vec<&str> =
        block.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_default).collect();
    assert_eq!(defaults.len(), DEFAULTS.len(), "{block}");
    let plain: Vec<&str> = block.lines().filter(|line| !line.starts_with('#')).collect();
    let folder = tempfile::tempdir().unwrap();
    let load = |lines: &[&str]| {
        let path = folder.path().join("config.toml");
        std::fs::write(&path, format!("[agents.opencode]\n{}\n", lines.join("\n"))).unwrap();
        Config::load(&path).unwrap().agents.remove("opencode").unwrap()
    };
    let known = KNOWN.iter().find(|known| known.name == "opencode").unwrap().settings();
    assert_eq!(load(&plain), known);
    let mut said = load(&[plain, defaults].concat());
    // What an agent is offered that the config says nothing of.
    assert_eq!(said.client_files.take(), Some(lanyard_api::agents::settings::ClientFiles::ReadWrite));
    assert_eq!(said, known);
}

/// S2-27: the shape of a gate is documented with what continuing needs, for programs and for people.
#[test]
fn a_gates_continuation_is_documented() {
    let text = std::fs::read_to_string(root().join("schema/openapi.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let schemas = &document["components"]["schemas"];
    let carried = schemas.as_object().unwrap().values().any(|schema| {
        schema["properties"]["continue_session"]["anyOf"][0]["$ref"] == "#/components/schemas/Continuation"
    });
    assert!(carried, "no schema carries continue_session");
    for field in ["session", "role", "resume_state"] {
        assert!(schemas["Continuation"]["properties"][field].is_object(), "{field}");
    }
    let (_, flows) = files("docs", "flows.md").remove(0);
    assert!(flows.contains("`c` is offered only when the approval carries `continue_session`"));
}

/// Everything the sources say, tests and the build's own programs included.
fn sources() -> String {
    let mut folders = vec![root().join("crates"), root().join("xtask")];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.extend(Some(path).filter(|_| name != "target"));
            } else if path.extension().is_some_and(|ending| ending == "rs") && name != "documents.rs" {
                text.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    text
}

/// FND-H3: variables and commands that the documents name are there, and what was found untrue is said no more.
#[test]
fn fnd_h3_variables_and_commands_in_documents_exist() {
    let sources = sources();
    let mut all = files("docs", ".md");
    all.extend(files("", ".md"));
    all.extend(files("docs/decisions", ".md"));
    let (mut named, mut missing) = (0, Vec::new());
    for (path, text) in &all {
        let is_part = |letter: char| letter.is_ascii_uppercase() || letter == '_';
        let variables = text.split(|letter| !is_part(letter)).filter(|word| word.starts_with("LANYARD_"));
        let commands = text
            .split("cargo xtask ")
            .skip(1)
            .filter_map(|rest| rest.split(|letter: char| !letter.is_ascii_lowercase()).next());
        for word in variables.map(str::to_owned).chain(commands.map(|word| format!("\"{word}\""))) {
            named += 1;
            if !sources.contains(&word) && word != "\"\"" {
                missing.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(named > 20, "only {named} names");
    for (file, sentence) in [
        ("CONTRIBUTING.md", "PostgreSQL"),
        ("ARCHITECTURE.md", "No clock is read outside"),
        ("crates/lanyard-store/src/journal.rs", "One thread, the engine's"),
    ] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        assert!(!text.contains(sentence), "{file}: {sentence}");
    }
}

/// FND-H3: the architecture names the clocks that the lints ban, all of them.
#[test]
fn fnd_h3_the_lints_ban_the_clocks_that_the_architecture_names() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let (lints, architecture) = (read("clippy.toml"), read("ARCHITECTURE.md"));
    let banned: Vec<&str> =
        lints.split("path = \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let clocks: Vec<&&str> = banned.iter().filter(|path| path.ends_with("::now")).collect();
    assert_eq!(clocks.len(), 3, "{banned:?}");
    for clock in clocks {
        let short: Vec<&str> = clock.rsplit("::").take(2).collect();
        assert!(architecture.contains(&format!("{}::{}", short[1], short[0])), "{clock}");
    }
}
