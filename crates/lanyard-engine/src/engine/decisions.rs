//! What was decided about a request, for the daemon's own log and for the counts. The names of the fields do not
//! change: whoever searches the log finds them in docs/metrics.md.

use lanyard_core::ActorKind;
use lanyard_core::continuity::Counter;
use lanyard_core::session::{Command, Refusal};

use crate::engine::worker::Worker;
use crate::engine::{Ask, AskError, Reply, Request};

impl Worker {
    pub(super) fn note_decision(&self, request: &Request, result: &Result<Reply, AskError>) {
        // What Lanyard asks of itself under a key, it asks as often as it takes.
        if request.actor.kind == ActorKind::System {
            return;
        }
        match result {
            Ok(reply) if reply.repeated => self.note_repeat(request, reply),
            Err(AskError::KeyConflict) => Self::note_key(request, "conflict"),
            Err(AskError::Refused(Refusal::ClientTurnConflict { turn })) => {
                tracing::info!(decision = "conflict", of = "turn", %turn, actor = request.actor.name, "idempotency");
            }
            Err(AskError::Refused(Refusal::TurnUncertain { turn })) => {
                tracing::info!(decision = "uncertain", of = "turn", %turn, actor = request.actor.name, "idempotency");
            }
            Err(AskError::Refused(
                refusal @ (Refusal::WriterHeld { .. }
                | Refusal::WriterSuperseded { .. }
                | Refusal::TakeoverPending { .. }
                | Refusal::TakeoverDenied { .. }),
            )) => {
                let (decision, actor) = (refusal.code(), &request.actor.name);
                tracing::info!(decision, session = %session_of(request), actor, "lease");
            }
            Ok(_) | Err(_) => {}
        }
    }

    fn note_repeat(&self, request: &Request, reply: &Reply) {
        let is_turn = match &request.ask {
            Ask::Send { .. } => true,
            Ask::Do { command, .. } => matches!(command, Command::StartTurn { .. }),
            Ask::Create { .. }
            | Ask::Import { .. }
            | Ask::Fork { .. }
            | Ask::Link { .. }
            | Ask::Tell { .. }
            | Ask::Report { .. }
            | Ask::CallBegins { .. }
            | Ask::CallEnds { .. }
            | Ask::CallPassed { .. }
            | Ask::Measure { .. }
            | Ask::Nudge { .. } => false,
        };
        let counter = if is_turn { Counter::DuplicateTurns } else { Counter::DuplicateRequests };
        self.continuity.count(counter, self.draft.now);
        let (of, session) = (if is_turn { "turn" } else { "request" }, reply.outcome.session);
        let turn = reply.outcome.turn.map(|turn| turn.to_string());
        tracing::info!(decision = "duplicate", of, %session, turn, actor = request.actor.name, "idempotency");
    }

    fn note_key(request: &Request, decision: &str) {
        tracing::info!(decision, of = "request", actor = request.actor.name, "idempotency");
    }
}

fn session_of(request: &Request) -> String {
    match &request.ask {
        Ask::Create { id, .. } | Ask::Import { id, .. } | Ask::Fork { id, .. } => id.to_string(),
        Ask::Link { child, .. } => child.to_string(),
        Ask::Do { session, .. }
        | Ask::Send { session, .. }
        | Ask::Tell { session, .. }
        | Ask::Report { session, .. }
        | Ask::CallBegins { session, .. }
        | Ask::CallEnds { session, .. }
        | Ask::CallPassed { session, .. }
        | Ask::Measure { session }
        | Ask::Nudge { session } => session.to_string(),
    }
}
