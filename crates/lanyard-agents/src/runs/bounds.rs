//! The bounds of a run: what holds each of them on this machine, as a plan, and the command that puts an agent under them.

use std::path::{Path, PathBuf};

use lanyard_core::session::{BoundHolder, BoundedResource, HeldBound, ResourceBounds, SandboxRule};
use serde::{Deserialize, Serialize};

use super::bound_helper::{BoundOrder, HELPER};
use super::cgroup::{self, GroupController};
use crate::sandbox::{Enclosure, Parent};

const MIB: u64 = 1024 * 1024;
/// Why a group that was made for a run holds no more.
pub(crate) const NO_CONTROLLERS: &str = "the daemon's cgroup has no such controller for its runs";
/// Microseconds in which a share of the processor is counted.
const CPU_PERIOD_US: u64 = 100_000;
const PERCENT: u64 = 100;

/// Bounds that the kernel holds for each process by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessLimits {
    /// Private memory that can be written. The address space is no measure: runtimes reserve far more than they use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Of the user in the namespace of the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
}

/// What there is to hold bounds with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundMeans {
    /// Controllers of the run's group; nothing where there is no group for it.
    pub controllers: Vec<GroupController>,
    /// Why there are no more, for people.
    pub lacking: String,
    pub sandboxed: bool,
    pub root: bool,
}

/// How bounds are held.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BoundPlan {
    pub held: Vec<HeldBound>,
    /// Files of the run's group, and what they are to say.
    pub files: Vec<(&'static str, String)>,
    pub limits: ProcessLimits,
    /// Bounds that nothing here can hold, with the reason.
    pub missing: Vec<String>,
    /// What is held less than it reads, a sentence each.
    pub weaker: Vec<String>,
}

/// Decides what holds each bound: the group where it can, else the limits of processes.
#[must_use]
pub fn plan(asked: &ResourceBounds, means: &BoundMeans) -> BoundPlan {
    let mut plan = BoundPlan::default();
    for what in BoundedResource::ALL {
        let Some(amount) = asked.of(what) else { continue };
        match plan.put(what, u64::from(amount), means) {
            Some(by) => plan.held.push(HeldBound::new(what, amount, by)),
            None => plan.missing.push(why_not(what, means)),
        }
    }
    let by_process = plan.held.iter().any(|held| held.by == BoundHolder::Rlimit);
    if by_process && means.root && !means.sandboxed {
        plan.weaker
            .push("root can raise the limits of its processes, because there is no sandbox".to_owned());
    }
    plan
}

impl BoundPlan {
    /// Nothing where the machine cannot hold it.
    fn put(&mut self, what: BoundedResource, amount: u64, means: &BoundMeans) -> Option<BoundHolder> {
        let has = |controller| means.controllers.contains(&controller);
        match what {
            BoundedResource::Memory if has(GroupController::Memory) => {
                self.files.push(("memory.max", (amount * MIB).to_string()));
                // Else what does not fit would be moved to the disk.
                self.files.push(("memory.swap.max", "0".to_owned()));
                return Some(BoundHolder::Cgroup);
            }
            BoundedResource::Memory => {
                self.limits.memory_bytes = Some(amount * MIB);
                self.weaker.push(format!(
                    "memory is bounded for each process and not for all of them together, because {}",
                    means.lacking
                ));
            }
            BoundedResource::Processes if has(GroupController::Pids) => {
                self.files.push(("pids.max", amount.to_string()));
                return Some(BoundHolder::Cgroup);
            }
            BoundedResource::Processes if means.sandboxed && !means.root => {
                self.limits.processes = Some(amount);
            }
            BoundedResource::Cpu if has(GroupController::Cpu) => {
                let quota = amount * CPU_PERIOD_US / PERCENT;
                self.files.push(("cpu.max", format!("{quota} {CPU_PERIOD_US}")));
                return Some(BoundHolder::Cgroup);
            }
            BoundedResource::Processes | BoundedResource::Cpu => return None,
            BoundedResource::OpenFiles => self.limits.open_files = Some(amount),
            BoundedResource::FileSize => self.limits.file_bytes = Some(amount * MIB),
        }
        Some(BoundHolder::Rlimit)
    }
}

fn why_not(what: BoundedResource, means: &BoundMeans) -> String {
    let lacking = &means.lacking;
    match what {
        BoundedResource::Processes if means.root => {
            format!("`processes` needs a cgroup, since root's processes are counted nowhere else: {lacking}")
        }
        BoundedResource::Processes => format!("`processes` needs a cgroup or a sandbox: {lacking}"),
        BoundedResource::Cpu
        | BoundedResource::Memory
        | BoundedResource::OpenFiles
        | BoundedResource::FileSize => format!("`{}` needs a cgroup: {lacking}", what.setting()),
    }
}

/// What holds bounds in the runs of a daemon, in words, and what of a rule nothing holds. Changes nothing.
#[must_use]
pub fn bounds_here(daemon: Option<u32>, rule: &SandboxRule) -> (String, Vec<String>) {
    let found = match daemon {
        Some(pid) => cgroup::find(Some(pid)),
        None => Err("no daemon is running, so its cgroup is not known".to_owned()),
    };
    let (controllers, lacking) = match found {
        Ok(found) => (found.controllers, NO_CONTROLLERS.to_owned()),
        Err(lacking) => (Vec::new(), lacking),
    };
    let names: Vec<&str> = controllers.iter().map(|one| one.as_str()).collect();
    let how = if names.is_empty() {
        format!("runs are bounded by rlimits only: {lacking}")
    } else {
        format!("runs are bounded by cgroup ({}) and rlimits", names.join(", "))
    };
    let (sandboxed, root) = (rule.encloses(), rustix::process::geteuid().is_root());
    let missing = plan(&rule.bounds, &BoundMeans { controllers, lacking, sandboxed, root }).missing;
    (how, missing)
}

