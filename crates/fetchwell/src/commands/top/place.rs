//! Where a glance comes from: the queues, sites and failures of the store that the settings name.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::oversight::{Filter, MessageState, QueueLedger, Sighting};
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_engine::ports::sites::{Condition, SITES_PER_PAGE, SiteQuery};
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_service::sites::{SiteDesk, SiteRow};
use fetchwell_settings::Settings;

use super::glance::{FailureLine, Glance, QueueLine, SiteLine};
use crate::console::exit::Exit;
use crate::doors::retriever::open_store;
use crate::plant::open_politeness;
use crate::wiring::open_sites;

/// Sites that are looked at by name, besides those in trouble.
const MOST_SITES: usize = 2_000;
/// How sites stand that are looked at wherever their names come.
const TROUBLES: [Condition; 5] = [
    Condition::Paused,
    Condition::BreakerOpen,
    Condition::Resting,
    Condition::FailedLately,
    Condition::LimitedLately,
];
/// Failures that are looked at.
const MOST_FAILURES: u32 = 20;

/// What is looked at.
pub(super) struct Place {
    queues: Queues,
    sites: SiteDesk,
    clock: Clock,
    store: String,
}

/// Where the queues are.
enum Queues {
    /// In a database, all of them.
    Database(RetrieverStore),
    #[cfg(feature = "redis")]
    Redis(super::on_redis::RedisQueues),
}

impl Place {
    /// Opens what the settings name.
    pub(super) async fn open(settings: &Settings) -> Result<Place, Exit> {
        let values = &settings.values;
        let (queues, audit, clock) = match &values.store {
            #[cfg(feature = "redis")]
            fetchwell_engine::ports::store_url::StoreUrl::Redis(url) => {
                let queues = super::on_redis::RedisQueues::open(settings, url.reveal()).await?;
                (Queues::Redis(queues), None, crate::plant::store_clock(settings).await?)
            }
            _ => {
                let (store, clock) = open_store(settings).await?;
                let inbox = store.inbox.clone();
                (Queues::Database(store), Some(inbox), clock)
            }
        };
        let politeness = open_politeness(settings).await?;
        let sites = open_sites(settings, politeness, audit, clock.clone()).await?;
        Ok(Place { queues, sites, clock, store: values.store.to_string() })
    }

    /// Looks once; `filter`: only sites with this in their names are wanted.
    pub(super) async fn look(&self, filter: &str) -> Result<Glance, StoreError> {
        let (sites, has_all_sites) = self.look_at_sites(filter).await?;
        let mut queues = self.queues.ledgers().await?;
        queues.retain(|line| line.accepted > 0);
        Ok(Glance {
            at: rfc3339(self.clock.wall()),
            store: self.store.clone(),
            queues,
            sites,
            has_all_sites,
            failures: self.queues.failures().await?,
        })
    }

    async fn look_at_sites(&self, filter: &str) -> Result<(Vec<SiteLine>, bool), StoreError> {
        let text = (!filter.is_empty()).then(|| filter.to_owned());
        let mut found = BTreeMap::new();
        let mut query =
            SiteQuery { text: text.clone(), most: SITES_PER_PAGE, ..SiteQuery::default() };
        let has_all = loop {
            let page = self.sites.page(&query).await?;
            found.extend(page.rows.iter().map(|row| (row.site.clone(), line_of(row))));
            query.after = page.next;
            if query.after.is_none() || found.len() >= MOST_SITES {
                break query.after.is_none();
            }
        };
        for condition in TROUBLES.into_iter().filter(|_| !has_all) {
            let (text, condition) = (text.clone(), Some(condition));
            let query = SiteQuery { text, condition, most: SITES_PER_PAGE, ..SiteQuery::default() };
            let page = self.sites.page(&query).await?;
            found.extend(page.rows.iter().map(|row| (row.site.clone(), line_of(row))));
        }
        Ok((found.into_values().collect(), has_all))
    }
}

impl Queues {
    async fn ledgers(&self) -> Result<Vec<QueueLine>, StoreError> {
        match self {
            Queues::Database(store) => {
                let oldest = store.oversight.oldest_waiting().await?;
                let line = |told: QueueLedger| {
                    let mut line = QueueLine::of(&told.queue, &told.ledger);
                    let waited = oldest.get(&told.queue);
                    line.oldest_waiting_seconds = waited.map(Duration::as_secs_f64);
                    line
                };
                Ok(store.oversight.ledgers().await?.into_iter().map(line).collect())
            }
            #[cfg(feature = "redis")]
            Queues::Redis(queues) => queues.ledgers().await,
        }
    }

    async fn failures(&self) -> Result<Vec<FailureLine>, StoreError> {
        match self {
            Queues::Database(store) => {
                let failed = Filter { state: Some(MessageState::Failed), ..Filter::default() };
                let found = store.oversight.list(&failed, None, MOST_FAILURES).await?;
                Ok(found.messages.iter().map(failure_of_message).collect())
            }
            #[cfg(feature = "redis")]
            Queues::Redis(queues) => queues.failures(MOST_FAILURES as usize).await,
        }
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

fn failure_of_message(message: &Sighting) -> FailureLine {
    FailureLine {
        at: message.ended_at.map(rfc3339),
        site: message.site.clone(),
        reason: message.reason.clone().unwrap_or_default(),
        url: message.url.clone(),
    }
}
