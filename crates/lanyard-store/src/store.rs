//! The whole contract of a store in one name.

use crate::backups::Backups;
use crate::changes::RecordChanges;
use crate::flows::Flows;
use crate::insights::Insights;
use crate::journal::{Directory, Journal, Lineages, Papers, Tokens, Turns, Upkeep};
use crate::memories::{Memories, MemoryUpkeep};
use crate::notifications::{Notifications, Tallies};
use crate::purges::Purges;
use crate::tasks::Tasks;
use crate::text_search::TextSearch;

/// Everything the daemon needs of a store.
pub trait Store:
    Journal
    + Turns
    + Directory
    + Lineages
    + Upkeep
    + Tokens
    + Papers
    + Tasks
    + Flows
    + Memories
    + MemoryUpkeep
    + Tallies
    + Insights
    + Notifications
    + Purges
    + Backups
    + RecordChanges
    + TextSearch
{
}

impl<T> Store for T where
    T: Journal
        + Turns
        + Directory
        + Lineages
        + Upkeep
        + Tokens
        + Papers
        + Tasks
        + Flows
        + Memories
        + MemoryUpkeep
        + Tallies
        + Insights
        + Notifications
        + Purges
        + Backups
        + RecordChanges
        + TextSearch
{
}