/// What a run's processes are put under. Kept with the run: commands that a later daemon runs for the agent are too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// The control group of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<PathBuf>,
    #[serde(default)]
    pub each: ProcessLimits,
    /// Lanyard's own program, which is the helper.
    pub helper: PathBuf,
}

impl RunLimits {
    fn around(&self, order: &BoundOrder, argv: Vec<String>) -> Vec<String> {
        if order.is_empty() {
            return argv;
        }
        let helper = self.helper.to_string_lossy().into_owned();
        [helper, HELPER.to_owned(), order.to_argument()].into_iter().chain(argv).collect()
    }
}

/// The command that runs `argv` within the sandbox and the bounds of a run. The group is entered outside of the sandbox,
/// where it can be written; the limits are set inside, so that they count and hold for the agent alone.
#[must_use]
pub fn within(
    (sandbox, limits): (Option<&Enclosure>, Option<&RunLimits>),
    argv: &[String],
    cwd: &Path,
    parent: Parent,
) -> Vec<String> {
    let argv = argv.to_vec();
    let group = limits.and_then(|limits| limits.group.clone());
    let each = limits.map(|limits| limits.each).unwrap_or_default();
    match (sandbox, limits) {
        (Some(sandbox), Some(limits)) => {
            let inner = limits.around(&BoundOrder { group: None, each }, argv);
            let order = BoundOrder { group, each: ProcessLimits::default() };
            limits.around(&order, sandbox.around(&inner, cwd, parent))
        }
        (Some(sandbox), None) => sandbox.around(&argv, cwd, parent),
        (None, Some(limits)) => limits.around(&BoundOrder { group, each }, argv),
        (None, None) => argv,
    }
}

#[cfg(test)]
mod tests {
    use lanyard_core::session::BoundsMode;

    use super::*;

    fn asked() -> ResourceBounds {
        ResourceBounds {
            memory_mib: Some(512),
            processes: Some(100),
            cpu_percent: Some(150),
            open_files: Some(256),
            file_mib: Some(10),
            mode: BoundsMode::Required,
        }
    }

    fn means(controllers: &[GroupController], sandboxed: bool, root: bool) -> BoundMeans {
        BoundMeans {
            controllers: controllers.to_vec(),
            lacking: "there is no cgroup".into(),
            sandboxed,
            root,
        }
    }

    fn holders(plan: &BoundPlan) -> Vec<String> {
        plan.held.iter().map(HeldBound::in_words).collect()
    }

    #[test]
    fn a_group_holds_what_it_has_controllers_for() {
        let all = [GroupController::Memory, GroupController::Pids, GroupController::Cpu];
        let plan = plan(&asked(), &means(&all, false, false));
        assert_eq!(
            holders(&plan),
            [
                "memory 512 MiB by cgroup",
                "processes 100 by cgroup",
                "cpu 150 % by cgroup",
                "open files 256 by rlimit",
                "file size 10 MiB by rlimit"
            ]
        );
        let files = ["memory.max 536870912", "memory.swap.max 0", "pids.max 100", "cpu.max 150000 100000"];
        assert_eq!(
            plan.files.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>(),
            files
        );
        let limits =
            ProcessLimits { open_files: Some(256), file_bytes: Some(10 * MIB), ..ProcessLimits::default() };
        assert_eq!((plan.limits, plan.missing.len(), plan.weaker.len()), (limits, 0, 0));
    }

    #[test]
    fn without_a_group_processes_are_limited_and_the_rest_is_missing() {
        let of = |sandboxed, root| plan(&asked(), &means(&[], sandboxed, root));
        let plain = of(true, false);
        assert_eq!(plain.limits.processes, Some(100), "{plain:?}");
        assert_eq!(plain.limits.memory_bytes, Some(512 * MIB));
        assert_eq!(plain.missing, ["`cpu_percent` needs a cgroup: there is no cgroup"]);
        assert_eq!(plain.weaker.len(), 1, "memory is held for each process: {plain:?}");
        for (sandboxed, root, weaker) in [(false, false, 1), (true, true, 1), (false, true, 2)] {
            let other = of(sandboxed, root);
            assert_eq!(other.limits.processes, None, "the kernel counts them for the user, or not at all");
            assert_eq!((other.missing.len(), other.weaker.len()), (2, weaker), "{other:?}");
        }
    }

    #[test]
    fn the_group_is_entered_outside_of_what_limits_each_process() {
        let limits = RunLimits {
            group: Some("/sys/fs/cgroup/x/run_1".into()),
            each: ProcessLimits { open_files: Some(64), ..ProcessLimits::default() },
            helper: "/bin/lanyard".into(),
        };
        let argv = ["agent".to_owned(), "-x".to_owned()];
        let alone = within((None, Some(&limits)), &argv, Path::new("/w"), Parent::LeavesIt);
        assert_eq!(
            alone,
            [
                "/bin/lanyard",
                "bounded",
                r#"{"group":"/sys/fs/cgroup/x/run_1","each":{"open_files":64}}"#,
                "agent",
                "-x"
            ]
        );
        let none = RunLimits { group: None, each: ProcessLimits::default(), helper: "/bin/lanyard".into() };
        assert_eq!(within((None, Some(&none)), &argv, Path::new("/w"), Parent::LeavesIt), argv);
    }
}
