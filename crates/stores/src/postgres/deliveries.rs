//! The log of webhook deliveries, and their replay.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::Sink;
use fetchwell_engine::ports::inbox::{
    DeliveryFilter, DeliveryLogEntry, DeliveryRecord, DeliveryStatus, MAX_REPLAYS, ReplayRange,
    Replayed, ReplayedOne, delivery_attempts_of,
};
use fetchwell_engine::ports::job::NewJob;
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::database::{column, writable};
use super::inbox::PostgresRetriever;
use super::moves::{Moves, QueueId};
use super::queue::PostgresQueue;
use crate::shared::conclusion::delivery_job;

/// Records the attempts of deliveries.
pub(super) struct DeliveryLog(pub(super) Arc<PostgresRetriever>);

/// One row per delivery, because a statement changes a row only once. A batch may be repeated: if `story` already
/// ends with an attempt, that attempt is not added again. If `story` is full, after about ten attempts, its oldest line
/// is dropped. An instance that has lost its lease may record an attempt after another instance ended the delivery: the
/// delivery then stays ended, because nothing waits for it.
const ENTER: &str = "
    INSERT INTO fetchwell_delivery AS delivery (webhook, caller, url, status, attempts, created_at, story)
    SELECT webhook, min(caller), min(url),
        coalesce((array_agg(status ORDER BY place DESC) FILTER (WHERE status <> 'pending'))[1], 'pending'),
        count(*), min(at), string_agg(line, chr(10) ORDER BY place)
    FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::TEXT[]) WITH ORDINALITY
        AS new (webhook, caller, url, status, at, line, place)
    GROUP BY webhook ORDER BY webhook COLLATE \"C\"
    ON CONFLICT (webhook) DO UPDATE SET
        status = CASE excluded.status WHEN 'pending' THEN delivery.status ELSE excluded.status END,
        attempts = delivery.attempts + excluded.attempts,
        story = CASE WHEN delivery.story IS NULL THEN excluded.story
            WHEN length(delivery.story) < 2500 THEN delivery.story || chr(10) || excluded.story
            ELSE substr(delivery.story, strpos(delivery.story, chr(10)) + 1) || chr(10)
                || excluded.story END
    WHERE delivery.story IS NULL
        OR right(delivery.story, length(excluded.story)) <> excluded.story";

#[async_trait]
impl Sink<DeliveryRecord> for DeliveryLog {
    async fn write(&self, records: &[&DeliveryRecord]) -> Result<(), StoreError> {
        let mut tx = self.0.deliveries.db.begin().await?;
        let query = sqlx::query(ENTER)
            .bind(column(records, |record| writable(&record.webhook)))
            .bind(column(records, |record| record.caller.clone()))
            .bind(column(records, |record| writable(&record.url)))
            .bind(column(records, |record| record.status.as_str()))
            .bind(column(records, |record| record.attempt.at.as_micros()))
            .bind(column(records, |record| record.attempt.to_line()));
        let entered = tx.execute(query).await;
        tx.end(entered).await.map(|_| ())
    }
}

/// Records deliveries that wait for their first attempt: each with its `webhook-id`, its caller and its URL.
pub(super) async fn begin(
    moves: &mut Moves<'_>,
    new: &[(String, String, String)],
) -> sqlx::Result<()> {
    let query = sqlx::query(
        "INSERT INTO fetchwell_delivery (webhook, caller, url, status, created_at)
         SELECT webhook, caller, url, 'pending', $4
         FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[]) AS new (webhook, caller, url)
         ORDER BY webhook COLLATE \"C\" ON CONFLICT DO NOTHING",
    );
    let query = query
        .bind(column(new, |(webhook, ..)| webhook.as_str()))
        .bind(column(new, |(_, caller, _)| caller.as_str()))
        .bind(column(new, |(.., url)| url.as_str()))
        .bind(moves.now().as_micros());
    moves.tx.execute(query).await?;
    Ok(())
}

