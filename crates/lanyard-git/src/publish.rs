//! Pushing a branch, and opening a pull request for it with the user's own `gh` or `glab`.
//!
//! Other than all other calls of git here, these use the user's settings and credentials and reach the network. An agent can
//! write the config and the hooks of its repository, and with them name programs; so nothing is run in that repository.
//! The calls are made in an empty bare repository that has the objects, the branch and the address of the remote, and
//! nothing else of it (`Scratch`).
//!
//! Arguments are lists, there is no shell, and output and time are bounded. Every function blocks: call from a blocking
//! thread.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lanyard_core::refusals;
use serde::Deserialize;

use crate::snapshot::SnapshotError;
use crate::snapshot::git::{Git, bounded, path_of};
use crate::snapshot::repo::{Repo, io_error};

/// For one call of `git push`, `gh` or `glab`.
const CALL_MAX: Duration = Duration::from_mins(2);
const OUTPUT_MAX: usize = 256 * 1024;
const LINE_MAX: usize = 64 * 1024;
/// Characters of a program's complaints that a refusal repeats: the end.
const COMPLAINT_CHARS_MAX: usize = 1_500;
/// Ways of reaching a remote. Others can name a program to run.
const PROTOCOLS: &str = "https:http:ssh:git:file";

refusals! {
    /// Why there is no pull request.
    #[derive(Debug, thiserror::Error)]
    pub enum PublishError {
        NoProgram => "no_pull_request_program", Conflict
            ("neither `gh` nor `glab` is on the daemon's PATH")
            ("Install the GitHub CLI or the GitLab CLI, sign in with it, and restart the daemon.");
        NoBranch { folder: PathBuf } => "no_branch_checked_out", Conflict
            ("no branch with a commit is checked out in {}", folder.display())
            ("Check out a branch and commit the work to it.");
        NoRemote { folder: PathBuf } => "no_remote", Conflict
            ("the repository of {} has no remote", folder.display())
            ("Add one with `git remote add origin ADDRESS`.");
        BadRemote { address: String } => "remote_unusable", Conflict
            ("the remote's address `{address}` is none that a branch can be pushed to")
            ("Use an address with https, ssh or a path.");
        Changed { address: String } => "remote_changed", Conflict
            ("the remote is `{address}` now, not the one that was shown")
            ("Check the address, then try again.");
        PushFailed { branch: String, stderr: String } => "push_failed", Conflict
            ("`git push` of {branch} failed: {stderr}")
            ("Push the branch by hand to see what is wrong.");
        RequestFailed { program: &'static str, stderr: String } => "pull_request_failed", Conflict
            ("`{program}` failed: {stderr}") ("Sign in with `{program} auth login`, or open the pull request by hand.");
        CallTooLong { what: String } => "pull_request_too_long", Conflict
            ("`{what}` took longer than {} s and was ended", CALL_MAX.as_secs())
            ("Check the network and the sign-in of the program, then try again.");
        NoAddress { program: &'static str } => "pull_request_unclear", Conflict
            ("`{program}` succeeded and did not print the address of a pull request")
            ("List the pull requests of the repository.");
    }
    via { Repository(#[from] SnapshotError) }
}

/// The program that opens pull requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestProgram {
    Gh,
    Glab,
}

impl RequestProgram {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gh => "gh",
            Self::Glab => "glab",
        }
    }

    /// The program for a remote among those that are there.
    fn for_remote(address: &str, is_there: impl Fn(&str) -> bool) -> Option<Self> {
        let order = if address.contains("gitlab") { [Self::Glab, Self::Gh] } else { [Self::Gh, Self::Glab] };
        order.into_iter().find(|program| is_there(program.name()))
    }

    fn list(self, branch: &str) -> Vec<String> {
        let args: &[&str] = match self {
            Self::Gh => &["pr", "list", "--head", branch, "--state", "open", "--json", "url", "--limit", "1"],
            Self::Glab => &["mr", "list", "--source-branch", branch, "--output", "json", "--per-page", "1"],
        };
        args.iter().map(|arg| (*arg).to_owned()).collect()
    }

    fn create(self, branch: &str, wanted: &NewRequest) -> Vec<String> {
        let (verb, head, body, base) = match self {
            Self::Gh => ("pr", "--head", "--body", "--base"),
            Self::Glab => ("mr", "--source-branch", "--description", "--target-branch"),
        };
        let mut args = vec![verb.to_owned(), "create".to_owned(), head.to_owned(), branch.to_owned()];
        args.extend(["--title".to_owned(), wanted.title.clone(), body.to_owned(), wanted.body.clone()]);
        if let Some(target) = &wanted.base {
            args.extend([base.to_owned(), target.clone()]);
        }
        if wanted.draft {
            args.push("--draft".to_owned());
        }
        if self == Self::Glab {
            args.push("--yes".to_owned());
        }
        args
    }
}

/// A branch that can be pushed, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlet {
    pub branch: String,
    pub commit: String,
    /// The worktree has changes that are in no commit.
    pub uncommitted: bool,
    address: String,
    objects: PathBuf,
}

