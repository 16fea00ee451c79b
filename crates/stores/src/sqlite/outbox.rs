//! Reads the results of messages.

use std::time::Duration;

use fetchwell_engine::ports::inbox::details::FetchDetails;
use fetchwell_engine::ports::inbox::{
    FetchResult, MessageId, OutboxMessage, OutboxMost, OutboxPage,
};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, Row, Rows};

use crate::shared::bodies::result_body;

macro_rules! select_result {
    () => {
        "SELECT cursor, key, url, grp, correlation_id, outbox.created_at, status, content,
             content_type, http_status, error, extracted, attempts, outbox.details, cached_age,
             stored_at, body_of, message_body.expires_at, length(bytes)
         FROM outbox JOIN job ON job.id = outbox.job JOIN lane ON lane.id = job.lane
         LEFT JOIN message_body ON message_body.job = body_of"
    };
}
pub(super) use select_result;

/// The result of a message.
pub(super) fn of_job(tx: &Connection, job: LeaseId) -> rusqlite::Result<Option<OutboxMessage>> {
    tx.find(concat!(select_result!(), " WHERE outbox.job = ?1"), [job], result_of)
}

/// The newest page of a kind, and when it was stored. The place in a crawl is left out: it is that of another message.
pub(super) fn newest_page(
    tx: &Connection,
    kind: &[u8; 16],
) -> rusqlite::Result<Option<(OutboxMessage, Time)>> {
    let select = concat!(
        select_result!(),
        " WHERE outbox.kind = ?1 AND status = 'success' ORDER BY stored_at DESC LIMIT 1"
    );
    tx.find(select, [kind], |row| {
        let stored_at = row.get("stored_at")?;
        let mut page = result_of(row)?;
        page.result.details = page.result.details.map(FetchDetails::without_crawl);
        Ok((page, Time::from_micros(stored_at)))
    })
}

/// A page of a caller's results.
pub(super) fn page(
    tx: &Connection,
    caller: &str,
    after: Option<i64>,
    most: OutboxMost,
) -> rusqlite::Result<OutboxPage> {
    let select = "SELECT pruned, results FROM caller WHERE name = ?1";
    let extent: Option<(i64, i64)> = tx.find(select, [caller], |row| row.try_into())?;
    let (pruned, newest) = extent.unwrap_or_default();
    let after = after.unwrap_or(pruned);
    if after < pruned || after > newest {
        return Ok(OutboxPage::Gone { oldest: pruned });
    }
    let mut select = tx.prepare_cached(concat!(
        select_result!(),
        " WHERE outbox.caller = ?1 AND cursor > ?2 ORDER BY cursor LIMIT ?3"
    ))?;
    results_in(select.query((caller, after, most.results))?, after, most)
}

/// The results in these rows, up to the maximum size.
pub(super) fn results_in(
    mut rows: Rows<'_>,
    after: i64,
    most: OutboxMost,
) -> rusqlite::Result<OutboxPage> {
    let mut results = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let result = result_of(row)?;
        bytes += result.result.text_bytes();
        results.push(result);
        if bytes >= most.bytes {
            break;
        }
    }
    let next = results.last().map_or(after, |last: &OutboxMessage| last.cursor);
    Ok(OutboxPage::Results { results, next })
}

/// The cursor of a caller's newest result.
pub(super) fn newest(tx: &Connection, caller: &str) -> rusqlite::Result<i64> {
    let select = "SELECT results FROM caller WHERE name = ?1";
    Ok(tx.find(select, [caller], |row| row.get(0))?.unwrap_or(0))
}

fn result_of(row: &Row<'_>) -> rusqlite::Result<OutboxMessage> {
    let expires_at: Option<i64> = row.get(17)?;
    let body_bytes: Option<i64> = row.get(18)?;
    Ok(OutboxMessage {
        cursor: row.get(0)?,
        message: MessageId(row.get(1)?),
        url: row.get(2)?,
        retailer: row.get(3)?,
        correlation_id: row.get(4)?,
        created_at: Time::from_micros(row.get(5)?),
        result: FetchResult {
            status: row.get(6)?,
            content: row.get(7)?,
            content_type: row.get(8)?,
            body: result_body(row.get(16)?, expires_at.zip(body_bytes)),
            http_status: row.get(9)?,
            error: row.get(10)?,
            extracted: row.get(11)?,
            attempts: row.get(12)?,
            attempt: None,
            details: row.get(13)?,
            cached_age: row.get::<_, Option<u64>>(14)?.map(Duration::from_micros),
        },
    })
}
