//! Named places where the crash suite kills the daemon. `LANYARD_FAILPOINT=name:n` ends the process with SIGKILL the
//! n-th time it comes to `name`; `name:n+us` lets it run on for that many microseconds first, to die in the middle.
//! Unset, a failpoint costs one look at a static.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

struct Armed {
    name: String,
    at: u64,
    delay: Duration,
    hits: AtomicU64,
}

static ARMED: OnceLock<Option<Armed>> = OnceLock::new();

/// Dies here if this is the place and the time.
pub(crate) fn hit(name: &'static str) {
    let Some(armed) = ARMED.get_or_init(from_env) else { return };
    if armed.name != name || armed.hits.fetch_add(1, Ordering::Relaxed) + 1 != armed.at {
        return;
    }
    if armed.delay.is_zero() {
        die();
    }
    let delay = armed.delay;
    std::thread::spawn(move || {
        std::thread::sleep(delay);
        die();
    });
}

fn die() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

fn from_env() -> Option<Armed> {
    let text = std::env::var("LANYARD_FAILPOINT").ok()?;
    let (name, when) = text.rsplit_once(':')?;
    let (at, delay) = when.split_once('+').unwrap_or((when, "0"));
    Some(Armed {
        name: name.to_owned(),
        at: at.parse().ok()?,
        delay: Duration::from_micros(delay.parse().ok()?),
        hits: AtomicU64::new(0),
    })
}
