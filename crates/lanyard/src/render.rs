//! Data as text for people. Pure: no stream, no clock; `now` is the daemon's and arrives as data.

pub(crate) mod card;
pub(crate) mod event;
pub(crate) mod session;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod tree;
pub(crate) mod turn;
