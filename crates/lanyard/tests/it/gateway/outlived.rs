//! FND-R10: an agent's MCP connections end in its run's relay, which outlives the daemon. A call is carried out once,
//! whatever becomes of the daemon in the middle of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::kit::{Client, Stage, until};
use super::program;
use super::server::Server;
use crate::support::{Setup, binary};

/// How the daemon goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    Killed,
    Down,
}

struct Play {
    stage: Stage,
    server: Server,
    config: String,
    folder: tempfile::TempDir,
    session: String,
}

impl Play {
    /// A daemon with a scripted agent, which has begun to play.
    fn begin(prompt: &str) -> Self {
        Self::with(prompt, &[])
    }

    fn with(prompt: &str, env: &[(&str, &str)]) -> Self {
        let server = Server::start();
        let folder = tempfile::tempdir().unwrap();
        let program = binary().display().to_string();
        let memory = folder.path().join("state").display().to_string();
        let command = serde_json::to_string(&[&program, "scripted-agent", "--state", &memory]).unwrap();
        let config = server.config("h", "")
            + &program::config("p", "")
            + &format!("[agents.a]\ndriver = \"acp\"\ncommand = {command}\nkill_grace_ms = 500\n");
        let mut setup = Setup::default().config(&config);
        for (name, value) in env {
            setup = setup.env(name, *value);
        }
        let stage = Stage { daemon: crate::support::Daemon::start(setup) };
        let session = stage.session(&json!({"agent": "a", "workspace": folder.path()}));
        let sent = stage.post(&format!("/sessions/{session}/turns"), &json!({"prompt": prompt}));
        assert_eq!(sent.status, 201, "{}", sent.text());
        Self { stage, server, config, folder, session }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn until_file(&self, name: &str) {
        until(name, || self.file(name).exists());
    }

    fn touch(&self, name: &str) {
        std::fs::write(self.file(name), "").unwrap();
    }

    fn goes(&self, how: Goes) {
        match how {
            Goes::Killed => self.stage.daemon.kill_9(),
            Goes::Down => assert!(self.stage.daemon.terminate().success()),
        }
    }

    /// Another daemon on another port.
    fn comes_back(&mut self) {
        self.stage.daemon.restart_with(Setup::default().config(&self.config));
    }

    /// The same of another file, as after an upgrade.
    fn comes_back_upgraded(&mut self) {
        let copy = self.file("upgraded");
        std::fs::copy(binary(), &copy).unwrap();
        self.stage.daemon.restart_with(Setup::default().config(&self.config).program(&copy));
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        let all = self.stage.daemon.log_after(&self.session, 0).into_iter();
        all.filter(|event| event["type"] == kind).collect()
    }

    /// What the tool calls of the turn came to, once it is over.
    fn returned(&self) -> Vec<(bool, String)> {
        until("the turn's end", || !self.log("turn.finished").is_empty());
        let all = self.log("tool.returned");
        all.iter()
            .map(|event| {
                let data = &event["data"];
                (data["is_error"].as_bool().unwrap_or(false), data["content"].to_string())
            })
            .collect()
    }

    /// How often each method, and each tool, has reached the server.
    fn reached(&self, word: &str) -> usize {
        let mut count = 0;
        while let Some((_, body)) = self.server.try_got() {
            count += usize::from(body.contains(word));
        }
        count
    }

    fn end(self) {
        let ended = self.stage.post(&format!("/sessions/{}/complete", self.session), &json!({}));
        assert!(ended.status < 300, "{}", ended.text());
        until("the agent's end", || !self.log("run.ended").is_empty());
    }
}

/// A test that fails leaves no agent either.
impl Drop for Play {
    fn drop(&mut self) {
        let runs = std::fs::read_dir(self.stage.daemon.home().join("runs")).into_iter().flatten().flatten();
        for run in runs.filter_map(|entry| entry.file_name().into_string().ok()) {
            for pid in marked(&run) {
                let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Waits until the server has got a call of this tool; other requests come before it.
fn until_called(server: &Server, tool: &str) {
    while !server.got().1.contains(&format!("\"name\":\"{tool}\"")) {}
}

/// FND-R10: a call under way when the daemon is killed is answered at once, and its tool has run once.
#[test]
fn fnd_r10_a_call_in_flight_is_answered_and_runs_once() {
    let mut play = Play::begin("/mcp h hang {}\n/touch answered\n/mcp h echo {}");
    until_called(&play.server, "hang");
    play.goes(Goes::Killed);
    // No daemon has to come back for it.
    play.until_file("answered");
    play.comes_back_upgraded();
    let returned = play.returned();
    assert_eq!(returned.len(), 2, "{returned:?}");
    assert!(returned[0].0 && returned[0].1.contains("The tool may have run"), "{returned:?}");
    assert!(!returned[1].0 && returned[1].1.contains("echo"), "{returned:?}");
    assert_eq!(play.reached("hang"), 0, "the call was not made again");
    play.end();
}

/// FND-R10: the same when the daemon is taken down: it gives the call some seconds, and then the relay answers.
#[test]
fn fnd_r10_a_call_in_flight_when_the_daemon_is_taken_down_is_answered() {
    let mut play = Play::begin("/mcp h hang {}\n/mcp h echo {}");
    until_called(&play.server, "hang");
    play.goes(Goes::Down);
    play.comes_back();
    let returned = play.returned();
    assert!(returned[0].0 && returned[0].1.contains("The tool may have run"), "{returned:?}");
    assert!(!returned[1].0, "{returned:?}");
    play.end();
}

/// FND-R10: a call that is made while no daemon runs waits for the next one, which carries it out once. The agent does
/// not greet its servers again, and the next daemon may have another port.
#[test]
fn fnd_r10_an_agent_finds_its_servers_again() {
    for goes in [Goes::Killed, Goes::Down] {
        let script = "/mcp h echo {}\n/mcp p echo {}\n/touch a\n/wait-file go\n/touch calling\n/mcp h echo {\"second\":1}\n\
                      /mcp p echo {\"third\":1}";
        let mut play = Play::begin(script);
        play.until_file("a");
        let before = play.stage.daemon.address();
        play.goes(goes);
        play.touch("go");
        play.until_file("calling");
        // sleep: the call reaches the relay meanwhile; it is carried out all the same if it comes later.
        std::thread::sleep(Duration::from_millis(200));
        play.comes_back();
        let returned = play.returned();
        assert_eq!(returned.len(), 4, "{returned:?}");
        assert!(returned.iter().all(|(failed, _)| !failed), "{returned:?}");
        assert!(returned[3].1.contains("third"), "{returned:?}");
        assert_ne!(before, play.stage.daemon.address(), "it is another port");
        let mut seen = Vec::new();
        while let Some((_, body)) = play.server.try_got() {
            seen.push(body);
        }
        let count = |word: &str| seen.iter().filter(|body| body.contains(word)).count();
        assert_eq!((count("\"initialize\""), count("tools/call"), count("second")), (1, 2, 1), "{seen:?}");
        assert!(play.log("run.tools_missing").is_empty());
        play.end();
    }
}

/// The relay of the only run, as an agent would use it.
fn relayed(play: &Play, server: &str) -> Client {
    let client = play.stage.client(&play.session, server);
    let runs = play.stage.daemon.home().join("runs");
    let run = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    let about: Value = serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap();
    Client { address: about["about"]["relay"].as_str().unwrap().to_owned(), ..client }
}

/// FND-R10: the stream for what belongs to no request stays open while daemons come and go, and so does the name of the
/// client's connection.
#[test]
fn fnd_r10_a_listening_client_stays_connected() {
    let mut play = Play::begin("/touch a\n/wait-file never");
    play.until_file("a");
    let mut client = relayed(&play, "p");
    client.greet("a client");
    let mut stream = client.open("GET", &[], None);
    assert_eq!(stream.answer.status, 200);
    let change = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "change"}});
    for goes in [Goes::Killed, Goes::Down, Goes::Killed] {
        play.goes(goes);
        play.comes_back();
        // The process is another one, and speaks on the stream that was opened to the first.
        // A call that comes before the stream is open again carries the notification itself.
        until("the stream", || client.tell(&change).kind == "application/json");
        assert_eq!(stream.next()["method"], "notifications/tools/list_changed");
    }
    assert!(!client.link.as_deref().unwrap_or_default().is_empty());
    for _ in 0..3 {
        play.stage.post(&format!("/sessions/{}/stop", play.session), &json!({}));
    }
    until("the agent's end", || !play.log("run.ended").is_empty());
}

/// FND-R10: an agent that finds no daemon when it first wants its server is told of, in the log, in the session's record
/// and as a notification, until it has reached the server after all.
#[test]
fn fnd_r10_an_agent_without_its_tools_is_told_of() {
    let script = "/touch a\n/wait-file go\n/mcp h echo {}\n/touch tried";
    let mut play = Play::with(script, &[("LANYARD_RELAY_WAIT_MS", "100")]);
    play.until_file("a");
    play.goes(Goes::Killed);
    play.touch("go");
    play.until_file("tried");
    play.comes_back();
    let returned = play.returned();
    assert!(returned[0].0 && returned[0].1.contains("no Lanyard daemon answered"), "{returned:?}");
    until("the event", || !play.log("run.tools_missing").is_empty());
    assert_eq!(play.log("run.tools_missing")[0]["data"]["servers"], json!(["h"]));
    let shown = play.stage.daemon.lanyard(&["show", &play.session]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("without MCP servers: h"), "{shown}");
    let told = || {
        let path = "/api/v1/notifications?kind=tools_missing&lasting=true";
        play.stage.daemon.request("GET", path, &[], None).json()["notifications"].as_array().unwrap().len()
    };
    until("the notification", || told() == 1);
    let again =
        play.stage.post(&format!("/sessions/{}/turns", play.session), &json!({"prompt": "/mcp h echo {}"}));
    assert_eq!(again.status, 201, "{}", again.text());
    until("the second event", || play.log("run.tools_missing").len() == 2);
    assert_eq!(play.log("run.tools_missing")[1]["data"].get("servers"), None);
    until("the end of the notification", || told() == 0);
    play.end();
}

/// FND-R10: neither the shim nor the agent holds a descriptor of the daemon's sockets, so its port is free when it ends.
#[test]
fn fnd_r10_no_agent_holds_the_daemons_port() {
    let mut play = Play::begin("/touch a\n/wait-file go");
    play.until_file("a");
    let address = play.stage.daemon.address();
    let daemon = sockets(play.stage.daemon.pid().unwrap());
    let run = play.log("run.started")[0]["data"]["run"].as_str().unwrap().to_owned();
    let marked = marked(&run);
    assert!(marked.len() >= 2, "the shim and the agent: {marked:?}");
    for pid in marked {
        let shared: Vec<_> = sockets(pid).into_iter().filter(|socket| daemon.contains(socket)).collect();
        assert!(shared.is_empty(), "{pid} shares {shared:?}");
    }
    play.goes(Goes::Killed);
    // The same port at once, while the agent lives.
    play.stage.daemon.restart_with(Setup::default().config(&play.config).listen(&address));
    assert_eq!(play.stage.daemon.address(), address);
    play.touch("go");
    play.returned();
    play.end();
}

/// Listening sockets and files that a process has open, by inode.
fn sockets(pid: u32) -> Vec<String> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = open.filter_map(|one| std::fs::read_link(one.path()).ok());
    targets
        .map(|target: PathBuf| target.display().to_string())
        .filter(|name| name.starts_with("socket:"))
        .collect()
}

/// Processes that belong to a run.
fn marked(run: &str) -> Vec<u32> {
    let mark = format!("LANYARD_RUN={run}");
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let bears = |pid: &u32| {
        let environ =
            std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|one| one == mark.as_bytes())
    };
    pids.filter(bears).collect()
}
