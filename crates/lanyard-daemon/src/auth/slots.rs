//! Streams that are open, by token: one caller cannot take all the room there is.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use lanyard_api::config::OPERATOR_STREAMS_MAX;
use lanyard_core::{RunId, TokenId};

use crate::auth::Caller;

/// Streams one token may have open. A dashboard has two per tab, a wall of screens some dozen.
pub(crate) const STREAMS_PER_TOKEN_MAX: usize = 256;

/// Whose streams they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Operator,
    Token(TokenId),
    Run(RunId),
}

#[derive(Debug, Clone)]
pub(crate) struct Slots {
    open: Arc<Mutex<HashMap<Holder, usize>>>,
    operator_max: usize,
}

impl Default for Slots {
    fn default() -> Self {
        Self::new(OPERATOR_STREAMS_MAX)
    }
}

/// A place among the streams of a token, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    slots: Slots,
    holder: Holder,
}

impl Slots {
    /// With so many streams for the operator's own token.
    pub(super) fn new(operator_max: usize) -> Self {
        Self { open: Arc::default(), operator_max }
    }

    /// A place for one more stream; nothing when the token has as many as it may.
    pub(super) fn take(&self, caller: &Caller) -> Option<StreamSlot> {
        let holder = match (caller.token, caller.run) {
            (Some(token), _) => Holder::Token(token),
            (None, Some(run)) => Holder::Run(run),
            (None, None) => Holder::Operator,
        };
        let max = if holder == Holder::Operator { self.operator_max } else { STREAMS_PER_TOKEN_MAX };
        let mut open = self.open.lock();
        let streams = open.entry(holder).or_default();
        if *streams >= max {
            return None;
        }
        *streams += 1;
        drop(open);
        Some(StreamSlot { slots: self.clone(), holder })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let Self { slots, holder } = self;
        let mut open = slots.open.lock();
        if let Some(streams) = open.get_mut(holder) {
            *streams = streams.saturating_sub(1);
            if *streams == 0 {
                open.remove(holder);
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
            expires_at: None,
        };
        let (one, other) = (caller(Some(TokenId::from_u128(1))), caller(Some(TokenId::from_u128(2))));
        let mut held: Vec<_> = (0..STREAMS_PER_TOKEN_MAX).map(|_| slots.take(&one).unwrap()).collect();
        assert!(slots.take(&one).is_none());
        assert!(slots.take(&other).is_some(), "another token has its own");
        held.pop();
        assert!(slots.take(&one).is_some());
        drop(held);
        assert!(slots.open.lock().is_empty());
        let mut operator: Vec<_> =
            (0..OPERATOR_STREAMS_MAX).map(|_| slots.take(&caller(None)).unwrap()).collect();
        assert!(slots.take(&caller(None)).is_none(), "the operator's own token has a bound too");
        operator.pop();
        assert!(slots.take(&caller(None)).is_some());
        assert!(Slots::new(1).take(&caller(None)).is_some());
    }
}
