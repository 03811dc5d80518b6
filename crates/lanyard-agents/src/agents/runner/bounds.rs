//! What a run met of its bounds. A control group counts it; limits of processes leave no trace but what the process says.

use lanyard_core::session::{BoundHolder, BoundedResource, HeldBound, Signal, bound_met_in_words};
use signal_hook::consts::signal::{SIGKILL, SIGXFSZ};

use super::Runner;
use crate::runs::How;

impl Runner {
    /// Tells the log of bounds that the run has met since the last look. Asked at the end of a turn and of the run.
    pub(super) async fn tell_bounds_met(&mut self) {
        let held = self.held_bounds().await;
        for (what, times) in self.shared.runs.bounds_met(&self.run.to_string()) {
            let bound = held.iter().find(|bound| bound.what == what && bound.by == BoundHolder::Cgroup);
            if bound.is_some_and(|bound| bound.met < times) {
                let run = self.run;
                self.shared.note(self.session, Signal::BoundMet { run, what, times }).await;
            }
        }
    }

    /// The bound that an end of the agent's main process points at, in words behind the reason.
    pub(super) async fn bound_behind(&self, how: How) -> String {
        let what = match how {
            How::Signalled(SIGKILL) => BoundedResource::Memory,
            How::Signalled(SIGXFSZ) => BoundedResource::FileSize,
            How::Signalled(_) | How::Exited(_) | How::Lost => return String::new(),
        };
        let held = self.held_bounds().await;
        let Some(bound) = held.iter().find(|bound| bound.what == what) else { return String::new() };
        match what {
            BoundedResource::FileSize => {
                format!("; it wrote more than its bound of {} to a file", bound.limit)
            }
            BoundedResource::Memory
            | BoundedResource::Processes
            | BoundedResource::Cpu
            | BoundedResource::OpenFiles => match bound.met {
                0 => String::new(),
                times => format!("; {}", bound_met_in_words(what, &bound.limit, times)),
            },
        }
    }

    async fn held_bounds(&self) -> Vec<HeldBound> {
        let session = self.shared.session(self.session).await;
        let run = session.and_then(|session| session.run).filter(|run| run.id == self.run);
        run.and_then(|run| run.sandbox).map(|held| held.bounds).unwrap_or_default()
    }
}
