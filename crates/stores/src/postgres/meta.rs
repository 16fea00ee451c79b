//! Metadata of a store.

use fetchwell_engine::ports::error::StoreError;
use sqlx::Row;

use super::database::Database;

/// Binds this store to a politeness store. The first one stays bound; returns that one.
///
/// Two processes on one store but on two politeness stores would each keep their own pace.
pub async fn bind_politeness(db: &Database, politeness: &str) -> Result<String, StoreError> {
    let mut tx = db.begin().await?;
    let bind = sqlx::query(
        "INSERT INTO fetchwell_meta AS meta VALUES ('politeness', $1)
         ON CONFLICT (key) DO UPDATE SET value = meta.value RETURNING value",
    );
    let bound = tx.fetch_one(bind.bind(politeness)).await.and_then(|row| row.try_get(0));
    tx.end(bound).await
}
