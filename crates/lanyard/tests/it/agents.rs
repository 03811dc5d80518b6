//! Agents that obey, misbehave, crash and lie, as real processes under a real daemon: every time the log says truthfully
//! what became of them, and nothing of them is left.

mod attachments;
mod bad;
mod budgets;
mod calls;
mod cancel;
mod choices;
mod claude;
mod clear;
mod gates;
mod governance;
mod host_run;
mod hostile;
mod imports;
mod inbox;
mod kit;
mod limits;
mod messages;
mod misdeeds;
mod named;
mod offers;
mod once;
mod provider_limits;
mod resume;
mod stop;
mod turns;
