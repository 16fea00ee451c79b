//! The Redis adapter, which many machines can share. Its scripts declare all their keys and use the server's clock.

mod articles;
mod errors;
mod examination;
mod feeds;
mod link;
mod links;
mod pages;
mod queue;
mod site_states;

use fetchwell_engine::ports::error::StoreError;

pub use articles::RedisArticles;
pub use examination::{RedisFacts, examine};
pub use feeds::RedisFeeds;
pub use links::RedisLinks;
pub use pages::RedisPages;
pub use queue::{DEFAULT_POLL, QueueNames, RedisInstance, RedisQueue, UnparkStep, Unparking};
pub use site_states::RedisSiteStates;

use crate::politeness::ClockJumpGuard;

/// Connects to the server of a `redis://` or `rediss://` URL, for politeness.
pub async fn open_site_states(url: &str) -> Result<ClockJumpGuard<RedisSiteStates>, StoreError> {
    Ok(ClockJumpGuard::new(RedisSiteStates::open(url).await?))
}
