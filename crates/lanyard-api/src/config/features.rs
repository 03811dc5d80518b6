//! Switches for parts people may have to do without for a while. What a switch hides is not forgotten: switched on
//! again, everything is there.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    #[default]
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Features {
    /// Attaching to a session. Off, `attach` is refused; prompts, logs and every other route go on.
    pub attach: Switch,
    /// Playing a session back to those who attach. Off, they begin at its end, and are told so; who comes back with a
    /// position still gets what it missed.
    pub replay: Switch,
    /// Telling a message that was sent before by its `client_turn_id` or its words. Off, each runs; an
    /// `Idempotency-Key` is honoured all the same.
    pub dedupe: Switch,
}