impl Outlet {
    /// The branch checked out in a workspace, and the remote `origin` or the only one.
    pub fn of(workspace: &Path) -> Result<Self, PublishError> {
        let repo = Repo::find(workspace)?;
        let folder = || repo.top.clone();
        let branch = line(&repo.git, &["symbolic-ref", "--quiet", "--short", "HEAD"])?;
        let (Some(branch), Some(commit)) = (branch, repo.head()?) else {
            return Err(PublishError::NoBranch { folder: folder() });
        };
        let address = address(&repo)?.ok_or_else(|| PublishError::NoRemote { folder: folder() })?;
        check(&address)?;
        let objects =
            repo.git.read(&["rev-parse", "--path-format=absolute", "--git-path", "objects"], b"")?;
        let status = ["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty"];
        let uncommitted = !repo.git.read(&status, b"")?.is_empty();
        Ok(Self { branch, commit, uncommitted, address, objects: path_of(objects) })
    }

    /// The remote's address without a password in it.
    #[must_use]
    pub fn shown_address(&self) -> String {
        shown(&self.address)
    }

    /// The program that would open a pull request there.
    #[must_use]
    pub fn program(&self, is_there: impl Fn(&str) -> bool) -> Option<RequestProgram> {
        RequestProgram::for_remote(&self.address, is_there)
    }
}

/// The content of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRequest {
    pub title: String,
    pub body: String,
    /// The branch to merge into; the remote's default without one.
    pub base: Option<String>,
    pub draft: bool,
}

/// A pull request that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedRequest {
    pub address: String,
    /// The request was open before this call.
    pub existing: bool,
}

/// Pushes the branch and opens a pull request for it. One that is open already for the branch is answered instead, so the
/// same call again after a crash opens no second one. `expected` is the address of the remote that the caller saw.
pub fn open_request(
    outlet: &Outlet,
    wanted: &NewRequest,
    expected: Option<&str>,
    (program, scratch): (RequestProgram, &Path),
) -> Result<OpenedRequest, PublishError> {
    if expected.is_some_and(|expected| expected != outlet.shown_address()) {
        return Err(PublishError::Changed { address: outlet.shown_address() });
    }
    let scratch = Scratch::make(scratch, outlet)?;
    scratch.push(outlet)?;
    if let Some(address) = scratch.existing(program, &outlet.branch)? {
        return Ok(OpenedRequest { address, existing: true });
    }
    let printed = scratch.call(program, &program.create(&outlet.branch, wanted))?;
    let is_address = |word: &&str| word.starts_with("https://") || word.starts_with("http://");
    let address = printed.split_whitespace().rfind(is_address);
    let address = address.ok_or(PublishError::NoAddress { program: program.name() })?;
    Ok(OpenedRequest { address: address.to_owned(), existing: false })
}

