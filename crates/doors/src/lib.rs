//! The doors: each is a source, a plan and a sink. The flow between them is the engine's.
//!
//! | door | a lease is | it fetches | out comes | it ends |
//! |---|---|---|---|---|
//! | [`fetch`] | a URL | the page | a row | done or skipped |
//! | [`retriever`] | an inbox message | the page | an outbox row | done or skipped |
//! | [`pages`] | a URL | the page | page and event, or a dead letter | done, skipped or dead |
//! | [`articles`] | a link | the page | an article, or a failure | done or skipped |
//! | [`feeds`] | a feed, or a link that leads elsewhere | the feed, if it changed; the link | links by category | done |
//! | [`schedule`] | a sitemap | the sitemap | URLs to queue | done |
//! | [`webhooks`] | a delivery | it posts | nothing | done or dead |
//!
//! Plans are pure. A door's payload is the JSON in its jobs; its `plan` makes of a lease
//! what the engine steps through; its records are what the sink writes. Ports, rules and what the flow runs on are
//! arguments: no door knows which store is behind a port, or which setting behind a rule.

pub mod articles;
pub mod feeds;
pub mod fetch;
pub mod pages;
pub mod read_limits;
pub mod retriever;
pub mod schedule;
pub mod webhooks;
