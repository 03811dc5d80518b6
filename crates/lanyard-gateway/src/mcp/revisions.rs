//! Clients and servers of different revisions of the protocol: Lanyard greets, asks and answers in the place of the side
//! that does not know how.

pub(super) mod input_required;
pub(super) mod legacy_client;
pub(super) mod legacy_server;
