//! The end of a cancelled turn: agents confirm it while their commands run on. The log learns of it when the processes
//! of the turn are gone.

use std::io;

use lanyard_core::session::{EndedProcess, Receipt, Session, Signal, unstoppable};
use lanyard_core::{SessionId, TurnId};
use tokio::task::JoinError;
use tokio::time::{Duration, Instant};

use super::Runner;
use super::act::end_of;
use super::end::process_of;
use crate::agents::driver::TurnEnd;
use crate::runs::{EndedWork, Whose, Work};

/// The processes of a turn were ended.
#[derive(Debug)]
pub(super) struct Cleared {
    /// The place in the output where the agent told the end.
    at: u64,
    /// A subagent's session and turn; nothing for the agent's own.
    child: Option<(SessionId, Option<TurnId>)>,
    end: TurnEnd,
    work: io::Result<EndedWork>,
}

impl Runner {
    /// Remembers when a turn began, also for the daemon that comes after.
    pub(super) fn mark_turn(&mut self, turn: TurnId) {
        let began = self.shared.runs.begin_turn(&self.run.to_string(), &turn.to_string());
        if let Err(error) = &began {
            tracing::warn!(run = %self.run, %error, "the beginning of a turn was not written down");
        }
        self.began = began.ok();
    }

    /// The agent says that its turn is over.
    pub(super) async fn finished(&mut self, at: u64, turn: Option<TurnId>, end: TurnEnd) {
        let once = self.runs_once();
        let running = self.turn.as_mut().filter(|running| turn.is_none_or(|turn| turn == running.id));
        let Some(running) = running.filter(|running| !running.clearing) else {
            return tracing::debug!(run = %self.run, "the end of a turn that does not run");
        };
        if running.cancel.is_none() {
            return self.turn_over(at, end, Receipt::default());
        }
        if once {
            // Its processes are being ended, and the end of the last one is the end of the turn.
            return;
        }
        running.clearing = true;
        let Some(since) = self.began else {
            return self.end_run("nobody knows which processes belong to its turn").await;
        };
        let others = self.children.iter().filter(|(_, mirror)| !mirror.done);
        let others = others.map(|(native, _)| native.clone()).collect();
        self.clear(at, None, end, Work { since, whose: Whose::Agent { others } });
    }

    /// A subagent whose end was ordered came to rest.
    pub(super) fn clear_child(
        &mut self,
        at: u64,
        native: &str,
        child: (SessionId, Option<TurnId>),
        end: TurnEnd,
    ) {
        // It is no older than the turn it is part of.
        let since = self.began.unwrap_or(0);
        let whose = Whose::Subagent { native: native.to_owned() };
        self.clear(at, Some(child), end, Work { since, whose });
    }

    fn clear(&mut self, at: u64, child: Option<(SessionId, Option<TurnId>)>, end: TurnEnd, work: Work) {
        let (runs, run) = (self.shared.runs.clone(), self.run.to_string());
        let grace = Duration::from_millis(self.settings.kill_grace_ms);
        self.clearing.spawn(async move {
            let work = runs.end_work(&run, work, grace).await;
            Cleared { at, child, end, work }
        });
    }

    pub(super) async fn cleared(&mut self, cleared: Result<Cleared, JoinError>) {
        let cleared = match cleared {
            Ok(cleared) => cleared,
            Err(error) => {
                tracing::error!(run = %self.run, %error, "the processes of a turn are lost from sight");
                return self.end_run("what is left of a turn cannot be ended").await;
            }
        };
        let Cleared { at, child, end, work } = cleared;
        let receipt = match work {
            Ok(work) => receipt(&work),
            // Without a folder the run is over, and nothing of it lives.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Receipt::default(),
            Err(error) => {
                tracing::error!(run = %self.run, %error, "the processes of a turn could not be ended");
                return self.end_run("what is left of a turn cannot be ended").await;
            }
        };
        match child {
            Some((session, turn)) => self.pen.signal(session, end_of(turn, end, receipt), at),
            None => self.turn_over(at, end, receipt),
        }
    }

    /// The turn is over, and nothing of it lives but what the receipt says.
    pub(super) fn turn_over(&mut self, at: u64, end: TurnEnd, receipt: Receipt) {
        let Some(running) = self.turn.take() else { return };
        self.idle_since = Instant::now();
        if !running.over {
            let untouched = receipt.processes.is_empty() && receipt.left.is_empty();
            let signal = match self.recognised(end) {
                TurnEnd::Limited(limit) if untouched && running.cancel.is_none() => {
                    self.limited(running.id, &limit)
                }
                end @ (TurnEnd::Done(_)
                | TurnEnd::Noted(..)
                | TurnEnd::Cancelled
                | TurnEnd::Limit(_)
                | TurnEnd::Failed(_)
                | TurnEnd::Limited(_)) => end_of(Some(running.id), end, receipt),
            };
            self.pen.signal(self.session, signal, at);
        }
        self.ended_turn = Some(running.id);
    }

    /// Asks the agent to end the turn of a subagent, or says that it has no way to.
    pub(super) async fn end_child(&mut self, native: &str, held: &Session, turn: TurnId) {
        if let Some(harness) = self.settings.subagents().hook {
            // Its calls are refused, which is all that can be done.
            if held.hears {
                return;
            }
            let why = unstoppable("the agent", Some(self.session), harness).to_string();
            return self.shared.note(held.id, Signal::EndBlocked { why }).await;
        }
        if let Some(mirror) = self.children.get_mut(native) {
            mirror.cancelled = true;
        }
        self.say(|driver, out| driver.cancel(turn, Some(native), out));
    }
}

fn receipt(work: &EndedWork) -> Receipt {
    let named = |(pid, name): &(u32, String)| EndedProcess { pid: *pid, name: name.clone(), by: None };
    Receipt {
        tried: Vec::new(),
        processes: work.ended.iter().map(process_of).collect(),
        left: work.left.iter().map(named).collect(),
        kept: work.kept.iter().map(named).collect(),
    }
}
