//! A retriever's store moves from a SQLite file to a PostgreSQL database: whole, or not at all.
//!
//! The file's write lock is held from the first row to the mark that says where everything is now, and
//! what the database gets is one transaction. So a move that is cut off left the database as it was and
//! the file in use. Between the database's commit and the mark both have everything: whoever moves once
//! more finds the file's name in the database, and only sets the mark.

mod tables;

use std::path::PathBuf;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::source::Source;
use fetchwell_sqlite::db::Db;
use tokio::sync::{mpsc, oneshot};

use super::postgres::Database;
use super::postgres::import::{Import, ImportState};
use super::sqlite::SqliteQueue;
use super::sqlite::export::{self, Export, Left};
use crate::shared::transfer::Differences;

/// Parts that are read ahead while the database takes in one.
const PARTS_AHEAD: usize = 2;

/// What became of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// All is in the database now. What was moved, and how many of it.
    All(Vec<(&'static str, u64)>),
    /// All was there already, by an earlier move that was cut off or had ended.
    Before,
    /// All is in another database, by an earlier move.
    Elsewhere(String),
    /// A process is at work on the file.
    FileInUse,
    /// The file has crawls that have not ended, or whose end has not been delivered.
    HasOpenCrawls,
    /// The file was used since an earlier move had put its messages into the database.
    FileUsedSince,
    /// There are callers or messages in the database.
    DatabaseNotEmpty,
    /// There is no such file.
    NoFile(PathBuf),
    /// The one store is no file, or the other no database.
    Impossible,
}

/// Moves callers, messages, results, deliveries, audit and, where the file kept it, the politeness of
/// sites. `to_name` is what people are told that look for it in the file.
pub async fn move_retriever(
    from: &Db,
    clock: &Clock,
    to: &Database,
    to_name: &str,
) -> Result<Moved, StoreError> {
    let queues = [
        export::queue(from, "messages", clock).await?,
        export::queue(from, "webhooks", clock).await?,
    ];
    for queue in &queues {
        if queue.is_in_use().await? {
            return Ok(Moved::FileInUse);
        }
        rescue(queue).await?;
    }
    let identity = export::identity(from).await?;
    let import = Import::begin(to, &identity).await?;
    let export = Export {
        clock: clock.clone(),
        to_name: to_name.to_owned(),
        differences: Differences {
            ahead_us: import.now.as_micros().saturating_sub(clock.now().as_micros()),
            queues_here: queues.each_ref().map(|queue| queue.queue),
            queues_there: import.queues,
        },
        tables: &tables::TABLES,
    };
    match import.standing.clone() {
        ImportState::HasOthers => Ok(Moved::DatabaseNotEmpty),
        ImportState::HasThis { receipt } => {
            let left = from.write(move |tx| export.mark_if(tx, &receipt)).await?;
            Ok(Moved::from(left))
        }
        ImportState::Empty => move_all(from, export, import).await,
    }
}

/// What dead processes held waits again.
async fn rescue(queue: &SqliteQueue) -> Result<(), StoreError> {
    let instance = queue.instance();
    instance.renew().await?;
    instance.leave().await
}

async fn move_all(from: &Db, export: Export, import: Import) -> Result<Moved, StoreError> {
    let (parts, coming) = mpsc::channel(PARTS_AHEAD);
    let (arrived, has_arrived) = oneshot::channel();
    let leaving = from.write(move |tx| export.leave(tx, &parts, has_arrived));
    let (left, counts) = tokio::join!(leaving, import.take_in(coming, arrived));
    // Where the database could not take something in, the file's word is only that nobody listened.
    let counts = counts?;
    Ok(match left? {
        Left::Moved => Moved::All(counts),
        left => Moved::from(left),
    })
}

impl From<Left> for Moved {
    fn from(left: Left) -> Moved {
        match left {
            Left::Moved => Moved::Before,
            Left::Elsewhere(place) => Moved::Elsewhere(place),
            Left::InUse => Moved::FileInUse,
            Left::HasOpenCrawls => Moved::HasOpenCrawls,
            Left::UsedSince => Moved::FileUsedSince,
        }
    }
}
