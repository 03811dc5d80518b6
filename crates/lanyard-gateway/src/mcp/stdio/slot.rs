//! The place of a process: started when it is needed, and started again, later each time, when it has ended.

use parking_lot::RwLock;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use lanyard_api::agents::settings::McpStdio;
use lanyard_api::annotate::json;
use lanyard_git::workspace_files;
use tokio::sync::Mutex;
use tokio::time::{Duration, Instant};

use super::link::Link;
use super::process::{InFlight, Process};
use crate::http_endpoint::Trouble;
use crate::mcp::translate;

/// How long a server may take to greet.
pub(super) const START_PATIENCE: Duration = Duration::from_mins(1);
/// How long to wait before a server that ended is started again; doubled each time.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// A server that ran this long is not one that keeps ending.
const CALM_AFTER: Duration = Duration::from_mins(1);

/// How a process is started.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) settings: McpStdio,
    pub(super) marker: Arc<str>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) is_shared: bool,
}

#[derive(Debug)]
pub(super) struct Slot {
    recipe: Recipe,
    live: RwLock<Option<Arc<Process>>>,
    starting: Mutex<Tries>,
    /// Starts after the first, of all slots of the server.
    restarts: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Tries {
    starts: u32,
    /// Starts in a row that did not last.
    short: u32,
    ended_at: Option<Instant>,
}

/// What is to be said to a new process.
#[derive(Debug, Clone, Copy)]
pub(super) enum Greet<'a> {
    /// The client's own greeting follows.
    Client,
    /// These are the parameters of the greeting.
    With(&'a str),
}

impl Slot {
    pub(super) fn new(recipe: Recipe, restarts: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self { recipe, live: RwLock::default(), starting: Mutex::default(), restarts })
    }

    pub(super) fn is_shared(&self) -> bool {
        self.recipe.is_shared
    }

    /// The process that runs now.
    pub(super) fn live(&self) -> Option<Arc<Process>> {
        let live = self.live.read();
        live.as_ref().filter(|process| process.is_alive()).cloned()
    }

    /// The process, started and greeted if need be.
    pub(super) async fn process(&self, link: &Arc<Link>, greet: Greet<'_>) -> Result<Arc<Process>, Trouble> {
        if let Some(process) = self.live() {
            joined(&process, link);
            return Ok(process);
        }
        // Others may be waiting for a start as well, each behind the other.
        match tokio::time::timeout(START_PATIENCE, self.started(link, greet)).await {
            Ok(process) => process,
            Err(_) => Err(Trouble::Slow(START_PATIENCE)),
        }
    }

    async fn started(&self, link: &Arc<Link>, greet: Greet<'_>) -> Result<Arc<Process>, Trouble> {
        let mut tries = self.starting.lock().await;
        if let Some(process) = self.live() {
            joined(&process, link);
            return Ok(process);
        }
        tries.note_end(self.last_end());
        tokio::time::sleep(tries.pause()).await;
        if tries.starts > 0 {
            self.restarts.fetch_add(1, Ordering::Relaxed);
        }
        tries.starts += 1;
        let Recipe { settings, marker, cwd, is_shared } = &self.recipe;
        let cwd = match cwd.as_deref() {
            Some(cwd) if workspace_files::is_folder(cwd).await => Some(cwd),
            Some(_) | None => None,
        };
        let started = Process::start(settings, marker, cwd, *is_shared);
        let process = match started {
            Ok(process) => process,
            Err(trouble) => {
                tries.failed(Instant::now());
                return Err(trouble);
            }
        };
        joined(&process, link);
        let mut starting = Starting(Some(process.clone()));
        if let Greet::With(params) = greet
            && let Err(trouble) = self.greet(&process, link, params).await
        {
            tries.failed(Instant::now());
            return Err(trouble);
        }
        starting.0 = None;
        *self.live.write() = Some(process.clone());
        Ok(process)
    }

    /// When the last process ended and how long it had run, if it has.
    fn last_end(&self) -> Option<(Duration, Instant)> {
        let process = self.live.write().take()?;
        let at = process.ended_at.get().copied().unwrap_or_else(Instant::now);
        Some((at.duration_since(process.started), at))
    }

