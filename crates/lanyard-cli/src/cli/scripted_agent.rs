//! `lanyard scripted-agent`: an agent without a model, for demos and for testing drivers.

use std::path::PathBuf;
use std::time::Duration;

use lanyard_scripted::agent::{BadHandshake, Offers, ScriptedOptions, serve};

use crate::failure::Failure;

const EXAMPLES: &str = "\
Speaks the Agent Client Protocol on stdin and stdout: a client starts it, as an agent named in the
config. Each line of a prompt that begins with `/` is a step, all others are words:
  /say hello · /think hm · /run ls · /ask May I? · /spawn helper /say hi · /wait 500 · /recall
and some misbehave: /hang · /die · /ignore-cancel · /malformed · /fork-away sleep 60
A prompt without steps shows a demo. docs/scripted-agent.md lists every step.

Examples:
  lanyard scripted-agent --state /tmp/scripted
  lanyard scripted-agent --resume-empty --idle-cancel-poisons
  lanyard scripted-agent < requests.jsonl";

/// Run an agent that follows a script, for demos and tests
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a misbehaviour of its own that can be combined")]
pub(super) struct ScriptedAgent {
    /// Where conversations are kept [default: a folder of the user's own]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Answer load and resume with an error
    #[arg(long)]
    refuse_resume: bool,
    /// Let load and resume succeed, but know nothing of the conversation
    #[arg(long)]
    resume_empty: bool,
    /// Replay a loaded conversation after the answer to load, not before
    #[arg(long)]
    late_replay: bool,
    /// Offer neither load nor resume
    #[arg(long)]
    no_load: bool,
    /// Live on when stdin ends
    #[arg(long)]
    ignore_eof: bool,
    /// Live on after SIGTERM
    #[arg(long)]
    ignore_term: bool,
    /// Answer initialize with an unknown version, or a wrong shape
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "version")]
    bad_handshake: Option<BadHandshake>,
    /// Read everything and never answer
    #[arg(long)]
    silent: bool,
    /// Take images and the content of files in prompts
    #[arg(long)]
    images: bool,
    /// After a cancel while idle, answer the next prompt as cancelled
    #[arg(long)]
    idle_cancel_poisons: bool,
    /// After a cancel, wait until an open permission request is answered
    #[arg(long)]
    cancel_waits_for_permission: bool,
    /// What to do on a prompt without steps, in place of the demo: one step, such as `/say noted`
    #[arg(long, value_name = "STEP")]
    otherwise: Option<String>,
    /// Take what to do on a prompt without steps from a folder: the first file by name, which is moved to `done` in it
    #[arg(long, value_name = "DIR")]
    scripts: Option<PathBuf>,
    /// Do nothing for so long at the start
    #[arg(long, value_name = "MS", default_value_t = 0)]
    start_delay: u64,
    #[command(flatten)]
    offers: Offers,
}

impl ScriptedAgent {
    /// Needs no data folder and no daemon, so it gets no context.
    pub(super) fn run(self) -> Result<(), Failure> {
        let state = self.state.unwrap_or_else(default_state);
        let options = ScriptedOptions {
            state: state.clone(),
            refuse_resume: self.refuse_resume,
            resume_empty: self.resume_empty,
            late_replay: self.late_replay,
            no_load: self.no_load,
            ignore_eof: self.ignore_eof,
            ignore_term: self.ignore_term,
            bad_handshake: self.bad_handshake,
            silent: self.silent,
            images: self.images,
            idle_cancel_poisons: self.idle_cancel_poisons,
            cancel_waits_for_permission: self.cancel_waits_for_permission,
            otherwise: self.otherwise,
            scripts: self.scripts,
            start_delay: Duration::from_millis(self.start_delay),
            offers: self.offers,
        };
        serve(options).map_err(|error| {
            let title = format!("cannot use the folder {}: {error}", state.display());
            Failure::local("state_unusable", title, "name another one with --state")
        })
    }
}

/// The user's own folder, since conversations may hold anything.
fn default_state() -> PathBuf {
    let own = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(folder) = own {
        return folder.join("lanyard/scripted-agent");
    }
    let user = rustix::process::getuid().as_raw();
    std::env::temp_dir().join(format!("lanyard-scripted-agent-{user}"))
}
