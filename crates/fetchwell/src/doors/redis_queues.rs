//! The queues on a Redis server: the list of `pages`, and the links that `articles` has claimed.

use fetchwell_engine::clock::Clock;
use fetchwell_settings::Settings;
use fetchwell_stores::StoreClock;
use fetchwell_stores::redis::{DEFAULT_POLL, QueueNames, RedisQueue};

use super::articles::CLAIMS;
use super::url_list::poll;
use crate::console::exit::Exit;
use crate::plant::bound_queue;

/// Where the queue of claims would put what it gives up; nothing is.
const CLAIMS_GIVEN_UP: &str = "rss:canonical_queue_given_up";

/// Opens the list that `pages` takes URLs from.
pub(crate) async fn open_list(settings: &Settings, url: &str) -> Result<RedisQueue, Exit> {
    let values = &settings.values;
    let names = QueueNames {
        input: values.pages_input_queue.clone(),
        dead_letters: values.pages_dlq_queue.clone(),
    };
    let clock = server_clock();
    Ok(RedisQueue::open(url, &names, clock, values.lease_ttl, false, poll(settings)).await?)
}

/// Opens the links that `articles` has claimed.
pub(crate) async fn open_claims(settings: &Settings, url: &str) -> Result<RedisQueue, Exit> {
    let names = QueueNames { input: CLAIMS.to_owned(), dead_letters: CLAIMS_GIVEN_UP.to_owned() };
    let lease_ttl = settings.values.lease_ttl;
    let clock = server_clock();
    let queue = RedisQueue::open(url, &names, clock, lease_ttl, true, DEFAULT_POLL).await?;
    bound_queue(settings, queue).await
}

/// The clock of a server, beside the one that the flow goes by.
pub(crate) fn server_clock() -> StoreClock {
    StoreClock::Server(Clock::since_boot(Clock::booted_at()))
}
