//! Reads the messages of a retriever from a file to move them to a database: see [`crate::migrate`].

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::politeness::RobotsRecord;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::errors::own_error;
use rusqlite::types::{FromSqlError, Value, ValueRef};
use rusqlite::{Connection, Row, Statement};
use tokio::sync::{mpsc, oneshot};

use super::queue::is_in_use;
use super::{SqliteQueue, meta};
use crate::shared::transfer::{Column, ColumnKind, Differences, Part, Table};
use fetchwell_engine::shared_politeness::Texts;

/// The maximum number of rows in a part, and the number of bytes at which it ends.
const MAX_ROWS: usize = 1_000;
const MAX_BYTES: usize = 4 << 20;

/// The lease of this process while it acts as an instance, to rescue the leases of dead ones.
const RESCUE_WITHIN: Duration = Duration::from_secs(20);

/// Sites, whose states are translated one by one.
static SITES: LazyLock<Table> = LazyLock::new(|| {
    let columns: &[(ColumnKind, &[&str])] = &[
        (ColumnKind::Text, &["site", "rate_limit", "circuit", "notes"]),
        (ColumnKind::Whole, &["forgettable_at"]),
        (ColumnKind::Flag, &["notable"]),
    ];
    Table::new("sites", "fetchwell_site", columns, "SELECT site, state FROM site")
});

/// Copies of robots.txt, likewise.
static ROBOTS: LazyLock<Table> = LazyLock::new(|| {
    let columns: &[(ColumnKind, &[&str])] =
        &[(ColumnKind::Text, &["origin", "record"]), (ColumnKind::Whole, &["kept_at"])];
    Table::new("robots.txt", "fetchwell_robots", columns, "SELECT origin, record FROM robots")
});

/// A webhook about the end of a crawl sends the crawl, which is not moved.
const OPEN_CRAWLS: &str = "SELECT EXISTS (SELECT 1 FROM message_crawl WHERE ended_at IS NULL)
     OR EXISTS (SELECT 1 FROM delivery WHERE status = 'pending' AND webhook GLOB 'crawl_*')";

fn has_open_crawls(tx: &Connection) -> rusqlite::Result<bool> {
    tx.query_row(OPEN_CRAWLS, [], |row| row.get(0))
}

/// Opens a queue of the file, to check whether it is in use.
pub(crate) async fn queue(db: &Db, name: &str, clock: &Clock) -> Result<SqliteQueue, StoreError> {
    SqliteQueue::open(db.clone(), name, clock.clone(), RESCUE_WITHIN, false).await
}

/// A unique id of the file.
pub(crate) async fn identity(db: &Db) -> Result<String, StoreError> {
    db.write(|tx| {
        tx.execute(
            "INSERT INTO meta VALUES ('identity', lower(hex(randomblob(16)))) ON CONFLICT DO NOTHING",
            [],
        )?;
        tx.query_row("SELECT value FROM meta WHERE key = 'identity'", [], |row| row.get(0))
    })
    .await
}

/// The outcome for the file.
#[derive(Debug)]
pub(crate) enum Left {
    /// The file is marked as moved.
    Moved,
    /// It was marked before: all of it is in that store.
    Elsewhere(String),
    /// A process is using it.
    InUse,
    /// It has crawls that have not ended, or whose end has not been delivered. The database cannot hold crawls.
    HasOpenCrawls,
    /// The file no longer matches what was copied to the database.
    UsedSince,
}

/// A file whose messages are to be moved.
pub(crate) struct Export {
    pub(crate) clock: Clock,
    pub(crate) to_name: String,
    pub(crate) differences: Differences,
    /// What leaves as it is, in this order.
    pub(crate) tables: &'static [Table],
}

