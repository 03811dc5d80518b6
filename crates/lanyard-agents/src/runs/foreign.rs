//! Processes of agents that Lanyard did not start. A conversation that one of them may have open is not resumed here: two
//! processes on one conversation lose words of it.

use std::path::Path;

/// A process of this program that works in the folder and belongs to no session of Lanyard's. Blocks. Where there is no
/// `/proc` nothing is found.
#[must_use]
pub fn foreign(program: &str, folder: &Path) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").ok()?;
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    // The folder of a process of another user cannot be read: that one is not found.
    let works_here = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|place| place == folder)
            && std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| runs(&line, program))
            && std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| !is_ours(&environment))
    };
    pids.into_iter().find(works_here)
}

/// Whether a command line starts the program, by itself or as a script.
fn runs(line: &[u8], program: &str) -> bool {
    let mut words = line.split(|byte| *byte == 0).filter_map(|word| std::str::from_utf8(word).ok());
    let name = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        let bare = [".js", ".mjs", ".cjs", ".exe"].into_iter().find_map(|end| name.strip_suffix(end));
        bare.unwrap_or(name).to_owned()
    };
    let Some(first) = words.next().map(name) else { return false };
    let mut script = || words.find(|word| !word.starts_with('-')).map(name);
    first == program
        || (matches!(first.as_str(), "node" | "bun" | "deno") && script().is_some_and(|name| name == program))
}

/// Whether the process belongs to a run of Lanyard's.
fn is_ours(environment: &[u8]) -> bool {
    let entry = format!("{}=", lanyard_api::names::SESSION);
    environment
        .split(|byte| *byte == 0)
        .any(|held| held.starts_with(entry.as_bytes()) && held.len() > entry.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_command_line() {
        for (line, expected) in [
            (&b"claude\0--resume\0x\0"[..], true),
            (b"/opt/bin/claude.exe\0", true),
            (b"node\0--no-warnings\0/usr/lib/node_modules/.bin/claude\0", true),
            (b"node\0/srv/claude.js\0", true),
            (b"lanyard\0hook\0claude\0", false),
            (b"vim\0claude\0", false),
            (b"claude-agent-acp\0", false),
            (b"", false),
        ] {
            assert_eq!(runs(line, "claude"), expected, "{}", String::from_utf8_lossy(line));
        }
        assert!(is_ours(b"A=1\0LANYARD_SESSION=sess_x\0") && !is_ours(b"LANYARD_SESSION=\0B=2\0"));
    }
}
