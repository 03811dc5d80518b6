//! The platform of the packages, in the words of cargo, Debian and npm. Only this machine's: nothing is cross-built.

use anyhow::{Context, Result, bail};

use crate::process;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Platform {
    /// Cargo's triple.
    pub(super) target: String,
    /// Node's `process.platform` and `process.arch`.
    pub(super) npm: (&'static str, &'static str),
    /// Debian's architecture; none where there is no Debian.
    pub(super) debian: Option<&'static str>,
}

type PlatformRow = (&'static str, (&'static str, &'static str), Option<&'static str>);

const KNOWN: [PlatformRow; 4] = [
    ("x86_64-unknown-linux-gnu", ("linux", "x64"), Some("amd64")),
    ("aarch64-unknown-linux-gnu", ("linux", "arm64"), Some("arm64")),
    ("x86_64-apple-darwin", ("darwin", "x64"), None),
    ("aarch64-apple-darwin", ("darwin", "arm64"), None),
];

impl Platform {
    pub(super) fn host() -> Result<Self> {
        let about = process::read(std::process::Command::new("rustc").arg("-vV"))?;
        let target = about.lines().find_map(|line| line.strip_prefix("host: "));
        Self::of(target.context("`rustc -vV` names no host")?)
    }

    fn of(target: &str) -> Result<Self> {
        let Some((_, npm, debian)) = KNOWN.into_iter().find(|(known, ..)| *known == target) else {
            bail!("there are no packages for {target}: add it to xtask/src/dist/platform.rs");
        };
        Ok(Self { target: target.to_owned(), npm, debian })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_has_its_name_in_each_registry() {
        let platform = Platform::of("x86_64-unknown-linux-gnu").unwrap();
        assert_eq!((platform.npm, platform.debian), (("linux", "x64"), Some("amd64")));
        assert_eq!(Platform::of("aarch64-apple-darwin").unwrap().debian, None);
        assert!(Platform::of("sparc-sun-solaris").unwrap_err().to_string().contains("sparc-sun-solaris"));
    }
}
