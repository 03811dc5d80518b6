//! A daemon whose agent `shell` runs its prompt in a shell, in an environment where an operator's data folder is easy to
//! find: by the daemon's own variables, and as the default of the home folder.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{Answer, Caller, Daemon, PATIENCE, Setup, binary};

pub(super) struct Stage {
    pub(super) daemon: Daemon,
    folder: tempfile::TempDir,
}

/// What the agent's settings are beside its command.
pub(super) const CLEARED: &str = "clear_env = true\n";
pub(super) const INHERITED: &str = "";

impl Stage {
    pub(super) fn new(settings: &str) -> Self {
        Self::with(settings, "", Setup::default())
    }

    pub(super) fn with(settings: &str, more: &str, setup: Setup) -> Self {
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        for name in ["work", "home"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let config = format!(
            "[agents.shell]\ndriver = \"command\"\ncommand = [\"sh\", \"-c\"]\n{settings}\
             kill_grace_ms = 300\n{more}"
        );
        let home = folder.path().join("home");
        let mut daemon =
            Daemon::prepare(setup.config(&config).env("HOME", home.as_os_str()).env("XDG_DATA_HOME", ""));
        let data = daemon.home();
        let share = home.join(".local/share");
        std::fs::create_dir_all(&share).unwrap();
        symlink(&data, share.join("lanyard")).unwrap();
        daemon.add_env("LANYARD_DATA_DIR", data.as_os_str());
        daemon.add_env("LANYARD_CONFIG", daemon.config().as_os_str());
        if let Err(error) = daemon.try_start() {
            panic!("the daemon did not start: {error}");
        }
        Self { daemon, folder }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    pub(super) fn touch(&self, name: &str) {
        std::fs::write(self.file(name), "").unwrap();
    }

    /// Waits for a file the agent makes, and reads it.
    pub(super) fn await_file(&self, name: &str) -> String {
        let since = Instant::now();
        loop {
            if let Ok(text) = std::fs::read_to_string(self.file(name)) {
                return text;
            }
            assert!(since.elapsed() < PATIENCE, "no file {name}: {}", self.daemon.stderr());
            // sleep: between two looks at a file that is being made.
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        self.daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()))
    }

    pub(super) fn session(&self) -> String {
        let work = self.folder.path().join("work");
        let made = self.post("/sessions", &json!({ "agent": "shell", "workspace": work }));
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["session"].as_str().unwrap().to_owned()
    }

    /// Has the agent begin to run a script, with `$L` the program under test. Written aside, so that nothing shows up
    /// before it is whole.
    pub(super) fn begin(&self, session: &str, script: &str) {
        let script = format!("L={}\n{script}", binary().display());
        let sent = self.post(&format!("/sessions/{session}/turns"), &json!({ "prompt": script }));
        assert_eq!(sent.status, 201, "{}", sent.text());
    }

    /// Has the agent run a script to its end; what it printed.
    pub(super) fn run(&self, session: &str, script: &str) -> String {
        self.begin(session, script);
        self.until_at_rest(session);
        self.said(session)
    }

    pub(super) fn until_at_rest(&self, session: &str) {
        let since = Instant::now();
        while self.show(session)["run"]["phase"] != "ended" {
            assert!(since.elapsed() < PATIENCE, "{:#}", self.show(session));
            // sleep: between two looks at a turn that runs.
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    pub(super) fn show(&self, session: &str) -> Value {
        self.daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).json()
    }

    pub(super) fn log(&self, session: &str) -> Vec<Value> {
        self.daemon.log_after(session, 0)
    }

    /// All the agent said.
    pub(super) fn said(&self, session: &str) -> String {
        let messages = self.log(session).into_iter().filter(|event| event["type"] == "message");
        messages.map(|event| event["data"]["text"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The agent's own token while its script waits for the file `go`.
    pub(super) fn held_token(&self, session: &str) -> Caller {
        self.begin(
            session,
            "printf %s \"$LANYARD_TOKEN\" > t && mv t token; while [ ! -e go ]; do sleep 0.02; done",
        );
        let token = self.await_file("token");
        Caller { token, ..self.daemon.caller() }
    }
}

pub(super) fn ask(caller: &Caller, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let body = body.map(Value::to_string);
    caller.try_request(method, &format!("/api/v1{path}"), &[], body.as_deref()).unwrap()
}
