//! Builds what commands need from the settings.

mod dashboard;
mod listeners;
mod runtime;
mod stores;

pub(crate) use dashboard::{dashboard_subject, serve_dashboard};
pub(crate) use listeners::{connection_rules, listen, listen_for_metrics, with_metrics};
pub(crate) use runtime::{
    MetricsTarget, Parts, address_guard, breaker_rule, fitting_in_flight, gate_rules, offline_gate,
    read_limits, user_agent,
};
#[cfg(feature = "postgres")]
pub(crate) use stores::store;
pub(crate) use stores::{
    open_articles, open_articles_if_any, open_batches, open_claims, open_embedded_events,
    open_feeds, open_list, open_page_cache, open_pages, open_politeness, open_politeness_to_read,
    open_queue_db, open_queues, open_retriever, open_retriever_if_any, open_sites,
    politeness_store, store_clock,
};
