//! Where the changes of records end. Readers are woken, not fed: each reads the store from its own position.

use tokio::sync::watch;

use crate::hub::Hub;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordsHead {
    /// The position of the last change that was committed by this daemon.
    last: u64,
    /// The daemon ends.
    pub closing: bool,
}

impl Hub {
    /// Wakes those who follow records. Called by writers; never waits for a reader.
    pub fn note_records(&self, last: u64) {
        self.records.send_if_modified(|head| {
            let newer = last > head.last;
            head.last = head.last.max(last);
            newer
        });
    }

    pub fn records(&self) -> watch::Receiver<RecordsHead> {
        self.records.subscribe()
    }
}
