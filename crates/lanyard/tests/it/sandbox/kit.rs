//! A machine in small: a home folder with keys, a repository as the workspace, a daemon whose agent `claude` runs its
//! prompt in a shell, and listeners that nobody in a sandbox should reach.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, PATIENCE, Setup, binary, until};

/// A user without rights, as all systems have one.
const NOBODY: u32 = 65_534;

/// Who the daemon and its agents are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunBy {
    /// Who runs the tests.
    Same,
    /// A plain user, where the tests are run by root.
    Plain,
}

pub(super) struct SmallMachine {
    pub(super) daemon: Daemon,
    folder: tempfile::TempDir,
    tcp: TcpListener,
    _unix: UnixListener,
    _abstract: UnixListener,
}

impl SmallMachine {
    /// With the settings of the agent beside its command.
    pub(super) fn new(settings: &str, user: RunBy) -> Self {
        Self::with(settings, user, None)
    }

    /// With a daemon that has a control group to itself.
    pub(super) fn grouped(settings: &str, group: &OwnGroup) -> Self {
        Self::with(settings, RunBy::Same, Some(group))
    }

    fn with(settings: &str, user: RunBy, group: Option<&OwnGroup>) -> Self {
        // A sandbox has a `/tmp` of its own, so what it hides is looked for elsewhere, where the user can get there.
        let target = env!("CARGO_TARGET_TMPDIR");
        let base = if user == RunBy::Same || is_open(Path::new(target)) { target } else { "/tmp" };
        let folder = tempfile::Builder::new().prefix("lys").tempdir_in(base).unwrap();
        let at = |name: &str| folder.path().join(name);
        lay_out(folder.path());
        let config = format!(
            "[agents.claude]\ndriver = \"command\"\ncommand = [\"{}\"]\nkill_grace_ms = 300\n{settings}",
            at("bin/claude").display()
        );
        let setup = Setup::default()
            .config(&config)
            .env("HOME", at("home").as_os_str())
            .env("SSH_AUTH_SOCK", at("agent.sock").as_os_str());
        let setup = if user == RunBy::Plain { setup.user(NOBODY) } else { setup };
        let setup = match group {
            Some(group) => setup.program(&group.program(folder.path())),
            None => setup,
        };
        let mut daemon = Daemon::prepare_in(base, setup);
        let other = daemon.home().join("trees/other");
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(other.join("secret"), "of another session").unwrap();
        std::fs::set_permissions(daemon.home(), std::fs::Permissions::from_mode(0o700)).unwrap();
        if user == RunBy::Plain {
            let all = [folder.path(), daemon.folder()].map(Path::as_os_str);
            let owner = format!("{NOBODY}:{NOBODY}");
            assert!(Command::new("chown").args(["-R", &owner]).args(all).status().unwrap().success());
        }
        if let Err(error) = daemon.try_start() {
            panic!("the daemon did not start: {error}");
        }
        let name = format!("lys-{}", daemon.address());
        let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
        let unix = UnixListener::bind(at("agent.sock")).unwrap();
        std::fs::set_permissions(at("agent.sock"), std::fs::Permissions::from_mode(0o777)).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { daemon, folder, tcp, _unix: unix, _abstract: hidden }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where a program listens that is none of Lanyard's.
    pub(super) fn port(&self) -> u16 {
        self.tcp.local_addr().unwrap().port()
    }

    pub(super) fn work(&self) -> PathBuf {
        self.path("work")
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        self.daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()))
    }

    pub(super) fn session(&self, more: &Value) -> String {
        let mut new = json!({ "agent": "claude", "workspace": self.work() });
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = self.post("/sessions", &new);
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["session"].as_str().unwrap().to_owned()
    }

    pub(super) fn show(&self, session: &str) -> Value {
        self.daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).json()
    }

    /// What the scripts of the agent know of the machine.
    fn variables(&self) -> String {
        let daemon = self.daemon.address();
        let port = daemon.rsplit(':').next().unwrap().to_owned();
        [
            ("L", binary().display().to_string()),
            ("DATA", self.daemon.home().display().to_string()),
            ("CONF", self.daemon.config().display().to_string()),
            ("OUT", self.path("out").display().to_string()),
            ("WORK", self.work().display().to_string()),
            ("BASE", self.folder.path().display().to_string()),
            ("DPID", self.daemon.pid().unwrap().to_string()),
            ("DPORT", port),
            ("TPORT", self.tcp.local_addr().unwrap().port().to_string()),
            ("NAME", format!("lys-{daemon}")),
            ("ID", self.id()),
        ]
        .map(|(name, value)| format!("export {name}='{value}'\n"))
        .concat()
    }

    /// Names things of this test outside of its folders.
    pub(super) fn id(&self) -> String {
        self.folder.path().file_name().unwrap().to_str().unwrap().to_owned()
    }

    pub(super) fn begin(&self, session: &str, script: &str) {
        self.begin_with(session, script, &json!([]));
    }

    /// The same with something attached.
    pub(super) fn begin_with(&self, session: &str, script: &str, parts: &Value) {
        let prompt = format!("{}{script}", self.variables());
        let body = json!({ "prompt": prompt, "parts": parts });
        let sent = self.post(&format!("/sessions/{session}/turns"), &body);
        assert_eq!(sent.status, 201, "{}", sent.text());
    }

    /// Has the agent run a script to its end; what it printed.
    pub(super) fn run(&self, session: &str, script: &str) -> String {
        self.run_with(session, script, &json!([]))
    }

    pub(super) fn run_with(&self, session: &str, script: &str, parts: &Value) -> String {
        self.begin_with(session, script, parts);
        self.until(session, |shown| shown["run"]["phase"] == "ended");
        let log = self.daemon.log_after(session, 0);
        let messages = log.iter().filter(|event| event["type"] == "message");
        messages.map(|event| event["data"]["text"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub(super) fn until(&self, session: &str, mut done: impl FnMut(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let shown = self.show(session);
            if done(&shown) {
                return shown;
            }
            assert!(since.elapsed() < PATIENCE * 4, "{shown:#}\n{}", self.daemon.stderr());
            // sleep: between two looks at a session of another process.
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// A control group that is delegated to a daemon of a test, as systemd would do it.
#[derive(Debug)]
pub(super) struct OwnGroup {
    base: PathBuf,
}

impl OwnGroup {
    /// Nothing where this user cannot make one.
    pub(super) fn make() -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let name = tempfile::Builder::new().prefix("lys").tempdir().unwrap();
        let base = Path::new(mount).join(own).join(name.path().file_name().unwrap());
        std::fs::create_dir_all(base.join("daemon")).ok()?;
        let group = Self { base };
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(&group.base, "user.delegate", b"1", flags).ok()?;
        Some(group)
    }

    pub(super) fn base(&self) -> &Path {
        &self.base
    }

    /// Names of the groups in it.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = self.base.read_dir().unwrap().flatten().filter(|entry| entry.path().is_dir());
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A program that becomes the daemon in the group for it.
    fn program(&self, folder: &Path) -> PathBuf {
        let path = folder.join("grouped");
        let procs = self.base.join("daemon/cgroup.procs");
        let script =
            format!("#!/bin/sh\necho $$ > {}\nexec {} \"$@\"\n", procs.display(), binary().display());
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for OwnGroup {
    /// The daemon of the test has ended before.
    fn drop(&mut self) {
        let _ = std::fs::write(self.base.join("cgroup.kill"), "1");
        let emptied = until(|| {
            for name in self.names() {
                let _ = std::fs::remove_dir(self.base.join(&name).join("agent"));
                let _ = std::fs::remove_dir(self.base.join(name));
            }
            std::fs::remove_dir(&self.base).is_ok()
        });
        assert!(emptied || std::thread::panicking(), "{} stays", self.base.display());
    }
}

/// Whether everybody can reach what is in a folder.
fn is_open(folder: &Path) -> bool {
    folder
        .ancestors()
        .all(|folder| folder.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0))
}

/// The home folder, the repository, a folder outside and the agent's program.
fn lay_out(base: &Path) {
    let write = |name: &str, text: &str| {
        let path = base.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for (name, text) in [
        ("home/.ssh/id_ed25519", "a key"),
        ("home/.aws/credentials", "a key"),
        ("home/.netrc", "a password"),
        ("home/.bash_history", "a secret"),
        ("home/.codex/auth.json", "{}"),
        ("home/.claude/settings.json", "{}"),
        ("home/.claude.json", "{}"),
        ("home/.bashrc", "# mine\n"),
        ("home/notes.txt", "notes"),
        ("out/plain", "plain\n"),
        ("work/file", "x\n"),
        ("bin/claude", "#!/bin/sh\nexec /bin/sh -c \"$1\"\n"),
    ] {
        write(name, text);
    }
    let program = base.join("bin/claude");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let made = Command::new("git").args(["init", "-q"]).arg(base.join("work")).status().unwrap();
    assert!(made.success());
}
