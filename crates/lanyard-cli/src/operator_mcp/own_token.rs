//! The token of an assistant: made once for its name and role, kept in the data folder, never made again by itself.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lanyard_api::types::{NewToken, TokenInfo};
use lanyard_client::Route;

use super::ServedRole;
use crate::context::Context;
use crate::failure::Failure;

/// Where the tokens of assistants are, in the data folder.
const FOLDER: &str = "assistants";
/// Characters of an assistant's name.
const NAME_CHARS_MAX: usize = 64;

/// What stands before an assistant's name in lists and in the audit.
const PREFIX: &str = "mcp-";

/// The name of the token of an assistant that calls itself so.
pub(super) fn token_name(client: &str) -> String {
    let plain = client.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let plain: String = plain.take(NAME_CHARS_MAX).collect();
    let plain = plain.trim_matches('-');
    format!("{PREFIX}{}", if plain.is_empty() { "assistant" } else { plain })
}

/// The file with the token of this name and role. It is made by the operator's token where there is none.
pub(super) async fn file(context: &Context, name: &str, role: ServedRole) -> Result<PathBuf, Failure> {
    let folder = context.home.dir.join(FOLDER);
    let path = folder.join(format!("{name}.{}", role.as_str()));
    if is_made(&path) {
        return Ok(path);
    }
    // The daemon makes the data folder, for its owner only.
    let mut client = context.client().await?;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&folder).map_err(|error| unusable(&folder, &error))?;
    // Two assistants of one name that start together make one token.
    let lock =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(folder.join("lock"));
    let lock = lock.and_then(|lock| lock.lock().map(|()| lock)).map_err(|error| unusable(&folder, &error))?;
    if is_made(&path) {
        return Ok(path);
    }
    let asked = NewToken { role: role.actor(), name: name.to_owned(), session: None };
    let made: TokenInfo = client.post(&Route::to(&["tokens"]), &asked).await?;
    let secret = made.token.unwrap_or_default();
    write(&path, &secret).map_err(|error| unusable(&path, &error))?;
    drop(lock);
    Ok(path)
}

fn is_made(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.len() > 0)
}

/// Whole or not at all: the file appears under its name when the secret is in it.
fn write(path: &Path, secret: &str) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    let _ = std::fs::remove_file(&beside);
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    writeln!(file, "{secret}")?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    let title = format!("cannot keep the assistant's token in {}: {error}", path.display());
    Failure::local("data_dir_unusable", title, "run `lanyard doctor`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_file_and_a_token_whatever_an_assistant_calls_itself() {
        assert_eq!(token_name("claude-code"), "mcp-claude-code");
        assert_eq!(token_name("Codex MCP Client"), "mcp-codex-mcp-client");
        assert_eq!(token_name("../../etc/passwd"), "mcp-etc-passwd");
        assert_eq!(token_name("漢字"), "mcp-assistant");
        assert_eq!(token_name(&"x".repeat(500)).len(), PREFIX.len() + NAME_CHARS_MAX);
    }
}
