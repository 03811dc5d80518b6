//! `SHA256SUMS`: a line per package, as `sha256sum --check` reads it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use ring::digest::{SHA256, digest};

pub(super) fn write(out: &Path, made: &[PathBuf]) -> Result<PathBuf> {
    let mut lines = Vec::new();
    for path in made {
        let name = path.file_name().context("a package has a name")?.to_string_lossy();
        lines.push((name.clone().into_owned(), format!("{}  {name}\n", hex(&fs::read(path)?))));
    }
    lines.sort();
    let sums = out.join("SHA256SUMS");
    fs::write(&sums, lines.into_iter().map(|(_, line)| line).collect::<String>())?;
    Ok(sums)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_the_one_every_tool_computes() {
        assert_eq!(hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