    /// Greets in the client's place, with the words it greeted with itself.
    async fn greet(&self, process: &Arc<Process>, link: &Arc<Link>, params: &str) -> Result<(), Trouble> {
        let answer = exchange(process, "initialize", params).await?;
        let text = String::from_utf8_lossy(&answer);
        if translate::refuses_greeting(&text) {
            return discover(process, link, params).await;
        }
        let Some(result) = json::member(&text, "result") else {
            return Err(Trouble::Nonsense(format!("it refused the greeting: {text}")));
        };
        let _ = process.greeting.set(result.to_owned());
        process.send(Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)).await
    }

    /// Ends the process. Answers once it is gone.
    pub(super) async fn end(&self) {
        let process = self.live.write().take();
        if let Some(process) = process {
            process.end();
            process.over().await;
        }
    }
}

/// A process that is not greeted yet. Whoever waits for it may go away, and it with them.
struct Starting(Option<Arc<Process>>);

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(process) = self.0.take() {
            process.end();
        }
    }
}

fn joined(process: &Arc<Process>, link: &Arc<Link>) {
    let mut links = process.links.lock();
    if !links.iter().any(|held| std::ptr::eq(held.as_ptr(), Arc::as_ptr(link))) {
        links.push(Arc::downgrade(link));
    }
}

/// Asks a server without a greeting what it is; from then on its clients are introduced with each request.
pub(super) async fn discover(process: &Arc<Process>, link: &Arc<Link>, params: &str) -> Result<(), Trouble> {
    let modern = translate::Modern::of(params, crate::mcp::envelope::MODERN);
    let bare = r#"{"method":"server/discover","params":{}}"#;
    let dressed = modern.dress(bare).unwrap_or_else(|| bare.to_owned());
    let asked = json::member(&dressed, "params").unwrap_or("{}");
    let answer = exchange(process, "server/discover", asked).await?;
    let text = String::from_utf8_lossy(&answer);
    let Some(found) = json::member(&text, "result") else {
        return Err(Trouble::Nonsense(format!("it knows neither initialize nor server/discover: {text}")));
    };
    let _ = process.greeting.set(translate::greeting(found, None, "server"));
    if !link.is_modern {
        *link.dressed.write() = Some(Arc::new(modern));
    }
    Ok(())
}

/// A request of Lanyard's own.
pub(super) async fn exchange(process: &Arc<Process>, method: &str, params: &str) -> Result<Bytes, Trouble> {
    let key = format!("\"lanyard-{}\"", process.number());
    let mut waiting: InFlight = process.expect(key.clone(), None, &Weak::new(), None)?;
    let line = format!(r#"{{"jsonrpc":"2.0","id":{key},"method":"{method}","params":{params}}}"#);
    process.send(line.replace(['\n', '\r'], " ").into()).await?;
    match tokio::time::timeout(START_PATIENCE, &mut waiting.answer).await {
        Ok(answer) => waiting.outcome(answer),
        Err(_) => Err(Trouble::Slow(START_PATIENCE)),
    }
}

impl Tries {
    fn note_end(&mut self, ended: Option<(Duration, Instant)>) {
        let Some((ran, at)) = ended else { return };
        if ran >= CALM_AFTER {
            self.short = 0;
        }
        self.failed(at);
    }

    fn failed(&mut self, at: Instant) {
        self.short = self.short.saturating_add(1);
        self.ended_at = Some(at);
    }

    /// How long the next start has to wait.
    fn pause(&self) -> Duration {
        let waited = self.ended_at.map_or(Duration::MAX, |at| at.elapsed());
        pause_after(self.short).saturating_sub(waited)
    }
}

/// The first restart comes at once: most servers that end do so once.
fn pause_after(short: u32) -> Duration {
    let Some(doubled) = short.checked_sub(2) else { return Duration::ZERO };
    PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(doubled)).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_that_does_not_last_makes_the_next_wait_longer() {
        let pauses: Vec<u128> = (0..12).map(|short| pause_after(short).as_millis()).collect();
        assert_eq!(pauses, [0, 0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000]);
        assert_eq!(pause_after(u32::MAX), PAUSE_MAX);
        let mut tries = Tries { short: 7, ..Tries::default() };
        tries.note_end(Some((CALM_AFTER, Instant::now())));
        assert_eq!(tries.pause(), Duration::ZERO);
    }
}
