//! The lock of a plan, so that one daemon of a user works at it. Blocks.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use lanyard_core::FlowId;
use lanyard_core::text::content_hash;

use crate::flow::{FlowError, bad};

/// Bytes of a lock file that are read.
const LOCK_BYTES_MAX: u64 = 4 * 1024;

/// A plan that no other daemon of this user works at. Held by the system, so that it is free when the daemon is gone,
/// however it went.
pub(super) struct PlanLock {
    _held: File,
}

impl PlanLock {
    pub(super) fn take(plan: &str, flow: FlowId, holder: &str) -> Result<Self, FlowError> {
        let failed = |error: std::io::Error| FlowError::Unavailable(format!("the plan's lock: {error}"));
        let folder = folder();
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        let path = folder.join(format!("{}.lock", content_hash(plan.as_bytes())));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        if let Err(error) = file.try_lock() {
            let mut who = String::new();
            let _ = (&mut file).take(LOCK_BYTES_MAX).read_to_string(&mut who);
            let who = if who.is_empty() { "another daemon".to_owned() } else { who };
            return match error {
                std::fs::TryLockError::WouldBlock => Err(bad(
                    "plan_locked",
                    format!("another flow is running this plan: {}", who.trim()),
                    "end that flow first, or wait for its end",
                )),
                std::fs::TryLockError::Error(error) => Err(failed(error)),
            };
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(format!("{flow} of daemon {holder}\n").as_bytes()));
        written.map_err(failed)?;
        Ok(Self { _held: file })
    }
}

/// The same for all daemons of a user.
fn folder() -> PathBuf {
    let of_user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_dir());
    let user = rustix::process::getuid().as_raw();
    of_user.unwrap_or_else(|| std::env::temp_dir().join(format!("lanyard-{user}"))).join("lanyard-plans")
}
