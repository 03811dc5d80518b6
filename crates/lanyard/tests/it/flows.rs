//! Flows under a real daemon with real agents: a plan is worked through, a person is asked once, and nothing is done twice,
//! whenever the daemon dies.

mod approvals;
mod bad;
mod checks;
mod ends;
mod gates;
mod kills;
mod kit;
mod review;
mod session;
mod timeouts;
mod told;
mod whole;
