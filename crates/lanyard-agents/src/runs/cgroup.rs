//! Control groups of runs, version 2: one for each run, below the group that was delegated to the daemon.
//!
//! Nothing is made outside of a delegated group, and no process is moved but the one that becomes an agent, which moves
//! itself. A group counts as delegated where its mark says so, which systemd sets for `Delegate=yes`. See decision 0086.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use lanyard_core::session::BoundedResource;

/// The subgroup of the daemon itself, as the unit names it (`DelegateSubgroup=`).
const DAEMON: &str = "daemon";
/// The group in a run's own that its processes are in. A namespace of groups that an agent makes shows nothing above it, so
/// the bounds cannot be changed from inside, whoever owns their files.
const AGENT: &str = "agent";
/// Marks of a delegated group, and what they say.
const MARKS: [&str; 2] = ["user.delegate", "trusted.delegate"];
const MARKED: &[u8] = b"1";
const MARK_BYTES: usize = 8;
/// Groups that an agent made in its own, as far as they are looked at.
const DEPTH_MAX: usize = 8;
const GROUPS_MAX: usize = 512;
/// What counts how often a bound was met, as file and key.
const COUNTERS: [(BoundedResource, &str, &str); 2] = [
    (BoundedResource::Memory, "memory.events", "oom_kill"),
    (BoundedResource::Processes, "pids.events", "max"),
];

/// A controller that holds bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupController {
    Memory,
    Pids,
    Cpu,
}

impl GroupController {
    const ALL: [Self; 3] = [Self::Memory, Self::Pids, Self::Cpu];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }
}

/// The group below which runs get theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegatedGroup {
    base: PathBuf,
    /// Controllers that the groups of runs have.
    pub controllers: Vec<GroupController>,
}

/// The group that was delegated to this process, or why there is none. Looked for once: a daemon stays where it is.
pub fn delegated() -> Result<&'static DelegatedGroup, &'static str> {
    static DELEGATED: LazyLock<Result<DelegatedGroup, String>> =
        LazyLock::new(|| find(None).map(DelegatedGroup::enabled));
    DELEGATED.as_ref().map_err(String::as_str)
}

/// The group that was delegated to a process, or why there is none. Changes nothing. Its controllers are those that the
/// groups of runs can have.
pub fn find(pid: Option<u32>) -> Result<DelegatedGroup, String> {
    let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let text = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
    let own = place_of(&text("cgroup"), &text("mountinfo"))
        .ok_or_else(|| "cgroup v2 is not mounted, or the daemon's group is not in it".to_owned())?;
    found(&own, &is_marked)
}

/// Where a process's group is, by its `cgroup` and `mountinfo`.
fn place_of(groups: &str, mounts: &str) -> Option<PathBuf> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut fields = left.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let within = Path::new(own).strip_prefix(root).ok()?;
        let is_plain = within.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        (right.split(' ').next() == Some("cgroup2") && is_plain).then(|| Path::new(point).join(within))
    })
}

/// With the daemon in a subgroup of its own, the groups beside it can have controllers. Where it is in the delegated group
/// itself they can have none: the kernel allows no processes in a group that gives controllers away, and a service manager
/// could not start the daemon there again.
fn found(own: &Path, is_marked: &dyn Fn(&Path) -> bool) -> Result<DelegatedGroup, String> {
    let above = own.parent().filter(|above| own.ends_with(DAEMON) && is_marked(above));
    let (base, controllers) = match above {
        Some(above) => {
            let offered = std::fs::read_to_string(above.join("cgroup.controllers")).unwrap_or_default();
            (above, read_controllers(&offered))
        }
        None if is_marked(own) => (own, Vec::new()),
        None => {
            return Err(format!(
                "the daemon's cgroup {} is not delegated to it; the unit of `lanyard service install` asks for that",
                own.display()
            ));
        }
    };
    if base.to_str().is_none() {
        return Err("the path of the daemon's cgroup is no text".to_owned());
    }
    if rustix::fs::access(base, rustix::fs::Access::WRITE_OK).is_err() {
        return Err(format!("the cgroup {} cannot be written", base.display()));
    }
    Ok(DelegatedGroup { base: base.to_owned(), controllers })
}

fn read_controllers(text: &str) -> Vec<GroupController> {
    let offered: Vec<&str> = text.split_whitespace().collect();
    GroupController::ALL.into_iter().filter(|one| offered.contains(&one.as_str())).collect()
}

