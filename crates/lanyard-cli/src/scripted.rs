//! An agent without a model: a real process that speaks the Agent Client Protocol on stdin and stdout and does what the
//! script in the prompt says, misdeeds included. The demo, and what drivers are tested with. `docs/scripted-agent.md`
//! has all of it.

mod agent;
mod children;
mod choices;
mod client_tools;
mod demo;
mod inbox;
mod mcp;
mod misbehave;
mod parts;
mod script;
mod scripts;
pub(crate) mod server;
mod state;
mod steps;
mod tools;
mod turn;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use self::agent::Agent;
pub(crate) use self::choices::Offers;
use self::state::Store;

/// How long turns may take to end when the client has gone.
const END_GRACE: Duration = Duration::from_secs(1);
/// Between two looks at them.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How the process behaves.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a misbehaviour of its own that can be combined")]
pub(crate) struct Options {
    /// Where conversations are kept.
    pub(crate) state: PathBuf,
    pub(crate) refuse_resume: bool,
    pub(crate) resume_empty: bool,
    pub(crate) late_replay: bool,
    pub(crate) no_load: bool,
    pub(crate) ignore_eof: bool,
    pub(crate) ignore_term: bool,
    pub(crate) bad_handshake: Option<BadHandshake>,
    pub(crate) silent: bool,
    /// Take images in prompts.
    pub(crate) images: bool,
    pub(crate) idle_cancel_poisons: bool,
    pub(crate) cancel_waits_for_permission: bool,
    /// A step in place of the demo.
    pub(crate) otherwise: Option<String>,
    /// A folder of scripts, each for one prompt without steps.
    pub(crate) scripts: Option<PathBuf>,
    pub(crate) start_delay: Duration,
    pub(crate) offers: Offers,
}

/// What `initialize` is answered with: an unknown version, or a result of the wrong shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BadHandshake {
    Version,
    Garbage,
}

/// Serves the client on stdin and stdout until it goes.
pub(crate) fn serve(options: Options) -> std::io::Result<()> {
    // Only to catch signals with; everything else is threads.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let store = Store::open(options.state.clone())?;
    let agent = Arc::new(Agent::new(options, store, runtime.handle().clone()));
    if agent.options.ignore_term {
        misbehave::ignore_term(&agent);
    }
    std::thread::sleep(agent.options.start_delay);
    let mut input = std::io::stdin().lock();
    while let Some(incoming) = wire::next(&mut input) {
        agent.hear(incoming);
    }
    if agent.options.ignore_eof {
        loop {
            std::thread::park();
        }
    }
    end(&agent);
    // The memory of threads that hang goes with the process, not before it.
    std::process::exit(0)
}

/// Gives turns the time to end what they started. Turns that hang are left behind.
fn end(agent: &Agent) {
    let mut left = END_GRACE;
    while agent.busy.load(Ordering::Relaxed) > 0 && !left.is_zero() {
        agent.cancel_all();
        std::thread::sleep(LOOK_EVERY);
        left = left.saturating_sub(LOOK_EVERY);
    }
}
