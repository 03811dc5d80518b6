//! Every way out of [`super::ways`], at every level, by root and by a plain user.

use serde_json::json;

use super::kit::{RunBy, SmallMachine};
use super::ways::{WAYS, led_out, script};

/// Files that can be read where the machine's folder is not in `/tmp`, where a plain user's may have to be.
const READABLE: [&str; 2] = ["home file", "outside file"];

/// Tries all ways of a column and compares each with its outcome.
fn try_all(column: usize, settings: &str, user: RunBy) {
    let machine = SmallMachine::new(settings, user);
    let session = machine.session(&json!({}));
    let printed = machine.run(&session, &script(column));
    assert!(printed.ends_with("done\n"), "{printed}\n{:#}", machine.show(&session));
    let mut wrong = Vec::new();
    for (name, outcome, proof, _) in WAYS {
        let expected = match outcome.as_bytes()[column] {
            b'o' => true,
            b'h' => false,
            _ => continue,
        };
        if user == RunBy::Plain && READABLE.contains(&name) {
            continue;
        }
        let out = led_out(&machine, &printed, name, proof);
        if out != expected {
            wrong.push(format!("{name}: {}", if out { "got out" } else { "was held" }));
        }
    }
    for shared in ["/tmp", "/var/tmp", "/dev/shm"] {
        let _ = std::fs::remove_file(format!("{shared}/{}-evil", machine.id()));
    }
    assert!(wrong.is_empty(), "{wrong:#?}\n{printed}");
}

/// Held by limits of processes, which every machine has.
macro_rules! bounded {
    ($settings:literal) => {
        concat!($settings, "bounds = { memory_mib = 256, open_files = 200, file_mib = 8 }\n")
    };
}

const WORKSPACE: &str = bounded!("sandbox = \"workspace\"\n");
const STRICT: &str = bounded!("sandbox = \"strict\"\n");
const GATEWAY: &str = bounded!("sandbox = \"workspace\"\nnetwork = \"gateway\"\n");

/// FND-K3: what the table holds is not held by anything else.
#[test]
fn fnd_k3_without_a_sandbox_every_way_leads_out() {
    try_all(0, "", RunBy::Same);
}

/// FND-K3.
#[test]
fn fnd_k3_no_way_leads_out_of_a_workspace() {
    try_all(1, WORKSPACE, RunBy::Same);
}

/// FND-K3.
#[test]
fn fnd_k3_no_way_leads_out_of_strict() {
    try_all(2, STRICT, RunBy::Same);
}

/// FND-K3.
#[test]
fn fnd_k3_no_way_leads_past_the_gateway() {
    try_all(3, GATEWAY, RunBy::Same);
}

/// FND-K3: a plain user has no more ways out than root.
#[test]
fn fnd_k3_no_way_leads_a_plain_user_out() {
    if !rustix::process::geteuid().is_root() {
        // The tests above were run as one.
        return;
    }
    for (column, settings) in [(1, WORKSPACE), (2, STRICT), (3, GATEWAY)] {
        try_all(column, settings, RunBy::Plain);
    }
}
