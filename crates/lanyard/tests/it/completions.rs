//! Completions, each in its real shell: bash, zsh and fish.

use std::process::{Command, Output, Stdio};

use crate::support::{Daemon, Setup, binary};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A script for a shell, with `lanyard` on its PATH.
fn in_shell(daemon: &Daemon, shell: &[&str], script: &str) -> Output {
    let programs = binary().parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    Command::new(shell[0])
        .args(&shell[1..])
        .args(["-c", script])
        .env("PATH", path)
        .env("HOME", daemon.home())
        .env("TERM", "xterm")
        .env("LANYARD_DATA_DIR", daemon.home())
        .env("LANYARD_CONFIG", daemon.config())
        .env_remove("LANYARD_SESSION")
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}; `cargo xtask test` installs it", shell[0]))
}

/// Agents with a model each.
const AGENTS: &str = "\
    [agents.claude]\ndriver = \"claude\"\ncommand = [\"claude\"]\nmodel = \"opus-5\"\n\
    [agents.gemini]\ndriver = \"acp\"\ncommand = [\"gemini\"]\nmodel = \"flash-4\"\n";

/// A daemon with a session, a plan with a task, and the end of the session's id.
fn stage() -> (Daemon, String) {
    let daemon = Daemon::start(Setup::default().config(AGENTS));
    let ok = |words: &[&str]| {
        let output = daemon.lanyard(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    };
    let id = ok(&["new", "--title", "Fix the login", "--alias", "login-fix"]);
    ok(&["plan", "new", "The shop", "--name", "shop", "--workspace", "/tmp"]);
    ok(&["task", "add", "the api", "--plan", "shop", "--task-key", "api", "--agent", "demo"]);
    let end = id[id.len() - 6..].to_owned();
    (daemon, end)
}

/// Candidates of bash for the last word of a line.
fn bash(daemon: &Daemon, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "source <(lanyard completions bash)\n\
         function=$(complete -p lanyard | grep -o -- '-F [^ ]*' | cut -c4-)\n\
         COMP_WORDS=({words}); COMP_CWORD={at}; COMP_TYPE=9\n\
         $function lanyard \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words = quoted.join(" "),
        at = words.len() - 1,
    );
    let output = in_shell(daemon, &["bash", "--norc", "--noprofile"], &script);
    assert_eq!(text(&output.stderr), "", "{words:?}");
    text(&output.stdout).lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

#[test]
fn fnd_n16_bash_completes_names_of_everything_from_the_daemon() {
    let (daemon, end) = stage();
    for (words, wanted) in [
        (&["lanyard", "show", "log"][..], "login-fix"),
        (&["lanyard", "show", ""], "login-fix"),
        (&["lanyard", "show", &end[..4]], end.as_str()),
        (&["lanyard", "stop", "Fix"], "Fix\\ the\\ login"),
        (&["lanyard", "new", "--parent", "log"], "login-fix"),
        (&["lanyard", "run", "--agent", "de"], "demo"),
        (&["lanyard", "plan", "show", "sh"], "shop"),
        (&["lanyard", "task", "show", ""], "shop/api"),
        (&["lanyard", "task", "cancel", "ap"], "api"),
        (&["lanyard", "config", "get", "agents.cl"], "agents.claude.abort_on_timeout"),
        (&["lanyard", "config", "set", "agents.claude.model", "f"], "flash-4"),
        (&["lanyard", "config", "set", "agents.claude.model", ""], "flash-4"),
        (&["lanyard", "config", "set", "daemon.default_agent", "g"], "gemini"),
    ] {
        // Options follow where nothing is typed.
        assert_eq!(bash(&daemon, words).first().map(String::as_str), Some(wanted), "{words:?}");
    }
    // Commands and options complete as before.
    assert_eq!(bash(&daemon, &["lanyard", "arch"]), ["archive"]);
    assert_eq!(bash(&daemon, &["lanyard", "show", "--full"]), ["--full-ids"]);
    assert_eq!(bash(&daemon, &["lanyard", "show", "nothing-like-this"]), Vec::<String>::new());
}

#[test]
fn a_completion_starts_no_daemon_and_prints_no_error() {
    let (daemon, _) = stage();
    daemon.terminate();
    assert_eq!(bash(&daemon, &["lanyard", "show", "log"]), Vec::<String>::new());
    // Settings are in the file.
    assert_eq!(bash(&daemon, &["lanyard", "config", "set", "agents.claude.model", "o"]), ["opus-5"]);
    assert_eq!(bash(&daemon, &["lanyard", "--data-dir", "/dev/null/x", "show", "l"]), Vec::<String>::new());
    assert_eq!(daemon.lanyard(&["ls"]).status.code(), Some(3), "no daemon was started");
    // An unknown shell gets nothing, and no words that a shell would take for candidates.
    let output = in_shell(&daemon, &["bash"], "LANYARD_COMPLETE=what lanyard -- lanyard show");
    assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), String::new()));
}

