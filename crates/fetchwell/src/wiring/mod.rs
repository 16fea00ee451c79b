//! Builds what commands need from the settings.

mod dashboard;
mod listeners;
mod read_limits;
mod runtime;
mod sites;
mod stores;

pub(crate) use dashboard::{crawl_progress, system_info};
pub(crate) use listeners::{connection_rules, listen, listen_for_metrics};
pub(crate) use read_limits::read_limits;
pub(crate) use runtime::{
    MetricsTarget, Parts, address_guard, breaker_rule, fitting_in_flight, gate_rules, offline_gate,
    user_agent,
};
pub(crate) use sites::open_sites;
#[cfg(feature = "postgres")]
pub(crate) use stores::store;
pub(crate) use stores::{
    open_articles, open_articles_if_any, open_batches, open_claims, open_embedded_events,
    open_feeds, open_list, open_page_cache, open_pages, open_politeness, open_politeness_to_read,
    open_queue_db, open_queues, open_retriever, open_retriever_if_any, open_waiting,
    politeness_store, store_clock,
};
