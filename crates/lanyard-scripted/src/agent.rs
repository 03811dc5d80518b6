//! An agent without a model: a real process that speaks the Agent Client Protocol on stdin and stdout and does what the
//! script in the prompt says, misdeeds included. The demo, and what drivers are tested with. `docs/scripted-agent.md`
//! has all of it.

mod children;
mod choices;
mod client_tools;
mod connection;
mod demo;
mod inbox;
mod mcp;
mod misbehave;
mod parts;
mod script;
mod scripts;
mod state;
mod steps;
mod tools;
mod turn;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub use self::choices::Offers;
use self::connection::Agent;
use self::state::Store;

/// How long turns may take to end when the client has gone.
const END_GRACE: Duration = Duration::from_secs(1);
/// Between two looks at them.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How the process behaves.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a misbehaviour of its own that can be combined")]
pub struct ScriptedOptions {
    /// Where conversations are kept.
    pub state: PathBuf,
    pub refuse_resume: bool,
    pub resume_empty: bool,
    pub late_replay: bool,
    pub no_load: bool,
    pub ignore_eof: bool,
    pub ignore_term: bool,
    pub bad_handshake: Option<BadHandshake>,
    pub silent: bool,
    /// Take images in prompts.
    pub images: bool,
    pub idle_cancel_poisons: bool,
    pub cancel_waits_for_permission: bool,
    /// A step in place of the demo.
    pub otherwise: Option<String>,
    /// A folder of scripts, each for one prompt without steps.
    pub scripts: Option<PathBuf>,
    pub start_delay: Duration,
    pub offers: Offers,
}

/// What `initialize` is answered with: an unknown version, or a result of the wrong shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BadHandshake {
    Version,
    Garbage,
}

/// Serves the client on stdin and stdout until it goes.
pub fn serve(options: ScriptedOptions) -> std::io::Result<()> {
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
