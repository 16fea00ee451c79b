//! The doors: each is a source, a plan and a sink. The engine runs the flow between them.
//!
//! | door | a lease is | fetches | produces | ends |
//! |---|---|---|---|---|
//! | [`fetch`] | a URL | the page | a row | done or skipped |
//! | [`crawl`] | a page, or a sitemap | it | a row, and the pages that it names | done or skipped |
//! | [`retriever`] | an inbox message | the page | an outbox row | done or skipped |
//! | [`pages`] | a URL | the page | page and event, or a dead letter | done, skipped or dead |
//! | [`articles`] | a link | the page | an article, or a failure | done or skipped |
//! | [`feeds`] | a feed, or a link to resolve | the feed, if it changed; the link | links by category | done |
//! | [`schedule`] | a sitemap | the sitemap | URLs to queue | done |
//! | [`webhooks`] | a delivery | nothing: it posts | nothing | done or dead |
//!
//! Plans are pure. A job's payload is JSON; the `plan` of a door turns a lease into the steps that the engine runs, and
//! its records are what the sink writes. Ports, rules and the runtime are arguments: a door does not know which store
//! implements a port or which setting a rule comes from.

pub mod articles;
pub mod crawl;
pub mod feeds;
pub mod fetch;
pub mod pages;
pub mod read_limits;
pub mod retriever;
pub mod schedule;
mod sitemap_file;
pub mod webhooks;
