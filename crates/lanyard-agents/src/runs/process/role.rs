//! What a program that an agent started without a shell is: a command, or a server that the agent uses.
//!
//! A server over stdio has pipes or sockets of its own as input and output. A command reads from `/dev/null`, a file, a
//! terminal or the agent's own input, or writes to one of them. Agents also run commands with two pipes; what then tells
//! a server is its command line.

use std::io;
use std::path::{Path, PathBuf};

use super::{Process, table};

/// What stands in the command lines of MCP servers and language servers, in lower case.
const SERVER_WORDS: [&str; 14] = [
    "mcp",
    "modelcontextprotocol",
    "lsp",
    "language-server",
    "language_server",
    "languageserver",
    "langserver",
    "--stdio",
    "tsserver",
    "jdtls",
    "gopls",
    "clangd",
    "rust-analyzer",
    "pyright",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessRole {
    Command,
    Server,
    /// Nothing tells which.
    Either,
}

/// The role of a living process, from its input, output and command line.
pub(super) fn role(process: &Process) -> ProcessRole {
    let agents = table::ends(process.parent).map(Result::ok);
    role_by(&table::ends(process.pid), &agents, || table::command_line(process.pid))
}

/// `ends` are the process's input and output, `agents` those of its parent.
fn role_by(
    ends: &[io::Result<PathBuf>; 2],
    agents: &[Option<PathBuf>; 2],
    line: impl Fn() -> String,
) -> ProcessRole {
    let hidden = |end: &io::Result<PathBuf>| {
        end.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    if ends.iter().any(hidden) {
        return ProcessRole::Either;
    }
    let own = |end: &io::Result<PathBuf>| {
        end.as_ref().is_ok_and(|end| is_channel(end) && !agents.iter().flatten().any(|held| held == end))
    };
    if !ends.iter().all(own) {
        return ProcessRole::Command;
    }
    let line = line().to_ascii_lowercase();
    if SERVER_WORDS.iter().any(|word| line.contains(word)) {
        ProcessRole::Server
    } else {
        ProcessRole::Either
    }
}

/// A pipe or a socket; the kernel shows them as `pipe:[1]` and `socket:[1]`.
fn is_channel(end: &Path) -> bool {
    end.to_str().is_some_and(|end| end.starts_with("pipe:[") || end.starts_with("socket:["))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FND-R3: only pipes of its own and a server's name make a server; whatever hides its ends may be either.
    #[test]
    fn fnd_r3_a_server_has_pipes_of_its_own_and_a_servers_name() {
        let agents = ["pipe:[1]", "pipe:[2]"].map(|end| Some(PathBuf::from(end)));
        let of = |input: &str, output: &str, line: &str| {
            let ends = [input, output].map(|end| match end {
                "hidden" => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
                "closed" => Err(io::Error::from(io::ErrorKind::NotFound)),
                end => Ok(PathBuf::from(end)),
            });
            role_by(&ends, &agents, || line.to_owned())
        };
        for (input, output, line, role) in [
            (
                "pipe:[7]",
                "pipe:[8]",
                "node /opt/@modelcontextprotocol/server-x/index.js",
                ProcessRole::Server,
            ),
            ("socket:[7]", "socket:[8]", "typescript-language-server --stdio", ProcessRole::Server),
            ("socket:[7]", "pipe:[8]", "/usr/bin/rg needle", ProcessRole::Either),
            ("/dev/null", "pipe:[8]", "mcp-server", ProcessRole::Command),
            ("pipe:[7]", "/tmp/output", "mcp-server", ProcessRole::Command),
            ("/dev/pts/3", "/dev/pts/3", "mcp-server", ProcessRole::Command),
            ("closed", "pipe:[8]", "mcp-server", ProcessRole::Command),
            // The agent's own input and output, handed down.
            ("pipe:[1]", "pipe:[8]", "mcp-server", ProcessRole::Command),
            ("pipe:[7]", "pipe:[2]", "mcp-server", ProcessRole::Command),
            ("hidden", "hidden", "mcp-server", ProcessRole::Either),
        ] {
            assert_eq!(of(input, output, line), role, "{input} {output} {line}");
        }
    }
}
