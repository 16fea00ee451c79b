//! Redis: what many machines share, by scripts that name all their keys and go by the server's clock.

mod link;
mod shelf;

pub use shelf::RedisShelf;

use crate::adapters::shared::Vigilant;
use crate::ports::StoreFault;

/// Connects to the server that a `redis://` or `rediss://` address names, for politeness.
pub async fn open_shelf(url: &str) -> Result<Vigilant<RedisShelf>, StoreFault> {
    Ok(Vigilant::new(RedisShelf::open(url).await?))
}
