//! Programs that a repository makes git run: filters, merge drivers and hooks of its config, each switched off.
//!
//! An agent writes `.git/config` and `.gitattributes`; what these name would run as the daemon's user and outside of
//! whatever holds the agent. Git has no switch for "no programs", so the names are listed and each is overridden.
//! Filters of the user's own config are switched off too: a filter such as Git LFS runs programs that the repository
//! names. Decision 0026 has what is lost by it.
//!
//! Settings with a fixed name (hooks' path, fsmonitor, editor, signatures) are overridden in `git`; external diffs and
//! text conversions are refused by the options of the calls that print differences.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use super::SnapshotError;
use super::git::{Git, failed, records};

/// Names of one repository. A repository has a handful.
const NAMES_MAX: usize = 500;
/// Bytes of the list of names.
const LIST_MAX: usize = 256 * 1024;
/// Git's own merge of texts, in place of a driver.
const TEXT_MERGE: &str = "git merge-file -q --marker-size=%L %A %O %B";
/// Calls that convert no file, merge nothing, move no ref and write no index. A call that writes an index reads files
/// that changed within its last tick, through their filters.
const HARMLESS: [&str; 15] = [
    "cat-file",
    "check-attr",
    "check-ignore",
    "commit-tree",
    "config",
    "for-each-ref",
    "init",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "pack-objects",
    "rev-list",
    "rev-parse",
    "symbolic-ref",
];

/// Settings that switch off what one repository names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Disarmed(Vec<(String, &'static str)>);

impl Disarmed {
    /// Lists what the config around git's folder names.
    pub(super) fn read(git: &Git) -> Result<Self, SnapshotError> {
        let args = ["config", "--null", "--name-only", "--get-regexp", r"^(filter|merge|hook)\..*\."];
        let output = git.run(&args, b"", LIST_MAX)?;
        match output.status.code() {
            // 1: there are none.
            Some(0 | 1) if !output.cut => Self::of(&output.stdout),
            Some(0 | 1) => Err(SnapshotError::TooLarge { what: "git config".to_owned() }),
            _ => Err(failed(&args, output.stderr)),
        }
    }

    fn of(list: &[u8]) -> Result<Self, SnapshotError> {
        // A name that is not UTF-8 cannot be overridden by name.
        let names = records(list).map(|name| std::str::from_utf8(name).ok().and_then(section));
        let names: Option<BTreeSet<&str>> = names.collect();
        let Some(names) = names.filter(|names| names.len() <= NAMES_MAX) else {
            return Err(SnapshotError::TooLarge { what: "git config".to_owned() });
        };
        let mut settings = Vec::new();
        for name in names {
            settings.extend(overrides(name).iter().map(|(key, value)| (format!("{name}.{key}"), *value)));
        }
        Ok(Self(settings))
    }
}

/// `filter.NAME` of `filter.NAME.clean`.
fn section(key: &str) -> Option<&str> {
    key.rsplit_once('.').map(|(section, _)| section)
}

fn overrides(section: &str) -> &'static [(&'static str, &'static str)] {
    if section.starts_with("filter.") {
        &[("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")]
    } else if section.starts_with("merge.") {
        &[("driver", TEXT_MERGE)]
    } else {
        &[("command", ":"), ("enabled", "false")]
    }
}

/// Whether a call could run a program that the repository names.
pub(super) fn may_run_programs<S: AsRef<OsStr>>(args: &[S]) -> bool {
    let name = args.first().and_then(|arg| arg.as_ref().to_str()).unwrap_or_default();
    !HARMLESS.contains(&name)
}

/// The settings as git takes them from its environment. Names may hold any letter there, `=` included.
pub(super) fn environment<'a>(all: impl Iterator<Item = &'a Disarmed>) -> Vec<(String, String)> {
    let mut env = Vec::new();
    let mut count = 0_usize;
    for (key, value) in all.flat_map(|disarmed| &disarmed.0) {
        env.push((format!("GIT_CONFIG_KEY_{count}"), key.clone()));
        env.push((format!("GIT_CONFIG_VALUE_{count}"), (*value).to_owned()));
        count += 1;
    }
    env.push(("GIT_CONFIG_COUNT".to_owned(), count.to_string()));
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_overridden_once_whatever_it_is_made_of() {
        let list = b"filter.a=b.c.clean\0filter.a=b.c.smudge\0merge.m.driver\0hook.h.event\0";
        let found = Disarmed::of(list).unwrap();
        let shown: Vec<String> = found.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            shown,
            [
                "filter.a=b.c.clean=",
                "filter.a=b.c.smudge=",
                "filter.a=b.c.process=",
                "filter.a=b.c.required=false",
                "hook.h.command=:",
                "hook.h.enabled=false",
                &format!("merge.m.driver={TEXT_MERGE}"),
            ]
        );
        let env = environment([&found].into_iter());
        assert_eq!(env.len(), 15);
        assert_eq!(env.last().unwrap(), &("GIT_CONFIG_COUNT".to_owned(), "7".to_owned()));
        assert!(Disarmed::of(b"filter.\xff.clean\0").is_err(), "what cannot be overridden is refused");
        assert_eq!(Disarmed::of(b"").unwrap(), Disarmed::default());
    }

    #[test]
    fn calls_are_harmless_by_name_only() {
        assert!(!may_run_programs(&["rev-parse", "HEAD"]));
        assert!(may_run_programs(&["add", "--all"]));
        assert!(may_run_programs(&["--literal-pathspecs", "add"]));
        assert!(may_run_programs::<&str>(&[]));
    }
}
