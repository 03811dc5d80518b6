//! Whether all work is halted, as every part of the daemon sees it.

use parking_lot::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use lanyard_api::types::HaltLifted;
use lanyard_core::Timestamp;
use serde::{Deserialize, Serialize};

/// That everything is halted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Halted {
    #[serde(rename = "halted")]
    pub(crate) is: bool,
    pub(crate) reason: Option<String>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) by: Option<String>,
    /// The end of the last halt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lifted: Option<HaltLifted>,
}

/// The halt as all parts of the daemon see it. The journal's copy is read at the start and written first.
#[derive(Debug, Default)]
pub(crate) struct Halting {
    is: AtomicBool,
    how: RwLock<Halted>,
}

impl Halting {
    pub(crate) fn is_on(&self) -> bool {
        self.is.load(Ordering::Acquire)
    }

    pub(crate) fn how(&self) -> Halted {
        self.how.read().clone()
    }

    pub(crate) fn set(&self, how: Halted) {
        let is = how.is;
        *self.how.write() = how;
        self.is.store(is, Ordering::Release);
    }
}
