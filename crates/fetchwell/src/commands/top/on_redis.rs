//! The queues of a Redis server: the list of `pages`, and what `articles` claimed.

use std::time::Duration;

use fetchwell_engine::ports::dead_letters::{DeadLetter, DeadLetters};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_settings::Settings;
use fetchwell_stores::redis::RedisQueue;
use serde_json::Value;

use super::glance::{FailureLine, QueueLine};
use crate::console::exit::Exit;
use crate::doors::articles::CLAIMS;
use crate::doors::redis_queues::{open_claims, open_list};

/// Both queues.
pub(super) struct RedisQueues {
    pages: RedisQueue,
    pages_name: String,
    claims: RedisQueue,
}

impl RedisQueues {
    pub(super) async fn open(settings: &Settings, url: &str) -> Result<RedisQueues, Exit> {
        Ok(RedisQueues {
            pages: open_list(settings, url).await?,
            pages_name: settings.values.pages_input_queue.clone(),
            claims: open_claims(settings, url).await?,
        })
    }

    pub(super) async fn ledgers(&self) -> Result<Vec<QueueLine>, StoreError> {
        let backlog = self.pages.backlog().await?;
        let mut pages = QueueLine::of(&self.pages_name, &backlog.ledger)
            .with_list(backlog.on_list.unwrap_or(0));
        pages.oldest_waiting_seconds = seconds(self.pages.waited_longest().await?);
        let mut claims = QueueLine::of(CLAIMS, &self.claims.ledger().await?);
        claims.oldest_waiting_seconds = seconds(self.claims.waited_longest().await?);
        Ok(vec![pages, claims])
    }

    pub(super) async fn failures(&self, most: usize) -> Result<Vec<FailureLine>, StoreError> {
        let page = self.pages.dead_letters(None, most).await?;
        let mut failures: Vec<_> = page.letters.iter().map(failure_of_letter).collect();
        failures.sort_by(|one, other| other.at.cmp(&one.at));
        Ok(failures)
    }
}

fn seconds(waited: Option<Duration>) -> Option<f64> {
    waited.map(|waited| waited.as_secs_f64())
}

impl QueueLine {
    /// The same where URLs wait on a list before they are counted.
    fn with_list(mut self, on_list: u64) -> QueueLine {
        let on_list = i64::try_from(on_list).unwrap_or(i64::MAX);
        self.accepted = self.accepted.saturating_add(on_list);
        self.queued = self.queued.saturating_add(on_list);
        self
    }
}

/// When it died stands in the door's own words about it.
fn failure_of_letter(letter: &DeadLetter) -> FailureLine {
    let details =
        letter.details.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let at = details.as_ref().and_then(|details| details["last_at"].as_str()).map(str::to_owned);
    FailureLine {
        at,
        site: letter.group.site.clone(),
        reason: letter.group.reason.clone(),
        url: letter.url.clone(),
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::queue::Ledger;

    use super::*;

    #[test]
    fn what_is_on_a_list_is_accepted_and_queued() {
        let ledger = Ledger { accepted: 9, done: 4, queued: 2, delayed: 3, ..Ledger::default() };
        for (on_list, expected) in [(0, (9, 2)), (7, (16, 9))] {
            let line = QueueLine::of("crawler_queue", &ledger).with_list(on_list);
            assert_eq!((line.accepted, line.queued), expected);
        }
    }
}
