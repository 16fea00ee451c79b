//! Rounds of a schedule on Redis.

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::rounds::{MEMORY, Put, Round, Rounds};
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_policy::time::Time;
use serde_json::json;

use super::RedisQueue;

/// Entries per script call.
const MOST_PER_LOOK: usize = 1_000;

#[async_trait]
impl Rounds for RedisQueue {
    async fn last_rounds(&self, entries: &[&str]) -> Result<Vec<Option<Time>>, StoreError> {
        let mut last = Vec::with_capacity(entries.len());
        for entries in entries.chunks(MOST_PER_LOOK) {
            let scripts = &self.scripts;
            let due: Vec<i64> =
                scripts.run_with(script!("rounds.lua"), &json!({}), entries).await?;
            last.extend(due.into_iter().map(|due| (due >= 0).then(|| Time::from_micros(due))));
        }
        Ok(last)
    }

    /// The same number as in the key `{list}:size`.
    async fn waiting(&self) -> Result<u64, StoreError> {
        Ok(self.backlog().await?.waiting)
    }

    async fn put(
        &self,
        round: &Round,
        urls: &[String],
        max_waiting: u64,
    ) -> Result<Put, StoreError> {
        let asked = json!({
            "entry": round.entry,
            "due": round.due.as_micros(),
            "forgotten": (round.due - MEMORY).as_micros(),
            "max_waiting": max_waiting,
        });
        let (what, waiting): (i64, u64) =
            self.scripts.run_with(script!("put_round.lua"), &asked, urls).await?;
        Ok(match what {
            0 => Put::Before,
            1 => Put::Done,
            _ => Put::TooDeep { waiting },
        })
    }
}
