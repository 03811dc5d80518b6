//! The binary as its users meet it: real processes, real sockets, real files.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![allow(clippy::disallowed_methods, reason = "real processes are waited for in real time")]

mod acp;
mod agents;
mod agents_added;
mod api;
mod attach;
mod auth;
mod book;
mod bridge;
mod calls;
mod completions;
mod config;
mod crash;
mod dashboard;
mod directory;
mod documents;
mod families;
mod faults;
mod flow_cli;
mod flows;
mod gateway;
mod help;
mod hooks;
mod hostile;
mod memory;
mod mutations;
mod names;
mod notifications;
mod operate;
mod operator_mcp;
mod own;
mod receipts;
mod review;
mod sandbox;
mod scenario;
mod scripted;
mod search;
mod service;
mod shim;
mod starting;
mod storage;
mod stream;
mod subagents;
mod surface;
mod survival;
mod time;
mod tui;
mod turns;
mod wrap;
mod writer;

use lanyard_testkit as support;
