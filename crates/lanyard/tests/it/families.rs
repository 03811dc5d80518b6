//! Families of work under a real daemon with real agents: tasks are worked at, parents always hear, identity survives.
//! The daemon, the agents and their supervisors die at awkward moments.

mod after;
mod approvals;
mod awaiting;
mod bad;
mod cli;
mod comparisons;
mod external;
mod halting;
mod health;
mod identity;
mod kit;
mod life;
mod limits;
mod mail;
mod plan_end;
mod plans;
mod sim;
mod spawn;
mod talk;
mod worktrees;
