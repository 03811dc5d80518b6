//! The text of the systemd unit, and the rules of its quoting. It runs nothing.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::failure::Failure;

/// The unit that packages install, with a mark where the program's path goes.
const TEMPLATE: &str = include_str!("../../../../../packaging/lanyard.service");
/// The mark, with the argument that follows it.
const MARK: &str = "@LANYARD@ up\n";

/// Values that differ from machine to machine.
#[derive(Debug)]
pub(super) struct UnitValues<'a> {
    pub(super) program: &'a Path,
    pub(super) data_dir: &'a Path,
    pub(super) config: &'a Path,
    /// Where the daemon looks for agents. A user's systemd knows nothing of the shell's setting.
    pub(super) path: Option<&'a OsStr>,
}

impl UnitValues<'_> {
    /// The unit as it is written to disk.
    pub(super) fn text(&self) -> Result<String, Failure> {
        let argument = |path: &Path| quoted(path.as_os_str()).map(|text| text.replace('$', "$$"));
        let mut lines = format!(
            "{} --data-dir {} --config {} up\n",
            argument(self.program)?,
            argument(self.data_dir)?,
            argument(self.config)?
        );
        if let Some(path) = self.path {
            let mut pair = OsString::from("PATH=");
            pair.push(path);
            lines.extend(["Environment=", &quoted(&pair)?, "\n"]);
        }
        Ok(TEMPLATE.replacen(MARK, &lines, 1))
    }
}

/// A word as systemd reads it back: in quotes, without specifiers.
fn quoted(word: &OsStr) -> Result<String, Failure> {
    let text = word.to_str().filter(|text| !text.contains(char::is_control)).ok_or_else(|| {
        let title = format!("a systemd unit cannot hold `{}`", word.display());
        Failure::local("service_path_unusable", title, "use paths of UTF-8 text without control characters")
    })?;
    Ok(format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(program: &str, path: Option<&str>) -> Vec<String> {
        let values = UnitValues {
            program: Path::new(program),
            data_dir: Path::new("/d"),
            config: Path::new("/c.toml"),
            path: path.map(OsStr::new),
        };
        let text = values.text().unwrap();
        let is_ours = |line: &&str| line.starts_with("ExecStart=") || line.starts_with("Environment=");
        text.lines().filter(is_ours).map(str::to_owned).collect()
    }

    #[test]
    fn the_template_has_its_mark_and_leaves_agents_alone() {
        assert_eq!(TEMPLATE.matches(MARK).count(), 1);
        assert!(TEMPLATE.contains("\nKillMode=process\n"));
    }

    #[test]
    fn words_are_quoted_as_systemd_reads_them() {
        assert_eq!(
            lines("/bin/lanyard", None),
            [r#"ExecStart="/bin/lanyard" --data-dir "/d" --config "/c.toml" up"#]
        );
        assert_eq!(
            lines(r#"/a b/100%/$x/"q"\"#, Some("/a$b:/c%d")),
            [
                r#"ExecStart="/a b/100%%/$$x/\"q\"\\" --data-dir "/d" --config "/c.toml" up"#,
                r#"Environment="PATH=/a$b:/c%%d""#,
            ]
        );
    }

    #[test]
    fn a_path_with_a_line_break_is_refused() {
        let Err(Failure::Told { problem, .. }) = quoted(OsStr::new("/a\nExecStartPre=/b")) else {
            panic!("told")
        };
        assert_eq!(problem.code, "service_path_unusable");
    }
}
