//! Streams that are open, by token: one caller cannot take all the room there is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lanyard_core::{RunId, TokenId};

use crate::auth::Caller;

/// Streams one token may have open. A dashboard has two per tab, a wall of screens some dozen. The operator's own token,
/// which is in the data folder, is bounded by the connections there are.
pub(crate) const STREAMS_PER_TOKEN_MAX: usize = 256;

/// Whose streams they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Token(TokenId),
    Run(RunId),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    open: Arc<Mutex<HashMap<Holder, usize>>>,
}

/// A place among the streams of a token, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    held: Option<(Slots, Holder)>,
}

impl Slots {
    /// A place for one more stream; nothing when the token has as many as it may.
    pub(super) fn take(&self, caller: &Caller) -> Option<StreamSlot> {
        let holder = match (caller.token, caller.run) {
            (Some(token), _) => Holder::Token(token),
            (None, Some(run)) => Holder::Run(run),
            (None, None) => return Some(StreamSlot { held: None }),
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let streams = open.entry(holder).or_default();
        if *streams >= STREAMS_PER_TOKEN_MAX {
            return None;
        }
        *streams += 1;
        drop(open);
        Some(StreamSlot { held: Some((self.clone(), holder)) })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let Some((slots, holder)) = self.held.take() else { return };
        let mut open = slots.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(streams) = open.get_mut(&holder) {
            *streams = streams.saturating_sub(1);
            if *streams == 0 {
                open.remove(&holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lanyard_core::Actor;

    use super::*;

    /// FND-K13.
    #[test]
    fn fnd_k13_a_token_has_a_bounded_number_of_streams() {
        let slots = Slots::default();
        let caller = |token| Caller {
            actor: Actor::operator("browser"),
            session: None,
            token,
            run: None,
            spent: false,
        };
        let (one, other) = (caller(Some(TokenId::from_u128(1))), caller(Some(TokenId::from_u128(2))));
        let mut held: Vec<_> = (0..STREAMS_PER_TOKEN_MAX).map(|_| slots.take(&one).unwrap()).collect();
        assert!(slots.take(&one).is_none());
        assert!(slots.take(&other).is_some(), "another token has its own");
        held.pop();
        assert!(slots.take(&one).is_some());
        drop(held);
        assert!(slots.open.lock().unwrap().is_empty());
        let operator: Vec<_> = (0..=STREAMS_PER_TOKEN_MAX).map(|_| slots.take(&caller(None))).collect();
        assert!(operator.iter().all(Option::is_some));
    }
}