/// An empty bare repository for one call. It goes with this value.
struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    fn make(root: &Path, outlet: &Outlet) -> Result<Self, PublishError> {
        let fail = |source| io_error("make a folder for pushing", source);
        DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(fail)?;
        let folder = root.join(format!("push-{}-{:016x}", std::process::id(), fastrand::u64(..)));
        DirBuilder::new().mode(0o700).create(&folder).map_err(fail)?;
        let scratch = Self { folder };
        let init = ["init", "--quiet", "--bare", "--template=", "."];
        Git::new(&scratch.folder).read(&init, b"")?;
        let own = Git::bare(&scratch.folder);
        let info = scratch.folder.join("objects/info");
        DirBuilder::new().recursive(true).mode(0o700).create(&info).map_err(fail)?;
        let alternates = [outlet.objects.as_os_str().as_bytes(), b"\n"].concat();
        let mut file = File::create_new(info.join("alternates")).map_err(fail)?;
        file.write_all(&alternates).map_err(fail)?;
        own.read(&["config", "remote.origin.url", &outlet.address], b"")?;
        let branch = format!("refs/heads/{}", outlet.branch);
        own.read(&["update-ref", &branch, &outlet.commit], b"")?;
        own.read(&["symbolic-ref", "HEAD", &branch], b"")?;
        Ok(scratch)
    }

    fn push(&self, outlet: &Outlet) -> Result<(), PublishError> {
        let branch = format!("refs/heads/{}", outlet.branch);
        let to = format!("{branch}:{branch}");
        let hooks = "core.hooksPath=/dev/null";
        let output = self.run("git", &["-c", hooks, "push", "--porcelain", "--", "origin", &to])?;
        if output.status.success() {
            return Ok(());
        }
        // Rejections are told on the output, the rest among the complaints.
        let told = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), output.stderr);
        Err(PublishError::PushFailed { branch: outlet.branch.clone(), stderr: end_of(&told) })
    }

    fn existing(&self, program: RequestProgram, branch: &str) -> Result<Option<String>, PublishError> {
        #[derive(Deserialize)]
        struct ListedRequest {
            #[serde(alias = "web_url")]
            url: String,
        }
        let printed = self.call(program, &program.list(branch))?;
        let listed: Vec<ListedRequest> = serde_json::from_str(&printed).unwrap_or_default();
        Ok(listed.into_iter().next().map(|listed| listed.url))
    }

    fn call(&self, program: RequestProgram, args: &[String]) -> Result<String, PublishError> {
        let output = self.run(program.name(), args)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(PublishError::RequestFailed { program: program.name(), stderr: end_of(&output.stderr) })
    }

    fn run<S: AsRef<OsStr>>(
        &self,
        program: &'static str,
        args: &[S],
    ) -> Result<crate::snapshot::git::Output, PublishError> {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if [b"GIT_".as_slice(), b"LANYARD_"].iter().any(|own| name.as_bytes().starts_with(own)) {
                command.env_remove(name);
            }
        }
        command
            .args(args)
            .current_dir(&self.folder)
            .env("LC_ALL", "C")
            .env("GIT_DIR", &self.folder)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOW_PROTOCOL", PROTOCOLS)
            .env("GH_PROMPT_DISABLED", "1")
            .env("GH_NO_UPDATE_NOTIFIER", "1")
            .env("NO_PROMPT", "1")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        match bounded(command, b"", OUTPUT_MAX, CALL_MAX) {
            Ok(Some(output)) => Ok(output),
            Ok(None) => Err(PublishError::CallTooLong { what: program.to_owned() }),
            Err(source) => {
                let what = format!("start `{program}`");
                Err(io_error(&what, source).into())
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that stays holds no work: its objects are the repository's.
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// The address of `origin`, or of the only remote. One that is a path counts from the top of the worktree.
fn address(repo: &Repo) -> Result<Option<String>, SnapshotError> {
    let names = String::from_utf8_lossy(&repo.git.read(&["remote"], b"")?).into_owned();
    let names: Vec<&str> = names.lines().collect();
    let name = match names.as_slice() {
        _ if names.contains(&"origin") => "origin",
        [only] => only,
        _ => return Ok(None),
    };
    let of = |kind: &str| line(&repo.git, &["config", "--get", &format!("remote.{name}.{kind}")]);
    let Some(address) = of("pushurl")?.or(of("url")?) else { return Ok(None) };
    if is_relative_path(&address) {
        return Ok(Some(repo.top.join(address).display().to_string()));
    }
    Ok(Some(address))
}

/// Git takes an address without a colon before its first slash for a path.
fn is_relative_path(address: &str) -> bool {
    let first = address.split('/').next().unwrap_or_default();
    !address.starts_with('/') && !first.contains(':')
}

/// Only addresses that reach a host or a path; `name::rest` runs a program, and a dash begins an option.
fn check(address: &str) -> Result<(), PublishError> {
    let schemes = ["https://", "http://", "ssh://", "git://", "file://", "/"];
    let host = address.split(':').next().unwrap_or_default();
    let scp = address.contains(':') && !host.contains('/') && !address.contains("::");
    let plain = schemes.iter().any(|scheme| address.starts_with(scheme)) || scp;
    if plain && !address.starts_with('-') && !address.chars().any(char::is_control) {
        return Ok(());
    }
    Err(PublishError::BadRemote { address: shown(address) })
}

/// An address without its password.
fn shown(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}@{host}"),
            None if scheme.starts_with("http") => host.to_owned(),
            None => authority.to_owned(),
        },
        None => authority.to_owned(),
    };
    let path = path.map(|path| format!("/{path}")).unwrap_or_default();
    format!("{scheme}://{authority}{path}")
}

