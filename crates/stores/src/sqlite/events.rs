//! The event log: a table that readers follow by a cursor.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::event_log::{EventLog, LogEvent, Published, judge_by_size};
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::statements::Statements;
use rusqlite::Row;

use super::pages::sweep;

/// An event log on SQLite. Publishing a batch again creates no duplicates.
pub struct SqliteEvents {
    db: Db,
    clock: Clock,
}

/// Some events, in commit order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPage {
    /// The events, each with its cursor.
    pub events: Vec<(i64, LogEvent)>,
    /// The cursor to continue from.
    pub next: i64,
}

impl SqliteEvents {
    /// Uses an open file.
    pub fn new(db: Db, clock: Clock) -> SqliteEvents {
        SqliteEvents { db, clock }
    }

    /// Up to `most` events after the cursor; 0 is the beginning.
    pub async fn read(&self, after: i64, most: u32) -> Result<EventPage, StoreError> {
        let select = "SELECT cursor, id, key, value FROM event WHERE cursor > ?1
             ORDER BY cursor LIMIT ?2";
        let event_of = |row: &Row<'_>| -> rusqlite::Result<_> {
            let event = LogEvent { id: row.get(1)?, key: row.get(2)?, value: row.get(3)? };
            Ok((row.get(0)?, event))
        };
        let events: Vec<(i64, LogEvent)> =
            self.db.write(move |tx| tx.list(select, (after, most), event_of)).await?;
        let next = events.last().map_or(after, |(cursor, _)| *cursor);
        Ok(EventPage { events, next })
    }
}

#[async_trait]
impl EventLog for SqliteEvents {
    async fn publish(&self, events: &[LogEvent]) -> Result<Vec<Published>, StoreError> {
        let published: Vec<Published> = events.iter().map(judge_by_size).collect();
        let taken = events.iter().zip(&published).filter(|(_, one)| **one == Published::Confirmed);
        let taken: Vec<LogEvent> = taken.map(|(event, _)| event.clone()).collect();
        let now = self.clock.now();
        self.db
            .write(move |tx| {
                let mut insert = tx.prepare_cached(
                    "INSERT INTO event (id, key, value, created_at) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (id) DO NOTHING",
                )?;
                for LogEvent { id, key, value } in taken {
                    insert.execute((id, key, value, now.as_micros()))?;
                }
                Ok(())
            })
            .await?;
        Ok(published)
    }

    async fn sweep(&self, keep: Duration) -> Result<u64, StoreError> {
        let before = self.clock.now() - keep;
        let delete = "DELETE FROM event WHERE cursor IN (
             SELECT cursor FROM event WHERE created_at < ?1 LIMIT ?2)";
        sweep(&self.db, delete, before).await
    }
}