impl Export {
    /// Sends everything, waits for the database's commit, and marks the file as moved. The file is locked meanwhile.
    pub(crate) fn leave(
        &self,
        tx: &Connection,
        parts: &mpsc::Sender<Part>,
        has_arrived: oneshot::Receiver<()>,
    ) -> rusqlite::Result<Left> {
        // Two databases with the same messages would both fetch them.
        if let Some(place) = meta::value(tx, "moved_to")? {
            return Ok(Left::Elsewhere(place));
        }
        if self.is_in_use(tx)? {
            return Ok(Left::InUse);
        }
        if has_open_crawls(tx)? {
            return Ok(Left::HasOpenCrawls);
        }
        let mut counts = Vec::new();
        for table in self.tables {
            counts.push((table, self.send(tx, table, parts, |row| as_it_is(table, row))?));
        }
        if keeps_politeness(tx)? {
            counts.push((&*SITES, self.send(tx, &SITES, parts, |row| self.site(row))?));
            counts.push((&*ROBOTS, self.send(tx, &ROBOTS, parts, |row| self.robots(row))?));
        }
        send(parts, Part::End { counts, receipt: receipt(tx, &self.differences)? })?;
        has_arrived.blocking_recv().map_err(|_| nobody_listens())?;
        self.mark(tx)?;
        Ok(Left::Moved)
    }

    /// Marks the file as moved if it has not changed since its messages were copied to the database.
    pub(crate) fn mark_if(&self, tx: &Connection, then: &str) -> rusqlite::Result<Left> {
        if meta::value(tx, "moved_to")?.is_some() {
            return Ok(Left::Moved);
        }
        if self.is_in_use(tx)? {
            return Ok(Left::InUse);
        }
        if receipt(tx, &self.differences)? != then {
            return Ok(Left::UsedSince);
        }
        self.mark(tx)?;
        Ok(Left::Moved)
    }

