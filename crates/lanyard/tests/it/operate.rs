//! Agents as their operators meet them: which there are, whether one works, a turn watched, a question answered, the
//! way back to an agent and to a workspace. The agent is `lanyard scripted-agent`, a real process.

mod checks;
mod frictions;
mod gates;
mod reading;
mod resuming;
mod stage;
mod stopped;
mod turns;
mod workspace;

pub(crate) use stage::Stage;
