//! Reads the queues, sites and failures of the store in the settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::dead_letters::DeadLetter;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::oversight::{
    MessageFilter, MessageState, MessageSummary, Oversight, QueueLedger,
};
use fetchwell_engine::ports::sites::{Condition, SITES_PER_PAGE, SiteQuery};
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_service::sites::{SiteRow, SiteService};
use fetchwell_settings::Settings;
use serde_json::Value;

use super::snapshot::{FailureLine, QueueLine, SiteLine, StoreSnapshot};
use crate::console::exit::Exit;
use crate::wiring::{open_politeness, open_queues, open_retriever_if_any, open_sites, store_clock};

/// The number of sites read in order of name, besides those in trouble.
const MOST_SITES: usize = 2_000;
/// Sites in these conditions are always read.
const TROUBLES: [Condition; 5] = [
    Condition::Paused,
    Condition::BreakerOpen,
    Condition::Resting,
    Condition::FailedLately,
    Condition::LimitedLately,
];
/// The number of failures read.
const MOST_FAILURES: u32 = 20;

pub(super) struct WatchedStore {
    /// For a store that has a list of its queues.
    oversight: Option<Arc<dyn Oversight>>,
    /// For any other store: the list of `pages` and the queue of `articles`.
    queues: Vec<(String, Arc<dyn UrlQueue>)>,
    sites: SiteService,
    clock: Clock,
    store: String,
}

impl WatchedStore {
    pub(super) async fn open(settings: &Settings) -> Result<WatchedStore, Exit> {
        let (oversight, queues, clock) = match open_retriever_if_any(settings).await? {
            Some((store, clock)) => (Some(store.oversight), Vec::new(), clock),
            None => (None, open_queues(settings).await?, store_clock(settings).await?),
        };
        let politeness = open_politeness(settings).await?;
        let sites = open_sites(settings, politeness, None, clock.clone()).await?;
        let store = settings.values.store.to_string();
        Ok(WatchedStore { oversight, queues, sites, clock, store })
    }

    /// Takes a snapshot, with only the sites whose names contain `filter`.
    pub(super) async fn look(&self, filter: &str) -> Result<StoreSnapshot, StoreError> {
        let (sites, has_all_sites) = self.look_at_sites(filter).await?;
        let mut queues = self.ledgers().await?;
        queues.retain(|line| line.ledger.accepted > 0);
        Ok(StoreSnapshot {
            at: rfc3339(self.clock.wall()),
            store: self.store.clone(),
            queues,
            sites,
            has_all_sites,
            failures: self.failures().await?,
        })
    }

    async fn look_at_sites(&self, filter: &str) -> Result<(Vec<SiteLine>, bool), StoreError> {
        let text = (!filter.is_empty()).then(|| filter.to_owned());
        let mut found = BTreeMap::new();
        let mut query = SiteQuery { text, most: SITES_PER_PAGE, ..SiteQuery::default() };
        let has_all = loop {
            let page = self.sites.page(&query).await?;
            found.extend(page.rows.iter().map(|row| (row.site.clone(), line_of(row))));
            query.after = page.next;
            if query.after.is_none() || found.len() >= MOST_SITES {
                break query.after.is_none();
            }
        };
        for condition in TROUBLES.into_iter().filter(|_| !has_all) {
            let query = SiteQuery { after: None, condition: Some(condition), ..query.clone() };
            let page = self.sites.page(&query).await?;
            found.extend(page.rows.iter().map(|row| (row.site.clone(), line_of(row))));
        }
        Ok((found.into_values().collect(), has_all))
    }

    async fn ledgers(&self) -> Result<Vec<QueueLine>, StoreError> {
        let mut lines = Vec::new();
        if let Some(oversight) = &self.oversight {
            let oldest = oversight.oldest_waiting().await?;
            for QueueLedger { queue, ledger } in oversight.ledgers().await? {
                let waited = oldest.get(&queue).copied();
                lines.push(QueueLine::of(&queue, &ledger).with_oldest(waited));
            }
        }
        for (name, queue) in &self.queues {
            let backlog = queue.backlog().await?;
            let waited = queue.waited_longest().await?;
            let line = QueueLine::of(name, &backlog.ledger).with_oldest(waited);
            lines.push(line.with_list(backlog.on_list.unwrap_or(0)));
        }
        Ok(lines)
    }

    async fn failures(&self) -> Result<Vec<FailureLine>, StoreError> {
        let mut failures = Vec::new();
        if let Some(oversight) = &self.oversight {
            let failed =
                MessageFilter { state: Some(MessageState::Failed), ..MessageFilter::default() };
            let found = oversight.list(&failed, None, MOST_FAILURES).await?;
            failures.extend(found.messages.iter().map(failure_of_message));
        }
        if let Some((_, list)) = self.queues.first() {
            let page = list.dead_letters(None, MOST_FAILURES as usize).await?;
            failures.extend(page.letters.iter().map(failure_of_letter));
            failures.sort_by(|one, other| other.at.cmp(&one.at));
        }
        Ok(failures)
    }
}

fn line_of(row: &SiteRow) -> SiteLine {
    SiteLine {
        site: row.site.clone(),
        held_up_by: row.held_up_by,
        breaker: row.breaker.state,
        next_probe_in_seconds: row.breaker.next_probe_in_seconds,
        rests_for_seconds: row.rests_for_seconds,
        next_slot_in_seconds: row.next_slot_in_seconds,
        interval_seconds: row.pace.interval_seconds,
        pace_source: row.pace.source,
        waiting: row.waiting,
        limited_last_hour: row.limited_last_hour,
        failed_last_hour: row.failed_last_hour,
    }
}

fn failure_of_message(message: &MessageSummary) -> FailureLine {
    FailureLine {
        at: message.ended_at.map(rfc3339),
        site: message.site.clone(),
        reason: message.reason.clone().unwrap_or_default(),
        url: message.url.clone(),
    }
}

/// The time of death is in the details that the door wrote.
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
