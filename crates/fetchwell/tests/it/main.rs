//! The built program, one module per subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

/// Makes two tests of each case: one on SQLite, one on Redis. `$place` builds the argument of the case from the
/// `StoreKind` and from the expression in parentheses behind the name of the case, if there is one; with `None` the
/// test is skipped.
macro_rules! on_both_stores {
    ($place:ident: $($case:ident $(($argument:expr))?),+ $(,)?) => {
        mod sqlite_store {
            use super::*;
            $(#[tokio::test] async fn $case() {
                let Some(place) = $place(StoreKind::Sqlite, $($argument)?).await else { return };
                super::$case(place).await;
            })+
        }
        mod redis_store {
            use super::*;
            $(#[tokio::test] async fn $case() {
                let Some(place) = $place(StoreKind::Redis, $($argument)?).await else { return };
                super::$case(place).await;
            })+
        }
    };
}

mod articles;
mod broken_store;
mod client;
mod commoncrawl_batch;
mod commoncrawl_work;
mod config;
mod crawl;
mod dashboard;
mod demo;
mod deploy;
mod dlq;
mod doors;
mod extract;
mod feeds;
mod fetch;
mod full_disk;
mod guard;
mod gzip_bomb;
mod hostile;
mod mcp;
mod migrate;
mod observe;
mod oversight;
mod pages;
mod resources;
mod schedule;
mod serve_api;
mod serve_contract;
mod serve_firecrawl;
mod serve_guard;
mod serve_openapi;
mod serve_python;
mod serve_typescript;
mod sites;
mod top;
mod upgrade;
mod warc;
mod webpage_log;