fn is_marked(group: &Path) -> bool {
    MARKS.iter().any(|mark| {
        let mut value = [0; MARK_BYTES];
        let read = rustix::fs::getxattr(group, *mark, &mut value);
        read.is_ok_and(|length| value.get(..length) == Some(MARKED))
    })
}

impl DelegatedGroup {
    /// With the controllers given to the groups of runs, as far as the kernel does it.
    fn enabled(self) -> Self {
        for one in &self.controllers {
            if let Err(error) = put(&self.base.join("cgroup.subtree_control"), &format!("+{}", one.as_str()))
            {
                tracing::warn!(group = %self.base.display(), controller = one.as_str(), %error,
                    "runs cannot be bounded by a controller of the daemon's cgroup");
            }
        }
        let held = std::fs::read_to_string(self.base.join("cgroup.subtree_control")).unwrap_or_default();
        Self { controllers: read_controllers(&held), ..self }
    }

    /// Makes the group of a run, with what its files are to say. After an error there is none.
    pub fn make(&self, run: &str, files: &[(&str, String)]) -> io::Result<PathBuf> {
        let group = self.base.join(run);
        for folder in [group.clone(), group.join(AGENT)] {
            match std::fs::create_dir(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        for (name, value) in files {
            if let Err(error) = put(&group.join(name), value) {
                remove(&group);
                return Err(io::Error::new(error.kind(), format!("{name}: {error}")));
            }
        }
        Ok(group)
    }

    /// Removes the groups of runs that are not in the list. One with processes stays: the kernel removes no such group.
    pub fn sweep(&self, known: &[String]) {
        let Ok(entries) = std::fs::read_dir(&self.base) else { return };
        for entry in entries.flatten().take(GROUPS_MAX) {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with("run_")) else { continue };
            if !known.iter().any(|run| run == name) {
                remove(&entry.path());
            }
        }
    }
}

/// Moves this process into the group of a run. What it starts is in it too.
pub(super) fn enter(group: &Path) -> io::Result<()> {
    put(&group.join(AGENT).join("cgroup.procs"), "0")
}

/// The processes of a group and of those below it.
pub(super) fn processes(group: &Path) -> Vec<u32> {
    let groups = with_those_below(group);
    let texts = groups.iter().filter_map(|group| std::fs::read_to_string(group.join("cgroup.procs")).ok());
    texts.flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Whether something lives in a group or below it.
pub(super) fn is_populated(group: &Path) -> bool {
    let text = std::fs::read_to_string(group.join("cgroup.events")).unwrap_or_default();
    count(&text, "populated") > 0
}

/// Ends all processes of a group at once, also those that start others meanwhile.
pub(super) fn kill(group: &Path) -> io::Result<()> {
    put(&group.join("cgroup.kill"), "1")
}

/// Removes an empty group and those that were made in it.
pub fn remove(group: &Path) {
    for one in with_those_below(group).iter().rev() {
        match std::fs::remove_dir(one) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::debug!(group = %one.display(), %error, "a cgroup stays until the next start");
            }
            Ok(()) | Err(_) => {}
        }
    }
}

/// How often a run has met its bounds, for those that were met.
#[must_use]
pub fn bounds_met(group: &Path) -> Vec<(BoundedResource, u64)> {
    let met = COUNTERS.iter().map(|(what, file, key)| {
        let text = std::fs::read_to_string(group.join(file)).unwrap_or_default();
        (*what, count(&text, key))
    });
    met.filter(|(_, times)| *times > 0).collect()
}

/// Parents before what is in them.
fn with_those_below(group: &Path) -> Vec<PathBuf> {
    let mut all = vec![(group.to_owned(), 0)];
    let mut next = 0;
    while let Some((folder, depth)) = all.get(next).cloned() {
        next += 1;
        let entries = std::fs::read_dir(&folder).ok().filter(|_| depth < DEPTH_MAX);
        let below = entries
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let room = GROUPS_MAX.saturating_sub(all.len());
        all.extend(below.take(room).map(|entry| (entry.path(), depth + 1)));
    }
    all.into_iter().map(|(folder, _)| folder).collect()
}

