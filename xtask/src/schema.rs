//! `cargo xtask schema`: keeps `schema/openapi.json` equal to what the code says.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{artifact, process};

/// Where the document is kept, from the root of the workspace.
const DOCUMENT: &str = "schema/openapi.json";

#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArgs {
    /// Compare instead of writing; fail when they differ
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &SchemaArgs) -> Result<()> {
    let printed = process::read(Command::new(artifact::of_tests()?).arg("schema"))?;
    let wanted = document(&printed)?;
    let path = process::root().join(DOCUMENT);
    // A missing file is an old one: both are cured by writing it.
    if fs::read_to_string(&path).is_ok_and(|present| present == wanted) {
        eprintln!("{DOCUMENT} is up to date");
        return Ok(());
    }
    if args.check {
        bail!("{DOCUMENT} is out of date; run `cargo xtask schema` and commit the result");
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(&path, wanted).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("wrote {DOCUMENT}");
    Ok(())
}

/// The text to keep: exactly what was printed, with one newline at its end. Refuses what is not
/// an `OpenAPI` document, so that a broken build never overwrites a good file.
fn document(printed: &str) -> Result<String> {
    let parsed: Value = serde_json::from_str(printed).context("`lanyard schema` did not print JSON")?;
    if parsed.get("openapi").and_then(Value::as_str).is_none() {
        bail!("`lanyard schema` printed JSON without an `openapi` version");
    }
    Ok(format!("{}\n", printed.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_kept_as_printed_with_one_newline() {
        let printed = "{\n  \"openapi\": \"3.1.0\"\n}";
        assert_eq!(document(printed).unwrap(), format!("{printed}\n"));
        assert_eq!(document(&format!("{printed}\n\n")).unwrap(), format!("{printed}\n"));
    }

    #[test]
    fn what_is_no_openapi_document_is_refused() {
        assert!(document("").is_err());
        assert!(document("{\"title\": \"x\"}").is_err());
    }
}
