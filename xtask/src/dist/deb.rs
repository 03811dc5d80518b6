//! The Debian package, by `dpkg-deb` from the staged tree: below `/usr`, with a unit for each user's systemd.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::published::MAINTAINER;
use super::{Release, stage};
use crate::process;

/// The oldest glibc with everything in one library; older ones are out of support.
const GLIBC_MINOR_MIN: u32 = 34;

/// Returns nothing where there is no Debian for the platform.
pub(super) fn make(release: &Release) -> Result<Option<PathBuf>> {
    let Some(architecture) = release.platform.debian else {
        eprintln!("no Debian package: there is no Debian for {}", release.platform.target);
        return Ok(None);
    };
    let root = release.scratch.join("deb");
    for path in stage::files(&release.tree)? {
        let within = path.strip_prefix(&release.tree)?;
        if let Some(place) = place(within) {
            let bits = if within.starts_with("bin") { 0o755 } else { 0o644 };
            stage::copy(&path, &root.join(place), bits)?;
        }
    }
    let unit = fs::read_to_string(release.tree.join(stage::UNIT))?;
    let unit = unit.replace(stage::UNIT_PROGRAM, "/usr/bin/lanyard");
    stage::write(&root.join("usr/lib/systemd/user/lanyard.service"), &unit)?;
    stage::write(&root.join("usr").join(stage::DOC).join("copyright"), &copyright()?)?;
    let mut gzip = Command::new("gzip");
    process::run(gzip.args(["--no-name", "-9"]).args(stage::files(&root.join("usr").join(stage::MAN))?))?;

    let program = fs::read(release.tree.join("bin/lanyard"))?;
    let about = Control {
        version: &release.version,
        architecture,
        bytes: stage::size(&root)?,
        glibc: glibc(&program),
    };
    stage::write(&root.join("DEBIAN/control"), &about.text())?;
    stage::settle(&root, release.epoch)?;
    let made = release.out.join(format!("lanyard_{}_{architecture}.deb", release.version));
    let mut command = Command::new("dpkg-deb");
    command.args(["--root-owner-group", if release.fast { "-Zgzip" } else { "-Zxz" }]);
    command.args(release.fast.then_some("-z1"));
    command.arg("--build").args([&root, &made]).env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    process::read(&mut command).context("a Debian package is made with `dpkg-deb`")?;
    Ok(Some(made))
}

/// Where a staged file goes; nowhere if the package has another one in its place.
fn place(within: &Path) -> Option<PathBuf> {
    let elsewhere = within == Path::new("install.sh")
        || within == Path::new(stage::UNIT)
        || within.file_name().is_some_and(|name| name == "LICENSE-APACHE");
    (!elsewhere).then(|| {
        Path::new("usr").join(match within.strip_prefix("share/zsh/site-functions") {
            // The folder that zsh of Debian reads for packages.
            Ok(name) => Path::new("share/zsh/vendor-completions").join(name),
            Err(_) => within.to_owned(),
        })
    })
}

struct Control<'a> {
    version: &'a str,
    architecture: &'a str,
    bytes: u64,
    glibc: u32,
}

impl Control<'_> {
    fn text(&self) -> String {
        let Self { version, architecture, bytes, glibc } = self;
        format!(
            "Package: lanyard\n\
             Version: {version}\n\
             Architecture: {architecture}\n\
             Maintainer: {MAINTAINER}\n\
             Installed-Size: {}\n\
             Depends: libc6 (>= 2.{glibc}), libgcc-s1\n\
             Recommends: git\n\
             Section: utils\n\
             Priority: optional\n\
             Description: control plane for AI-agent sessions\n \
             One daemon owns the sessions as durable logs. Agents keep running when a\n \
             terminal closes or the daemon restarts, and any screen can steer them.\n",
            bytes.div_ceil(1024)
        )
    }
}

/// The newest minor version of glibc whose symbols a program names.
fn glibc(program: &[u8]) -> u32 {
    const MARK: &[u8] = b"GLIBC_2.";
    let minor = |at: usize| {
        let digits = program[at + MARK.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0_u32, |number, digit| number.saturating_mul(10).saturating_add(u32::from(digit - b'0')))
    };
    let marks = program.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    marks.map(|(at, _)| minor(at)).filter(|minor| *minor < 1000).max().unwrap_or(0).max(GLIBC_MINOR_MIN)
}

/// The licence, as Debian wants it; it has the Apache License itself.
fn copyright() -> Result<String> {
    let mit = fs::read_to_string(process::root().join("LICENSE-MIT"))?;
    Ok(format!(
        "Lanyard is licensed under either of the Apache License, Version 2.0\n\
         (/usr/share/common-licenses/Apache-2.0) or the MIT License, at your option.\n\
         Licences of what it is built with: THIRD-PARTY.txt in this folder.\n\n{mit}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_needed_glibc_is_the_newest_that_is_named() {
        assert_eq!(glibc(b"..GLIBC_2.2.5\0GLIBC_2.39\0GLIBC_2.4\0"), 39);
        assert_eq!(glibc(b"GLIBC_2.17\0"), GLIBC_MINOR_MIN);
        assert_eq!(glibc(b"GLIBC_2."), GLIBC_MINOR_MIN);
    }

    #[test]
    fn files_go_where_debian_looks_for_them() {
        for (staged, installed) in [
            ("bin/lanyard", Some("usr/bin/lanyard")),
            ("share/man/man1/lanyard.1", Some("usr/share/man/man1/lanyard.1")),
            ("share/zsh/site-functions/_lanyard", Some("usr/share/zsh/vendor-completions/_lanyard")),
            ("share/systemd/user/lanyard.service", None),
            ("install.sh", None),
        ] {
            assert_eq!(place(Path::new(staged)), installed.map(PathBuf::from), "{staged}");
        }
    }
}
