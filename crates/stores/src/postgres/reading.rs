//! Results, as their callers see them.

use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{
    FetchResult, MessageId, OutboxMessage, OutboxMost, OutboxPage, StoredPage,
};
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::database::Database;
use super::moves::now_or;
use super::queue::PostgresQueue;

/// The size of a content is known without reading it, so content beyond the limit is not read.
const PAGE: &str = "
    SELECT pruned, results, page.*
    FROM fetchwell_caller AS caller
    LEFT JOIN LATERAL (
        SELECT cursor, stored_at, status, content, content_type, http_status, error, extracted,
            details, cached_age, key, url, odd_url, retailer, correlation_id, attempts
        FROM (
            SELECT outbox.*, sum(bytes) OVER (ORDER BY cursor) - bytes AS bytes_before
            FROM (
                SELECT *, coalesce(octet_length(content), 0)::BIGINT + coalesce(octet_length(extracted), 0)
                    + coalesce(octet_length(details), 0) AS bytes
                FROM fetchwell_outbox AS all_of_it
                WHERE all_of_it.caller = caller.name
                    AND all_of_it.cursor > coalesce($2, caller.pruned)
                ORDER BY all_of_it.cursor LIMIT $3) AS outbox
        ) AS sized
        JOIN fetchwell_job AS job ON job.id = sized.job
        WHERE bytes_before < greatest($4, 1)
        ORDER BY cursor
    ) AS page ON TRUE
    WHERE caller.name = $1";

const NEWEST_PAGE: &str = concat!(
    "SELECT ",
    now_or!("$2::BIGINT"),
    " AS now, cursor, stored_at, status, content, content_type, http_status, error, extracted,
        details, cached_age, key, url, odd_url, retailer, correlation_id, attempts
     FROM fetchwell_outbox AS outbox JOIN fetchwell_job AS job ON job.id = outbox.job
     WHERE outbox.kind = $1 AND outbox.status = 'success'
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
    let row_of =
        |row: &PgRow| Ok((row.try_get("pruned")?, row.try_get("results")?, result_of(row)?));
    let rows: Vec<(i64, i64, Option<OutboxMessage>)> = db.read(query, row_of).await?;
    let mut results = Vec::new();
    let mut next = after.unwrap_or(0);
    if rows.is_empty() && next > 0 {
        return Ok(OutboxPage::Gone { oldest: 0 }); // This caller has never had a result.
    }
    for (pruned, newest, result) in rows {
        if after.is_some_and(|after| after < pruned || after > newest) {
            return Ok(OutboxPage::Gone { oldest: pruned });
        }
        // For a caller without results, the query returns one row with only the caller's own columns.
        results.extend(result);
        next = results.last().map_or(next.max(pruned), |last: &OutboxMessage| last.cursor);
    }
    Ok(OutboxPage::Results { results, next })
}

pub(super) fn result_of(row: &PgRow) -> sqlx::Result<Option<OutboxMessage>> {
    let Some(cursor) = row.try_get("cursor")? else { return Ok(None) };
    let http_status: Option<i32> = row.try_get("http_status")?;
    let attempts: i64 = row.try_get("attempts")?;
    let cached_age: Option<i64> = row.try_get("cached_age")?;
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
