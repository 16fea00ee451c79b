//! Inserts the messages of a file into a database: see [`crate::migrate`].

use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::time::Time;
use sqlx::{AssertSqlSafe, Row};
use tokio::sync::{mpsc, oneshot};

use super::connections::PgQuery;
use super::database::{Database, Tx, writable};
use super::message_row::arrays;
use crate::shared::transfer::{Column, ColumnKind, Part, Table};

/// Keeps others from writing during the move; reads do not wait.
const LOCK: &str = "LOCK TABLE fetchwell_caller, fetchwell_job, fetchwell_meta IN EXCLUSIVE MODE";

const STANDING: &str = "
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT,
           EXISTS (SELECT FROM fetchwell_caller) OR EXISTS (SELECT FROM fetchwell_job),
           (SELECT value FROM fetchwell_meta WHERE key = 'moved_from'),
           (SELECT value FROM fetchwell_meta WHERE key = 'moved_receipt')";

const QUEUE: &str = "
    INSERT INTO fetchwell_queue AS queue (name) VALUES ($1)
    ON CONFLICT (name) DO UPDATE SET name = queue.name RETURNING id::BIGINT";

/// Makes new ids follow those that were moved.
const GO_ON_COUNTING: &str = "
    SELECT setval('fetchwell_job_id', greatest((SELECT max(id) FROM fetchwell_job), 1)),
           setval(pg_get_serial_sequence('fetchwell_lane', 'id'),
                  greatest((SELECT max(id) FROM fetchwell_lane), 1)),
           setval(pg_get_serial_sequence('fetchwell_delivery', 'id'),
                  greatest((SELECT max(id) FROM fetchwell_delivery), 1))";

const REMEMBER: &str = "
    INSERT INTO fetchwell_meta VALUES ('moved_from', $1), ('moved_receipt', $2)";

/// What the database already contains.
#[derive(Clone, Debug)]
pub(crate) enum ImportState {
    /// It is empty.
    Empty,
    /// It has the data of this file.
    HasThis {
        /// A summary of what was moved, by which it is recognized.
        receipt: String,
    },
    /// It has other data.
    HasOthers,
}

/// A transaction that inserts the messages of a file.
pub(crate) struct Import {
    db: Database,
    tx: Tx,
    identity: String,
    pub(crate) standing: ImportState,
    /// The database's clock.
    pub(crate) now: Time,
    /// The ids of the queues for messages and deliveries.
    pub(crate) queues: [i64; 2],
}

impl Import {
    /// Begins the transaction and reads what the database contains.
    pub(crate) async fn begin(db: &Database, identity: &str) -> Result<Import, StoreError> {
        let mut tx = db.begin().await?;
        let looked = async {
            tx.execute(sqlx::query(LOCK)).await?;
            let mut queues = [0; 2];
            for (place, name) in queues.iter_mut().zip(["messages", "webhooks"]) {
                *place = tx.fetch_one(sqlx::query(QUEUE).bind(name)).await?.try_get(0)?;
            }
            let row = tx.fetch_one(sqlx::query(STANDING)).await?;
            let from: Option<String> = row.try_get(2)?;
            let standing = match (from, row.try_get(1)?) {
                (Some(from), _) if from == identity => {
                    ImportState::HasThis { receipt: row.try_get(3)? }
                }
                (_, true) => ImportState::HasOthers,
                (_, false) => ImportState::Empty,
            };
            Ok((Time::from_micros(row.try_get(0)?), queues, standing))
        };
        let (now, queues, standing) = db.sense(looked.await)?;
        let identity = identity.to_owned();
        Ok(Import { db: db.clone(), tx, identity, standing, now, queues })
    }

    /// Inserts all parts, commits, and notifies the sender. Returns the number of rows of each kind.
    pub(crate) async fn take_in(
        mut self,
        mut coming: mpsc::Receiver<Part>,
        arrived: oneshot::Sender<()>,
    ) -> Result<Vec<(&'static str, u64)>, StoreError> {
        let mut taken: Vec<(&'static str, u64)> = Vec::new();
        while let Some(part) = coming.recv().await {
            match part {
                Part::Rows(table, columns) => {
                    let rows = self.db.sense(insert(&mut self.tx, table, columns).await)?;
                    match taken.last_mut() {
                        Some((what, count)) if *what == table.what => *count += rows,
                        _ => taken.push((table.what, rows)),
                    }
                }
                Part::End { counts, receipt } => {
                    let sent: Vec<(&'static str, u64)> = counts
                        .iter()
                        .filter(|(_, count)| *count > 0)
                        .map(|(table, count)| (table.what, *count))
                        .collect();
                    if sent != taken {
                        return Err(StoreError::bug(format!(
                            "{sent:?} were sent to the database and {taken:?} arrived; nothing was changed"
                        )));
                    }
                    self.end(&receipt).await?;
                    // If the receiver is gone, the next move finds the data in the database.
                    arrived.send(()).ok();
                    return Ok(taken);
                }
            }
        }
        // The sender was cut off and reports why.
        Ok(Vec::new())
    }

    async fn end(mut self, receipt: &str) -> Result<(), StoreError> {
        let ended = async {
            self.tx.fetch_one(sqlx::query(GO_ON_COUNTING)).await?;
            let remember = sqlx::query(REMEMBER).bind(&self.identity).bind(receipt);
            self.tx.execute(remember).await
        };
        let ended = ended.await;
        self.tx.end(ended).await.map(|_| ())
    }
}

async fn insert(tx: &mut Tx, table: &Table, columns: Vec<Column>) -> sqlx::Result<u64> {
    let query = sqlx::query(AssertSqlSafe(statement(table)));
    tx.execute(columns.into_iter().fold(query, bind)).await
}

fn bind(query: PgQuery<'_>, column: Column) -> PgQuery<'_> {
    match column {
        Column::Whole(values) => query.bind(values),
        Column::Bytes(values) => query.bind(values),
        Column::Flag(values) => query.bind(values),
        Column::Text(values) => {
            let values = values.into_iter().map(|text| text.map(|text| writable(&text)));
            query.bind(values.collect::<Vec<_>>())
        }
    }
}

fn statement(table: &Table) -> String {
    let (names, kinds): (Vec<&str>, Vec<ColumnKind>) = table.columns.iter().copied().unzip();
    format!(
        "INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT * FROM unnest({})",
        table.into,
        names.join(", "),
        arrays(&kinds, 1)
    )
}
