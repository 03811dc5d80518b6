//! The environment of programs that the daemon starts for others: MCP servers and the commands of agents.

use std::ffi::{OsStr, OsString};

use parking_lot::RwLock;

/// Variables that a cleared environment keeps.
pub const KEPT: [&str; 6] = ["HOME", "PATH", "LANG", "LC_ALL", "TERM", "USER"];
/// Lanyard's own variables: where its data is, and whose token is used.
const OWN_PREFIX: &str = "LANYARD_";
/// Variables of others that carry credentials of the daemon.
const CREDENTIALS: [&str; 4] = [
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
];

/// Variables that the config names as secrets of the daemon.
static SECRETS: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Remembers which variables hold secrets of the daemon. A name that was secret once stays so.
pub fn keep_private(secrets: Vec<String>) {
    let mut kept = SECRETS.write();
    for name in secrets {
        if !kept.contains(&name) {
            kept.push(name);
        }
    }
}

/// The variables of the daemon that another program may have: all but its own and its secrets, or a few harmless ones.
#[must_use]
pub fn inherited(clear: bool) -> Vec<(OsString, OsString)> {
    let secrets = SECRETS.read();
    std::env::vars_os().filter(|(name, _)| is_passed_on(name, clear, &secrets)).collect()
}

fn is_passed_on(name: &OsStr, clear: bool, secrets: &[String]) -> bool {
    // A name that is not UTF-8 is none of ours.
    let Some(name) = name.to_str() else { return !clear };
    if clear {
        return KEPT.contains(&name);
    }
    let private = name.starts_with(OWN_PREFIX)
        || CREDENTIALS.contains(&name)
        || secrets.iter().any(|secret| secret == name);
    !private
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FND-K13.
    #[test]
    fn fnd_k13_mcp_env_has_nothing_of_the_daemons_own() {
        let secrets = ["HOOK_SECRET".to_owned()];
        let passed = |name: &str, clear| is_passed_on(OsStr::new(name), clear, &secrets);
        for name in ["LANYARD_DATA_DIR", "LANYARD_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS", "HOOK_SECRET"] {
            assert!(!passed(name, false), "{name}");
            assert!(!passed(name, true), "{name}");
        }
        assert!(passed("PATH", true) && passed("PATH", false));
        assert!(passed("EDITOR", false) && !passed("EDITOR", true));
    }
}