/// The number of a key in a file of `key number` lines.
fn count(text: &str, key: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// The kernel's files are there; none is ever made.
fn put(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "24 1 0:20 / /proc rw - proc proc rw\n\
        30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

    #[test]
    fn a_group_is_found_by_the_mount_that_shows_it() {
        let at = |groups: &str, mounts: &str| place_of(groups, mounts).map(|path| path.display().to_string());
        let unit = "0::/user.slice/lanyard.service/daemon\n";
        let expected = "/sys/fs/cgroup/user.slice/lanyard.service/daemon";
        assert_eq!(at(unit, MOUNTS).as_deref(), Some(expected));
        let hybrid = format!("9:name=systemd:/\n4:memory:/x\n{unit}");
        assert_eq!(at(&hybrid, MOUNTS).as_deref(), Some(expected));
        let part = "30 24 0:26 /user.slice /sys/fs/cgroup rw - cgroup2 none rw\n";
        assert_eq!(at(unit, part).as_deref(), Some("/sys/fs/cgroup/lanyard.service/daemon"));
        assert_eq!(at("4:memory:/x\n", MOUNTS), None, "version 1 only");
        assert_eq!(at(unit, "30 24 0:26 / /sys/fs/cgroup rw - cgroup none rw\n"), None);
        assert_eq!(at("0::/../other\n", MOUNTS), None, "a group outside of what is shown");
        assert_eq!(at("", ""), None);
    }

    #[test]
    fn only_a_delegated_group_is_used_and_controllers_need_a_group_of_the_daemon_s_own() {
        let folder = tempfile::tempdir().unwrap();
        let unit = folder.path().join("lanyard.service");
        let daemon = unit.join(DAEMON);
        std::fs::create_dir_all(&daemon).unwrap();
        std::fs::write(unit.join("cgroup.controllers"), "cpuset cpu io memory pids\n").unwrap();
        let marked = |group: &Path| group == unit;
        let all = GroupController::ALL.to_vec();
        assert_eq!(found(&daemon, &marked), Ok(DelegatedGroup { base: unit.clone(), controllers: all }));
        assert_eq!(found(&unit, &marked), Ok(DelegatedGroup { base: unit.clone(), controllers: Vec::new() }));
        for group in [&daemon, &unit] {
            let refused = found(group, &|_| false).unwrap_err();
            assert!(refused.contains("not delegated"), "{refused}");
        }
        let other = unit.join("other");
        assert!(found(&other, &marked).is_err(), "only the subgroup of the unit");
    }

    #[test]
    fn what_was_met_is_read_from_the_kernel_s_counters() {
        let group = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(group.path().join(name), text).unwrap();
        assert_eq!(bounds_met(group.path()), Vec::new(), "no controller counts here");
        put("memory.events", "low 0\nhigh 0\nmax 31\noom 2\noom_kill 2\noom_group_kill 0\n");
        put("pids.events", "max 0\n");
        put("cgroup.events", "populated 1\nfrozen 0\n");
        assert_eq!(bounds_met(group.path()), [(BoundedResource::Memory, 2)]);
        put("pids.events", "max 17\n");
        assert_eq!(bounds_met(group.path()).last(), Some(&(BoundedResource::Processes, 17)));
        assert!(is_populated(group.path()));
        put("cgroup.events", "populated 0\nfrozen 0\n");
        assert!(!is_populated(group.path()));
        put("cgroup.procs", "12\n13\n");
        std::fs::create_dir(group.path().join("below")).unwrap();
        put("below/cgroup.procs", "14\n");
        assert_eq!(processes(group.path()), [12, 13, 14]);
    }

    #[test]
    fn a_sweep_takes_empty_groups_of_runs_that_nobody_knows() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().to_owned();
        let delegated = DelegatedGroup { base: base.clone(), controllers: Vec::new() };
        for name in ["run_old/below", "run_known", "daemon", "run_busy"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        // Stands for a process: neither is such a folder removed.
        std::fs::write(base.join("run_busy/task"), "").unwrap();
        delegated.sweep(&["run_known".to_owned()]);
        let mut left: Vec<_> = std::fs::read_dir(&base)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["daemon", "run_busy", "run_known"]);
        assert!(
            delegated.make("run_new", &[("memory.max", "1".to_owned())]).is_err(),
            "the kernel has no such file here"
        );
        assert!(!base.join("run_new").exists());
    }
}
