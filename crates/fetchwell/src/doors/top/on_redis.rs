//! The queues of a Redis server: the list of `pages`, and what `articles` claimed.

use fetchwell_engine::adapters::redis::RedisQueue;
use fetchwell_engine::dead_letters::{DeadLetter, DeadLetters};
use fetchwell_engine::ports::StoreFault;
use serde_json::Value;

use super::glance::{FailureLine, QueueLine};
use crate::cli::Exit;
use crate::doors::articles::CLAIMS;
use crate::doors::redis_queues::{open_claims, open_list};
use crate::settings::Settings;

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

    pub(super) async fn ledgers(&self) -> Result<Vec<QueueLine>, StoreFault> {
        let pages = QueueLine::of(&self.pages_name, &self.pages.ledger().await?);
        Ok(vec![
            pages.with_list(self.pages.waiting().await?),
            QueueLine::of(CLAIMS, &self.claims.ledger().await?),
        ])
    }

    pub(super) async fn failures(&self, most: usize) -> Result<Vec<FailureLine>, StoreFault> {
        let page = self.pages.dead_letters(None, most).await?;
        let mut failures: Vec<_> = page.letters.iter().map(failure_of_letter).collect();
        failures.sort_by(|one, other| other.at.cmp(&one.at));
        Ok(failures)
    }
}

impl QueueLine {
    /// The same where URLs wait on a list before they are counted: `waiting` is all that waits, these included.
    fn with_list(mut self, waiting: u64) -> QueueLine {
        let waiting = i64::try_from(waiting).unwrap_or(i64::MAX);
        let on_list = (waiting - self.queued - self.delayed).max(0);
        self.accepted += on_list;
        self.queued += on_list;
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
    use fetchwell_engine::ports::Ledger;

    use super::*;

    #[test]
    fn what_is_on_a_list_is_accepted_and_queued() {
        let ledger = Ledger { accepted: 9, done: 4, queued: 2, delayed: 3, ..Ledger::default() };
        for (waiting, expected) in [(5, (9, 2)), (12, (16, 9)), (4, (9, 2))] {
            let line = QueueLine::of("crawler_queue", &ledger).with_list(waiting);
            assert_eq!((line.accepted, line.queued), expected);
        }
    }
}
