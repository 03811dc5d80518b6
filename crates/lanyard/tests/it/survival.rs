//! Agents outlive the daemon. The real daemon is ended with SIGKILL at each step of a turn, its shims are, both are; a
//! new daemon goes on where the last one was, and the log reads as if nothing had happened. What cannot be gone on with
//! is ended, and nothing of it is left.
//!
//! `LANYARD_SURVIVAL_ROUNDS=N` asks for N kills at moments of chance, `LANYARD_SURVIVAL_SEED=N` repeats them.
//! `LANYARD_COMMAND_KILLS=N` does the same for agents that are run once per turn.

mod anytime;
mod away;
mod clients;
mod commands;
mod conversations;
mod inbox;
mod kit;
mod places;
mod shims;
mod story;
mod strays;