fn line(git: &Git, args: &[&str]) -> Result<Option<String>, SnapshotError> {
    let output = git.run(args, b"", LINE_MAX)?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok((output.status.success() && !text.is_empty()).then_some(text))
}

fn end_of(told: &str) -> String {
    let told = told.trim();
    let skipped = told.chars().count().saturating_sub(COMPLAINT_CHARS_MAX);
    told.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_could_run_a_program_are_refused() {
        for (address, fine) in [
            ("https://github.com/a/b.git", true),
            ("git@github.com:a/b.git", true),
            ("ssh://git@host/a", true),
            ("/srv/a.git", true),
            ("file:///srv/a.git", true),
            ("ext::sh -c touch% /tmp/x", false),
            ("fd::7", false),
            ("-oProxyCommand=x", false),
            ("--upload-pack=x:y", false),
            ("a\nb:c", false),
        ] {
            assert_eq!(check(address).is_ok(), fine, "{address}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (address, seen) in [
            ("https://ann:secret@host/a/b", "https://ann@host/a/b"),
            ("https://token@host/a", "https://host/a"),
            ("ssh://git@host/a", "ssh://git@host/a"),
            ("git@host:a/b", "git@host:a/b"),
            ("/srv/a.git", "/srv/a.git"),
        ] {
            assert_eq!(shown(address), seen);
        }
    }

    #[test]
    fn arguments_are_a_list_and_hold_what_was_given() {
        let wanted = NewRequest {
            title: "-x; $(y)".to_owned(),
            body: "a\nb".to_owned(),
            base: Some("main".to_owned()),
            draft: true,
        };
        assert_eq!(
            RequestProgram::Gh.create("b", &wanted),
            [
                "pr", "create", "--head", "b", "--title", "-x; $(y)", "--body", "a\nb", "--base", "main",
                "--draft"
            ]
        );
        assert_eq!(RequestProgram::Glab.create("b", &wanted).last().map(String::as_str), Some("--yes"));
    }
}
