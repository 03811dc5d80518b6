//! Exception lists: `tidy.allow` and `audit.allow`. One `key reason…` per line, `#` for comments.
//!
//! An exception without a reason is refused, and so is one that nothing needs any more: a list
//! that only grows stops meaning anything.

use std::path::Path;
use std::{fs, io};

use anyhow::{Context, Result, bail};

/// One exception and the line it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowEntry {
    pub(crate) line: usize,
    pub(crate) key: String,
}

/// Reads a list; a missing file is an empty one.
pub(crate) fn load(path: &Path) -> Result<Vec<AllowEntry>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).context(format!("cannot read {}", path.display())),
    };
    parse(&text).with_context(|| format!("in {}", path.display()))
}

fn parse(text: &str) -> Result<Vec<AllowEntry>> {
    let mut entries: Vec<AllowEntry> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((key, _reason)) = line.split_once(char::is_whitespace) else {
            bail!("line {number}: `{line}` gives no reason");
        };
        if let Some(first) = entries.iter().find(|entry| entry.key == key) {
            bail!("line {number}: `{key}` is already on line {}", first.line);
        }
        entries.push(AllowEntry { line: number, key: key.to_owned() });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_are_skipped() {
        let entries = parse("# why this file\n\nsrc/big.rs one table, read as a whole\n").unwrap();
        assert_eq!(entries, [AllowEntry { line: 3, key: "src/big.rs".to_owned() }]);
    }

    #[test]
    fn an_entry_needs_a_reason() {
        assert_eq!(parse("src/big.rs  ").unwrap_err().to_string(), "line 1: `src/big.rs` gives no reason");
    }

    #[test]
    fn an_entry_stands_once() {
        let error = parse("a first\nb other\na again\n").unwrap_err();
        assert_eq!(error.to_string(), "line 3: `a` is already on line 1");
    }
}
