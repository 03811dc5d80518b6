//! Whether this process works for an agent of Lanyard's, also where the agent's program withholds its environment from the
//! servers that it starts: Codex passes on HOME, LANG and PATH alone.

use lanyard_client::inside;

/// Processes above this one that are looked at.
const ANCESTORS_MAX: usize = 64;

/// The session that this process, or one above it, was started in.
pub(super) fn session() -> Option<String> {
    inside().or_else(above)
}

#[cfg(target_os = "linux")]
fn above() -> Option<String> {
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..ANCESTORS_MAX {
        // The first process, or one of another user: it is nobody's agent.
        if pid <= 1 {
            return None;
        }
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        if let Some(session) = named(&environment) {
            return Some(session);
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        pid = parent_of(&stat)?;
    }
    None
}

#[cfg(not(target_os = "linux"))]
const fn above() -> Option<String> {
    None
}

fn named(environment: &[u8]) -> Option<String> {
    let wanted = format!("{}=", lanyard_api::names::SESSION);
    let found =
        environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(wanted.as_bytes()))?;
    Some(String::from_utf8_lossy(found).into_owned()).filter(|session| !session.is_empty())
}

/// The parent in a line of `/proc/PID/stat`. The program's name before it may hold blanks and brackets.
fn parent_of(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_in_an_environment() {
        let environment = b"HOME=/home/ann\0LANYARD_SESSION=sess_x\0PATH=/bin\0";
        assert_eq!(named(environment).as_deref(), Some("sess_x"));
        assert_eq!(named(b"LANYARD_SESSION=\0X_LANYARD_SESSION=a\0"), None);
    }

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent_of("71 (node) S 70 71 71 0"), Some(70));
        assert_eq!(parent_of("71 (a) b (c d) R 9 71 71 0"), Some(9));
        assert_eq!(parent_of("broken"), None);
    }
}