/// Deliveries to a caller, newest first.
pub(super) async fn list(
    queue: &PostgresQueue,
    caller: &str,
    filter: DeliveryFilter,
) -> Result<Vec<DeliveryLogEntry>, StoreError> {
    let DeliveryFilter { status, before, most } = filter;
    // Two statements, because a statement is planned once for all values.
    let query = match status {
        None => sqlx::query(
            "SELECT id, webhook, url, status, attempts, created_at, story FROM fetchwell_delivery
             WHERE caller = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
        ),
        Some(_) => sqlx::query(
            "SELECT id, webhook, url, status, attempts, created_at, story FROM fetchwell_delivery
             WHERE caller = $1 AND id < $2 AND status = $4 ORDER BY id DESC LIMIT $3",
        ),
    };
    let query = query.bind(caller).bind(before.unwrap_or(i64::MAX)).bind(i64::from(most));
    let query = match status {
        None => query,
        Some(status) => query.bind(status.as_str()),
    };
    queue.db.read(query, entry_in).await
}

fn entry_in(row: &PgRow) -> sqlx::Result<DeliveryLogEntry> {
    let attempts: i64 = row.try_get(4)?;
    let story: Option<String> = row.try_get(6)?;
    Ok(DeliveryLogEntry {
        position: row.try_get(0)?,
        webhook: row.try_get(1)?,
        url: row.try_get(2)?,
        status: DeliveryStatus::parse(row.try_get(3)?).unwrap_or(DeliveryStatus::Pending),
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        created_at: Time::from_micros(row.try_get(5)?),
        last_attempts: delivery_attempts_of(&story.unwrap_or_default()),
    })
}

/// Puts deliveries that have ended on the queue again. Returns how many.
async fn put_again(
    moves: &mut Moves<'_>,
    deliveries: QueueId,
    caller: &str,
    positions: Vec<i64>,
) -> sqlx::Result<usize> {
    let query = sqlx::query(
        "WITH ended AS (
             SELECT id FROM fetchwell_delivery WHERE id = ANY($1) AND status <> 'pending'
             ORDER BY webhook FOR UPDATE)
         UPDATE fetchwell_delivery AS delivery SET status = 'pending'
         FROM ended WHERE delivery.id = ended.id RETURNING webhook, url",
    );
    let ended: Vec<(String, String)> = moves.tx.fetch_as(query.bind(positions)).await?;
    let jobs: Vec<NewJob> = ended
        .into_iter()
        .map(|(webhook, url)| delivery_job(url, webhook.into_bytes(), caller))
        .collect();
    let count = jobs.len();
    if count > 0 {
        moves.accept(deliveries, jobs).await?;
    }
    Ok(count)
}

pub(super) async fn replay_one(
    moves: &mut Moves<'_>,
    deliveries: QueueId,
    caller: &str,
    webhook: &str,
) -> sqlx::Result<ReplayedOne> {
    let query = sqlx::query("SELECT id FROM fetchwell_delivery WHERE webhook = $1 AND caller = $2");
    let found: Option<(i64,)> =
        moves.tx.fetch_as(query.bind(writable(webhook)).bind(caller)).await?.pop();
    let Some((position,)) = found else { return Ok(ReplayedOne::Unknown) };
    match put_again(moves, deliveries, caller, vec![position]).await? {
        0 => Ok(ReplayedOne::StillPending),
        _ => Ok(ReplayedOne::Again),
    }
}

pub(super) async fn replay(
    moves: &mut Moves<'_>,
    deliveries: QueueId,
    caller: &str,
    range: ReplayRange,
) -> sqlx::Result<Replayed> {
    let ReplayRange { since, until, status, after, most } = range;
    let most = most.min(MAX_REPLAYS);
    let (after_at, after_position) = after.unwrap_or((since.as_micros(), 0));
    let query = sqlx::query(
        "SELECT created_at, id FROM fetchwell_delivery
         WHERE caller = $1 AND (created_at, id) > ($2, $3) AND created_at >= $4 AND created_at < $5
             AND status <> 'pending' AND ($6::TEXT IS NULL OR status = $6)
         ORDER BY created_at, id LIMIT $7",
    );
    let query = query
        .bind(caller)
        .bind(after_at)
        .bind(after_position)
        .bind(since.as_micros())
        .bind(until.as_micros())
        .bind(status.map(DeliveryStatus::as_str))
        .bind(i64::from(most));
    let matching: Vec<(i64, i64)> = moves.tx.fetch_as(query).await?;
    let positions = column(&matching, |(_, position)| *position);
    let count = put_again(moves, deliveries, caller, positions).await?;
    let is_full = matching.len() == most as usize;
    Ok(Replayed {
        count: u32::try_from(count).unwrap_or(u32::MAX),
        next: matching.last().copied().filter(|_| is_full),
    })
}
