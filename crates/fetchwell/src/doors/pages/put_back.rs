//! Puts what waits in Redis back on the list, and waits for what dead instances hold.

use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_stores::redis::{UnparkStep, Unparked, Unparking};
use tracing::info;

/// How often it is looked whether an instance has renewed its lease.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A lease that ends just now is looked at a little later.
const LOOK_AFTER_AT_LEAST: Duration = Duration::from_millis(10);

/// Takes steps until there is nothing left to wait for.
pub(super) async fn put_back(mut unparking: Unparking) -> Result<Unparked, StoreError> {
    let mut is_said = false;
    loop {
        match unparking.step().await? {
            UnparkStep::Over(unparked) => return Ok(unparked),
            UnparkStep::Wait { instances, held, at_most } => {
                if !is_said {
                    info!(
                        instances,
                        urls = held,
                        "waiting up to {} s for leases to expire that may belong to dead processes",
                        at_most.as_secs_f64().ceil()
                    );
                    is_said = true;
                }
                tokio::time::sleep(at_most.clamp(LOOK_AFTER_AT_LEAST, LOOK_EVERY)).await;
            }
        }
    }
}
