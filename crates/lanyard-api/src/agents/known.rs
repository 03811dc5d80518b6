//! Agents Lanyard knows how to run, and where programs are: for `lanyard agents` and for the first config.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::agents::settings::{AgentSettings, ClientFiles, DriverKind};

/// An agent that may be installed, and how Lanyard would run it.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    pub name: &'static str,
    driver: DriverKind,
    command: &'static [&'static str],
    /// The file access it works with, where that is not all of it.
    client_files: Option<ClientFiles>,
}

/// In the order they are shown.
pub const KNOWN: [Known; 6] = [
    Known::new("opencode", DriverKind::Opencode, &["opencode", "serve"]),
    Known::new("claude", DriverKind::Claude, &["claude"]),
    Known::new("codex", DriverKind::Codex, &["codex", "app-server"]),
    // Gemini CLI 0.61 takes the answer "no such file" of a client for a failure, and so creates no file.
    Known {
        client_files: Some(ClientFiles::Write),
        ..Known::new("gemini", DriverKind::Acp, &["gemini", "--acp"])
    },
    Known::new("claude-agent-acp", DriverKind::Acp, &["claude-agent-acp"]),
    Known::new("codex-acp", DriverKind::Acp, &["codex-acp"]),
];

impl Known {
    const fn new(name: &'static str, driver: DriverKind, command: &'static [&'static str]) -> Self {
        Self { name, driver, command, client_files: None }
    }

    /// Why the entry is as it is, for the config it is written into.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        (self.driver == DriverKind::Claude).then_some(
            "Claude Code asks before it uses a tool: `lanyard approvals` shows the request, [agents.claude.permissions]\n\
             answers by rules. Lanyard's own tools are allowed.",
        )
    }

    #[must_use]
    pub fn settings(&self) -> AgentSettings {
        let command = self.command.iter().map(|word| (*word).to_owned()).collect();
        AgentSettings { client_files: self.client_files, ..AgentSettings::of(self.driver, command) }
    }
}

/// The file access an ACP agent is offered: as set, else what its program is known to work with, else all of it.
#[must_use]
pub fn client_files(settings: &AgentSettings) -> ClientFiles {
    let program = settings.command.first().map(Path::new).and_then(Path::file_name);
    let is_it = |known: &&Known| known.command.first().map(OsStr::new) == program;
    let known = || KNOWN.iter().find(is_it).and_then(|known| known.client_files);
    settings.client_files.or_else(known).unwrap_or_default()
}

/// Those whose program is on the PATH of this process, and where.
#[must_use]
pub fn installed() -> Vec<(Known, PathBuf)> {
    let path = std::env::var("PATH").unwrap_or_default();
    let found = |known: Known| find(known.command.first()?, &path).map(|place| (known, place));
    KNOWN.into_iter().filter_map(found).collect()
}

/// The file a program's name stands for, with `path` as PATH. Nothing when it is not there or cannot be executed.
#[must_use]
pub fn find(program: &str, path: &str) -> Option<PathBuf> {
    let executable = |place: &Path| {
        place.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        let place = PathBuf::from(program);
        return Some(place).filter(|place| place.is_absolute() && executable(place));
    }
    if program.is_empty() {
        return None;
    }
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|place| executable(place))
}

/// How long a program may take to say its version. Generous: the first start of a large program (OpenCode has 150 MB) reads
/// it from the disk.
const VERSION_WAIT: Duration = Duration::from_secs(10);
const VERSION_POLL: Duration = Duration::from_millis(10);
/// Bytes of its answer that are read.
const VERSION_BYTES_MAX: u64 = 4 * 1024;
/// Characters of a version that are shown.
const VERSION_CHARS_MAX: usize = 80;

/// The first line of what a program says to `--version`; none when it fails or takes longer than 10 s. Blocks.
#[must_use]
pub fn version(mut command: Command) -> Option<String> {
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let stdout = child.stdout.take()?;
    let (answer, answers) = mpsc::channel();
    // A thread of its own, since a program that says nothing would hold this one. It ends with the program's output.
    std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = stdout.take(VERSION_BYTES_MAX).read_to_end(&mut said);
        let _ = answer.send(said);
    });
    let mut waited = Duration::ZERO;
    let status = loop {
        match child.try_wait().ok()? {
            Some(status) => break status,
            None if waited >= VERSION_WAIT => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            None => std::thread::sleep(VERSION_POLL),
        }
        waited += VERSION_POLL;
    };
    let said = answers.recv_timeout(VERSION_WAIT).ok()?;
    let text = String::from_utf8_lossy(&said);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(lanyard_core::text::one_line(line, VERSION_CHARS_MAX)).filter(|_| status.success())
}

/// The PATH an agent's program is looked for on.
#[must_use]
pub fn path_of(settings: &AgentSettings) -> String {
    settings.env.get("PATH").cloned().unwrap_or_else(|| std::env::var("PATH").unwrap_or_default())
}

/// Where an agent's program is.
#[must_use]
pub fn place(settings: &AgentSettings) -> Option<PathBuf> {
    find(settings.command.first()?, &path_of(settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_where_it_can_be_executed() {
        let sh = find("sh", "/nowhere:/usr/bin:/bin").unwrap();
        assert!(sh.is_absolute() && sh.ends_with("sh"));
        assert_eq!(find(sh.to_str().unwrap(), ""), Some(sh));
        assert_eq!(find("sh", "/nowhere"), None);
        assert_eq!(find("sh", "bin:"), None, "relative folders of the PATH are not looked into");
        assert_eq!(find("passwd", "/etc"), None, "a file that is no program");
        assert_eq!(find("", "/bin"), None);
    }

    /// FND-R6.
    #[test]
    fn fnd_r6_gemini_is_offered_no_reading_unless_the_config_says_so() {
        let acp = |program: &str| AgentSettings::of(DriverKind::Acp, vec![program.to_owned()]);
        assert_eq!(client_files(&acp("gemini")), ClientFiles::Write);
        assert_eq!(client_files(&acp("/opt/bin/gemini")), ClientFiles::Write);
        assert_eq!(client_files(&acp("codex-acp")), ClientFiles::ReadWrite);
        let set = AgentSettings { client_files: Some(ClientFiles::None), ..acp("gemini") };
        assert_eq!(client_files(&set), ClientFiles::None);
    }

    /// FND-R4, FND-R9: what `init` writes keeps one process per conversation, and is warned of in nothing.
    #[test]
    fn fnd_r4_a_known_agent_goes_on_in_its_process() {
        for known in KNOWN {
            let settings = known.settings();
            assert_eq!(settings.warnings(), Vec::<String>::new(), "{}", known.name);
            assert_ne!(settings.driver, DriverKind::Command, "{}", known.name);
            assert!(!settings.command.is_empty());
        }
    }
}
