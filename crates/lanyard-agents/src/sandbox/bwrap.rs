//! The rules as arguments of `bwrap`. Pure.

use std::path::Path;

use lanyard_core::session::{NetworkReach, SandboxLevel};

use super::inside::{InsideOrder, PortBridge};
use super::plan::PathAccess;
use super::{BLANK, DOOR_INSIDE, Enclosure, PROXY_SOCKET, RELAY_SOCKET};

/// Whether what is in the sandbox ends with the process that starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// By the kernel, when the thread ends that started it.
    TakesItAlong,
    LeavesIt,
}

/// Where root may write settings of the kernel because they belong to it, with no rights besides. `bwrap` covers those
/// that its user can open as a folder for writing, and so none of them for root in a namespace.
const KERNEL: [&str; 9] = [
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/acpi",
    "/proc/scsi",
    "/proc/mtrr",
    "/proc/driver",
];

/// The whole command.
pub(super) fn arguments(of: &Enclosure, argv: &[String], cwd: &Path, parent: Parent) -> Vec<String> {
    let mut all = vec![text(&of.bwrap)];
    let mut say = |words: &[&str]| all.extend(words.iter().map(|word| (*word).to_owned()));
    say(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    say(&["--cap-drop", "ALL"]);
    if of.network != NetworkReach::All {
        say(&["--unshare-net"]);
    }
    if parent == Parent::TakesItAlong {
        say(&["--die-with-parent"]);
    }
    if !of.nests {
        say(&["--disable-userns"]);
    }
    if of.level != SandboxLevel::Strict {
        say(&["--ro-bind", "/", "/"]);
    }
    for (path, target) in &of.links {
        say(&["--symlink", &text(target), &text(path)]);
    }
    say(&["--dev", "/dev", "--proc", "/proc"]);
    for path in KERNEL {
        say(&["--ro-bind-try", path, path]);
    }
    let blank = text(&of.door.join(BLANK));
    for rule in &of.rules {
        let path = text(&rule.path);
        match rule.access {
            PathAccess::Read => say(&["--ro-bind", &path, &path]),
            PathAccess::Write => say(&["--bind", &path, &path]),
            PathAccess::Private | PathAccess::Hidden => say(&["--tmpfs", &path]),
            PathAccess::HiddenFile => say(&["--ro-bind", &blank, &path]),
        }
    }
    let helper = text(&of.helper);
    say(&["--ro-bind", &helper, &helper]);
    say(&["--ro-bind", &text(&of.door), DOOR_INSIDE]);
    // Only when what lies in them has its place.
    for rule in of.rules.iter().filter(|rule| rule.access == PathAccess::Hidden) {
        say(&["--remount-ro", &text(&rule.path)]);
    }
    if of.level == SandboxLevel::Strict {
        say(&["--remount-ro", "/"]);
    }
    say(&["--chdir", &text(cwd), "--", &helper, "inside"]);
    all.push(order(of).to_argument());
    all.extend(argv.iter().cloned());
    all
}

/// What the helper does before the agent is there.
fn order(of: &Enclosure) -> InsideOrder {
    let socket = |name: &str| Path::new(DOOR_INSIDE).join(name);
    let relay = of.relay.filter(|_| of.network != NetworkReach::All);
    let relay = relay.map(|port| PortBridge { port, socket: socket(RELAY_SOCKET) });
    let proxy = of.proxy_port().map(|port| PortBridge { port, socket: socket(PROXY_SOCKET) });
    InsideOrder { bridges: relay.into_iter().chain(proxy).collect() }
}

/// Rules are only made of paths that are text; see `facts`.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
