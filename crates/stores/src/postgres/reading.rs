//! Results, as their callers see them.

use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{
    BatchId, FetchResult, MessageId, OutboxMessage, OutboxMost, OutboxPage, StoredPage,
};
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::bodies::join_body;
use super::database::Database;
use super::moves::now_or;
use super::queue::PostgresQueue;
use crate::shared::bodies::result_body;

/// A page of the results `$chosen` of the owner `$of`: rows with the columns of [`result_of`]. The size of a content is
/// known without reading it, so content beyond the limit `$4` is not read.
macro_rules! page {
    ($of:literal, $chosen:literal) => {
        concat!(
            "
    SELECT pruned, results, page.*
    FROM ",
            $of,
            " AS owner
    LEFT JOIN LATERAL (
        SELECT cursor, stored_at, status, content, content_type, http_status, error, extracted,
            details, cached_age, key, url, odd_url, retailer, correlation_id, attempts, body_of,
            body_expires_at, body_bytes
        FROM (
            SELECT outbox.*, sum(bytes) OVER (ORDER BY cursor) - bytes AS bytes_before
            FROM (
                SELECT *, coalesce(octet_length(content), 0)::BIGINT + coalesce(octet_length(extracted), 0)
                    + coalesce(octet_length(details), 0) AS bytes
                FROM (",
            $chosen,
            ") AS chosen) AS outbox
        ) AS sized
        JOIN fetchwell_job AS job ON job.id = sized.job",
            join_body!("sized.body_of"),
            "WHERE bytes_before < greatest($4, 1)
        ORDER BY cursor
    ) AS page ON TRUE"
        )
    };
}

/// Results of a caller.
const PAGE: &str = page!(
    "(SELECT * FROM fetchwell_caller WHERE name = $1)",
    "SELECT * FROM fetchwell_outbox AS all_of_it
     WHERE all_of_it.caller = owner.name AND all_of_it.cursor > coalesce($2, owner.pruned)
     ORDER BY all_of_it.cursor LIMIT $3"
);

/// Results of a batch, if it belongs to the caller `$5`.
const PAGE_OF_BATCH: &str = page!(
    "(SELECT batch.id, batch.pruned, coalesce(caller.results, 0) AS results
      FROM fetchwell_message_batch AS batch LEFT JOIN fetchwell_caller AS caller ON caller.name = batch.caller
      WHERE batch.id = $1 AND ($5::TEXT IS NULL OR batch.caller = $5))",
    "SELECT all_of_it.* FROM fetchwell_message_batch_result AS entry
     JOIN fetchwell_outbox AS all_of_it ON all_of_it.job = entry.job
     WHERE entry.batch = owner.id AND entry.place > coalesce($2, owner.pruned)
     ORDER BY entry.place LIMIT $3"
);

const NEWEST_PAGE: &str = concat!(
    "SELECT ",
    now_or!("$2::BIGINT"),
    " AS now, cursor, stored_at, status, content, content_type, http_status, error, extracted,
        details, cached_age, key, url, odd_url, retailer, correlation_id, attempts, body_of,
        body_expires_at, body_bytes
     FROM fetchwell_outbox AS outbox JOIN fetchwell_job AS job ON job.id = outbox.job",
    join_body!("outbox.body_of"),
    "WHERE outbox.kind = $1 AND outbox.status = 'success'
     ORDER BY outbox.stored_at DESC LIMIT 1"
);

/// The newest page of a kind.
pub(super) async fn newest_page(
    queue: &PostgresQueue,
    kind: [u8; 16],
) -> Result<Option<StoredPage>, StoreError> {
    let query = sqlx::query(NEWEST_PAGE).bind(kind.to_vec()).bind(queue.clock.given());
    let page_of = |row: &PgRow| {
        let now = Time::from_micros(row.try_get("now")?);
        let stored_at = Time::from_micros(row.try_get("stored_at")?);
        let outbox = result_of(row)?;
        Ok(outbox.map(|outbox| StoredPage { outbox, age: now.since(stored_at) }))
    };
    Ok(queue.db.read(query, page_of).await?.pop().flatten())
}

/// A part of a caller's results: one statement, and so one moment.
pub(super) async fn page(
    db: &Database,
    caller: &str,
    after: Option<i64>,
    most: OutboxMost,
) -> Result<OutboxPage, StoreError> {
    let query = sqlx::query(PAGE)
        .bind(caller)
        .bind(after)
        .bind(i64::from(most.results))
        .bind(i64::try_from(most.bytes).unwrap_or(i64::MAX));
    let rows = db.read(query, row_of).await?;
    if rows.is_empty() && after.is_some_and(|after| after > 0) {
        return Ok(OutboxPage::Gone { oldest: 0 }); // This caller has never had a result.
    }
    Ok(page_of(rows, after))
}

/// A part of the results of a batch, if it belongs to this caller.
pub(super) async fn page_of_batch(
    db: &Database,
    batch: BatchId,
    of: Option<&str>,
    after: Option<i64>,
    most: OutboxMost,
) -> Result<Option<OutboxPage>, StoreError> {
    let query = sqlx::query(PAGE_OF_BATCH)
        .bind(batch.0.to_vec())
        .bind(after)
        .bind(i64::from(most.results))
        .bind(i64::try_from(most.bytes).unwrap_or(i64::MAX))
        .bind(of);
    let rows = db.read(query, row_of).await?;
    Ok((!rows.is_empty()).then(|| page_of(rows, after)))
}

/// What is gone, the newest cursor, and a result.
type PageRow = (i64, i64, Option<OutboxMessage>);

fn row_of(row: &PgRow) -> sqlx::Result<PageRow> {
    Ok((row.try_get("pruned")?, row.try_get("results")?, result_of(row)?))
}

fn page_of(rows: Vec<PageRow>, after: Option<i64>) -> OutboxPage {
    let mut results = Vec::new();
    let mut next = after.unwrap_or(0);
    for (pruned, newest, result) in rows {
        if after.is_some_and(|after| after < pruned || after > newest) {
            return OutboxPage::Gone { oldest: pruned };
        }
        // Without results, the query returns one row with only the owner's own columns.
        results.extend(result);
        next = results.last().map_or(next.max(pruned), |last: &OutboxMessage| last.cursor);
    }
    OutboxPage::Results { results, next }
}

pub(super) fn result_of(row: &PgRow) -> sqlx::Result<Option<OutboxMessage>> {
    let Some(cursor) = row.try_get("cursor")? else { return Ok(None) };
    let http_status: Option<i32> = row.try_get("http_status")?;
    let attempts: i64 = row.try_get("attempts")?;
    let cached_age: Option<i64> = row.try_get("cached_age")?;
    let expires_at: Option<i64> = row.try_get("body_expires_at")?;
    let body_bytes: Option<i64> = row.try_get("body_bytes")?;
    Ok(Some(OutboxMessage {
        cursor,
        message: MessageId(row.try_get("key")?),
        url: url_of(row)?,
        retailer: row.try_get("retailer")?,
        correlation_id: row.try_get("correlation_id")?,
        created_at: Time::from_micros(row.try_get("stored_at")?),
        result: FetchResult {
            status: row.try_get("status")?,
            content: row.try_get("content")?,
            content_type: row.try_get("content_type")?,
            body: result_body(row.try_get("body_of")?, expires_at.zip(body_bytes)),
            http_status: http_status.and_then(|status| u16::try_from(status).ok()),
            error: row.try_get("error")?,
            extracted: row.try_get("extracted")?,
            attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
            attempt: None,
            details: row.try_get("details")?,
            cached_age: cached_age
                .and_then(|age| u64::try_from(age).ok())
                .map(Duration::from_micros),
        },
    }))
}

/// The URL exactly as it was posted.
pub(super) fn url_of(row: &PgRow) -> sqlx::Result<String> {
    match row.try_get::<Option<Vec<u8>>, _>("odd_url")? {
        Some(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        None => row.try_get("url"),
    }
}
