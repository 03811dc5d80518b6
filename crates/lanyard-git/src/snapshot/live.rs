//! The git processes that run now, so that a daemon that ends takes them along: one that hangs on a FIFO never ends
//! by itself.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io;
use std::process::{Child, ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};

static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A process that may run. It is forgotten in the same step in which it is reaped: its number may be another's then.
#[derive(Debug)]
pub(super) struct Living(Option<i32>);

impl Living {
    pub(super) fn new(child: &Child) -> Self {
        let group = i32::try_from(child.id()).ok();
        if let Some(group) = group {
            GROUPS.lock().insert(group);
        }
        Self(group)
    }

    /// How the process ended, if it has.
    pub(super) fn try_wait(&mut self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        let mut groups = GROUPS.lock();
        let ended = child.try_wait();
        if let Some(group) = self.0.take_if(|_| matches!(ended, Ok(Some(_)))) {
            groups.remove(&group);
        }
        ended
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            GROUPS.lock().remove(&group);
        }
    }
}

/// Ends all of them. Called once nobody waits for their answers.
pub fn end_all() {
    let groups = std::mem::take(&mut *GROUPS.lock());
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}
