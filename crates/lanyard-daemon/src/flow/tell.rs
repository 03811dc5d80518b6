//! What people are told of a flow beside its log: that it waits for one of them, or that it came to an end nobody asked for.
//! Looked at again and again; what is told already is not told twice.

use lanyard_core::ActorKind;
use lanyard_core::flow::{FlowGate, FlowState};
use lanyard_core::notification::{NewNotification, wanted_of_end, wanted_of_gate};

use crate::flow::driver::Driver;

/// What was told, as far as this daemon knows.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The event up to which was looked.
    seq: u64,
    key: Option<String>,
}

impl Driver {
    pub(super) async fn tell_people(&mut self) {
        if self.told.seq == self.flow.seq {
            return;
        }
        let wanted = self.wanted();
        let key = wanted.as_ref().map(NewNotification::dedupe_key);
        let over: Vec<String> =
            self.is_over().into_iter().filter(|over| Some(over) != key.as_ref()).collect();
        let raise = wanted.filter(|_| key != self.told.key);
        let told = self.tools.notifications.aside(move |all| {
            for key in over {
                all.end(&key, Some("it is over"), None)?;
            }
            match raise {
                Some(new) => all.raise(new).map(drop),
                None => Ok(()),
            }
        });
        match told.await {
            Ok(()) => self.told = Told { seq: self.flow.seq, key },
            // Tried again with the next look.
            Err(error) => tracing::warn!(flow = %self.flow.id, %error, "people could not be told of a flow"),
        }
    }

    fn wanted(&self) -> Option<NewNotification> {
        let flow = &self.flow;
        match &flow.gate {
            _ if flow.state == FlowState::Aborted => {
                // Who ended it knows.
                let by_person = flow.ended_by.as_ref().is_some_and(|by| by.kind == ActorKind::Operator);
                (!by_person).then(|| wanted_of_end(flow))
            }
            Some(gate) if gate.is_open() && !flow.state.is_ended() => Some(wanted_of_gate(flow, gate)),
            Some(_) | None => None,
        }
    }

    /// Keys of what may have been told and is over.
    fn is_over(&self) -> Vec<String> {
        let gate = self.flow.gate.as_ref().filter(|gate| !gate.is_open() || self.flow.state.is_ended());
        let of_gate = |gate: &FlowGate| wanted_of_gate(&self.flow, gate).dedupe_key();
        let of_end = wanted_of_end(&self.flow).dedupe_key();
        gate.map(of_gate).into_iter().chain(self.told.key.clone()).chain([of_end]).collect()
    }
}
