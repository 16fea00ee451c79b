//! How PostgreSQL goes about a claim.

use std::fmt::Write;
use std::str::FromStr;

use anyhow::Result;
use fetchwell_stores::postgres::{CLAIM, DUE};
use sqlx::postgres::{PgArguments, PgConnectOptions};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, Postgres, Row};

/// Characters of a line that are shown.
const MAX_LINE: usize = 160;

/// Lets the planner know what is in the tables.
pub(super) async fn analyze(url: &str) -> Result<()> {
    let mut connection = PgConnectOptions::from_str(url)?.connect().await?;
    connection.execute("VACUUM ANALYZE").await?;
    Ok(())
}

/// The plans of the two statements that cost most, as they run; what they do is undone.
pub(super) async fn of_a_claim(url: &str, most: usize) -> Result<String> {
    let most = i64::try_from(most)?;
    let mut connection = PgConnectOptions::from_str(url)?.connect().await?;
    let mut transaction = connection.begin().await?;
    let look = "SELECT id FROM fetchwell_queue WHERE name = 'messages'";
    let queue: i32 = sqlx::query_scalar(look).fetch_one(&mut *transaction).await?;
    let look = "SELECT id FROM fetchwell_lane WHERE queue = $1";
    let lanes: Vec<i64> = sqlx::query_scalar(look).bind(queue).fetch_all(&mut *transaction).await?;
    let share = most / i64::try_from(lanes.len().max(1))?;
    // A room for each job: the widest look.
    let due = |text: String| {
        let query = sqlx::query(AssertSqlSafe(text)).bind(queue).bind(lanes.clone());
        query.bind(i64::MAX).bind(share).bind(1_i64)
    };
    let found = due(DUE.to_owned()).fetch_all(&mut *transaction).await?;
    let jobs: Vec<i64> = found.iter().map(|row| row.try_get(3)).collect::<sqlx::Result<_>>()?;
    let looking = explain(&mut transaction, due(explained(DUE))).await?;
    let claim = sqlx::query(AssertSqlSafe(explained(CLAIM))).bind(jobs).bind(0_i64);
    let claiming = explain(&mut transaction, claim).await?;
    transaction.rollback().await?;
    Ok(format!("What is due:\n\n{looking}\nThe claim:\n\n{claiming}"))
}

fn explained(statement: &str) -> String {
    format!("EXPLAIN (ANALYZE, BUFFERS) {statement}")
}

async fn explain(
    connection: &mut PgConnection,
    query: Query<'_, Postgres, PgArguments>,
) -> Result<String> {
    let mut text = String::new();
    for row in query.fetch_all(connection).await? {
        let line: String = row.try_get(0)?;
        // A list of all the jobs helps nobody.
        let shown: String = line.chars().take(MAX_LINE).collect();
        writeln!(text, "    {shown}{}", if shown.len() < line.len() { "…" } else { "" })?;
    }
    Ok(text)
}
