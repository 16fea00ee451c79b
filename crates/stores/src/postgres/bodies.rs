//! Bodies of responses. The row of a caller counts the bytes of its bodies. It is locked before any of them changes, so
//! the count holds in all transactions, and bodies need no lock order of their own.

use std::collections::BTreeMap;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{MessageBody, MessageId, NewBody};
use fetchwell_engine::ports::job::LeaseId;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::database::column;
use super::moves::Moves;
use super::queue::PostgresQueue;
use crate::shared::bodies::{BodySize, IS_CONTENT, LOOKED_AT, MAX_PRUNED_BYTES, first_of, sum};

/// Joins the columns `body_expires_at` and `body_bytes` of the body that a result has. It is looked up by its key for
/// each result: `OFFSET 0` keeps the server from reading the whole table instead.
macro_rules! join_body {
    ($body_of:literal) => {
        concat!(
            " LEFT JOIN LATERAL (
                 SELECT expires_at AS body_expires_at, octet_length(bytes)::BIGINT AS body_bytes
                 FROM fetchwell_message_body AS body WHERE body.job = ",
            $body_of,
            " OFFSET 0) AS kept ON TRUE "
        )
    };
}
pub(super) use join_body;

/// A body to be stored: its job and its caller.
pub(super) type BodyToKeep<'a> = (LeaseId, &'a str, &'a NewBody);

/// A statement stores at most this many bytes, plus one body, because statements have a time limit.
const MAX_INSERTED_BYTES: usize = 16 << 20;

const INSERT: &str = "
    INSERT INTO fetchwell_message_body (job, caller, expires_at, bytes)
    SELECT * FROM unnest($1::BIGINT[], $2::TEXT[], $3::BIGINT[], $4::BYTEA[])";

const COUNT: &str =
    "UPDATE fetchwell_caller SET body_bytes = body_bytes + $2 WHERE name = $1 RETURNING body_bytes";

const OLDEST: &str = "
    SELECT job, octet_length(bytes)::BIGINT FROM fetchwell_message_body
    WHERE caller = $1 AND expires_at < $2 ORDER BY expires_at, job LIMIT $3";

const READ: &str = "
    SELECT outbox.job IS NOT NULL, body_of, content_type,
        CASE body_of WHEN $4 THEN convert_to(content, 'UTF8') ELSE bytes END
    FROM fetchwell_job AS job
    LEFT JOIN fetchwell_outbox AS outbox ON outbox.job = job.id
    LEFT JOIN fetchwell_message_body AS body ON body.job = outbox.body_of
    WHERE queue = $1 AND key = $2 AND ($3::TEXT IS NULL OR job.caller = $3)";

