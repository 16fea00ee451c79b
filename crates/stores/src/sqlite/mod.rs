//! The embedded store: one SQLite file that any number of processes on one machine can share.
//!
//! Two connections write to it. The queue's connection waits for the disk at each commit, because "accepted" means that
//! a message survives a power failure. The connection for politeness does not: its state survives a killed process, and
//! after a power failure a lost slot causes at most one early request per site.

mod articles;
mod batches;
mod bodies;
mod callers;
mod clock;
mod crawls;
mod dead_letters;
mod deliveries;
mod events;
mod examination;
#[cfg(feature = "postgres")]
pub(super) mod export;
mod feeds;
mod files;
mod finish;
mod frontier;
mod inbox;
mod links;
mod message_batches;
mod message_row;
mod meta;
mod moves;
mod outbox;
mod oversight;
mod pages;
mod politeness;
mod presence;
mod queue;
mod retention;
mod retriever_queues;
mod rounds;
mod schema;
mod sent;
mod sites;
mod submitting;
mod tokens;
mod url_queue;
mod waiting;

use std::path::Path;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_sqlite::db::{Db, Durability};

pub use articles::SqliteArticles;
pub use clock::clock;
pub use events::{EventPage, SqliteEvents};
pub use examination::{SqliteFacts, examine};
pub use feeds::SqliteFeeds;
pub use files::{FileFinish, OutputFile, revise_length};
pub use frontier::{CrawlFinish, SqliteFrontier};
pub use inbox::open_retriever;
pub use links::SqliteLinks;
pub use meta::{bind_politeness, moved_to};
pub use pages::SqlitePages;
pub use politeness::SqlitePoliteness;
pub use queue::{SqliteInstance, SqliteQueue};
pub use waiting::SqliteWaiting;

/// Opens the file for the queue, for politeness, or both.
pub fn open(path: &Path, durability: Durability) -> Result<Db, StoreError> {
    Db::open(path, durability, schema::NEWEST, schema::migrate)
}
