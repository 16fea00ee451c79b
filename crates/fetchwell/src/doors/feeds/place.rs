//! What the door stands on: feeds and links, both on one store.

use std::sync::Arc;

use fetchwell_engine::ports::feeds::Feeds;
use fetchwell_engine::ports::links::CategoryLinks;
use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_settings::Settings;
#[cfg(feature = "redis")]
use fetchwell_stores::redis::{RedisFeeds, RedisLinks};
use fetchwell_stores::sqlite::{self, SqliteFeeds, SqliteLinks};

use crate::console::exit::Exit;
use crate::plant::open_queue_db;

/// All of it.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) feeds: Arc<dyn Feeds>,
    pub(super) links: Arc<dyn CategoryLinks>,
}

impl Place {
    /// Opens the store that the settings name.
    pub(super) async fn open(settings: &Settings) -> Result<Place, Exit> {
        match &settings.values.store {
            #[cfg(feature = "redis")]
            StoreUrl::Redis(url) => Ok(Place {
                feeds: Arc::new(RedisFeeds::open(url.reveal()).await?),
                links: Arc::new(RedisLinks::open(url.reveal()).await?),
            }),
            StoreUrl::Sqlite(_) => {
                let db = open_queue_db(settings).await?;
                let clock = sqlite::clock(&db).await?;
                Ok(Place {
                    feeds: Arc::new(SqliteFeeds::new(db.clone())),
                    links: Arc::new(SqliteLinks::new(db, clock)),
                })
            }
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(_) => Err(Exit::Usage(format!(
                "\"feeds\" needs Redis or SQLite, but the store is {}; use --store redis://HOST or \
                 --store sqlite:PATH",
                settings.values.store
            ))),
        }
    }
}
