//! The built program, one module per subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

mod articles;
mod client;
mod commoncrawl_batch;
mod commoncrawl_work;
mod config;
mod dashboard;
mod demo;
mod deploy;
mod dlq;
mod doors;
mod feeds;
mod fetch;
mod guard;
mod hostile;
mod migrate;
mod observe;
mod oversight;
mod pages;
mod schedule;
mod serve_api;
mod serve_contract;
mod serve_python;
mod sites;
mod top;
mod warc;
mod webpage_log;
