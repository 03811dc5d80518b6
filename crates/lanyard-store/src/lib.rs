//! Lanyard's journal: durable logs of events, and the projections written with them.
//!
//! **Visibility is gated on durability.** What `append` answered `Ok` to is kept, whatever happens to the process
//! afterwards, and only that can be seen. A `Synced` batch is on disk by then; a `Written` one may be lost to a power
//! cut, and is for records that no answer promised.

mod attachments;
mod backups;
mod card;
mod changes;
mod error;
mod flows;
mod fold;
mod insights;
mod journal;
mod memories;
mod notifications;
mod purges;
mod query;
mod records;
mod sqlite;
mod store;
mod tasks;
mod text_search;

pub use attachments::{
    AttachmentError, AttachmentUpload, Attachments, CollectedAttachments, KeptContent, RemovalHold,
    UploadBounds, take_copied,
};
pub use backups::Backups;
pub use changes::{
    ChangeFilter, ChangePage, ChangeTeller, ChangedBody, FollowedRef, RecordChange, RecordChanges,
};
pub use error::{AppendError, Loss, OpenError, StoreError};
pub use flows::{FlowBatch, FlowFilter, Flows};
pub use insights::Insights;
pub use journal::{
    Batch, Directory, Durability, EventEntry, EventPage, FIND_MAX, Found, Journal, KeptOutcome, KeyHash,
    Lineages, Loaded, Paper, PaperKey, Papers, Put, StoredEvent, StoredToken, Tokens, TurnPage, Turns,
    Upkeep,
};
pub use memories::{Memories, MemoryFilter, MemoryUpkeep, Viewer, Writing};
pub use notifications::{
    DeliveryFilter, NotificationBatch, NotificationFilter, NotificationOrder, Notifications, Tallies,
};
pub use purges::{PurgeStep, Purges, WipeStep};
pub use query::{Cursor, CursorError, Filter, Listing, Owed, PlanWord, Sort};
pub use records::{
    BodyReader, KeyRange, KeyValue, RecordBatch, RecordEntry, RecordKey, RecordKind, RecordOrder,
    RecordQuery, RecordRef, RecordRow, Records,
};
pub use sqlite::{Failpoints, SqliteJournal, SqliteOptions};
pub use store::Store;
pub use tasks::{MailFilter, TaskFilter, Tasks, WorkBatch};
pub use text_search::{
    IndexState, SearchStop, TextCursor, TextFound, TextHit, TextPage, TextQuery, TextSearch, WINDOW,
};
