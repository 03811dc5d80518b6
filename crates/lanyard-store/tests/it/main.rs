//! What a journal promises, asked of every journal there is; and what only the one on disk can be asked.

mod contract;
mod damage;
mod directory;
mod faults;
mod kit;
mod properties;
mod sqlite;