/// Turns go by the end of their ids, those of the inbox by the same.
#[test]
fn bash_completes_turns_of_the_session_that_is_named() {
    let (daemon, _) = stage();
    let send = |words: &[&str]| {
        let output = daemon.lanyard(&[&["send", "login-fix", "--detach"], words].concat());
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    };
    let (running, waiting) = (send(&["build it"]), send(&["--when", "next", "test it"]));
    let end = |id: &str| id[id.len() - 6..].to_owned();
    for (words, wanted) in [
        (&["lanyard", "diff", "login-fix", "--turn", ""][..], [end(&waiting), end(&running)].to_vec()),
        (
            &["lanyard", "log", "login-fix", "--since", &format!("turn_{}", &end(&running)[..4])],
            vec![format!("turn_{}", end(&running))],
        ),
        (&["lanyard", "log", "login-fix", "--since", &running[..31]], vec![running.clone()]),
        (&["lanyard", "inbox", "login-fix", "rm", &end(&waiting)[..3]], vec![end(&waiting)]),
        (&["lanyard", "inbox", "login-fix", "rm", &end(&running)], vec![]),
        (&["lanyard", "diff", "--turn", "x"], vec![]),
    ] {
        // Options follow where nothing is typed.
        let offered = bash(&daemon, words).into_iter().filter(|word| !word.starts_with('-'));
        assert_eq!(offered.collect::<Vec<_>>(), wanted, "{words:?}");
    }
}

#[test]
fn zsh_completes_names_at_its_prompt() {
    let (daemon, _) = stage();
    let script = r#"
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell 'autoload -Uz compinit; compinit -u -D; source <(lanyard completions zsh); print -r -- READ""Y'
        zpty -r -m shell seen '*READY*'
        for word in "$@"; do
            # The line is completed, and then printed instead of run.
            zpty -w -n shell "lanyard $word"$'\t\C-aprint -r -- "GOT[\C-e]"\n'
            zpty -r -m shell seen '*GOT\[lan*\]*'
            print -r -- "${seen##*GOT}"
        done"#;
    let words =
        ["show log", "task show sh", "run --agent de", "stop Fix", "config set agents.claude.model fl"];
    let script = format!("set -- {}\n{script}", words.map(|word| format!("'{word}'")).join(" "));
    let output = in_shell(&daemon, &["zsh", "-f"], &script);
    let seen = text(&output.stdout);
    for wanted in [
        "[lanyard show login-fix",
        "[lanyard task show shop/api",
        "[lanyard run --agent demo",
        "[lanyard config set agents.claude.model flash-4",
        "Fix\\ the\\ login",
    ] {
        assert!(seen.contains(wanted), "{wanted}: {seen} {}", text(&output.stderr));
    }
}

#[test]
fn fish_completes_names_with_their_titles() {
    let (daemon, end) = stage();
    let complete = |line: &str| {
        let script = format!("lanyard completions fish | source; complete -C '{line}'");
        let output = in_shell(&daemon, &["fish", "--no-config"], &script);
        assert_eq!(text(&output.stderr), "", "{line}");
        text(&output.stdout).trim().to_owned()
    };
    assert_eq!(complete("lanyard show log"), "login-fix\tFix the login (beginning)");
    assert_eq!(complete(&format!("lanyard show {}", &end[..4])), format!("{end}\tFix the login (beginning)"));
    assert_eq!(complete("lanyard task show sh"), "shop/api\tthe api (pending)");
    assert_eq!(complete("lanyard plan show ").lines().next(), Some("shop\tThe shop (draft)"));
    assert_eq!(complete("lanyard config set agents.gemini.model o"), "opus-5");
    assert!(complete("lanyard stop Fix").starts_with("Fix the login\t"), "{}", complete("lanyard stop Fix"));
}
