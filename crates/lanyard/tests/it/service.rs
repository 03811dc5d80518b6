//! `lanyard service`: the daemon under a service manager. The manager is a script that keeps one unit as systemd would;
//! systemd itself reads the unit in a test of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Daemon, Setup, binary, until};

/// Keeps one unit: starts the program of its `ExecStart`, ends that process alone, and remembers what it was told.
const MANAGER: &str = r#"#!/bin/sh
dir=$(dirname "$0") unit=$XDG_CONFIG_HOME/systemd/user/lanyard.service
shift 2
echo "$1" >> "$dir/calls"
alive() { [ -f "$dir/pid" ] && kill -0 "$(cat "$dir/pid")" 2>/dev/null; }
stop() { if alive; then kill "$(cat "$dir/pid")"; while alive; do sleep 0.02; done; fi; }
start() { alive || { eval "exec $(sed -n 's/^ExecStart=//p' "$unit")" >/dev/null 2>"$dir/log" & echo $! >"$dir/pid"; }; }
case $1 in
    show)
        [ ! -f "$unit" ] || echo "FragmentPath=$unit"
        [ ! -f "$dir/enabled" ] || echo UnitFileState=enabled
        if alive; then echo ActiveState=active; echo "MainPID=$(cat "$dir/pid")"
        else echo ActiveState=inactive; echo MainPID=0; fi ;;
    enable) touch "$dir/enabled" ;;
    disable) rm -f "$dir/enabled"; stop ;;
    start) start ;;
    restart) stop; start ;;
esac
"#;
const UNREACHABLE: &str = "#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n";

/// A user with a home and a `systemctl`.
struct User {
    daemon: Daemon,
}

impl User {
    fn with(systemctl: Option<&str>) -> Self {
        let daemon = Daemon::prepare(Setup::default());
        let user = Self { daemon };
        std::fs::create_dir_all(user.path("bin")).unwrap();
        std::fs::write(user.daemon.config(), "[daemon]\nlisten = \"127.0.0.1:0\"\n").unwrap();
        if let Some(script) = systemctl {
            std::fs::write(user.path("bin/systemctl"), script).unwrap();
            let runs = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(user.path("bin/systemctl"), runs).unwrap();
        }
        user
    }

    fn path(&self, within: &str) -> PathBuf {
        self.daemon.config().parent().unwrap().join(within)
    }

    fn unit(&self) -> PathBuf {
        self.path("config/systemd/user/lanyard.service")
    }

    fn command(&self, words: &[&str]) -> Command {
        let folder = self.path("");
        let mut command = Command::new(binary());
        command
            .args(words)
            .env_clear()
            .env("HOME", &folder)
            .env("USER", "nobody-of-this-name")
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("LANYARD_DATA_DIR", self.daemon.home())
            .env("LANYARD_CONFIG", self.daemon.config())
            .env("LY_TEST_FOLDER", folder.to_str().unwrap().trim_end_matches('/'))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        let folder = self.path("bin").display().to_string();
        self.command(words).env("PATH", format!("{folder}:/usr/bin:/bin")).output().unwrap()
    }

