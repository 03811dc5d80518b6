//! What a journal promises, asked of every journal there is; and what only the one on disk can be asked.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![allow(clippy::cast_possible_truncation, reason = "the numbers of tests are small")]

mod attachments;
mod backups;
mod changes;
mod conductor;
mod contract;
mod damage;
mod directory;
mod faults;
mod flows;
mod flows_on_disk;
mod foreman;
mod insight;
mod kit;
mod memories;
mod memories_on_disk;
mod notifications;
mod older_records;
mod papers;
mod properties;
mod purges;
mod sqlite;
mod tasks;
mod tasks_on_disk;
mod text_search;
mod together;
mod upgrades;
