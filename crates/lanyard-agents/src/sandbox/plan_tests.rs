//! The rules of a sandbox as text, for workspaces in awkward places.

use expect_test::{Expect, expect};

use super::*;

fn paths(list: &[&str]) -> Vec<PathBuf> {
    list.iter().map(PathBuf::from).collect()
}

fn folders(list: &[&str]) -> Vec<Hide> {
    list.iter().map(|path| Hide { path: path.into(), folder: true }).collect()
}

/// A developer's machine, with a session in a repository of the home folder.
fn facts(level: SandboxLevel) -> SandboxFacts {
    SandboxFacts {
        level,
        workspace: "/home/u/src/app".into(),
        home: "/home/u".into(),
        git_write: paths(&["/home/u/src/app/.git"]),
        git_read: Vec::new(),
        guard: paths(&["/home/u/src/app/.git/config", "/home/u/src/app/.git/hooks"]),
        state: vec![
            MountRule { path: "/home/u/.claude".into(), access: PathAccess::Write },
            MountRule { path: "/home/u/.claude/settings.json".into(), access: PathAccess::Read },
        ],
        lanyard: folders(&["/home/u/.local/share/lanyard", "/home/u/.config/lanyard"]),
        worktrees: paths(&["/home/u/.local/share/lanyard/trees"]),
        shown: Vec::new(),
        secrets: [
            folders(&["/home/u/.ssh", "/home/u/.codex"]),
            vec![Hide { path: "/home/u/.netrc".into(), folder: false }],
        ]
        .concat(),
        shared: paths(&["/tmp", "/run"]),
        system: paths(&["/usr", "/etc/hosts"]),
        read: Vec::new(),
        write: Vec::new(),
    }
}

fn check(facts: &SandboxFacts, expected: &Expect) {
    let text = match rules(facts) {
        Ok(rules) => {
            let line = |rule: &MountRule| format!("{:?} {}\n", rule.access, rule.path.display());
            rules.iter().map(line).collect::<Vec<_>>().concat()
        }
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&text);
}

#[test]
fn a_workspace_in_the_home_folder() {
    check(
        &facts(SandboxLevel::Workspace),
        &expect![[r"
            Private /tmp
            Private /run
            Write /home/u/.claude
            Hidden /home/u/.ssh
            Hidden /home/u/.codex
            HiddenFile /home/u/.netrc
            Hidden /home/u/.config/lanyard
            Write /home/u/src/app
            Read /home/u/.claude/settings.json
            Hidden /home/u/.local/share/lanyard
            Write /home/u/src/app/.git
            Read /home/u/src/app/.git/config
            Read /home/u/src/app/.git/hooks
        "]],
    );
}

#[test]
fn strict_shows_the_system_and_no_home() {
    check(
        &facts(SandboxLevel::Strict),
        &expect![[r"
            Private /tmp
            Private /run
            Read /usr
            Private /home/u
            Read /etc/hosts
            Write /home/u/.claude
            Write /home/u/src/app
            Read /home/u/.claude/settings.json
            Write /home/u/src/app/.git
            Read /home/u/src/app/.git/config
            Read /home/u/src/app/.git/hooks
        "]],
    );
}

#[test]
fn a_worktree_in_a_hidden_folder_is_seen_and_its_neighbours_are_not() {
    let tree = "/home/u/.local/share/lanyard/trees/sess_1";
    let common = "/home/u/src/app/.git";
    check(
        &SandboxFacts {
            workspace: tree.into(),
            git_write: paths(&["/home/u/src/app/.git/worktrees/sess_1", "/home/u/src/app/.git/objects"]),
            git_read: paths(&[common]),
            guard: paths(&[
                "/home/u/.local/share/lanyard/trees/sess_1/.git",
                "/home/u/src/app/.git/worktrees/sess_1/gitdir",
            ]),
            state: Vec::new(),
            secrets: Vec::new(),
            ..facts(SandboxLevel::Workspace)
        },
        &expect![[r"
            Private /tmp
            Private /run
            Hidden /home/u/.config/lanyard
            Hidden /home/u/.local/share/lanyard
            Write /home/u/src/app/.git/objects
            Write /home/u/.local/share/lanyard/trees/sess_1
            Write /home/u/src/app/.git/worktrees/sess_1
            Read /home/u/.local/share/lanyard/trees/sess_1/.git
            Read /home/u/src/app/.git/worktrees/sess_1/gitdir
        "]],
    );
}

#[test]
fn a_workspace_that_is_the_home_folder_hides_what_is_secret_in_it() {
    check(
        &SandboxFacts {
            workspace: "/home/u".into(),
            git_write: Vec::new(),
            guard: Vec::new(),
            ..facts(SandboxLevel::Workspace)
        },
        &expect![[r"
            Private /tmp
            Private /run
            Write /home/u
            Hidden /home/u/.ssh
            Hidden /home/u/.codex
            HiddenFile /home/u/.netrc
            Hidden /home/u/.config/lanyard
            Read /home/u/.claude/settings.json
            Hidden /home/u/.local/share/lanyard
        "]],
    );
}

#[test]
fn a_workspace_in_tmp_with_lanyards_files_beside_it() {
    check(
        &SandboxFacts {
            workspace: "/tmp/t/work".into(),
            git_write: Vec::new(),
            guard: Vec::new(),
            state: Vec::new(),
            secrets: Vec::new(),
            lanyard: folders(&["/tmp/t/data"]),
            write: paths(&["/home/u/.cargo"]),
            ..facts(SandboxLevel::Workspace)
        },
        &expect![[r"
            Private /tmp
            Private /run
            Write /tmp/t/work
            Write /home/u/.cargo
        "]],
    );
}

#[test]
fn what_would_show_lanyards_own_files_is_refused() {
    let with = |workspace: &str, write: &[&str]| SandboxFacts {
        workspace: workspace.into(),
        write: paths(write),
        ..facts(SandboxLevel::Workspace)
    };
    check(&with("/", &[]), &expect!["the workspace / is the whole file system\n"]);
    check(
        &with("/home/u/.local/share/lanyard/runs", &[]),
        &expect!["the workspace /home/u/.local/share/lanyard/runs lies in Lanyard's own files\n"],
    );
    check(
        &with("/home/u/.local/share/lanyard/trees", &[]),
        &expect!["the workspace /home/u/.local/share/lanyard/trees lies in Lanyard's own files\n"],
    );
    check(
        &with("/home/u/src/app", &["/home/u/.config/lanyard"]),
        &expect!["`sandbox_folders` names /home/u/.config/lanyard, which lies in Lanyard's own files\n"],
    );
}

#[test]
fn what_was_attached_to_a_session_is_seen_in_a_hidden_folder() {
    let shown = paths(&["/home/u/.local/share/lanyard/attachments/shown/sess_1"]);
    let rules = rules(&SandboxFacts { shown, ..facts(SandboxLevel::Strict) }).unwrap();
    let of = |path: &str| rules.iter().find(|rule| rule.path.ends_with(path)).map(|rule| rule.access);
    assert_eq!(of("shown/sess_1"), Some(PathAccess::Read));
}
