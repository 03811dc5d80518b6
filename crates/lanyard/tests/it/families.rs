//! Families of work under a real daemon with real agents: tasks are worked at, parents always hear, identity survives.
//! The daemon, the agents and their supervisors die at awkward moments.

mod cli;
mod kit;
mod life;
mod mail;
mod sim;
