//! The ports: the traits and types that doors and stores implement.

#![warn(missing_docs)]

pub mod articles;
pub mod batches;
pub mod crawl_progress;
pub mod crawls;
pub mod dead_letters;
pub mod error;
pub mod event_log;
pub mod feeds;
pub mod finish;
pub mod frontier;
pub mod inbox;
pub mod job;
pub mod links;
pub mod message_batches;
pub mod oversight;
pub mod page_cache;
pub mod plan;
pub mod politeness;
pub mod queue;
pub mod readable;
pub mod retriever_store;
pub mod rounds;
pub mod sites;
pub mod source;
pub mod store_url;
pub mod url_queue;
pub mod version;