    fn json(&self, words: &[&str]) -> Value {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn refused(&self, words: &[&str]) -> String {
        // No other `systemctl` than this user's.
        let output = self.command(words).arg("--json").env("PATH", self.path("bin")).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
        assert!(problem["advice"].as_str().unwrap().contains("lanyard up --detach"), "{problem}");
        problem["code"].as_str().unwrap().to_owned()
    }
}

#[test]
fn without_a_manager_every_verb_is_refused_with_what_to_do_instead() {
    for (systemctl, code) in
        [(None, "service_manager_missing"), (Some(UNREACHABLE), "service_manager_unreachable")]
    {
        let user = User::with(systemctl);
        for verb in ["install", "uninstall", "status"] {
            assert_eq!(user.refused(&["service", verb]), code, "{verb}");
        }
        assert!(!user.unit().exists(), "nothing is written");
    }
}

#[test]
fn the_service_is_installed_once_restarted_and_removed_while_an_agent_works() {
    let user = User::with(Some(MANAGER));
    assert_eq!(user.json(&["service", "status", "--json"])["unit"], Value::Null);
    // A daemon that was started by hand, and an agent that waits for an answer.
    user.json(&["up", "--detach", "--json"]);
    let by_hand = user.json(&["status", "--json"])["pid"].clone();
    let steps = "/run echo $PPID >> pids\n/ask May I go on?\n/run echo $PPID >> pids\n/say went on";
    let folder = user.path("").display().to_string();
    let started = user.run(&["run", "--agent", "demo", "--detach", "--cwd", &folder, steps]);
    let session = String::from_utf8(started.stdout).unwrap();
    let session = session.trim().rsplit(' ').next().unwrap();
    let gate = || {
        let shown = user.json(&["show", session, "--json"]);
        let gates = shown["gates"].as_array().cloned().unwrap_or_default();
        let open = gates.into_iter().find(|gate| gate["status"]["name"] == "open");
        open.map(|gate| gate["id"].as_str().unwrap().to_owned())
    };
    assert!(until(|| gate().is_some()), "the agent asks");

    let status = user.json(&["service", "install", "--json"]);
    assert_eq!((&status["enabled"], &status["state"]), (&Value::Bool(true), &"active".into()));
    assert_eq!((&status["up_to_date"], &status["linger"]), (&Value::Bool(true), &Value::Bool(false)));
    assert_ne!(status["pid"], by_hand, "the service's daemon has taken its place");
    assert_eq!(user.json(&["status", "--json"])["pid"], status["pid"]);
    // Again: nothing changes.
    assert_eq!(user.json(&["service", "install", "--json"]), status);

    let gate = gate().expect("the question outlives the daemon");
    assert!(user.run(&["answer", &gate, "allow"]).status.success());
    let ended = || user.json(&["show", session, "--json"])["active_turn"].is_null();
    assert!(until(ended), "the turn ends");
    let pids = std::fs::read_to_string(user.path("pids")).unwrap();
    let pids: Vec<&str> = pids.lines().collect();
    assert!(pids.len() == 2 && pids[0] == pids[1], "one process from first to last: {pids:?}");

    let told = user.run(&["service", "status"]);
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("loginctl enable-linger"), "{told}");
    for _ in 0..2 {
        let left = user.json(&["service", "uninstall", "--json"]);
        assert_eq!(
            (&left["unit"], &left["enabled"], &left["pid"]),
            (&Value::Null, &Value::Bool(false), &Value::Null)
        );
    }
    assert!(!user.unit().exists());
    let calls = std::fs::read_to_string(user.path("bin/calls")).unwrap();
    assert_eq!(calls.lines().filter(|call| *call == "restart").count(), 1, "{calls}");
}

/// The unit as systemd itself reads it, without a manager.
#[test]
fn systemd_finds_no_fault_with_the_unit() {
    let user = User::with(None);
    let printed = user.run(&["service", "install", "--print"]);
    assert!(printed.status.success());
    let file = user.path("lanyard.service");
    std::fs::write(&file, printed.stdout).unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["--user", "--man=no", "--recursive-errors=no", "verify"]).arg(&file);
    let checked = match verify.env("XDG_RUNTIME_DIR", user.path("")).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("systemd is not installed here: the unit was not checked");
            return;
        }
        checked => checked.unwrap(),
    };
    let said = String::from_utf8_lossy(&checked.stderr);
    // Older than 254, which says so and goes on.
    let is_older = |line: &&str| line.contains("Unknown key") && line.contains("'DelegateSubgroup'");
    let older = said.lines().any(|line| is_older(&line));
    let faults: Vec<&str> =
        said.lines().filter(|line| line.contains("lanyard.service:") && !is_older(line)).collect();
    assert!((checked.status.success() || older) && faults.is_empty(), "{said}");
}
