//! Agents from the registry: installed with a real npm from a package that is packed here, and without half an install.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Daemon, Setup, binary, until};

/// A registry with the agent `tiny`, whose package is made here.
struct Packed {
    folder: tempfile::TempDir,
}

impl Packed {
    fn new() -> Self {
        let packed = Self { folder: tempfile::tempdir().unwrap() };
        packed.version("1.0.0", None);
        packed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Packs a version with npm and makes it the registry's, with this checksum or the right one.
    fn version(&self, version: &str, integrity: Option<&str>) {
        let source = self.path("source");
        std::fs::create_dir_all(&source).unwrap();
        let program = format!("#!/bin/sh\nexec '{}' scripted-agent \"$@\"\n", binary().display());
        std::fs::write(source.join("run.sh"), program).unwrap();
        std::fs::set_permissions(source.join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let ran = self.path("a-script-ran").display().to_string();
        let manifest = json!({
            "name": "tiny-agent", "version": version, "bin": { "tiny-agent": "run.sh" },
            "scripts": { "postinstall": format!("touch {ran}") },
        });
        std::fs::write(source.join("package.json"), manifest.to_string()).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["pack", "--json", "--pack-destination"]).arg(self.folder.path()).current_dir(&source);
        let told = npm.env("HOME", self.folder.path()).output().unwrap();
        let told: Value = serde_json::from_slice(&told.stdout).unwrap();
        let package = self.path(told[0]["filename"].as_str().unwrap()).display().to_string();
        let integrity = integrity.or(told[0]["integrity"].as_str()).unwrap();
        self.registry(
            version,
            &json!({
                "npx": { "package": package, "integrity": integrity, "env": { "TINY": "1" } },
            }),
        );
    }

    fn registry(&self, version: &str, distribution: &Value) {
        let agent = json!({
            "id": "tiny", "name": "Tiny", "version": version, "description": "A small agent",
            "license": "MIT", "distribution": distribution,
        });
        std::fs::write(self.path("registry.json"), json!({ "agents": [agent] }).to_string()).unwrap();
    }

    fn run(&self, daemon: &Daemon, words: &[&str]) -> (bool, String) {
        let registry = self.path("registry.json").display().to_string();
        let mut all = vec!["agents"];
        all.extend(words);
        if words[0] != "remove" {
            all.extend(["--registry", registry.as_str()]);
        }
        let done = daemon.lanyard(&all);
        let text = [&done.stdout[..], &done.stderr].map(String::from_utf8_lossy).concat();
        (done.status.success(), text)
    }
}

fn folders(home: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(home.join("agents")) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn config(daemon: &Daemon) -> String {
    std::fs::read_to_string(daemon.config()).unwrap_or_default()
}

/// From the registry to a session, to the next version, and gone.
#[test]
fn an_agent_is_added_works_is_updated_and_removed() {
    let packed = Packed::new();
    let daemon = Daemon::start(Setup::default().config("# mine\n[limits]\ndepth = 4\n"));
    let (found, text) = packed.run(&daemon, &["search", "small"]);
    assert!(found && text.contains("tiny") && text.contains("1.0.0"), "{text}");

    let (asked, text) = packed.run(&daemon, &["add", "tiny"]);
    assert!(!asked && text.contains("confirmation_needed"), "{text}");
    assert_eq!(folders(&daemon.home()), [""; 0], "nothing without a yes");

    let (added, text) = packed.run(&daemon, &["add", "tiny", "--yes"]);
    assert!(added, "{text}");
    assert!(!packed.path("a-script-ran").exists(), "a script of the package ran");
    let written = config(&daemon);
    assert!(written.starts_with("# mine\n[limits]\ndepth = 4\n"), "{written}");
    assert!(written.contains("[agents.tiny]\ndriver = \"acp\"\ncommand = ["), "{written}");
    assert!(written.contains("[agents.tiny.env]\nTINY = \"1\"\n"), "{written}");
    let first = folders(&daemon.home());
    assert!(first.len() == 1 && first[0].starts_with("tiny@1.0.0@"), "{first:?}");
    let known = || daemon.request("GET", "/api/v1/agents", &[], None).text().contains("tiny");
    assert!(until(known), "the daemon takes the config up");
    let checked = daemon.lanyard(&["agents", "check", "tiny"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));

    let (twice, text) = packed.run(&daemon, &["add", "tiny", "--yes"]);
    assert!(!twice && text.contains("agent_exists"), "{text}");
    let (same, text) = packed.run(&daemon, &["update", "tiny", "--yes"]);
    assert!(same && text.contains("1.0.0 is installed"), "{text}");

    packed.version("1.1.0", None);
    let (updated, text) = packed.run(&daemon, &["update", "tiny", "--yes"]);
    assert!(updated && config(&daemon).contains("tiny@1.1.0@"), "{text}");
    assert_eq!(folders(&daemon.home()).len(), 2, "running agents may read the version before");

    let (removed, text) = packed.run(&daemon, &["remove", "tiny", "--yes"]);
    assert!(removed && !config(&daemon).contains("tiny"), "{text}");
    assert!(config(&daemon).contains("# mine") && folders(&daemon.home()).is_empty());
    let (again, text) = packed.run(&daemon, &["remove", "tiny", "--yes"]);
    assert!(!again && text.contains("agent_not_added"), "{text}");
}

/// A package that is not there, one with another content, and one without a program: an error, and nothing of it.
#[test]
fn an_install_that_fails_leaves_nothing() {
    let packed = Packed::new();
    let daemon = Daemon::start(Setup::default().config(""));
    let before = config(&daemon);
    let fails = |code: &str| {
        let (added, text) = packed.run(&daemon, &["add", "tiny", "--yes"]);
        assert!(!added && text.contains(code), "{text}");
        assert_eq!((folders(&daemon.home()), config(&daemon)), (Vec::new(), before.clone()), "{code}");
    };
    packed.version("1.0.0", Some("sha512-other"));
    fails("install_checksum");
    packed.registry("1.0.0", &json!({ "npx": { "package": packed.path("none.tgz") } }));
    fails("install_failed");
    packed.registry(
        "1.0.0",
        &json!({ "npx": { "package": packed.path("tiny-agent-1.0.0.tgz"), "bin": "other" } }),
    );
    fails("install_failed");
    packed.registry("1.0.0", &json!({ "binary": {} }));
    fails("registry_no_package");
    std::fs::write(packed.path("registry.json"), "{").unwrap();
    fails("registry_unreadable");
}

/// What an operator wrote is not touched, and a config that is not valid is not replaced.
#[test]
fn entries_of_an_operator_stay_as_they_are() {
    let packed = Packed::new();
    let own = "[agents.tiny]\ndriver = \"acp\"\ncommand = [\"mine\"]\n";
    let daemon = Daemon::start(Setup::default().config(own));
    for words in [["add", "tiny", "--yes"], ["update", "tiny", "--yes"], ["remove", "tiny", "--yes"]] {
        let (done, text) = packed.run(&daemon, &words);
        assert!(!done && (text.contains("agent_exists") || text.contains("agent_not_added")), "{text}");
        assert!(config(&daemon).contains(own) && folders(&daemon.home()).is_empty());
    }
    std::fs::write(daemon.config(), "agents = {}\n").unwrap();
    let (done, text) = packed.run(&daemon, &["add", "tiny", "--yes"]);
    assert!(!done && text.contains("config_key_invalid"), "{text}");
    assert_eq!((config(&daemon).as_str(), folders(&daemon.home()).len()), ("agents = {}\n", 0));
}

/// Packages of `PyPI` are installed by uv: here a stand-in that checks what it is asked for.
#[test]
fn a_package_of_pypi_is_installed_by_uv() {
    let packed = Packed::new();
    packed.registry("2.0.0", &json!({ "uvx": { "package": "tiny-agent==2.0.0", "args": ["acp"] } }));
    let bin = packed.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let uv = "#!/bin/sh\n[ \"$*\" = 'tool install -- tiny-agent==2.0.0' ] || exit 9\n\
        mkdir -p \"$UV_TOOL_DIR\" \"$UV_TOOL_BIN_DIR\"\n: > \"$UV_TOOL_BIN_DIR/tiny-agent\"\n";
    std::fs::write(bin.join("uv"), uv).unwrap();
    std::fs::set_permissions(bin.join("uv"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let daemon = Daemon::start(Setup::default().config(""));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut added = Command::new(binary());
    added.args(["agents", "add", "tiny", "--yes", "--registry"]).arg(packed.path("registry.json"));
    added.env("LANYARD_DATA_DIR", daemon.home()).env("LANYARD_CONFIG", daemon.config());
    let added = added.env("PATH", path).env("LANYARD_NO_START", "1").output().unwrap();
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let written = config(&daemon);
    assert!(written.contains("/bin/tiny-agent\", \"acp\"]"), "{written}");
}
