//! Whether all work is halted, as every part of the daemon sees it.

use parking_lot::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use lanyard_api::types::{HaltLifted, HaltState};
use lanyard_core::Timestamp;
use serde::{Deserialize, Serialize};

/// That everything is halted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Halted {
    #[serde(rename = "halted")]
    pub is: bool,
    pub reason: Option<String>,
    pub since: Option<Timestamp>,
    pub by: Option<String>,
    /// The end of the last halt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted: Option<HaltLifted>,
}

impl From<Halted> for HaltState {
    fn from(halted: Halted) -> Self {
        let Halted { is: halted, reason, since, by, lifted } = halted;
        Self { halted, reason, since, by, lifted }
    }
}

/// The halt as all parts of the daemon see it. The journal's copy is read at the start and written first.
#[derive(Debug, Default)]
pub struct Halting {
    is: AtomicBool,
    how: RwLock<Halted>,
}

impl Halting {
    pub fn is_on(&self) -> bool {
        self.is.load(Ordering::Acquire)
    }

    pub fn how(&self) -> Halted {
        self.how.read().clone()
    }

    pub fn set(&self, how: Halted) {
        let is = how.is;
        *self.how.write() = how;
        self.is.store(is, Ordering::Release);
    }
}
