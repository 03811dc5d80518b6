//! The task that keeps the index of texts up with the log: in steps, behind the commits, and with pauses while the log grows
//! fast. A kill between two steps loses nothing: the index knows its place.

use std::sync::Arc;
use std::time::Duration;

use lanyard_base::clock::Clock;
use lanyard_base::error_chain;
use lanyard_store::Store;
use tokio::time::Instant;

/// A text can be found this long after it was written, and a step later.
const TICK: Duration = Duration::from_millis(300);
/// When time comes from a file, a scenario should not wait for it.
const SCRIPTED_TICK: Duration = Duration::from_millis(20);
/// Events indexed in one step: some hundredths of a second.
const STEP_EVENTS: usize = 1_000;
/// Events that come in during a step by which the log counts as busy.
const BUSY_EVENTS: u64 = 100;
/// Pauses between steps while the log is busy, in steps: the index takes a quarter of one processor.
const BUSY_PAUSE: u32 = 3;
/// The pause after a step that failed.
const FAILED_PAUSE: Duration = Duration::from_secs(5);

/// Runs until the daemon ends.
pub async fn keep_up(store: Arc<dyn Store>, clock: Arc<Clock>) {
    let period = if clock.is_scripted() { SCRIPTED_TICK } else { TICK };
    let mut end = 0;
    loop {
        let (began, reading) = (Instant::now(), store.clone());
        let step = tokio::task::spawn_blocking(move || reading.index_some(STEP_EVENTS)).await;
        let pause = match step {
            Ok(Ok(state)) => {
                let grown = state.end.saturating_sub(std::mem::replace(&mut end, state.end));
                match (state.is_complete(), grown >= BUSY_EVENTS) {
                    (true, _) => period,
                    (false, true) => began.elapsed() * BUSY_PAUSE,
                    (false, false) => Duration::ZERO,
                }
            }
            Ok(Err(error)) => {
                tracing::warn!(
                    error = error_chain(&error),
                    "texts could not be indexed; searches miss the newest"
                );
                FAILED_PAUSE
            }
            Err(error) => {
                tracing::warn!(%error, "a step of the index ended early");
                FAILED_PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}
