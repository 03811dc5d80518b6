//! Every way out that is tried. Each is a script for `sh`, and what becomes of it without a sandbox, in `workspace`, in
//! `strict`, and in `workspace` with the network `gateway`.

use super::kit::SmallMachine;

/// How a way out is known to have led out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Proof {
    /// The script succeeds.
    Script,
    /// A file is there afterwards, or a word in it. Paths are of the machine's folder, or absolute with `ID`.
    File(&'static str),
    Word(&'static str),
}

/// What becomes of it, in this order: no sandbox, `workspace`, `strict`, `workspace` with the network `gateway`. `o` is
/// out, `h` is held, `-` is not tried, because it would harm the machine or depends on it.
pub(super) type Outcome = &'static str;

use Proof::{File, Script, Word};

pub(super) const WAYS: [(&str, Outcome, Proof, &str); 92] = [
    // What lies in folders that are hidden.
    ("token", "ohhh", Script, "cat $DATA/token"),
    ("journal", "ohhh", Script, "head -c 1 $DATA/journal.db"),
    ("config", "ohhh", Script, "grep agents $CONF"),
    ("list runs", "ohhh", Script, "ls $DATA/runs"),
    ("run file", "ohhh", Script, "cat $DATA/runs/*/run.json"),
    ("other worktree", "ohhh", Script, "cat $DATA/trees/other/secret"),
    ("ssh key", "ohhh", Script, "cat $HOME/.ssh/id_ed25519"),
    ("cloud key", "ohhh", Script, "cat $HOME/.aws/credentials"),
    ("netrc", "ohhh", Script, "cat $HOME/.netrc"),
    ("history", "ohhh", Script, "cat $HOME/.bash_history"),
    ("another agent", "ohhh", Script, "cat $HOME/.codex/auth.json"),
    ("shadow", "-hhh", Script, "cat /etc/shadow"),
    // The rest of the file system can be read, but not in `strict`.
    ("home file", "ooho", Script, "cat $HOME/notes.txt"),
    ("outside file", "ooho", Script, "cat $OUT/plain"),
    // The same by another name.
    ("link", "ohhh", Script, "ln -s $HOME/.ssh/id_ed25519 $WORK/k1; cat $WORK/k1"),
    ("link to a folder", "ohhh", Script, "ln -s $DATA $WORK/k2; cat $WORK/k2/token"),
    ("dots", "ohhh", Script, "cat $WORK/../home/.ssh/id_ed25519"),
    ("dots from cwd", "ohhh", Script, "cat /proc/self/cwd/../home/.ssh/id_ed25519"),
    ("own root", "ohhh", Script, "cat /proc/self/root$DATA/token"),
    ("root of init", "-hhh", Script, "cat /proc/1/root$DATA/token"),
    ("root of the daemon", "ohhh", Script, "cat /proc/$DPID/root$DATA/token"),
    ("cwd of the daemon", "ohhh", Script, "cat /proc/$DPID/cwd/Cargo.toml || ls /proc/$DPID/cwd/"),
    // Other processes.
    ("environment of the daemon", "ohhh", Script, "head -c 1 /proc/$DPID/environ"),
    ("files of the daemon", "ohhh", Script, "ls /proc/$DPID/fd/"),
    ("memory of the daemon", "-hhh", Script, "head -c 1 /proc/$DPID/mem"),
    ("signal to the daemon", "ohhh", Script, "kill -0 $DPID"),
    ("trace the daemon", "-hhh", Script, "perl -e 'exit(syscall(101, 16, $ENV{DPID}+0, 0, 0) == 0 ? 0 : 1)'"),
    ("end the first process", "-hhh", Script, "kill -9 1; sleep 0.1; ! kill -0 1"),
    ("marker of another run", "-hhh", Script, "grep -l LANYARD_DATA_DIR /proc/[0-9]*/environ | grep ."),
    // Writing outside of the workspace.
    ("write data", "ohhh", File("DATA/evil"), "echo > $DATA/evil"),
    ("write config", "ohhh", Word("CONF"), "echo '# evil' >> $CONF"),
    ("write home", "ohhh", File("home/evil"), "echo > $HOME/evil"),
    ("write bashrc", "ohhh", Word("home/.bashrc"), "echo '# evil' >> $HOME/.bashrc"),
    ("replace bashrc", "ohhh", Word("home/.bashrc"), "echo '# evil' > $WORK/b; mv -f $WORK/b $HOME/.bashrc"),
    ("authorized key", "ohhh", File("home/.ssh/authorized_keys"), "echo > $HOME/.ssh/authorized_keys"),
    (
        "autostart",
        "ohhh",
        File("home/.config/autostart/x"),
        "mkdir -p $HOME/.config/autostart; echo > $HOME/.config/autostart/x",
    ),
    ("write outside", "ohhh", File("out/evil"), "echo > $OUT/evil"),
    ("write beside", "ohhh", File("evil"), "echo > $WORK/../evil"),
    ("write other worktree", "ohhh", File("DATA/trees/other/evil"), "echo > $DATA/trees/other/evil"),
    ("hard link", "ohhh", Word("out/plain"), "ln $OUT/plain $WORK/hard && echo evil >> $WORK/hard"),
    ("link to write", "ohhh", File("out/evil2"), "ln -s $OUT/evil2 $WORK/k3; echo > $WORK/k3"),
    ("move out", "ohhh", File("out/evil3"), "echo > $WORK/m; mv $WORK/m $OUT/evil3"),
    ("mode of a key", "-hhh", Script, "chmod 777 $HOME/.ssh/id_ed25519"),
    ("remove a key", "-hhh", Script, "rm $HOME/.ssh/id_ed25519 && ! test -e $HOME/.ssh/id_ed25519"),
    ("shared tmp", "ohhh", File("/tmp/ID-evil"), "echo > /tmp/$ID-evil"),
    ("shared var tmp", "ohhh", File("/var/tmp/ID-evil"), "echo > /var/tmp/$ID-evil"),
    ("shared memory", "ohhh", File("/dev/shm/ID-evil"), "echo > /dev/shm/$ID-evil"),
    ("program of lanyard", "-hhh", Script, "echo >> $L"),
    ("program of the agent", "-hhh", Word("bin/claude"), "echo '# evil' >> $BASE/bin/claude"),
    // What others run later.
    (
        "settings of the agent",
        "ohhh",
        Word("home/.claude/settings.json"),
        "echo evil > $HOME/.claude/settings.json",
    ),
    (
        "replace its settings",
        "ohhh",
        Word("home/.claude/settings.json"),
        "echo evil > $HOME/.claude/s; mv -f $HOME/.claude/s $HOME/.claude/settings.json",
    ),
    ("git hook", "ohhh", File("work/.git/hooks/pre-commit"), "echo > $WORK/.git/hooks/pre-commit"),
    ("git config", "ohhh", Word("work/.git/config"), "cd $WORK; git config core.fsmonitor evil"),
    ("replace hooks", "-hhh", File("work/.git/h2"), "mv $WORK/.git/hooks $WORK/.git/h2"),
    ("replace git folder", "-hhh", File("work/.git2"), "mv $WORK/.git $WORK/.git2"),
    // The kernel.
    ("mount", "-hhh", Script, "mkdir -p $WORK/m1; mount -t tmpfs none $WORK/m1"),
    ("remount", "-hhh", Script, "mount -o remount,rw,bind /"),
    ("unmount", "-hhh", Script, "umount $DATA && cat $DATA/token"),
    ("own namespace, unmount", "-hhh", Script, "unshare -Urm sh -c 'umount -l $DATA; cat $DATA/token'"),
    (
        "own namespace, remount",
        "-hhh",
        File("out/evil4"),
        "unshare -Urm sh -c 'mount -o remount,rw,bind / ; echo > $OUT/evil4'",
    ),
    (
        "own namespace, bind",
        "-hhh",
        Script,
        "unshare -Urm sh -c 'mount --bind $WORK /etc && test -e /etc/file && cat $DATA/token'",
    ),
    ("enter the daemon's", "-hhh", Script, "nsenter -t $DPID -m cat $DATA/token"),
    ("chroot", "-hhh", Script, "chroot /proc/1/root cat $DATA/token"),
    ("device", "-hhh", Script, "mknod $WORK/disk b 8 0 && head -c 1 $WORK/disk"),
    ("disks", "-hhh", Script, "ls /dev | grep -E '^(sd|vd|nvme)'"),
    ("kernel log", "-hhh", Script, "timeout 2 head -c 1 /dev/kmsg"),
    ("kernel memory", "-hhh", Script, "head -c 1 /proc/kcore"),
    (
        "setting of the kernel",
        "-hhh",
        Script,
        "v=$(cat /proc/sys/kernel/panic); echo $v > /proc/sys/kernel/panic",
    ),
    ("key of the kernel", "-hhh", Script, "echo h > /proc/sysrq-trigger"),
    (
        "control group",
        "-hhh",
        Script,
        "mkdir /sys/fs/cgroup/$ID-evil || mkdir /sys/fs/cgroup/unified/$ID-evil",
    ),
    // More of the machine than the bounds allow.
    ("memory at once", "ohhh", Script, "perl -e '$x = \"a\" x (300 << 20)'"),
    ("memory in steps", "ohhh", Script, "perl -e 'push @x, \"a\" x (1 << 20) for 1 .. 300'"),
    (
        "memory of a child",
        "ohhh",
        Script,
        "setsid perl -e 'exit(system(\"perl\", \"-e\", q($x = \"a\" x (300 << 20))) == 0 ? 0 : 1)'",
    ),
    (
        "memory with another environment",
        "ohhh",
        Script,
        "env -i $(command -v perl) -e '$x = \"a\" x (300 << 20)'",
    ),
    ("more memory allowed", "ohhh", Script, "ulimit -d unlimited"),
    ("large file", "ohhh", Script, "head -c 9000000 /dev/zero > $WORK/large"),
    (
        "large file by its end",
        "ohhh",
        Script,
        "perl -e 'open F, \">\", \"large2\"; truncate(F, 9 << 20) or exit 1'",
    ),
    ("large file by a hole", "ohhh", Script, "dd if=/dev/zero of=$WORK/large3 bs=1 count=1 seek=9M"),
    ("larger files allowed", "ohhh", Script, "ulimit -f unlimited"),
    (
        "many files",
        "ohhh",
        Script,
        "perl -e 'for (1 .. 300) { open($f[$_], \"<\", \"/dev/null\") or exit 1 }'",
    ),
    (
        "many files by copies",
        "ohhh",
        Script,
        "perl -e 'for (1 .. 300) { open($f[$_], \">&\", \\*STDOUT) or exit 1 }'",
    ),
    ("more files allowed", "ohhh", Script, "ulimit -n 400"),
    ("limits of the daemon", "-hhh", Script, "prlimit --pid $DPID --nofile=64:64"),
    (
        "leave the group",
        "-hhh",
        Script,
        "echo 0 > /sys/fs/cgroup/cgroup.procs || echo 0 > /sys/fs/cgroup/unified/cgroup.procs",
    ),
    (
        "own namespace, leave the group",
        "-hhh",
        Script,
        "mkdir -p $WORK/cg; unshare -UrmC sh -c 'mount -t cgroup2 none $WORK/cg && cd $WORK/cg && echo 0 > ../cgroup.procs'",
    ),
    (
        "own namespace, bounds of the group",
        "-hhh",
        Script,
        "mkdir -p $WORK/cg; unshare -UrmC sh -c 'mount -t cgroup2 none $WORK/cg && echo max > $WORK/cg/memory.max'",
    ),
    // Sockets.
    (
        "as the operator",
        "ohhh",
        Script,
        "env -u LANYARD_SESSION -u LANYARD_TOKEN -u LANYARD_URL LANYARD_NO_START=1 $L --data-dir $DATA ls",
    ),
    (
        "socket of the daemon",
        "ohhh",
        Script,
        "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => \"$ENV{DATA}/lanyard.sock\") or exit 1'",
    ),
    (
        "socket of the shim",
        "ohhh",
        Script,
        "cd $DATA/runs/*/ && perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => \"sock\") or exit 1'",
    ),
    ("variable of the ssh agent", "ohhh", Script, "test -n \"$SSH_AUTH_SOCK\""),
    (
        "abstract socket",
        "oooh",
        Script,
        "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => \"\\0$ENV{NAME}\") or exit 1'",
    ),
    (
        "port of another program",
        "oooh",
        Script,
        "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(\"127.0.0.1:$ENV{TPORT}\") or exit 1'",
    ),
];

/// The script that tries all that `column` has an outcome for.
pub(super) fn script(column: usize) -> String {
    let mut lines = vec!["cd $WORK".to_owned()];
    for (name, outcome, _, way) in WAYS {
        if outcome.as_bytes()[column] == b'-' {
            continue;
        }
        let quoted = way.replace('\'', "'\\''");
        lines.push(format!(
            "if timeout 20 sh -c '{quoted}' >/dev/null 2>&1 </dev/null; then echo 'yes|{name}'; else echo 'no|{name}'; fi"
        ));
    }
    lines.push("echo done\n".into());
    lines.join("\n")
}

/// Whether a way led out, by what the script printed and what lies on the machine.
pub(super) fn led_out(machine: &SmallMachine, printed: &str, name: &str, proof: Proof) -> bool {
    let place = |name: &str| {
        if name == "CONF" {
            return machine.daemon.config();
        }
        match name.strip_prefix("DATA/") {
            Some(rest) => machine.daemon.home().join(rest),
            None => machine.path(&name.replace("ID", &machine.id())),
        }
    };
    match proof {
        Script => printed.lines().any(|line| line == format!("yes|{name}")),
        File(path) => place(path).symlink_metadata().is_ok(),
        Word(path) => std::fs::read_to_string(place(path)).is_ok_and(|text| text.contains("evil")),
    }
}
