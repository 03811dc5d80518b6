//! `lanyard` alone in a real terminal: the guided start of a new user, and the short status of one who has a config.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::terminal::Terminal;
use crate::support::{Daemon, Setup, binary};

/// A machine with two agents, one of which is signed in, and nothing of Lanyard's.
struct Machine {
    daemon: Daemon,
    folder: tempfile::TempDir,
    /// Holds the usual port, so that the daemon of the test takes another.
    _port: Option<std::net::TcpListener>,
}

impl Machine {
    fn new(agents: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        for agent in agents {
            let program = bin.join(agent);
            std::fs::write(&program, format!("#!/bin/sh\necho \"{agent} 1.2.3\"\n")).unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        }
        std::fs::create_dir(folder.path().join(".codex")).unwrap();
        std::fs::write(folder.path().join(".codex/auth.json"), r#"{"tokens":{}}"#).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:7717").ok();
        Self { daemon: Daemon::prepare(Setup::default()), folder, _port: port }
    }

    fn lanyard(&self, words: &[&str]) -> Terminal {
        self.lanyard_on((140, 50), words)
    }

    fn lanyard_on(&self, screen: (u16, u16), words: &[&str]) -> Terminal {
        let path = format!("{}:/usr/bin:/bin", self.folder.path().join("bin").display());
        let home = self.folder.path().to_str().unwrap();
        // What the daemon starts is found by this when the test is over.
        let mark = self.daemon.home().parent().unwrap().display().to_string();
        let env = [
            ("PATH", path.as_str()),
            ("HOME", home),
            ("LY_TEST_FOLDER", mark.as_str()),
            ("XDG_DATA_HOME", ""),
            ("XDG_CONFIG_HOME", ""),
            ("CODEX_HOME", ""),
            ("CLAUDE_CONFIG_DIR", ""),
            ("OPENAI_API_KEY", ""),
            ("CODEX_API_KEY", ""),
            ("ANTHROPIC_API_KEY", ""),
            ("ANTHROPIC_AUTH_TOKEN", ""),
            ("CLAUDE_CODE_OAUTH_TOKEN", ""),
            ("LANYARD_SESSION", ""),
        ];
        Terminal::with_env(&self.daemon, words, &env, screen)
    }

    /// A manager that starts the daemon when it is told to start the unit; the file of its calls.
    fn systemd(&self) -> PathBuf {
        let (calls, program) = (self.folder.path().join("calls"), self.folder.path().join("bin/systemctl"));
        let (lanyard, home) = (binary().display(), self.daemon.home());
        let script = format!(
            "#!/bin/sh\nshift 2\necho \"$@\" >> {calls}\ncase \"$1\" in\n\
             show) printf 'LoadState=not-found\\nActiveState=inactive\\nMainPID=0\\n';;\n\
             start|restart) env -u LANYARD_NO_START {lanyard} up --detach --listen 127.0.0.1:0 --data-dir {home} \
             --config {config} >/dev/null 2>&1;;\nesac\n",
            calls = calls.display(),
            home = home.display(),
            config = self.daemon.config().display(),
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        calls
    }

    fn hooks(&self) -> [PathBuf; 2] {
        [self.folder.path().join(".claude/settings.json"), self.folder.path().join(".codex/hooks.json")]
    }
}

#[test]
fn a_new_user_presses_enter_and_has_a_config_and_a_daemon() {
    let machine = Machine::new(&["claude", "codex"]);
    let mut terminal = machine.lanyard(&[]);
    let shown = terminal.until_shows("Default agent (claude, codex) [codex]:");
    assert!(shown.contains("claude            claude 1.2.3                not signed in"), "{shown}");
    assert!(
        shown.contains("codex             codex 1.2.3                 signed in (~/.codex/auth.json)"),
        "{shown}"
    );
    terminal.press("\n");
    terminal.until_shows("Install hooks for claude");
    terminal.press("y\n");
    terminal.until_shows("Install hooks for codex");
    terminal.press("\n");
    terminal.until_shows("Write the config to");
    assert!(!machine.daemon.config().exists() && !machine.daemon.home().exists(), "nothing before the end");
    terminal.press("\n");
    terminal.until_shows("Start the daemon now? [Y/n]");
    terminal.press("\n");
    let shown = terminal.until_shows("lanyard --help");
    assert!(shown.contains("the default agent is codex"), "{shown}");
    assert!(shown.contains("the daemon runs at http://127.0.0.1:"), "{shown}");
    assert_eq!(terminal.ended(), Some(0));
    let config = std::fs::read_to_string(machine.daemon.config()).unwrap();
    assert!(
        config.contains("\ndefault_agent = \"codex\"\n") && config.contains("[agents.claude]"),
        "{config}"
    );
    let [claude, codex] = machine.hooks();
    assert!(claude.exists() && !codex.exists(), "hooks where they were wanted");

    let mut again = machine.lanyard(&[]);
    let shown = again.until_shows("lanyard --help");
    assert_eq!(again.ended(), Some(0));
    assert!(shown.contains("The daemon runs at http://127.0.0.1:"), "{shown}");
    assert!(shown.contains("Default agent: codex") && shown.contains("Sessions: none yet"), "{shown}");
    assert!(!shown.contains("[Y/n]"), "{shown}");
    assert!(machine.daemon.lanyard(&["down"]).status.success());
}

/// Issue 22: where the user has a systemd, the daemon is offered as its service.
#[test]
fn a_user_with_systemd_is_offered_the_service() {
    let machine = Machine::new(&["codex"]);
    let calls = machine.systemd();
    let mut terminal = machine.lanyard(&[]);
    terminal.until_shows("hooks for codex");
    terminal.press("\n");
    terminal.until_shows("Write the config to");
    terminal.press("\n");
    terminal.until_shows("Install the daemon as a service of your systemd?");
    assert!(!machine.daemon.config().exists(), "nothing before the end");
    terminal.press("\n");
    let shown = terminal.until_shows("lanyard --help");
    assert_eq!(terminal.ended(), Some(0), "{shown}");
    let calls = std::fs::read_to_string(calls).unwrap();
    assert!(calls.contains("enable lanyard.service") && calls.contains("restart lanyard.service"), "{calls}");
    let unit = machine.folder.path().join(".config/systemd/user/lanyard.service");
    assert!(std::fs::read_to_string(unit).unwrap().contains("KillMode=process"));
    assert!(machine.daemon.lanyard(&["down"]).status.success());
}

/// Issue 22: where there is none, that is said, and the daemon is started as before.
#[test]
fn a_user_without_systemd_is_told_why_there_is_no_service() {
    let machine = Machine::new(&["codex"]);
    let systemctl = machine.folder.path().join("bin/systemctl");
    std::fs::write(&systemctl, "#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&systemctl, PermissionsExt::from_mode(0o755)).unwrap();
    let mut terminal = machine.lanyard(&[]);
    terminal.until_shows("hooks for codex");
    terminal.press("\n");
    terminal.until_shows("Write the config to");
    terminal.press("\n");
    let shown = terminal.until_shows("Start the daemon now?");
    assert!(shown.contains("The daemon cannot be a service here: the systemd of this user"), "{shown}");
    terminal.press("n\n");
    terminal.until_shows("lanyard --help");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn ctrl_c_at_any_question_leaves_nothing() {
    for questions in 0..5 {
        let machine = Machine::new(&["claude", "codex"]);
        let mut terminal = machine.lanyard(&[]);
        let all = [
            "Default agent (",
            "hooks for claude",
            "hooks for codex",
            "Write the config",
            "Start the daemon",
        ];
        for question in &all[..questions] {
            terminal.until_shows(question);
            terminal.press(if question.starts_with("hooks") { "y\n" } else { "\n" });
        }
        terminal.until_shows(all[questions]);
        terminal.press("\u{3}");
        assert_ne!(terminal.ended(), Some(0), "question {questions}");
        assert!(!machine.daemon.config().exists() && !machine.daemon.home().exists(), "question {questions}");
        assert!(machine.hooks().iter().all(|file| !file.exists()), "question {questions}");
    }
}

#[test]
fn answers_that_make_no_sense_are_asked_again_and_a_no_writes_nothing() {
    let machine = Machine::new(&["claude", "codex"]);
    let mut terminal = machine.lanyard(&[]);
    terminal.until_shows("Default agent (");
    terminal.press("ghost\n");
    terminal.until_shows("There is no `ghost` among them.");
    terminal.press("claude\n");
    terminal.until_shows("hooks for claude");
    terminal.press("maybe\n");
    terminal.until_shows("Please answer y or n.");
    terminal.press("\n");
    terminal.until_shows("hooks for codex");
    terminal.press("\n");
    terminal.until_shows("Write the config to");
    terminal.press("n\n");
    let shown = terminal.until_shows("[start_declined]");
    assert_eq!(terminal.ended(), Some(1), "{shown}");
    assert!(!machine.daemon.config().exists());
}

/// Questions are longer than a narrow terminal is wide: they are broken between words.
#[test]
fn on_a_narrow_terminal_questions_break_between_words() {
    let machine = Machine::new(&["codex"]);
    let mut terminal = machine.lanyard_on((64, 50), &[]);
    let shown = terminal.until_shows("[y/N]");
    let (_, question) = shown.split_once("Install hooks").unwrap();
    let sentence: Vec<&str> = question.split_whitespace().collect();
    let end = "They deliver stops and guidance to its own tools. [y/N]";
    assert!(sentence.join(" ").ends_with(end), "{shown}");
    terminal.press("\u{3}");
    assert_ne!(terminal.ended(), Some(0));
}

/// Without an agent nothing is asked about agents, and the built-in one is named, not chosen.
#[test]
fn a_machine_without_agents_is_told_of_the_demo() {
    let machine = Machine::new(&[]);
    let mut terminal = machine.lanyard(&[]);
    terminal.until_shows("No agent was found on the PATH.");
    terminal.until_shows("Write the config to");
    terminal.press("\n");
    terminal.until_shows("Start the daemon now?");
    terminal.press("n\n");
    let shown = terminal.until_shows("lanyard --help");
    assert!(shown.contains("lanyard demo"), "{shown}");
    assert_eq!(terminal.ended(), Some(0));
    assert!(!machine.daemon.home().exists(), "no daemon was wanted");
}
