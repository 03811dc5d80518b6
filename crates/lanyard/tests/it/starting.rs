//! A daemon that starts by itself, ends when told, and says why when it cannot.

use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use lanyard_api::home::Home;
use rustix::process::{Pid, Signal, getsid, kill_process};
use serde_json::Value;

use crate::support::{Daemon, Setup, binary};

/// A data folder without a daemon; one that is started for it ends with it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        // In /tmp, since a socket's path must be short.
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        std::fs::write(folder.path().join("config.toml"), "[daemon]\nlisten = \"127.0.0.1:0\"\n").unwrap();
        Self { folder }
    }

    fn home(&self) -> Home {
        Home { dir: self.folder.path().join("data") }
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config.toml")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(words)
            .env("LANYARD_DATA_DIR", self.home().dir)
            .env("LANYARD_CONFIG", self.config())
            .env_remove("LANYARD_NO_START")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn lanyard(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn pid(&self) -> Option<Pid> {
        let running = self.home().running().unwrap()?;
        Pid::from_raw(running.pid.cast_signed())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The lock was held a moment ago by the process that wrote this pid, so it is that daemon's.
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_command_that_needs_a_daemon_starts_one_and_says_so() {
    let place = Place::new();
    let made = place.lanyard(&["new", "--title", "first"]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert!(stdout(&made).starts_with("sess_"), "{}", stdout(&made));
    let said = stderr(&made);
    assert!(said.starts_with("started a daemon at http://127.0.0.1:") && said.lines().count() == 1, "{said}");

    let listed = place.lanyard(&["ls"]);
    assert!(stdout(&listed).contains("first"));
    assert_eq!(stderr(&listed), "");
}

/// The end of the terminal, or of the session the command ran in, must not be the daemon's.
#[test]
fn a_daemon_in_the_background_has_a_session_of_its_own() {
    let place = Place::new();
    let up = place.lanyard(&["up", "--detach"]);
    assert!(up.status.success(), "{}", stderr(&up));
    let pid = place.pid().unwrap();
    assert_eq!(getsid(Some(pid)).unwrap(), pid);
}

#[test]
fn many_commands_at_once_start_one_daemon() {
    let place = Place::new();
    let commands: Vec<_> = (0..8).map(|_| place.command(&["new"]).spawn().unwrap()).collect();
    let outputs: Vec<Output> = commands.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    for output in &outputs {
        assert!(output.status.success(), "{}", stderr(output));
    }
    let starts = outputs.iter().filter(|output| stderr(output).contains("started a daemon")).count();
    assert_eq!(starts, 1);
    let rows: Value = serde_json::from_slice(&place.lanyard(&["ls", "--json"]).stdout).unwrap();
    assert_eq!(rows["items"].as_array().unwrap().len(), 8);
}

#[test]
fn some_commands_never_start_a_daemon_and_all_can_be_kept_from_it() {
    let place = Place::new();
    let status = place.lanyard(&["status"]);
    assert_eq!(status.status.code(), Some(3));
    assert!(stderr(&status).contains("[daemon_not_running]"), "{}", stderr(&status));
    assert_eq!(place.lanyard(&["down"]).status.code(), Some(0));
    assert_eq!(place.lanyard(&["doctor"]).status.code(), Some(0));

    let kept = place.command(&["ls", "--json"]).env("LANYARD_NO_START", "1").output().unwrap();
    assert_eq!(kept.status.code(), Some(3));
    let problem: Value = serde_json::from_slice(&kept.stderr).unwrap();
    assert_eq!(problem["code"], "daemon_not_running");
    assert_eq!(place.pid(), None);
}

#[test]
fn up_twice_is_once_and_down_waits_for_the_end() {
    let place = Place::new();
    let first = place.lanyard(&["up", "--detach"]);
    let second = place.lanyard(&["up", "--detach"]);
    assert_eq!((first.status.code(), second.status.code()), (Some(0), Some(0)));
    assert!(stdout(&first).starts_with("http://127.0.0.1:"));
    assert_eq!(stdout(&first), stdout(&second));
    assert!(stderr(&first).contains("was started") && stderr(&second).contains("already runs"));

    let here = place.lanyard(&["up"]);
    assert_eq!(here.status.code(), Some(1));
    let pid = place.pid().unwrap().as_raw_nonzero();
    assert!(stderr(&here).contains(&format!("pid {pid}")), "{}", stderr(&here));

    let down = place.lanyard(&["down"]);
    assert_eq!((down.status.code(), stderr(&down).as_str()), (Some(0), "the daemon has ended\n"));
    assert_eq!(place.lanyard(&["status"]).status.code(), Some(3));
}

#[test]
fn a_daemon_that_cannot_listen_says_where_and_what_to_do() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    std::fs::write(place.config(), format!("[daemon]\nlisten = \"{address}\"\n")).unwrap();
    let failed = place.lanyard(&["new"]);
    assert_eq!(failed.status.code(), Some(1));
    let said = stderr(&failed);
    assert!(said.starts_with("error: the daemon did not start [daemon_start_failed]\n"), "{said}");
    assert!(said.contains(&format!("cannot listen on {address}")), "{said}");

    let doctor = place.lanyard(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    assert!(
        stdout(&doctor).contains(&format!("another program listens on {address}")),
        "{}",
        stdout(&doctor)
    );
}

/// FND-N10: agents that cannot run, without a daemon and with one, as text and as JSON.
#[test]
fn fnd_n10_the_doctor_finds_agents_that_cannot_run() {
    let place = Place::new();
    let config = "[daemon]\nlisten = \"127.0.0.1:0\"\ndefault_agent = \"ghost\"\n\
                  [agents.gone]\ndriver = \"acp\"\ncommand = [\"/no/such/program\"]\n";
    std::fs::write(place.config(), config).unwrap();
    for running in [false, true] {
        if running {
            assert!(place.lanyard(&["up", "--detach"]).status.success());
        }
        let doctor = place.lanyard(&["doctor"]);
        assert_eq!(doctor.status.code(), Some(1), "running: {running}");
        let said = stdout(&doctor);
        assert!(said.contains("FAIL  agents       the default agent `ghost` is not configured"), "{said}");
        assert!(said.contains("with `lanyard config set daemon.default_agent NAME`"), "{said}");
        assert!(said.contains("there is no program `/no/such/program` for the agent `gone`"), "{said}");
        let doctor = place.lanyard(&["doctor", "--json"]);
        assert_eq!(doctor.status.code(), Some(1));
        let findings: Value = serde_json::from_slice(&doctor.stdout).unwrap();
        let findings = findings["items"].as_array().unwrap();
        let agents: Vec<&Value> = findings.iter().filter(|finding| finding["check"] == "agents").collect();
        assert_eq!(agents.len(), 2, "{findings:#?}");
        assert!(agents.iter().all(|finding| finding["fix"].is_string()), "{agents:#?}");
    }
}

/// FND-N10: a config that the daemon cannot take up, or not without a restart, is found until it is.
#[test]
fn fnd_n10_the_doctor_finds_a_config_that_is_not_in_use() {
    let place = Place::new();
    assert!(place.lanyard(&["up", "--detach"]).status.success());
    let doctor = || {
        let doctor = place.lanyard(&["doctor"]);
        (doctor.status.code(), stdout(&doctor))
    };
    let (code, said) = doctor();
    assert_eq!((code, said.contains("restart")), (Some(0), false), "{said}");
    let text = std::fs::read_to_string(place.config()).unwrap();
    std::fs::write(place.config(), format!("{text}operator_streams = 7000\n")).unwrap();
    assert!(place.lanyard(&["reload"]).status.success());
    let (code, said) = doctor();
    assert_eq!(code, Some(0), "a warning is no failure");
    assert!(said.contains("need a restart of the daemon: daemon.operator_streams"), "{said}");
    std::fs::write(place.config(), "[daemon]\nlistn = 1\n").unwrap();
    assert_eq!(place.lanyard(&["reload"]).status.code(), Some(1));
    let (code, said) = doctor();
    assert_eq!(code, Some(1));
    assert!(said.contains("FAIL  config       the file is not used"), "{said}");
    std::fs::write(place.config(), format!("{text}operator_streams = 7000\n")).unwrap();
    assert!(place.lanyard(&["down"]).status.success());
    assert!(place.lanyard(&["up", "--detach"]).status.success());
    let (code, said) = doctor();
    assert_eq!((code, said.contains("restart")), (Some(0), false), "{said}");
}

/// `doctor --fix` names each step, mends what is safe, and leaves the rest.
#[test]
fn the_doctor_mends_what_is_safe() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    assert!(place.lanyard(&["up", "--detach"]).status.success());
    let pid = place.pid().unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    assert!(crate::support::until(|| place.pid().is_none()));
    let dir = place.home().dir;
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(place.home().token(), PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::write(place.config().with_file_name(".config.toml.999999999.new"), "half").unwrap();
    let before = std::fs::read(place.home().token()).unwrap();
    assert!(place.home().socket().exists(), "a killed daemon leaves its socket");
    let broken = place.lanyard(&["doctor"]);
    assert_eq!(broken.status.code(), Some(1), "{}", stdout(&broken));
    let mended = place.lanyard(&["doctor", "--fix"]);
    assert_eq!(mended.status.code(), Some(0), "{}{}", stdout(&mended), stderr(&mended));
    let said = stderr(&mended);
    for step in ["fix: chmod 700 ", "fix: chmod 600 ", "lanyard.sock (", ".config.toml.999999999.new ("] {
        assert!(said.contains(step), "{said}");
    }
    assert_eq!((mode(&dir), mode(&place.home().token())), (0o700, 0o600));
    assert_eq!(std::fs::read(place.home().token()).unwrap(), before);
    assert!(!place.home().socket().exists() && place.home().journal().exists());
    assert_eq!(stderr(&place.lanyard(&["doctor", "--fix"])), "Nothing to fix.\n");
}

/// FND-N10: a data folder that cannot be written to. Root may write whatever a folder's mode says.
#[test]
fn fnd_n10_the_doctor_finds_a_data_folder_that_is_read_only() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    assert!(place.lanyard(&["up", "--detach"]).status.success());
    assert!(place.lanyard(&["down"]).status.success());
    let mode = |mode| std::fs::set_permissions(place.home().dir, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o500);
    let doctor = place.lanyard(&["doctor"]);
    mode(0o700);
    assert_eq!(doctor.status.code(), Some(1));
    assert!(stdout(&doctor).contains("nothing can be written to"), "{}", stdout(&doctor));
}

#[test]
fn a_config_that_is_not_understood_is_shown_with_the_place() {
    let place = Place::new();
    let mut file = std::fs::File::create(place.config()).unwrap();
    writeln!(file, "[limits]\ndeepth = 4").unwrap();
    let failed = place.lanyard(&["up", "--detach"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(stderr(&failed).contains("deepth"), "{}", stderr(&failed));
}

/// The daemon dies between making the change durable and answering: the command asks again with the same key, of a
/// daemon it starts itself, and the change is there once.
#[test]
fn a_change_whose_answer_was_lost_is_made_once() {
    let mut daemon = Daemon::prepare(
        Setup::default()
            .config("[daemon]\nlisten = \"127.0.0.1:0\"\n")
            .env("LANYARD_FAILPOINT", "after_append:1"),
    );
    daemon.try_start().unwrap();
    let lanyard = |words: &[&str]| {
        Command::new(binary())
            .args(words)
            .env("LANYARD_DATA_DIR", daemon.home())
            .env("LANYARD_CONFIG", daemon.config())
            .env_remove("LANYARD_NO_START")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let made = lanyard(&["new", "--title", "once"]);
    let said = stderr(&made);
    assert!(made.status.success(), "{said}");
    assert!(
        said.starts_with("the connection broke before an answer; asking again with the same key\n"),
        "{said}"
    );
    let rows: Value = serde_json::from_slice(&lanyard(&["ls", "--json"]).stdout).unwrap();
    let ids: Vec<&str> =
        rows["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [stdout(&made).trim()]);
    assert!(lanyard(&["down"]).status.success());
}

/// A process that is there and does not answer is told from one that is not there.
#[test]
fn a_daemon_that_hangs_is_reported_and_not_waited_for() {
    let place = Place::new();
    assert!(place.lanyard(&["up", "--detach"]).status.success());
    let pid = place.pid().unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let down = place.lanyard(&["down"]);
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(down.status.code(), Some(3));
    assert!(stderr(&down).contains("did not answer within 5 s [daemon_silent]"), "{}", stderr(&down));
    assert!(place.lanyard(&["down"]).status.success() || place.pid().is_none());
}

#[test]
fn what_a_daemon_in_the_background_says_is_in_its_log() {
    let place = Place::new();
    assert!(place.lanyard(&["up", "--detach"]).status.success());
    // It says that it is ready where its starter waits for it, and then in its log.
    let until = std::time::Instant::now() + crate::support::PATIENCE;
    while !std::fs::read_to_string(place.home().log()).unwrap().contains("ready") {
        assert!(std::time::Instant::now() < until, "its log does not say that it is ready");
        // sleep: the line is on its way
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let metadata = std::fs::metadata(place.home().log()).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777, 0o600);
}

/// Looking at a daemon that dies at that very moment must not bring another to life.
#[test]
fn a_command_about_the_daemon_does_not_start_one_when_it_dies_under_it() {
    let mut daemon = Daemon::prepare(Setup::default().config("[daemon]\nlisten = \"127.0.0.1:0\"\n"));
    daemon.try_start().unwrap();
    let socket = daemon.home().join("lanyard.sock");
    daemon.kill_9();
    // In the dead daemon's place: takes a request and hangs up.
    std::fs::remove_file(&socket).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let asked = Command::new(binary())
        .arg("status")
        .env("LANYARD_DATA_DIR", daemon.home())
        .env("LANYARD_CONFIG", daemon.config())
        .env_remove("LANYARD_NO_START")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(listener.accept().unwrap());
    drop(listener);
    let output = asked.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("[daemon_not_running]"), "{}", stderr(&output));
    assert_eq!(Home { dir: daemon.home() }.running().unwrap(), None);
}
