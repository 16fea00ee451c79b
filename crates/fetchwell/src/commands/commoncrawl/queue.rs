//! The queue that batches are published to.

use fetchwell_commoncrawl::BoundedQueue;
use fetchwell_engine::clock::Clock;
use fetchwell_settings::Settings;

use crate::console::exit::Exit;
use crate::wiring::open_batches;

/// Opens the queue of batches, with the limits of the settings.
pub(super) async fn open_bounded(settings: &Settings, clock: &Clock) -> Result<BoundedQueue, Exit> {
    Ok(BoundedQueue {
        queue: open_batches(settings, clock).await?,
        max_unconfirmed: settings.values.commoncrawl_max_unconfirmed,
        max_waiting: settings.values.commoncrawl_max_queue,
    })
}