    fn is_in_use(&self, tx: &Connection) -> rusqlite::Result<bool> {
        let store = tx.path().map(PathBuf::from).unwrap_or_default();
        for queue in self.differences.queues_here {
            if is_in_use(tx, queue, &store, self.clock.now())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn mark(&self, tx: &Connection) -> rusqlite::Result<()> {
        tx.execute("INSERT INTO meta VALUES ('moved_to', ?1)", [&self.to_name])?;
        Ok(())
    }

    /// Sends the rows of a table in parts. Returns their number.
    fn send(
        &self,
        tx: &Connection,
        table: &'static Table,
        parts: &mpsc::Sender<Part>,
        values_of: impl Fn(&Row<'_>) -> rusqlite::Result<Vec<Value>>,
    ) -> rusqlite::Result<u64> {
        let mut statement = tx.prepare(&table.select)?;
        self.bind(&mut statement)?;
        let mut rows = statement.raw_query();
        let mut count = 0;
        let mut part = Rows::of(table);
        while let Some(row) = rows.next()? {
            part.push(values_of(row)?)?;
            count += 1;
            if part.is_full() {
                let full = std::mem::replace(&mut part, Rows::of(table));
                send(parts, Part::Rows(table, full.columns))?;
            }
        }
        if part.rows > 0 {
            send(parts, Part::Rows(table, part.columns))?;
        }
        Ok(count)
    }

    fn bind(&self, statement: &mut Statement<'_>) -> rusqlite::Result<()> {
        let Differences { ahead_us, queues_here, queues_there } = self.differences;
        let values = [
            (":ahead", ahead_us),
            (":messages_here", queues_here[0]),
            (":deliveries_here", queues_here[1]),
            (":messages", queues_there[0]),
            (":deliveries", queues_there[1]),
        ];
        for (name, value) in values {
            if let Some(place) = statement.parameter_index(name)? {
                statement.raw_bind_parameter(place, value)?;
            }
        }
        Ok(())
    }

    fn site(&self, row: &Row<'_>) -> rusqlite::Result<Vec<Value>> {
        let state: SiteState = read(row.get_ref(1)?)?;
        let state = state.by_clock_ahead_by_us(self.differences.ahead_us);
        let Texts { rate_limit, circuit, notes } = Texts::of(&state);
        let is_notable = state.is_notable(self.differences.there(self.clock.now()));
        let forgettable_at = state.forgettable_at().map(Time::as_micros);
        let mut values = vec![row.get(0)?];
        values.extend([rate_limit, circuit, notes].map(Value::from));
        values.extend([Value::from(forgettable_at), Value::from(is_notable)]);
        Ok(values)
    }

    fn robots(&self, row: &Row<'_>) -> rusqlite::Result<Vec<Value>> {
        let record: RobotsRecord = read(row.get_ref(1)?)?;
        let record = record.by_clock_ahead_by_us(self.differences.ahead_us);
        let text = serde_json::to_string(&record)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let kept_at = self.differences.there(self.clock.now()).as_micros();
        Ok(vec![row.get(0)?, Value::Text(text), Value::Integer(kept_at)])
    }
}

fn as_it_is(table: &Table, row: &Row<'_>) -> rusqlite::Result<Vec<Value>> {
    (0..table.columns.len()).map(|place| row.get(place)).collect()
}

/// Rows of a table, column by column.
struct Rows {
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
}

impl Rows {
    fn of(table: &Table) -> Rows {
        let column = |kind: ColumnKind| match kind {
            ColumnKind::Whole => Column::Whole(Vec::new()),
            ColumnKind::Text => Column::Text(Vec::new()),
            ColumnKind::Bytes => Column::Bytes(Vec::new()),
            ColumnKind::Flag => Column::Flag(Vec::new()),
        };
        let columns = table.columns.iter().map(|(_, kind)| column(*kind)).collect();
        Rows { columns, rows: 0, bytes: 0 }
    }

    fn is_full(&self) -> bool {
        self.rows >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    fn push(&mut self, values: Vec<Value>) -> rusqlite::Result<()> {
        for (column, value) in self.columns.iter_mut().zip(values) {
            self.bytes += match &value {
                Value::Text(text) => text.len(),
                Value::Blob(bytes) => bytes.len(),
                Value::Null | Value::Integer(_) | Value::Real(_) => 8,
            };
            match (column, value) {
                (Column::Whole(column), Value::Integer(whole)) => column.push(Some(whole)),
                (Column::Flag(column), Value::Integer(whole)) => column.push(Some(whole != 0)),
                (Column::Text(column), Value::Text(text)) => column.push(Some(text)),
                (Column::Bytes(column), Value::Blob(bytes)) => column.push(Some(bytes)),
                (Column::Whole(column), Value::Null) => column.push(None),
                (Column::Flag(column), Value::Null) => column.push(None),
                (Column::Text(column), Value::Null) => column.push(None),
                (Column::Bytes(column), Value::Null) => column.push(None),
                (column, value) => {
                    let mismatch = format!("the file has {value:?} where {column:?} was expected");
                    return Err(own_error(StoreError::corrupt(mismatch)));
                }
            }
        }
        self.rows += 1;
        Ok(())
    }
}

fn send(parts: &mpsc::Sender<Part>, part: Part) -> rusqlite::Result<()> {
    parts.blocking_send(part).map_err(|_| nobody_listens())
}

fn nobody_listens() -> rusqlite::Error {
    own_error(StoreError::transient("the database accepts no more data"))
}

/// A summary of what is moved. It changes with every message that is accepted, taken or ended.
fn receipt(tx: &Connection, differences: &Differences) -> rusqlite::Result<String> {
    tx.query_row(
        "SELECT group_concat(format('%d %d %d %d %d %d %d', accepted, done, skipped, queued, in_flight,
             delayed, dead), '; ') FROM (SELECT * FROM queue WHERE id IN (?1, ?2) ORDER BY id)",
        differences.queues_here,
        |row| row.get(0),
    )
}

/// Whether the file keeps the politeness state of sites, rather than a separate store.
fn keeps_politeness(tx: &Connection) -> rusqlite::Result<bool> {
    Ok(meta::value(tx, "politeness")?.is_none_or(|bound| bound == "the store itself"))
}

fn read<T: serde::de::DeserializeOwned>(value: ValueRef<'_>) -> rusqlite::Result<T> {
    serde_json::from_str(value.as_str()?).map_err(|error| FromSqlError::Other(error.into()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;

    #[test]
    fn a_file_is_not_moved_before_its_crawls_have_ended_and_their_webhooks_are_delivered() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let is_open_after = |change: &str| {
            connection.execute_batch(change).unwrap();
            has_open_crawls(&connection).unwrap()
        };
        let begin = "INSERT INTO message_crawl (id, caller, spec, created_at, until)
             VALUES (zeroblob(16), 'anna', '{}', 0, 0)";
        assert!(is_open_after(begin));
        assert!(!is_open_after("UPDATE message_crawl SET ended_at = 0"));
        let deliver = |webhook: &str| {
            format!(
                "INSERT INTO delivery (webhook, caller, url, status, created_at)
                 VALUES ('{webhook}', 'anna', 'u', 'pending', 0)"
            )
        };
        assert!(!is_open_after(&deliver("msg_1")));
        assert!(is_open_after(&deliver("crawl_1")));
        assert!(!is_open_after("UPDATE delivery SET status = 'delivered'"));
    }
}