impl Moves<'_> {
    /// Stores the bodies of results, and deletes the oldest bodies of their callers that exceed their quotas. The rows
    /// of the callers are locked.
    pub(super) async fn keep_bodies(&mut self, mut bodies: &[BodyToKeep<'_>]) -> sqlx::Result<()> {
        let mut added: BTreeMap<&str, (i64, u64)> = BTreeMap::new();
        for (_, caller, body) in bodies {
            let (bytes, quota_bytes) = added.entry(caller).or_default();
            *bytes += size_of(body);
            *quota_bytes = body.quota_bytes;
        }
        while !bodies.is_empty() {
            let (now, rest) = bodies.split_at(inserted_at_once(bodies));
            self.insert_bodies(now).await?;
            bodies = rest;
        }
        for (caller, (bytes, quota_bytes)) in added {
            let row = self.tx.fetch_one(sqlx::query(COUNT).bind(caller).bind(bytes)).await?;
            let total: i64 = row.try_get(0)?;
            let quota_bytes = i64::try_from(quota_bytes).unwrap_or(i64::MAX);
            self.delete_oldest(caller, total - quota_bytes).await?;
        }
        Ok(())
    }

    async fn insert_bodies(&mut self, bodies: &[BodyToKeep<'_>]) -> sqlx::Result<()> {
        let now = self.now();
        let query = sqlx::query(INSERT)
            .bind(column(bodies, |(job, ..)| *job))
            .bind(column(bodies, |(_, caller, _)| *caller))
            .bind(column(bodies, |(.., body)| (now + body.keep).as_micros()))
            .bind(column(bodies, |(.., body)| &body.bytes[..]));
        self.tx.execute(query).await?;
        Ok(())
    }

    async fn delete_oldest(&mut self, caller: &str, mut excess: i64) -> sqlx::Result<()> {
        while excess > 0 {
            let query = sqlx::query(OLDEST).bind(caller).bind(i64::MAX).bind(LOOKED_AT);
            let oldest: Vec<BodySize> = self.tx.fetch_as(query).await?;
            if oldest.is_empty() {
                break;
            }
            let oldest = first_of(&oldest, excess);
            self.delete_bodies(caller, oldest).await?;
            excess -= sum(oldest);
        }
        Ok(())
    }

    async fn delete_bodies(&mut self, caller: &str, bodies: &[BodySize]) -> sqlx::Result<()> {
        let query = sqlx::query("DELETE FROM fetchwell_message_body WHERE job = ANY($1)");
        self.tx.execute(query.bind(column(bodies, |(job, _)| *job))).await?;
        self.tx.fetch_one(sqlx::query(COUNT).bind(caller).bind(-sum(bodies))).await?;
        Ok(())
    }

    async fn prune_bodies(&mut self, most: u32) -> sqlx::Result<u64> {
        let now = self.now().as_micros();
        let query = sqlx::query(
            "SELECT caller FROM fetchwell_message_body WHERE expires_at < $1
             ORDER BY expires_at LIMIT 1",
        );
        let Some((caller,)) = self.tx.fetch_as::<(String,)>(query.bind(now)).await?.pop() else {
            return Ok(0);
        };
        let query = sqlx::query("SELECT name FROM fetchwell_caller WHERE name = $1 FOR UPDATE");
        self.tx.fetch(query.bind(&caller)).await?;
        let query = sqlx::query(OLDEST).bind(&caller).bind(now).bind(i64::from(most));
        let expired: Vec<BodySize> = self.tx.fetch_as(query).await?;
        let expired = first_of(&expired, MAX_PRUNED_BYTES);
        if !expired.is_empty() {
            self.delete_bodies(&caller, expired).await?;
        }
        Ok(expired.len() as u64)
    }
}

/// Deletes expired bodies of one caller, at most `most`. Returns the number.
pub(super) async fn prune(queue: &PostgresQueue, most: u32) -> Result<u64, StoreError> {
    let mut moves = Moves::begin(queue).await?;
    let pruned = moves.prune_bodies(most).await;
    moves.end(pruned).await
}

/// The body of a message; `of`: only if it is this caller's.
pub(super) async fn read(
    queue: &PostgresQueue,
    id: MessageId,
    of: Option<&str>,
) -> Result<Option<MessageBody>, StoreError> {
    let query = sqlx::query(READ).bind(queue.id).bind(id.0.to_vec()).bind(of).bind(IS_CONTENT);
    Ok(queue.db.read(query, body_in).await?.pop())
}

fn body_in(row: &PgRow) -> sqlx::Result<MessageBody> {
    let has_result: bool = row.try_get(0)?;
    let body_of: Option<LeaseId> = row.try_get(1)?;
    Ok(match (has_result, body_of, row.try_get(3)?) {
        (false, ..) => MessageBody::NoResult,
        (true, None, _) => MessageBody::Absent,
        (true, Some(_), None) => MessageBody::Deleted,
        (true, Some(_), Some(bytes)) => MessageBody::Found { content_type: row.try_get(2)?, bytes },
    })
}

fn size_of(body: &NewBody) -> i64 {
    i64::try_from(body.bytes.len()).unwrap_or(i64::MAX)
}

/// How many of these bodies one statement stores; at least one.
fn inserted_at_once(bodies: &[BodyToKeep<'_>]) -> usize {
    let mut bytes = 0;
    let fits = |(.., body): &&BodyToKeep<'_>| {
        let fits = bytes < MAX_INSERTED_BYTES;
        bytes += body.bytes.len();
        fits
    };
    bodies.iter().take_while(fits).count()
}
