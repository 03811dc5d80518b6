//! Data as text for people. Pure: no stream, no clock; `now` is the daemon's and arrives as data.

pub(crate) mod approval;
pub(crate) mod card;
pub(crate) mod chain;
pub(crate) mod delegation;
pub(crate) mod event;
pub(crate) mod flow;
pub(crate) mod flow_card;
#[cfg(test)]
pub(crate) mod flow_fixture;
pub(crate) mod flow_gate;
pub(crate) mod flow_log;
pub(crate) mod gate_card;
pub(crate) mod ids;
pub(crate) mod log;
pub(crate) mod mail;
pub(crate) mod memory;
pub(crate) mod offer;
pub(crate) mod patch;
pub(crate) mod plan;
pub(crate) mod plan_board;
pub(crate) mod plan_steps;
pub(crate) mod session;
pub(crate) mod table;
pub(crate) mod task;
pub(crate) mod task_card;
pub(crate) mod task_log;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod tool;
pub(crate) mod transcript;
pub(crate) mod tree;
pub(crate) mod worker;
pub(crate) mod wrap;
