//! The least that an inbox on PostgreSQL has to do: prepared inserts into one table, whose commits wait
//! for the disk.

use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor, PgConnection};
use tokio::task::JoinSet;

use super::message::{CALLER, Names, Text};

const PREPARE: &str = "
    CREATE TABLE inbox (
        id BYTEA PRIMARY KEY,
        url TEXT NOT NULL,
        retailer TEXT NOT NULL,
        correlation_id TEXT NOT NULL,
        caller_id TEXT NOT NULL,
        status TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        attempts INTEGER NOT NULL
    );
    CREATE INDEX inbox_status ON inbox (status, created_at);";

const INSERT: &str = "INSERT INTO inbox VALUES ($1, $2, $3, $4, $5, 'queued', $6, 0)";

const INSERT_MANY: &str = "
    INSERT INTO inbox
    SELECT id, url, retailer, correlation_id, $5, 'queued', created_at, 0
    FROM unnest($1::BYTEA[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $6::BIGINT[])
        AS new (id, url, retailer, correlation_id, created_at)";

/// How a loop commits.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// One insert, which is its own transaction.
    OneByOne,
    /// So many inserts, one statement each, in a transaction.
    RowByRow(usize),
    /// So many rows in one statement.
    Unnest(usize),
}

/// Rows a second, on so many connections.
pub(super) async fn rows_per_second(
    url: &str,
    texts: Arc<Vec<Text>>,
    connections: usize,
    way: Way,
    time: Duration,
) -> Result<f64> {
    let options = PgConnectOptions::from_str(url)?.options([("synchronous_commit", "on")]);
    options.connect().await?.execute(PREPARE).await?;
    let mut opened = Vec::new();
    for _ in 0..connections {
        opened.push(options.connect().await?);
    }
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for (place, mut connection) in opened.into_iter().enumerate() {
        let texts = texts.clone();
        tasks.spawn(async move {
            let mut names = Names::new(place);
            let mut rows = 0;
            let first = place * texts.len() / connections;
            let mut texts = texts.iter().cycle().skip(first);
            while started.elapsed() < time {
                rows += commit(&mut connection, way, &mut names, &mut texts).await?;
            }
            anyhow::Ok(rows)
        });
    }
    let mut rows = 0;
    while let Some(ended) = tasks.join_next().await {
        rows += ended??;
    }
    Ok(rows as f64 / started.elapsed().as_secs_f64())
}

async fn commit<'a>(
    connection: &mut PgConnection,
    way: Way,
    names: &mut Names,
    texts: &mut (impl Iterator<Item = &'a Text> + Send),
) -> Result<usize> {
    match way {
        Way::OneByOne => {
            put_in(connection, names, texts.next()).await?;
            Ok(1)
        }
        Way::RowByRow(many) => {
            let mut transaction = connection.begin().await?;
            for text in texts.take(many) {
                put_in(&mut transaction, names, Some(text)).await?;
            }
            transaction.commit().await?;
            Ok(many)
        }
        Way::Unnest(many) => {
            let texts: Vec<&Text> = texts.take(many).collect();
            let (ids, times): (Vec<Vec<u8>>, Vec<i64>) =
                texts.iter().map(|_| names.next()).map(|(id, now)| (id.0.to_vec(), now)).unzip();
            sqlx::query(INSERT_MANY)
                .bind(ids)
                .bind(texts.iter().map(|text| text.url.as_str()).collect::<Vec<_>>())
                .bind(texts.iter().map(|text| text.retailer.as_str()).collect::<Vec<_>>())
                .bind(texts.iter().map(|text| text.correlation_id.as_str()).collect::<Vec<_>>())
                .bind(CALLER)
                .bind(times)
                .execute(connection)
                .await?;
            Ok(many)
        }
    }
}

async fn put_in(
    connection: &mut PgConnection,
    names: &mut Names,
    text: Option<&Text>,
) -> Result<()> {
    let Some(Text { url, retailer, correlation_id }) = text else { return Ok(()) };
    let (id, now) = names.next();
    let query = sqlx::query(INSERT).bind(id.0.to_vec()).bind(url).bind(retailer);
    query.bind(correlation_id).bind(CALLER).bind(now).execute(connection).await?;
    Ok(())
}
